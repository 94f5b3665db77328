"""A real browser for tests: the Chromium of this machine, driven by Playwright."""

import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_chromium() -> str | None:
    """Where Chromium lies, if it is installed."""
    return next(filter(None, map(shutil.which, NAMES)), None)


needs_browser = pytest.mark.skipif(
    find_chromium() is None, reason="no Chromium here: Debian's package `chromium` has it"
)


def launch(playwright):
    """Start the browser. Its own sandbox doesn't work for root."""
    options = ["--no-sandbox"] if os.getuid() == 0 else []
    return playwright.chromium.launch(executable_path=find_chromium(), args=options)
