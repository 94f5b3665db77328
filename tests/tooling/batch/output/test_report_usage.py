"""How a report is used: sorted, filtered, by keyboard, on a telephone, in light and dark."""

import pytest
from playwright.sync_api import expect

from autograder.batch.batch_records import read_batch
from autograder.classroom.synthetic_students import plain
from tests.tooling.batch.output.watched_report import COUNT, WatchedReport, result_of
from tests.tooling.drawn_batches import HOSTILE_NAME, HOSTILE_TEXT
from tests.tooling.needs_browser import needs_browser

pytestmark = needs_browser


def test_columns_sort_both_ways_and_what_has_no_score_comes_last(watched):
    first = [plain(name)[0] for name in watched.names()]
    assert first == sorted(first)
    watched.page.get_by_role("button", name="score", exact=True).click()
    expect(watched.page.locator("th[data-key=score]")).to_have_attribute("aria-sort", "descending")
    scores = watched.column(3)
    assert scores[-2:] == ["-", "-"]
    down = [float(score) for score in scores[:-2]]
    assert down == sorted(down, reverse=True)
    assert len(set(down)) > 5
    watched.page.get_by_role("button", name="score", exact=True).click()
    scores = watched.column(3)
    assert scores[-2:] == ["-", "-"]
    assert [float(score) for score in scores[:-2]] == down[::-1]
    watched.page.get_by_role("button", name="1.3", exact=True).click()
    points = [float(points) for points in watched.column(6) if points]
    assert points == sorted(points, reverse=True)


def test_filters_find_names_numbers_texts_and_states(watched, folder):
    entry = read_batch(folder).entries[5]
    student = entry.students[0]
    page = watched.page
    for query in (student.name, student.email.upper(), entry.id):
        page.locator("#filter").fill(query)
        assert student.name in watched.names()
        assert len(watched.names()) < 5
    page.locator("#filter").fill("onerror=")
    assert watched.names() == [HOSTILE_NAME]
    page.locator("#filter").fill("no one is called this")
    expect(page.locator("#nothing")).to_be_visible()
    expect(page.locator("#count")).to_have_text(f"0 of {COUNT}")
    page.locator("#filter").fill("")
    page.locator("#status").select_option("failed")
    assert len(watched.names()) == 1
    page.locator("#status").select_option("")
    bar = page.locator("#histogram button").last
    bar.click()
    assert {*watched.column(3)} == {"100"}
    bar.click()
    assert len(watched.names()) == COUNT


def test_a_student_s_page_shows_every_test_as_the_student_sees_it(watched, folder):
    entry = read_batch(folder).entries[1]
    _, result = result_of(folder, entry.students[0].name)
    page = watched.page
    page.get_by_role("link", name=entry.students[0].name).first.click()
    dialog = page.locator("dialog")
    expect(dialog.locator("h2")).to_have_text(entry.students[0].name)
    expect(dialog.locator(".facts")).to_contain_text(f"{entry.score:g} of 100")
    tests = dialog.locator("article")
    assert tests.count() == len(result["tests"])
    shown = dialog.inner_text()
    for test in result["tests"]:
        for line in test["output"].split("\n"):
            assert line in shown
    failed = [test for test in result["tests"] if test["status"] == "failed"]
    assert dialog.locator("article.failed").count() == len(failed) > 0
    dialog.get_by_label("only failed tests").check()
    assert tests.count() == len(failed)
    dialog.get_by_label("only failed tests").uncheck()
    dialog.get_by_label("Student's view").select_option("now")
    visible = [test for test in result["tests"] if test["visibility"] == "visible"]
    assert tests.count() == len(visible) < len(result["tests"])


def test_hostile_text_is_shown_as_it_is_and_does_nothing(watched):
    page = watched.page
    page.get_by_role("link", name=HOSTILE_NAME).first.click()
    expect(page.locator("dialog h2")).to_have_text(HOSTILE_NAME)
    expect(page.locator("dialog pre").nth(1)).to_contain_text(HOSTILE_TEXT.split(" {{")[0])
    assert page.locator("dialog img, dialog script, dialog b[onclick]").count() == 0
    assert page.evaluate("window.hacked") is None


def test_the_keyboard_does_it_all(watched):
    page = watched.page
    page.keyboard.press("/")
    expect(page.locator("#filter")).to_be_focused()
    page.keyboard.type("graded")
    page.keyboard.press("Escape")
    expect(page.locator("#filter")).to_have_value("")
    page.keyboard.press("Enter")
    names = watched.names()
    focused = "document.activeElement.textContent"
    assert page.evaluate(focused) == names[0]
    page.keyboard.press("j")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("k")
    assert page.evaluate(focused) == names[1]
    page.keyboard.press("Enter")
    expect(page.locator("dialog h2")).to_have_text(names[1])
    page.keyboard.press("ArrowRight")
    expect(page.locator("dialog h2")).to_have_text(names[2])
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("dialog h2")).to_have_text(names[0])
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_be_hidden()
    assert page.evaluate(focused) == names[0]


def test_a_link_to_a_student_opens_that_one_and_back_closes_it(browser, folder):
    entry = read_batch(folder).entries[2]
    watched = WatchedReport(browser, folder)
    watched.page.goto("about:blank")
    watched.page.goto(f"{watched.address}#student={entry.id}")
    expect(watched.page.locator("dialog h2")).to_have_text(entry.students[0].name)
    watched.page.get_by_role("button", name="Close").click()
    watched.page.locator("#rows a").nth(4).click()
    expect(watched.page.locator("dialog")).to_be_visible()
    watched.page.go_back()
    expect(watched.page.locator("dialog")).to_be_hidden()
    watched.context.close()
    assert not watched.errors


def test_a_telephone_shows_it_without_scrolling_sideways(browser, folder):
    watched = WatchedReport(browser, folder, viewport={"width": 360, "height": 740}, has_touch=True)
    page = watched.page
    fits = "document.documentElement.scrollWidth <= innerWidth"
    assert page.evaluate(fits)
    page.locator("#sort").select_option("score")
    scores = [float(s) for s in page.locator("td.score").all_inner_texts() if s != "-"]
    assert scores == sorted(scores, reverse=True)
    page.locator("#rows tr").first.tap()
    expect(page.locator("dialog")).to_be_visible()
    assert page.evaluate(fits)
    assert page.locator("dialog").evaluate("d => d.scrollWidth <= d.clientWidth")
    watched.context.close()
    assert not watched.errors


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(browser, folder, scheme):
    watched = WatchedReport(browser, folder, color_scheme=scheme)
    ratios = watched.page.evaluate(CONTRAST, KINDS)
    watched.context.close()
    assert min(ratios.values()) >= 4.5, ratios


# WCAG's contrast of text and ground, for one element of each kind.
CONTRAST = """(kinds) => {
  const parse = (color) => color.match(/[\\d.]+/g).map(Number);
  const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) =>
    0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const ratios = {};
  for (const kind of kinds) {
    const style = getComputedStyle(document.querySelector(kind));
    let ground = document.querySelector(kind);
    while (parse(getComputedStyle(ground).backgroundColor)[3] === 0) ground = ground.parentElement;
    const colors = [style.color, getComputedStyle(ground).backgroundColor];
    const [dark, bright] = colors.map((color) => light(parse(color))).sort((a, b) => a - b);
    ratios[kind] = (bright + 0.05) / (dark + 0.05);
  }
  return ratios;
}"""
KINDS = (
    *("h1", "#lead", ".soft", "#figures dt", "#histogram b", "summary .name", ".mistakes small"),
    *("td.who a", ".cell.all", ".cell.none", ".cell:not(.all):not(.none)", ".state.failed", ".tag"),
)
