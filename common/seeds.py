"""Starts the random numbers that code draws without a seed of its own, the same for every test."""

import random
import sys

import numpy as np

SEED = 0


def seed_all() -> None:
    """Seed Python's, NumPy's and, where it is loaded, PyTorch's random numbers.

    So code that draws from them gives the same in every grading and in a student's own run, and
    recorded hints fit.
    """
    random.seed(SEED)
    np.random.seed(SEED)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(SEED)
