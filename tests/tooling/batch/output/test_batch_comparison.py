"""Whose score differs between two batches, and why."""

from autograder.batch.output.batch_comparison import changes
from common.assignment import ROOT
from tests.tooling.batch.pretended_engine import (
    EXERCISE,
    NAMES,
    Pretender,
    carry_out,
    changed,
    graded,
)
from tests.tooling.scratch_copies import python


def test_compare_names_whose_score_changed_and_by_which_test(order, tmp_path):
    first, _ = carry_out(order, Pretender())
    second, _ = carry_out(
        changed(order, out=tmp_path / "second"), Pretender({"alan": [graded(0.0)]})
    )
    (change,) = changes(first, second)
    assert (change.entry.id, change.before, change.after) == ("alan", "1", "0")
    assert change.reasons == (f"{EXERCISE} sizes: 1 of 2, now 0 of 2 (The size is wrong.)",)
    assert list(changes(first, first)) == []


def test_compare_counts_the_submissions_of_both(order, tmp_path):
    carry_out(order, Pretender())
    (tmp_path / "few" / "ada").mkdir(parents=True)
    few = changed(order, export=tmp_path / "few", out=tmp_path / "second")
    carry_out(few, Pretender())
    done = python("-m", "autograder", "compare", order.out, few.out, cwd=ROOT)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "3 of 3 scores differ.")


def test_compare_says_of_each_submission_whether_its_zip_was_another(order, tmp_path):
    second = changed(order, out=tmp_path / "second")
    carry_out(second, Pretender())
    (tmp_path / "grader.zip").write_bytes(b"another zip")
    (order.export / "grace" / "convolution.py").write_text("name = 'another'\n")
    new = {name: [graded(2.0)] for name in NAMES}
    whole, _ = carry_out(order, Pretender(new))
    part, _ = carry_out(changed(second, only=("ada",)), Pretender({"ada": [graded(0.0)]}))
    (ada, alan, grace) = changes(whole, part)
    assert "zip" not in ada.reasons[0]
    assert alan.reasons[0] == grace.reasons[0] == "graded with another zip or other settings"
