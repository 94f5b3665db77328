"""What the tests of the report share: a browser, a class of 60, and its report on a page."""

import pytest
from playwright.sync_api import sync_playwright

from autograder.batch.output.html_report import write_report
from autograder.batch.output.report_screenshot import launch
from tests.tooling.batch.output.watched_report import COUNT, WatchedReport
from tests.tooling.drawn_batches import write_batch


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = write_batch(tmp_path_factory.mktemp("batch") / "out", COUNT, notes=("An odd export.",))
    write_report(folder)
    return folder


@pytest.fixture
def watched(browser, folder):
    """The report in a wide window; nothing may be asked of a network, nothing may go wrong."""
    watched = WatchedReport(browser, folder)
    yield watched
    watched.context.close()
    assert {url for url in watched.requests if not url.startswith("data:")} == {watched.address}
    assert not watched.errors
