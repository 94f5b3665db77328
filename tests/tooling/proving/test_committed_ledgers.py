"""The committed ledgers: each is current, and a sample of it, graded afresh, agrees with it.

Each commit grades other mistakes; `make verify` grades all of them, and the mutants.
"""

import json
import math
import os
from itertools import chain

import pytest
from msgspec.structs import replace

from autograder.grading.judge_inputs import read_tests
from autograder.packaging.zip_build import build
from autograder.proving.ledgers.ledger_sample import (
    FEWEST,
    Sampler,
    grade_mistakes,
    grade_mutants,
    grade_sample,
    shuffled,
)
from autograder.proving.ledgers.proof_ledger import current_ledger, read_ledger
from autograder.proving.parallel_grader import ParallelGrader
from autograder.proving.proof_findings import HINTED_OF_ALL
from autograder.proving.wrong_versions.mistakes import load_mistakes
from autograder.semester import PRACTICE
from common.assignment import load_all, load_assignment
from common.testing.graded_tests import TRAINING
from tests.tooling.sampling import TAKEN, commit, is_complete, sample
from tests.tooling.scratch_copies import copy_repo, python

A1 = load_assignment("a1")
SEED = "a seed"
SIZES = "test_conv_output_size_counts_the_kernel_positions"
COUNTS = "test_parameters_are_counted_right_for_any_layer"
SECONDS = 8.0  # for the sample of one assignment
TRAINING_ONES = [
    entry.short for entry in load_all() if any(TRAINING in test.tags for test in read_tests(entry))
]
TRAINED = sample("references that are trained", TRAINING_ONES, 1)
EACH = pytest.mark.parametrize("assignment", load_all(), ids=lambda entry: entry.short)


@EACH
def test_the_ledger_is_current_and_a_fresh_sample_agrees_with_it(assignment, tmp_path):
    sampler = Sampler(assignment, current_ledger(assignment), commit())
    seconds = math.inf if is_complete() else SECONDS
    graded = grade_sample(sampler, tmp_path, seconds, assignment.short in TRAINED)
    count = len(load_mistakes(assignment))
    if len(graded.mistakes) < count:
        TAKEN[f"mistakes of {assignment.short}"] = len(graded.mistakes), count
    assert graded.differences == ()
    assert {"reference: public 0", "reference: hidden 0", "stub"} <= {*graded.versions}
    assert min(FEWEST, count) <= len(graded.mistakes) <= count
    assert any(version.startswith("alternative") for version in graded.versions)


def test_most_mistakes_of_all_assignments_together_get_their_own_hint():
    mistakes = [row for entry in load_all() for row in read_ledger(entry).proof.mistakes]
    assert sum(bool(row.hinted) for row in mistakes) >= HINTED_OF_ALL * len(mistakes)


def test_training_tests_of_a_reference_are_graded_where_asked():
    """Public and hidden ones; an alternative's never are."""
    sampler = Sampler(load_assignment("a2"), current_ledger(load_assignment("a2")), SEED)
    trained = {name for name, test in sampler.tests.items() if TRAINING in test.tags}
    for training, wanted in ((True, trained), (False, set())):
        jobs = sampler.right_jobs(training)
        of_reference = [*chain(*(jobs[name].only for name in jobs if "reference" in name))]
        assert trained & {*of_reference} == wanted and len(trained) == 3
        assert {*of_reference} | trained == {*sampler.tests}
        (other,) = (name for name in jobs if "alternative" in name)
        assert not trained & {*jobs[other].only}


def edited(**changes):
    """The ledger of assignment 1, with something else in its proof."""
    ledger = current_ledger(A1)
    return replace(ledger, proof=replace(ledger.proof, **changes))


def rows_in_order():
    """The rows of mistakes, in the order in which SEED has them graded."""
    rows = {row.name: row for row in current_ledger(A1).proof.mistakes}
    return [rows[name] for name in shuffled(rows, f"{SEED}/{A1.name}")]


@pytest.fixture(scope="module")
def grader(tmp_path_factory):
    """Grades through assignment 1's zip."""
    built = build(A1, tmp_path_factory.mktemp("a1"), PRACTICE)
    with ParallelGrader(built.autograder, A1.short, size=1) as made:
        yield made


def test_rows_that_were_edited_by_hand_are_caught_when_they_are_sampled(grader):
    """Both what a mistake costs, and its hint."""
    first, second, *others = rows_in_order()
    # What another mistake costs, so that the row fits the graded tests.
    other = next(row for row in others if row.named == first.named and row.lost != first.lost)
    parts = ("lost", "public", "hidden", "hinted")
    rows = [
        replace(first, **{name: getattr(other, name) for name in parts}),
        replace(second, hint="Something else."),
    ]
    sampler = Sampler(A1, edited(mistakes=[*rows, *others]), SEED)
    graded, differences = grade_mistakes(sampler, grader, deadline=0.0)
    assert len(graded) == FEWEST and {first.name, second.name} < {*graded}
    for row, sentence in zip(rows, ("but the ledger says that it ", "at none of"), strict=True):
        assert any(line.startswith(row.name) and sentence in line for line in differences)
    assert all(line.startswith((first.name, second.name)) for line in differences)


def test_a_mutant_that_the_named_test_does_not_notice_is_caught(grader):
    exercise_of = {test.name: test.exercise for test in read_tests(A1)}
    # Each mutant is said to be noticed by a test of an exercise that has nothing to do with it.
    wrong = {
        mutant: SIZES if exercise_of[test] == exercise_of[COUNTS] else COUNTS
        for mutant, test in current_ledger(A1).proof.noticed.items()
    }
    found = grade_mutants(Sampler(A1, edited(noticed=wrong), SEED), grader)
    assert any("but the ledger says that it fails it" in line for line in found)


@pytest.mark.parametrize(
    ("part", "change", "sentence"),
    [
        ("mistakes", lambda rows: rows[1:], " is not in both"),
        ("scored", lambda rows: rows[:1], " is not in both"),
        ("noticed", lambda found: {}, " is not in both"),
        ("noticed", lambda found: {**found, "nothing": "test_x"}, "functions that have none"),
        ("noticed", lambda found: dict.fromkeys(found, "test_x"), "which is not a test"),
        ("margins", lambda found: [], "there are no margins"),
        ("margins", lambda found: [replace(found[0], test="test_x")], "a margin of test_x"),
        ("points", lambda points: 7.0, "7 points; there are"),
        ("scored", lambda rows: [replace(row, lowest=3.0) for row in rows], "has 3 points, not"),
        ("scored", lambda rows: [replace(row, salts=1) for row in rows], "under 20 salts"),
        ("mistakes", lambda rows: [replace(row, lost={"9.9": 50.0}) for row in rows], "loses {'9"),
        ("mistakes", lambda rows: [replace(row, hinted=[]) for row in rows], "get their own hint"),
    ],
)
def test_a_ledger_that_contradicts_the_assignment_is_caught_without_grading(part, change, sentence):
    now = getattr(current_ledger(A1).proof, part)
    found = Sampler(A1, edited(**{part: change(now)}), SEED).contradictions()
    assert any(sentence in line for line in found), found


def test_the_committed_ledger_contradicts_nothing():
    assert Sampler(A1, current_ledger(A1), SEED).contradictions() == []


def test_every_mistake_is_sampled_by_some_commit_and_the_same_by_the_same():
    names = [row.name for row in current_ledger(A1).proof.mistakes]
    assert shuffled(names, "one") == shuffled(reversed(names), "one") != shuffled(names, "two")
    seen = {name for seed in range(1000) for name in shuffled(names, str(seed))[:FEWEST]}
    assert seen == {*names}
    # Those that only a clock or training shows are left to `make verify`.
    sampler = Sampler(A1, current_ledger(A1), "one")
    graded = {name for name, _ in sampler.mistake_jobs()}
    assert len(graded) >= 0.9 * len(names)


SAMPLE = """
import json, sys
from pathlib import Path
from autograder.packaging.zip_build import build
from autograder.proving.ledgers.ledger_sample import Sampler, grade_mistakes
from autograder.proving.ledgers.proof_ledger import current_ledger, read_ledger
from autograder.proving.parallel_grader import ParallelGrader
from autograder.semester import PRACTICE
from common.assignment import load_assignment
from common.errors import CourseError

a1 = load_assignment("a1")
try:
    current_ledger(a1)
    said = ""
except CourseError as error:
    said = str(error)
sampler = Sampler(a1, read_ledger(a1), "a seed")
built = build(a1, Path(sys.argv[1]), PRACTICE)
with ParallelGrader(built.autograder, "a1", size=1) as grader:
    _, differences = grade_mistakes(sampler, grader, deadline=0.0)
print(json.dumps([said, differences]))
"""


def test_a_ledger_that_a_change_of_the_machinery_made_untrue_is_caught(tmp_path):
    root = copy_repo(tmp_path / "repo")
    file, rule = root / "common" / "testing" / "compare.py", "    if error <= tolerance:\n"
    source = file.read_text("utf-8")
    assert source.count(rule) == 1
    file.write_text(source.replace(rule, "    if error < 1e300:\n"), "utf-8")
    (tmp_path / "dist").mkdir()
    result = python("-c", SAMPLE, tmp_path / "dist", cwd=root, env={"PATH": os.environ["PATH"]})
    assert result.returncode == 0, result.stderr
    said, differences = json.loads(result.stdout)
    assert "recorded before these parts changed: shared code: run `make verify A=a1`" in said
    assert any("but the ledger says that it fails it" in line for line in differences)
