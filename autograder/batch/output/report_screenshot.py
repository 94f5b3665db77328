"""Takes a screenshot of report.html with Chromium, for the documentation."""

import importlib
import os
import shutil
from io import BytesIO
from pathlib import Path
from typing import Any

from autograder.batch.batch_records import writing
from autograder.batch.output.html_report import REPORT
from common.errors import CourseError

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTH, HEIGHT = 1120, 900
COLORS = 64  # flat colors and gray letters need no more, and the file gets small


def find_browser() -> str | None:
    """Where Chromium lies, if it is installed."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def launch(playwright: Any) -> Any:
    """Start the browser of this machine. Its own sandbox doesn't work for root."""
    options = ["--no-sandbox"] if os.getuid() == 0 else []
    return playwright.chromium.launch(executable_path=find_browser(), args=options)


def take_picture(folder: Path, file: Path) -> None:
    """Write what the report of a batch looks like at its top, as a PNG."""
    if find_browser() is None:
        raise CourseError("--picture needs Chromium: install Debian's package `chromium`.")
    try:
        driver = importlib.import_module("playwright.sync_api")
    except ModuleNotFoundError:
        raise CourseError(
            "--picture needs Playwright: `pip install -r requirements.txt`."
        ) from None
    with driver.sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto((folder / REPORT).resolve().as_uri())
        content = page.screenshot()
        browser.close()
    image = importlib.import_module("PIL.Image")
    with writing(file):
        image.open(BytesIO(content)).quantize(COLORS, dither=0).save(file, "PNG", optimize=True)
