"""The report of a batch, in a real browser: what it shows, how it is used, what it never does."""

import json
import math
import re

import matplotlib.image
import msgspec
import pytest
from playwright.sync_api import expect

from autograder.batch.batch_records import (
    keep_result,
    read_batch,
    read_state,
    result_file,
    write_state,
)
from autograder.batch.output.html_report import report_page, write_report
from autograder.batch.output.report_screenshot import HEIGHT, WIDTH
from autograder.grading.results import without_printed
from common.assignment import ROOT
from common.errors import HINT_PREFIX, CourseError
from common.testing.graded_tests import read_graded_tests
from tests.tooling.batch.output.watched_report import COUNT, WatchedReport, result_of
from tests.tooling.drawn_batches import HOSTILE_NAME, SPECIAL, write_batch
from tests.tooling.needs_browser import needs_browser
from tests.tooling.scratch_copies import python

pytestmark = needs_browser
MANY = 2000


def test_the_overview_tells_what_the_results_tell(watched, folder):
    batch = read_batch(folder)
    scores = sorted(entry.score for entry in batch.entries if entry.score is not None)
    assert len(scores) == COUNT - 2
    page = watched.page
    expect(page.locator("#lead")).to_contain_text(
        f"{COUNT} submissions by {COUNT + 1} students; {COUNT - 2} graded, 2 without a grade"
    )
    expect(page.locator("#notes")).to_have_text("An odd export.")
    median = (scores[(len(scores) - 1) // 2] + scores[len(scores) // 2]) / 2
    expect(page.locator("#figures div", has_text="median")).to_contain_text(f"{median:g} of 100")
    bars = page.locator("#histogram button").all()
    counts = [int(re.search(r"(\d+) submission", b.get_attribute("aria-label"))[1]) for b in bars]
    assert sum(counts) == len(scores)
    assert counts[0] == scores.count(0)
    assert counts[-1] == scores.count(100)


def percent(part, whole):
    """Rounded, but 0 % and 100 % mean none and all."""
    share = math.floor(100 * part / whole + 0.5)
    return f"{min(99, max(1, share)) if 0 < part < whole else share} %"


def test_pass_rates_are_those_of_the_results(watched, folder):
    batch = read_batch(folder)
    results = [result for entry in batch.entries if (result := batch.result(entry))]
    first = results[0]["tests"][0]
    passed = sum(result["tests"][0]["status"] == "passed" for result in results)
    exercise = watched.page.locator("#exercises details").first
    earned = sum(t["score"] for r in results for t in r["tests"] if t["number"] == "1.1")
    whole = sum(t["max_score"] for r in results for t in r["tests"] if t["number"] == "1.1")
    expect(exercise.locator("summary b")).to_have_text(percent(earned, whole))
    test = exercise.locator("li", has_text=first["name"])
    expect(test).to_be_hidden()
    exercise.locator("summary").click()
    expect(test).to_be_visible()
    expect(test.locator("b")).to_have_text(percent(passed, len(results)))


def test_all_points_stand_in_one_line_within_their_column(watched):
    share = watched.page.locator("#exercises summary b").first
    before = share.bounding_box()["height"]
    share.evaluate("element => { element.textContent = '100 %'; }")
    assert share.bounding_box()["height"] == before
    assert share.evaluate("element => element.scrollWidth <= element.clientWidth")


def test_mistakes_are_counted_by_their_hints_and_lead_to_their_submissions(watched, folder):
    batch = read_batch(folder)
    mistake = watched.page.locator("#mistakes button").first
    hint = mistake.locator("span").evaluate("span => span.firstChild.data")
    showing = {
        entry.students[0].name
        for entry in batch.entries
        if any(
            f"\n{HINT_PREFIX}{hint}" in test["output"]
            for test in (batch.result(entry) or {"tests": []})["tests"]
        )
    }
    expect(mistake.locator("b")).to_have_text(str(len(showing)))
    mistake.click()
    assert {name.split(",")[0] for name in watched.names()} == showing
    watched.page.locator("#clear").click()
    assert len(watched.names()) == COUNT


def test_a_mistake_in_the_lab_is_reported_with_its_question(watched, folder):
    graded_tests = read_graded_tests(ROOT / "tests" / "a1_convolution")
    asked = {
        test.name: " ".join(filter(None, [test.exercise, test.question])) for test in graded_tests
    }
    batch = read_batch(folder)
    results = [result for entry in batch.entries if (result := batch.result(entry))]
    with_questions = 0
    watched.page.locator("details.more summary").click()
    expect(watched.page.locator("details.more .mistakes button").first).to_be_visible()
    for reported in watched.page.locator(".mistakes button span").all():
        hint = reported.evaluate("span => span.firstChild.data")
        where = reported.locator("small").inner_text()
        places = {
            asked[test["extra_data"]["test"]]
            for result in results
            for test in result["tests"]
            if HINT_PREFIX + hint in without_printed(test["output"]).splitlines()
        }
        assert where.partition(" ")[2].split(", ") == sorted(places)
        with_questions += " q" in where
    assert with_questions


def test_what_student_code_prints_is_never_taken_for_a_hint(watched, folder):
    _, result = result_of(folder, HOSTILE_NAME)
    printed = {*result["tests"][0]["output"].splitlines()}
    content = json.loads(watched.page.locator("#data").text_content())
    forged = [
        mistake for mistake in content["mistakes"] if HINT_PREFIX + mistake["hint"] in printed
    ]
    assert forged
    assert not any(COUNT - 1 in mistake["rows"] for mistake in forged)
    watched.page.get_by_role("link", name=HOSTILE_NAME).first.click()
    expect(watched.page.locator("dialog pre", has_text=forged[0]["hint"])).to_have_count(1)
    expect(watched.page.locator("dialog .hint")).to_have_count(0)


def test_failed_unreadable_and_slow_submissions_are_listed(watched, folder):
    trouble = watched.page.locator("#trouble")
    failed = read_batch(folder).entries[COUNT - SPECIAL]
    assert failed.status == "failed"
    expect(trouble).to_contain_text("The worker was lost.")
    expect(trouble).to_contain_text(".zip is damaged.")
    slowest = trouble.locator("ul").last.locator("li").first
    expect(slowest).to_contain_text(failed.students[0].name)
    expect(slowest).to_contain_text("31.5 s")


def test_without_names_nothing_in_the_file_tells_who_it_was(browser, tmp_path):
    folder = write_batch(tmp_path / "out", COUNT, anonymous=True, notes=("Ada.zip is odd.",))
    write_report(folder)
    text = (folder / "report.html").read_text("utf-8")
    content = json.dumps(json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1]))
    for entry in read_batch(folder).entries:
        for student in entry.students:
            for secret in (student.name, student.sid, student.email, entry.id):
                assert not secret or secret not in content
    assert "Ada.zip" not in content
    watched = WatchedReport(browser, folder)
    assert watched.names() == [f"submission {place}" for place in range(1, COUNT + 1)]
    expect(watched.page.locator("#lead")).to_contain_text("names are hidden")
    watched.page.locator("#rows a").first.click()
    expect(watched.page.locator("dialog h2")).to_have_text("submission 1")
    watched.context.close()
    assert not watched.errors


def test_points_are_those_of_one_result_whatever_tests_others_had(tmp_path):
    folder = write_batch(tmp_path / "out", COUNT)
    file = result_file(folder, read_batch(folder).entries[0].id)
    result = json.loads(file.read_bytes())
    result["tests"][0]["extra_data"]["test"] = "test_of_another_name"
    file.write_text(json.dumps(result))
    write_report(folder)
    text = (folder / "report.html").read_text("utf-8")
    content = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert len(content["tests"]) == len(result["tests"]) + 1
    assert content["summary"]["maximum"] == 100
    assert sum(exercise["points"] for exercise in content["exercises"]) == 100


def test_a_leaderboard_is_ranked_from_its_best_end(browser, tmp_path):
    folder = write_batch(tmp_path / "out", 40, "a7")
    write_report(folder)
    watched = WatchedReport(browser, folder)
    lists = watched.page.locator("#boards ol").all()
    losses, speeds = (
        [float(x) for x in one.locator("li > span").all_inner_texts()] for one in lists
    )
    assert len(losses) > 10
    assert losses == sorted(losses)
    assert speeds == sorted(speeds, reverse=True)
    expect(watched.page.locator("#boards")).to_contain_text("tokens/s relative to the baseline")
    watched.context.close()
    assert not watched.errors


def test_two_thousand_submissions_are_drawn_as_far_as_they_are_seen(browser, tmp_path):
    folder = write_batch(tmp_path / "out", MANY)
    write_report(folder)
    assert (folder / "report.html").stat().st_size < 10_000_000
    watched = WatchedReport(browser, folder)
    expect(watched.page.locator("#count")).to_have_text(f"{MANY} of {MANY}")
    drawn = watched.page.locator("#rows tr").count()
    assert drawn <= MANY // 10
    watched.page.locator("#more").scroll_into_view_if_needed()
    expect(watched.page.locator("#rows tr")).not_to_have_count(drawn)
    watched.page.locator("#filter").fill("padding")
    watched.page.get_by_role("button", name="score", exact=True).click()
    watched.context.close()
    assert not watched.errors


def test_a_batch_without_any_result_gets_a_report_too(browser, tmp_path):
    folder = write_batch(tmp_path / "out", 6)
    for file in (folder / "state").iterdir():
        file.unlink()
    write_report(folder)
    watched = WatchedReport(browser, folder)
    expect(watched.page.locator("#lead")).to_contain_text("0 graded, 6 without a grade")
    assert len(watched.names()) == 6
    watched.page.locator("#rows a").first.click()
    expect(watched.page.locator("dialog")).to_contain_text("not graded yet")
    watched.context.close()
    assert not watched.errors


@pytest.mark.parametrize("anonymous", (False, True))
def test_an_older_result_that_was_kept_says_so_wherever_it_is_shown(anonymous, browser, tmp_path):
    folder = write_batch(tmp_path / "out", 6)
    entry = read_batch(folder).entries[0]
    keep_result(folder, entry.id, read_state(folder, entry.id), "the judge of Ada died")
    write_report(folder, anonymous)
    reported = "This is a previous result." if anonymous else read_batch(folder).entries[0].older
    watched = WatchedReport(browser, folder)
    expect(watched.page.locator("#trouble")).to_contain_text(reported)
    assert ("of Ada" in watched.page.content()) != anonymous
    watched.page.locator("#filter").fill("older result")
    expect(watched.page.locator("#rows .tag", has_text="older result")).to_have_count(1)
    watched.page.locator("#rows a").first.click()
    expect(watched.page.locator("dialog")).to_contain_text(reported)
    watched.context.close()
    assert not watched.errors


@pytest.mark.parametrize("anonymous", (False, True))
def test_renamed_submissions_are_listed(anonymous, browser, tmp_path):
    folder = write_batch(tmp_path / "out", 6)
    entry = read_batch(folder).entries[0]
    note = "convolution (1).py was taken as convolution.py. Rename it before you submit again."
    state = msgspec.structs.replace(read_state(folder, entry.id), renamed=(note,))
    write_state(folder, entry.id, state, result_file(folder, entry.id).read_bytes())
    write_report(folder, anonymous)
    watched = WatchedReport(browser, folder)
    listed = watched.page.locator("#trouble h3", has_text="another name").locator("+ ul li")
    expect(listed).to_have_count(1)
    expect(listed).to_contain_text(entry.alias if anonymous else entry.students[0].name)
    expect(listed).to_contain_text(note)
    watched.context.close()
    assert not watched.errors


def test_the_same_batch_gives_the_same_bytes(folder):
    assert report_page(read_batch(folder)) == report_page(read_batch(folder))


def test_the_command_writes_a_report_without_names_and_takes_a_picture(tmp_path):
    folder = write_batch(tmp_path / "out", 20)
    picture = tmp_path / "report.png"
    command = ("-m", "autograder", "report", folder, "--anonymous", "--picture", picture)
    finished = python(*command, cwd=ROOT)
    assert finished.returncode == 0, finished.stderr
    assert "Tables" not in (folder / "report.html").read_text("utf-8")
    pixels = matplotlib.image.imread(picture)
    assert pixels.shape[:2] == (HEIGHT, WIDTH)
    assert len({*map(tuple, pixels.reshape(-1, pixels.shape[2])[::97].tolist())}) > 5
    assert picture.stat().st_size < 100_000


def test_what_cant_be_written_is_reported_in_a_sentence(tmp_path):
    folder = write_batch(tmp_path / "out", 20)
    finished = python("-m", "autograder", "report", folder, "--picture", "/proc/x.png", cwd=ROOT)
    reported = "/proc/x.png can't be written: No such file or directory.\n"
    assert (finished.returncode, finished.stderr) == (2, reported)
    (folder / "report.html").unlink()
    (folder / "report.html").mkdir()
    with pytest.raises(CourseError, match="can't be written: Is a directory"):
        write_report(folder)


def test_a_folder_without_a_batch_is_refused_in_a_sentence(tmp_path):
    finished = python("-m", "autograder", "report", tmp_path, cwd=ROOT)
    assert finished.returncode == 2
    assert finished.stderr == f"{tmp_path} is not a batch: it has no batch.json.\n"
