"""Marks tests that need a real browser."""

import pytest

from autograder.batch.output.report_screenshot import find_browser

needs_browser = pytest.mark.skipif(
    find_browser() is None, reason="no Chromium here: Debian's package `chromium` has it"
)
