"""Tests that a batch says which defenses were missing where it was graded."""

import json

import pytest

from autograder.batch.output.html_report import report_page
from autograder.batch.output.missing_defenses import defense_notes
from autograder.grading.results import to_gradescope
from autograder.grading.warm.judge_messages import GradingReply
from tests.tooling.batch.pretended_engine import (
    NAMES,
    Pretender,
    carry_out,
    changed,
    printed_summary,
)
from tests.tooling.grading_fixtures import grade, write_tests
from tests.tooling.weakened_sandbox import NO_FILTER, NO_OWN_MOUNTS, weakened

TEST = """
@weight(1)
@number("1.1")
def test_anything(student):
    \"\"\"It can be imported.\"\"\"
    student.number
"""
MISSING = "dangerous system calls are blocked"


def graded_here(folder):
    """A result that this machine gives."""
    result = grade("number = 1", tests=write_tests(folder, TEST))
    content = json.dumps(to_gradescope(result)).encode()
    return [GradingReply(content, result.score, result.maximum, 0.5)]


@pytest.fixture
def weak(tmp_path):
    """A result that was graded without a filter, and without mounts of its own."""
    with weakened(tmp_path / "weak", NO_FILTER, NO_OWN_MOUNTS):
        return graded_here(tmp_path / "weak")


def notes_of(batch):
    """What the report says above its figures."""
    page = report_page(batch)
    data = page.partition('id="data">')[2].partition("</script>")[0]
    return json.loads(data)["notes"]


@pytest.mark.parametrize("anonymous", [False, True])
def test_a_batch_says_which_defenses_its_machine_lacks(order, weak, anonymous):
    answers = dict.fromkeys(NAMES, weak)
    batch, work = carry_out(changed(order, anonymous=anonymous), Pretender(answers))
    (note,) = notes_of(batch)
    assert note.startswith("Graded without these defenses: ")
    assert MISSING in note and "disk" in note and "tests and metadata" not in note
    assert note in printed_summary(batch, work)
    assert printed_summary(batch, work).count("without these defenses") == 1


def test_a_batch_with_all_defenses_says_nothing_about_them(order):
    batch, work = carry_out(order, Pretender())
    assert notes_of(batch) == []
    assert "without these defenses" not in printed_summary(batch, work)


def test_defenses_that_only_some_results_lack_are_counted():
    lacking = [f"{MISSING}: not protected", "disk: 64 MB", "memory: not protected"]
    whole = [f"{MISSING}: system call filter", "memory: not protected"]
    assert defense_notes([lacking, whole, lacking]) == [
        "Graded without these defenses: memory. `make doctor` explains them.",
        f"2 of 3 results were graded without these defenses: {MISSING}. `make doctor` explains "
        "them.",
    ]
