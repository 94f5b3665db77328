"""The committed ledgers: each is current, and a sample of it, graded afresh, agrees with it.

Each commit grades other mistakes; `make verify` grades all of them, and the mutants.
"""

import json
import math
import os

import msgspec
import pytest

from autograder.proving.ledger import current_ledger
from autograder.proving.mistakes import load_mistakes
from autograder.proving.sample import FEWEST, Sampler, grade_sample, shuffled
from common.assignment import load_all, load_assignment
from common.evidence import Evidence
from common.hints import HintFile, Hints, hint_bytes
from tests.tooling.sampling import TAKEN, commit, is_complete
from tests.tooling.scratch import copy_repo, python

A1 = load_assignment("a1")
SECONDS = 20.0  # for the sample of one assignment
EACH = pytest.mark.parametrize(
    "assignment",
    [
        pytest.param(entry, marks=pytest.mark.xdist_group(f"proof {entry.short}"), id=entry.short)
        for entry in load_all()
    ],
)


@EACH
def test_the_ledger_is_current_and_a_fresh_sample_agrees_with_it(assignment, tmp_path):
    ledger = current_ledger(assignment)
    seconds = math.inf if is_complete() else SECONDS
    sample = grade_sample(assignment, ledger, commit(), seconds, tmp_path)
    count = len(load_mistakes(assignment))
    TAKEN[f"mistakes of {assignment.short}"] = len(sample.mistakes), count
    assert sample.differences == ()
    assert {"reference: public", "reference: hidden 0", "stub"} <= {*sample.versions}
    assert min(FEWEST, count) <= len(sample.mistakes) <= count
    assert any(version.startswith("alternative") for version in sample.versions)


def edited(ledger, **changes):
    """A ledger in which every mistake is said to have ended otherwise."""
    rows = [msgspec.structs.replace(row, **changes) for row in ledger.proof.mistakes]
    return msgspec.structs.replace(
        ledger, proof=msgspec.structs.replace(ledger.proof, mistakes=rows)
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"public": [], "hidden": []}, "by the ledger it passes it"),
        ({"hint": "Something else."}, "gets its hint at none of"),
    ],
    ids=["what it costs", "its hint"],
)
def test_a_ledger_that_was_edited_by_hand_is_caught(changes, sentence, tmp_path):
    ledger = edited(current_ledger(A1), **changes)
    sample = grade_sample(A1, ledger, "a seed", 0.0, tmp_path)
    assert len(sample.mistakes) == FEWEST
    for name in sample.mistakes:
        assert any(line.startswith(name) and sentence in line for line in sample.differences)


def test_a_ledger_that_lacks_a_version_is_caught(tmp_path):
    ledger = current_ledger(A1)
    proof = ledger.proof
    for less in (
        msgspec.structs.replace(proof, mistakes=proof.mistakes[1:]),
        msgspec.structs.replace(proof, scored=proof.scored[:1]),
    ):
        sampler = Sampler(A1, msgspec.structs.replace(ledger, proof=less), "a seed")
        assert any(line.endswith(" is not in both") for line in sampler.listed())
    assert Sampler(A1, ledger, "a seed").listed() == []


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
from autograder.proving.ledger import current_ledger, read_ledger
from autograder.proving.sample import grade_sample
from common.assignment import load_assignment
from common.errors import CourseError

a1 = load_assignment("a1")
try:
    current_ledger(a1)
    said = ""
except CourseError as error:
    said = str(error)
sample = grade_sample(a1, read_ledger(a1), "a seed", 0.0, Path(sys.argv[1]))
print(json.dumps([said, sample.differences]))
"""


def test_a_ledger_that_a_change_of_the_machinery_made_untrue_is_caught(tmp_path):
    root = copy_repo(tmp_path / "repo")
    file, rule = root / "common" / "comparison.py", "    if error <= tolerance:\n"
    source = file.read_text("utf-8")
    assert source.count(rule) == 1
    file.write_text(source.replace(rule, "    if error < 1e300:\n"), "utf-8")
    (tmp_path / "dist").mkdir()
    result = python("-c", SAMPLE, tmp_path / "dist", cwd=root, env={"PATH": os.environ["PATH"]})
    assert result.returncode == 0, result.stderr
    said, differences = json.loads(result.stdout)
    assert "recorded before a change of: shared code: run `make verify A=a1`" in said
    assert any("by the ledger it fails it" in line for line in differences)


def test_an_empty_hint_file_has_no_hint(tmp_path):
    (tmp_path / "public.hints").write_bytes(hint_bytes(HintFile({}, [])))
    hints = Hints([tmp_path / "public.hints", tmp_path / "missing.hints"])
    assert hints.find("test_a", Evidence(1, None, "said")) == ""
