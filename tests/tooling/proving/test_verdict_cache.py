"""Tests of the verdict cache: gradings are reused until something that decides them changes."""

import pytest
from msgspec.structs import replace

from autograder.grading.warm.judge_messages import GradingRequest, Verdict
from autograder.proving import verdict_cache as module
from autograder.proving.verdict_cache import VerdictCache, framed, read_entries
from common.assignment import ROOT, load_assignment
from common.testing.graded_tests import read_graded_tests

A1 = load_assignment("a1")
GRADED_TESTS = read_graded_tests(ROOT / "tests" / A1.name)
FIRST, SECOND, THIRD = [test.name for test in GRADED_TESTS if not test.reads_artifacts][:3]
NEEDING = next(test.name for test in GRADED_TESTS if test.exercise == "1.2")
READS = next(test.name for test in GRADED_TESTS if test.reads_artifacts)
JOB = GradingRequest({"convolution.py": b"def f():\n    return 1\n"}, "salt", (FIRST, SECOND))


def verdict(test, passed=True):
    return Verdict(test, "1.1", False, 1.0, False, passed, "", "", 0.1, 0, None, ())


BOTH = [verdict(FIRST), verdict(SECOND, passed=False)]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "new" / "a1-memory.bin"


@pytest.fixture
def opened(file, monkeypatch):
    """Opens the memory, as a new run does."""
    code = {"hash": "code", "tests": {test.name: f"hash of {test.name}" for test in GRADED_TESTS}}
    monkeypatch.setattr(module, "grading_code_hash", lambda assignment: code["hash"])
    monkeypatch.setattr(module, "test_hashes", lambda assignment: dict(code["tests"]))
    monkeypatch.setattr(module, "read_graded_tests", lambda folder: GRADED_TESTS)

    def start(hash="code", **tests):
        code["hash"] = hash
        code["tests"] |= tests
        return VerdictCache(file, A1)

    return start


def test_what_was_kept_is_known_in_the_next_run_and_in_this_one(opened, file):
    memory = opened()
    assert memory.find(JOB) == ([], (FIRST, SECOND))
    memory.store(JOB, BOTH)
    assert memory.find(JOB) == opened().find(JOB) == (BOTH, ())
    # A test that is asked for in addition is the only one left to run.
    more = replace(JOB, only=(THIRD, FIRST, SECOND))
    assert opened().find(more) == (BOTH, (THIRD,))


def test_each_grading_is_on_disk_at_once(opened, file):
    memory = opened()
    memory.store(JOB, BOTH[:1])
    assert opened().find(JOB) == (BOTH[:1], (SECOND,))
    memory.store(JOB, BOTH[1:])
    assert opened().find(JOB) == (BOTH, ())


@pytest.mark.parametrize(
    "other",
    [
        replace(JOB, files={"convolution.py": b"def f():\n    return 2\n"}),
        replace(JOB, files=JOB.files | {"more.py": b"x = 1\n"}),
        replace(JOB, salt="another"),
        replace(JOB, cpu_seconds=5.0),
        replace(JOB, compare_all=True),
    ],
)
def test_another_job_is_not_known(opened, other):
    opened().store(JOB, BOTH)
    assert opened().find(other) == ([], (FIRST, SECOND))


def test_a_comment_makes_no_other_job_and_artifacts_only_for_tests_that_read_them(opened):
    both = replace(JOB, only=(FIRST, READS), files=JOB.files | {"lab.ipynb": b"{}"})
    verdicts = [verdict(FIRST), verdict(READS)]
    opened().store(both, verdicts)
    said = JOB.files | {"convolution.py": b"def f():  # said\n    return 1\n", "lab.ipynb": b"{}"}
    assert opened().find(replace(both, files=said)) == (verdicts, ())
    spoiled = replace(both, files=JOB.files | {"lab.ipynb": b"[]"})
    assert opened().find(spoiled) == (verdicts[:1], (READS,))


def test_shared_code_of_another_hash_makes_all_unknown_and_a_test_only_itself(opened):
    opened().store(JOB, BOTH)
    assert opened(hash="other code").find(JOB) == ([], (FIRST, SECOND))
    assert opened(**{SECOND: "changed"}).find(JOB) == (BOTH[:1], (SECOND,))


def test_what_was_run_on_stand_ins_is_known_beside_the_same_tests_only(opened):
    carried = replace(verdict(NEEDING), text="with yours: wrong")
    for of_two in (carried, verdict(NEEDING, passed=False)):
        job = replace(JOB, only=(FIRST, NEEDING))
        memory = opened()
        memory.store(job, [verdict(FIRST, passed=False), of_two])
        assert memory.find(job) == ([verdict(FIRST, passed=False), of_two], ())
        assert memory.find(replace(job, only=(NEEDING,))) == ([], (NEEDING,))
        # What FIRST shows after a change decides whether NEEDING is run once more.
        assert opened(**{FIRST: f"changed for {of_two}"}).find(job) == ([], (FIRST, NEEDING))
    at_once = [verdict(FIRST, passed=False), verdict(NEEDING)]
    opened().store(job, at_once)
    assert opened(**{FIRST: "changed again"}).find(job) == (at_once[1:], (FIRST,))


def test_where_the_first_failure_ends_a_job_nothing_behind_a_gap_counts(opened):
    job = replace(JOB, only=(FIRST, SECOND, THIRD), stop_at_failure=True)
    memory = opened()
    memory.store(job, [verdict(SECOND, passed=False), verdict(THIRD)])
    assert memory.find(job) == ([], (FIRST, SECOND, THIRD))
    memory.store(job, [verdict(FIRST)])
    known = [verdict(FIRST), verdict(SECOND, passed=False)]
    assert memory.find(job) == (known, ())  # the second ends it


def test_what_a_run_has_not_used_is_forgotten_when_it_is_tidied(opened, file):
    old = replace(JOB, salt="old")
    memory = opened()
    memory.store(JOB, BOTH)
    memory.store(old, BOTH)
    size = file.stat().st_size
    later = opened()
    later.find(JOB)
    later.drop_unused()
    assert file.stat().st_size == size / 2
    assert opened().find(JOB) == (BOTH, ())
    assert opened().find(old) == ([], (FIRST, SECOND))
    assert [entry.name for entry in file.parent.iterdir()] == [file.name]


def test_wherever_the_file_is_cut_off_all_before_is_known_and_more_can_be_kept(opened, file):
    opened().store(JOB, BOTH)
    content = file.read_bytes()
    first = len(framed(read_entries(file)[0][0]))
    for length in range(len(content)):
        file.write_bytes(content[:length])
        known = BOTH[: (length >= first)]
        memory = opened()
        assert memory.find(JOB)[0] == known
        memory.store(JOB, BOTH[len(known) :])
        assert opened().find(JOB) == (BOTH, ())


@pytest.mark.parametrize(
    "damage", [b"damaged", b"\0\0\0\2{}", b"\xff\xff\xff\xffend", b"\0\0\0\0", b"\0\0\0\1\xc1"]
)
def test_damage_costs_only_what_comes_behind_it(opened, file, damage):
    opened().store(JOB, BOTH)
    whole = file.read_bytes()
    file.write_bytes(whole + damage + whole)
    assert opened().find(JOB) == (BOTH, ())
    assert file.read_bytes() == whole  # so that what is kept next can be read
    file.write_bytes(damage + whole)
    assert opened().find(JOB) == ([], (FIRST, SECOND))


def test_no_file_is_an_empty_memory_and_asking_writes_none(opened, file):
    opened().find(JOB)
    assert not file.exists()
