"""Every test of the course gets its fixtures from common/testing/fixtures.py."""

import os

from common.determinism import SAME_ARITHMETIC

os.environ.update(
    SAME_ARITHMETIC
)  # before NumPy is loaded, and as in grading: small arrays like it
pytest_plugins = ["common.testing.fixtures"]
