"""A class whose every text tries to control what shows it: a TA sees the text, and only that."""

import csv
import html
import io
import json
import re
import unicodedata
import zipfile

import pytest

from autograder.__main__ import run
from autograder.batch.batch_records import read_batch
from autograder.batch.output.grade_tables import harmless
from autograder.batch.output.written_answers import prompts
from autograder.commands import batch_commands as commands
from autograder.grading.results import Outcome, Result, as_json
from autograder.grading.terminal import print_result
from autograder.grading.warm.judge_messages import GradingReply
from autograder.screen import Screen
from common.assignment import ROOT
from common.errors import Explanation
from common.testing.graded_tests import GradedTest
from common.visible_text import UNSEEN
from tests.tooling.batch.pretended_engine import A1, Pretender, carry_out, changed, printed_summary

# Clears the screen, sets the title, rings, goes back, overwrites, reverses, hides.
CONTROLS = "\x1b[2J\x1b]0;t\x07\x08\x08\r\x7f\x9b31m\u202eabc\u2066\u200b\u2028"
MARKUP = "[bold]b[/] [link=https://example.edu]l[/link] [/] :bomb: <b>b</b>"
CANARY = f"CANARY{CONTROLS}{MARKUP}"
TEST = GradedTest("test_x", A1.exercises[0].number, 2.0, False, "A title.", "visible")


def unseen(text):
    """The characters of a text that a reader would not see."""
    return {
        letter for letter in text if letter not in "\n\t" and unicodedata.category(letter) in UNSEEN
    }


def strings(value):
    """All strings in a value, as JSON has them."""
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in strings(part)]
    if isinstance(value, list):
        return [text for part in value for text in strings(part)]
    return [value] if isinstance(value, str) else []


def hostile_result(passed=False):
    """A result with the canary wherever a submission has a say."""
    why = Explanation(CANARY, CANARY, CANARY, CANARY, CANARY)
    texts = dict.fromkeys(prompts(A1), CANARY)
    outcome = Outcome(TEST, passed, why, printed=CANARY)
    return Result(
        A1, [TEST], "salt", {"test_x": outcome}, [CANARY], ["a wall"], finished=True, texts=texts
    )


def reply(passed=False):
    """The same as a judge's reply."""
    return GradingReply(as_json(hostile_result(passed)), 2.0 * passed, 2.0, 0.5)


@pytest.fixture
def hostile(order):
    """An export with the canary in names of folders, files and students; one grading fails."""
    folder = order.export.parent / "hostile"
    names = [f"{number}{CANARY.replace('/', '')}" for number in range(3)]
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / name).write_text("x = 1")
    (folder / f"file{CANARY.replace('/', '')}").touch()
    with zipfile.ZipFile(folder / "zipped.zip", "w") as archive:
        archive.writestr(CANARY, "x = 1")
    (folder / "cut.zip").write_bytes(b"PK\3\4")
    quoted = json.dumps(CANARY)
    entries = ["zipped.zip", *names, f"missing{CANARY}"]
    (folder / "submission_metadata.yml").write_text(
        "".join(
            f"{json.dumps(name)}:\n  :created_at: {quoted}\n  :submitters:\n  - :name: {quoted}\n"
            f"    :sid: {json.dumps(f'={number}{CANARY}')}\n"
            for number, name in enumerate(entries)
        )
    )
    return changed(order, export=folder)


class Fails(Pretender):
    """Gives a hostile result, and a hostile fault for one submission."""

    def run(self, work, tick):
        while (attempt := work.take()) is not None:
            lost = attempt.submitted.place.startswith("2")
            work.finish(attempt, GradingReply(fault=CANARY) if lost else reply())


def test_no_output_of_a_batch_lets_text_of_submissions_be_more_than_text(hostile, capsys):
    batch, work = carry_out(hostile, Fails())
    screen = printed_summary(batch, work)
    assert "CANARY" in screen and "[link=https" in screen and unseen(screen) == set()

    files = [path for path in hostile.out.rglob("*") if path.is_file()]
    kinds = {path.suffix for path in files}
    assert {".csv", ".html", ".json", ".jsonl"} <= kinds
    for path in files:
        text = path.read_text("utf-8")
        assert unseen(text) == set(), path
        if path.suffix == ".csv":
            cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
            assert any("CANARY" in cell for cell in cells)
            assert not [cell for cell in cells if unseen(cell) or "\n" in cell]
        elif path.parent.name == "results":
            assert not [found for found in strings(json.loads(text)) if unseen(found)]
        elif path.suffix == ".html":
            data = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
            found = strings(json.loads(data[1])) if data else [html.unescape(text)]
            assert any("CANARY" in one for one in found)
            assert not [one for one in found if unseen(one)]

    again = changed(hostile, out=hostile.out.with_name("again"))
    carry_out(again, Pretender({}))
    with pytest.raises(SystemExit):
        commands.compare.main([str(hostile.out), str(again.out)], standalone_mode=False)
    said = capsys.readouterr()
    assert "CANARY" in said.out and "[link=https" in said.out
    assert unseen(said.out + said.err) == set()
    assert read_batch(hostile.out).index.submissions == read_batch(again.out).index.submissions


@pytest.mark.parametrize("terminal", [False, True])
def test_a_result_on_the_terminal_holds_no_controls_but_rich_s_own(terminal):
    screen = Screen(file=io.StringIO(), width=200, force_terminal=terminal, color_system="standard")
    print_result(hostile_result(), screen)
    text = screen.file.getvalue()
    own = re.compile(r"\x1b\[[0-9;]*m")
    assert "CANARY" in text and "\x1b[2J" not in text and unseen(own.sub("", text)) == set()
    assert r"\x1b[2J" in own.sub("", text) and "[link=https://" in own.sub("", text)


def test_an_error_of_a_command_shows_a_file_s_name_and_does_not_obey_it(
    tmp_path, monkeypatch, capsys
):
    file = tmp_path / CANARY.replace("/", "")
    file.write_text("x = 1")
    monkeypatch.setattr("sys.argv", ["autograder", "grade", "a1", str(file)])
    with pytest.raises(SystemExit):
        run()
    said = capsys.readouterr().err
    assert "CANARY" in said and unseen(said) == set()
    monkeypatch.setattr("sys.argv", ["autograder", "grade", "a1", f"{file}.gone"])
    with pytest.raises(SystemExit):
        run()
    said = capsys.readouterr().err
    assert "CANARY" in said and unseen(said) == set()


def test_all_commands_print_on_the_screen_that_shows_controls():
    files = [*(ROOT / "autograder").rglob("*.py")]
    assert [path for path in files if re.search(r"\bConsole\(", path.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("=1+1", "'=1+1"),
        ("  @SUM(A1)", "'  @SUM(A1)"),
        ("\t-1", r"\t-1"),
        ("Ada;=1+1", "Ada;'=1+1"),
        ("\uff1d1", "'\uff1d1"),
        ("Ada-Marie = x@example.edu", "Ada-Marie = x@example.edu"),
    ],
)
def test_no_cell_is_a_formula_wherever_a_spreadsheet_splits_it(cell, shown):
    assert harmless(cell) == shown
