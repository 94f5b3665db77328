"""Tests of the environment that NumPy and PyTorch are loaded in."""

import os
import subprocess
import sys

from autograder.grading.sandbox.fork_client import CLEAN_ENVIRONMENT
from autograder.grading.sandbox.kernel.confine import ENVIRONMENT
from common.determinism import SAME_ARITHMETIC

ROUNDED = """
import torch
layer = torch.nn.Linear(64, 64)  # small ones do without
with torch.autocast("cpu", dtype=torch.bfloat16):
    print(layer(torch.ones(64, 64)).dtype, torch.get_num_threads())
"""


def test_the_processor_rounds_to_bfloat16_with_one_thread_and_lives():
    """Where a machine announces a matrix unit that it doesn't have, PyTorch alone dies of it."""
    done = subprocess.run(
        [sys.executable, "-c", ROUNDED],
        env={**os.environ, **SAME_ARITHMETIC},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "torch.bfloat16 1\n"), done.stderr


def test_fork_servers_children_and_tests_have_it():
    for environment in (CLEAN_ENVIRONMENT, ENVIRONMENT, os.environ):
        assert SAME_ARITHMETIC.items() <= environment.items()
