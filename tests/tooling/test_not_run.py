"""Tests that a test run reports at its end what was not run, and why."""

import shutil
from pathlib import Path

import pytest

from common.assignment import ROOT
from tests.tooling import sampling
from tests.tooling.sampling import VARIABLE, sample
from tests.tooling.scratch_copies import python

SKIPPED = """
import pytest

def test_one():
    pytest.skip("no browser here")

@pytest.mark.skipif(True, reason="no browser here")
def test_two():
    assert False

@pytest.mark.xfail
def test_three():
    assert False

def test_four():
    pass
"""
WHOLE = "def test_it():\n    pass\n"
SAMPLED = """
from tests.tooling.sampling import sample

@pytest.mark.parametrize("number", sample("numbers", range(1000), 20))
def test_number(number):
    pass
"""


def last_lines(folder, source, *options, complete=False):
    """What a run of these tests says after how many have passed."""
    folder.mkdir()
    shutil.copy(Path(__file__).with_name("conftest.py"), folder)
    (folder / "test_some.py").write_text(source)
    env = {"PYTHONPATH": str(ROOT), VARIABLE: "1" if complete else ""}
    options = ("-p", "no:cacheprovider", *options)
    finished = python("-m", "pytest", *options, folder, cwd=folder, env=env)
    assert finished.returncode == 0, finished.stdout
    lines = finished.stdout.rstrip("\n").splitlines()
    (end,) = [place for place, line in enumerate(lines) if " passed" in line]
    return lines[end + 1 :]


@pytest.mark.parametrize("options", [(), ("-n2", "--dist=loadgroup")], ids=["alone", "two workers"])
def test_what_was_skipped_or_sampled_is_reported_last_and_only_that(options, tmp_path):
    assert last_lines(tmp_path / "some", SKIPPED + SAMPLED, *options) == [
        "Not run here: 2 of test_some.py (no browser here).",
        f"Sampled by commit {sampling.commit()[:7]}: 20 of 1,000 numbers; {VARIABLE}=1 runs all.",
    ]


def test_a_run_that_left_nothing_out_says_nothing(tmp_path):
    assert last_lines(tmp_path / "all", "import pytest\n" + SAMPLED, complete=True) == []
    assert last_lines(tmp_path / "none", WHOLE) == []


@pytest.fixture
def commits(monkeypatch):
    """Lets samples be drawn as at another commit, and leaves no trace in this run's last lines."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(sampling, "TAKEN", {})
    return lambda name: monkeypatch.setattr(sampling, "commit", lambda: name)


def test_each_commit_has_its_own_sample_and_always_the_same(commits):
    drawn = []
    for name in ("abc", "def", "abc"):
        commits(name)
        drawn.append(sample("numbers", range(1000), 20))
    assert drawn[0] == drawn[2] != drawn[1]
    assert all(len({*numbers}) == 20 and numbers == sorted(numbers) for numbers in drawn)
    assert sampling.TAKEN == {"numbers": (20, 1000)}


def test_no_kind_is_left_out_of_a_sample(commits):
    for name in map(str, range(20)):
        commits(name)
        numbers = sample("numbers", range(1000), 5, kind=lambda number: number // 100)
        assert [number // 100 for number in numbers] == list(range(10))


def test_over_many_commits_everything_has_its_turn(commits):
    seen = set()
    for name in map(str, range(200)):
        commits(name)
        seen |= {*sample("numbers", range(100), 5)}
    assert len(seen) > 95


def test_a_whole_is_no_sample(commits, monkeypatch):
    assert sample("numbers", range(5), 9) == [0, 1, 2, 3, 4]
    assert sampling.TAKEN == {} and sampling.summary({}) == ""
    monkeypatch.setenv(VARIABLE, "1")
    assert sample("numbers", range(1000), 20) == list(range(1000))
    assert sampling.TAKEN == {}


def test_a_checkout_without_git_has_a_sample_too(monkeypatch, tmp_path):
    monkeypatch.setattr(sampling, "ROOT", tmp_path)
    assert sampling.commit.__wrapped__() == sampling.NO_COMMIT
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sampling.commit.__wrapped__() == sampling.NO_COMMIT
