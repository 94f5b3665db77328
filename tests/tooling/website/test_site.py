"""Tests of the site: rendered once, then opened in a real browser without a network."""

import hashlib
import html
import importlib.util
import re

import pytest

from autograder.batch.output.report_screenshot import launch
from autograder.website import site_build
from autograder.website.site_build import STATIC, build_site, check_leaks
from autograder.website.site_pages import MANUAL, page_files
from common.assignment import ROOT, load_all
from common.errors import CourseError
from tests.tooling.made_once import made_once
from tests.tooling.needs_browser import needs_browser

PHONE, DESKTOP = {"width": 390, "height": 800}, {"width": 1200, "height": 900}
READABLE = 4.5  # the contrast that WCAG asks of text
# The contrast of the text of the page's first paragraph with what is behind it.
CONTRAST = """() => {
  const light = color => {
    const parts = color.match(/[\\d.]+/g).slice(0, 3).map(part => part / 255);
    const linear = parts.map(p => p <= 0.03928 ? p / 12.92 : ((p + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const text = getComputedStyle(document.querySelector("article p, article li")).color;
  const [low, high] = [light(text), light(getComputedStyle(document.body).backgroundColor)].sort(
    (a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site."""
    return made_once(tmp_path_factory, "site", build_site)


@pytest.fixture(scope="module")
def browser():
    """Chromium, closed after the last test."""
    with importlib.import_module("playwright.sync_api").sync_playwright() as playwright:
        opened = launch(playwright)
        yield opened
        opened.close()


def open_page(browser, file, scheme="light", viewport=PHONE):
    """A page, and what it complained of or asked a network for."""
    complaints = []
    page = browser.new_context(color_scheme=scheme, viewport=viewport).new_page()
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith(("file:", "data:")) else complaints.append(request.url)
        ),
    )
    page.goto(file.as_uri())
    return page, complaints


@needs_browser
def test_every_page_loads_without_network_errors_or_sideways_scrolling(site, browser):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    formulas = 0
    for file in pages:
        page, complaints = open_page(browser, file)
        page.wait_for_function(
            "document.querySelectorAll('.math').length"
            " === document.querySelectorAll('mjx-container svg').length"
        )
        formulas += page.locator("mjx-container svg").count()
        broken = page.evaluate(
            "[...document.images].filter(image => !image.complete || !image.naturalWidth)"
            ".map(image => image.src)"
        )
        width = page.evaluate("document.documentElement.scrollWidth")
        assert (complaints, broken, width) == ([], [], PHONE["width"]), file
        page.context.close()
    assert formulas > 50


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_in_light_and_dark(site, browser, scheme):
    for name in ("index", "assignments/a5_attention/README", "assignments/a1_convolution/lab"):
        page, _ = open_page(browser, site / f"{name}.html", scheme)
        assert page.evaluate(CONTRAST) >= READABLE, name
        page.context.close()


@needs_browser
def test_search_finds_a_name_without_a_server(site, browser):
    page, complaints = open_page(browser, site / "search.html", viewport=DESKTOP)
    page.locator("input.sidebar-search").fill("Bahdanau")
    page.locator("input.sidebar-search").press("Enter")
    page.get_by_role("link", name="Assignment 4: Attention for translation").nth(1).wait_for()
    assert complaints == []


def test_links_and_anchors_inside_the_site_lead_somewhere(site):
    for file in sorted(site.rglob("*.html")):
        for link in re.findall(r'(?:href|src)="([^":]+)"', file.read_text("utf-8")):
            path, _, anchor = link.partition("#")
            target = (file.parent / path.partition("?")[0]).resolve() if path else file
            assert target.exists(), (file, link)
            if anchor and target.suffix == ".html":
                assert f'id="{anchor}"' in target.read_text("utf-8"), (file, link)


def test_every_page_of_the_manual_is_in_the_side_bar(site):
    front = (site / "index.html").read_text("utf-8")
    for file in page_files(load_all()):
        if file.suffix in {".md", ".ipynb"}:
            page = file.relative_to(ROOT).with_suffix(".html").as_posix()
            assert f'href="{page}"' in front, page
    assert {name for names in MANUAL.values() for name in names} <= {
        file.stem for file in (ROOT / "docs").glob("*.md")
    }


def test_a_line_of_a_solution_on_a_page_is_found(tmp_path):
    source = (ROOT / "solutions" / "a1_convolution" / "convolution.py").read_text("utf-8")
    block = source.partition("# BEGIN SOLUTION")[2].partition("# END SOLUTION")[0]
    secret = max((line.strip() for line in block.splitlines()), key=len)
    colored = "".join(f"<b>{html.escape(letter)}</b>" for letter in secret)
    (tmp_path / "page.html").write_text(f"<p>{colored}</p>", "utf-8")
    with pytest.raises(CourseError, match=r"page.html contains a line of solutions/"):
        check_leaks(tmp_path)


def test_a_broken_link_is_an_error_that_names_the_page(tmp_path, monkeypatch):
    def with_broken_link(folder, assignments):
        (folder / "index.md").write_text("# Title\n\n[nowhere](docs/nowhere.md)\n", "utf-8")

    monkeypatch.setattr(site_build, "write_pages", with_broken_link)
    with pytest.raises(CourseError, match=r"broken pages:\nindex.md:3: .*docs/nowhere.md"):
        build_site(tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_a_missing_package_is_one_sentence(monkeypatch, tmp_path):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "furo" else found(name)
    )
    with pytest.raises(CourseError, match=r"^`make site` needs furo: run `pip install"):
        build_site(tmp_path / "site")


def test_vendored_files_are_those_of_their_checksums():
    for sums in STATIC.rglob("SHA256SUMS"):
        for line in sums.read_text("utf-8").splitlines():
            digest, name = line.split()
            assert hashlib.sha256((sums.parent / name).read_bytes()).hexdigest() == digest
