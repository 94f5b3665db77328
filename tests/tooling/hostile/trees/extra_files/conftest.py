"""Submits a conftest.py that turns every failure into a pass.

As: convolution.py
Earns: 1.7
"""

FILE = "conftest.py"
TEXT = """
import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    report.outcome = "passed"
    return report
"""
