"""Every test of the course gets its fixtures from common/testing/fixtures.py."""

import os

import pytest

from common.missing_packages import why_tests_cannot_run

REASON = why_tests_cannot_run()
if not REASON:
    from common.determinism import SAME_ARITHMETIC

    # Before NumPy is loaded, and as in grading: small arrays like it.
    os.environ.update(SAME_ARITHMETIC)
    pytest_plugins = ["common.testing.fixtures"]


def pytest_addoption():
    """End with a sentence where the fixtures can't be imported, before an option is unknown."""
    if REASON:
        raise pytest.UsageError(REASON)
