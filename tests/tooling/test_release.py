"""Tests of `make`: what is graded, what is refused, and what isn't done twice."""

import json
import re
import zipfile

import pytest

from autograder.packaging.rehearsal import Rehearsal
from autograder.proving import release as module
from autograder.proving.release import release
from common.assignment import ROOT, load_assignment
from common.errors import CourseError
from common.roster import read_roster
from common.semester import Semester
from tests.tooling.scratch import copy_repo, run

A1 = load_assignment("a1")
ROSTER = read_roster(ROOT / "tests" / "a1_convolution")


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A scratch copy in which `make` has run for real, and what it printed."""
    root = copy_repo(tmp_path_factory.mktemp("release") / "repo")
    (root / "assignments" / "a1_convolution" / "convolution.py").unlink()
    result = run(["make"], root)
    assert result.returncode == 0, result.stderr
    return root, result.stdout


def row_of(output):
    """The cells of assignment 1's row in the table."""
    (line,) = re.findall(r"^[│|] a1_convolution .*", output, re.MULTILINE)
    return [cell.strip() for cell in re.split("[│|]", line) if cell.strip()]


def test_make_builds_all_and_grades_reference_and_stub_through_the_zip(released):
    root, output = released
    name, tests, points, reference, stub, handout, autograder, seconds = row_of(output)
    assert name == "a1_convolution"
    assert int(tests) == len(ROSTER) > 0
    assert (points, reference, stub) == ("100", "100", "0")
    assert all(re.fullmatch(r"\d+ KB", size) for size in (handout, autograder))
    assert float(seconds.removesuffix(" s")) > 0
    for head in ("tests", "points", "reference", "stub", "handout", "autograder", "graded in"):
        assert head in output
    names = sorted(file.name for file in (root / "dist").iterdir())
    (hints,) = (name for name in names if name.endswith(".hints"))
    assert re.fullmatch(r"a1-[0-9a-f]{8}\.hints", hints)
    names.remove(hints)
    assert names == [
        "a1-artifacts",
        *("a1-autograder.zip", "a1-checked.json", "a1-handout.zip", "a1-memory.bin"),
        "a1-reach.json",
    ]
    with zipfile.ZipFile(root / "dist" / "a1-autograder.zip") as archive:
        assert "tests/a1_convolution/hidden.hints" in archive.namelist()
    stub_file = "assignments/a1_convolution/convolution.py"
    assert (root / stub_file).read_bytes() == (ROOT / stub_file).read_bytes()


def test_a_second_make_does_nothing_again(released):
    root, first = released
    files = sorted((root / "dist").iterdir())
    times = [file.stat().st_mtime_ns for file in files]
    # A run_autograder that could not start: grading again would be noticed.
    result = run(["make"], root, {"TMPDIR": str(root / "no-such-folder")})
    assert result.returncode == 0, result.stderr
    assert row_of(result.stdout) == [*row_of(first)[:-1], f"unchanged ({row_of(first)[-1]})"]
    assert [file.stat().st_mtime_ns for file in files] == times


class Rehearsals:
    """Stands in for grading: what each side gets is set, and each call is noted."""

    def __init__(self):
        self.calls = []
        self.lost = 0  # tests that the reference fails
        self.gained = 0  # tests that the stub passes
        self.missing = 0  # tests that aren't run
        self.finished = True
        self.left_out = ()  # names of tests that are said to need a GPU

    def __call__(self, archive, submission):
        assert archive.is_file()
        side = submission.parent.name
        assert submission.name == "a1_convolution"
        self.calls.append(side)
        passed = len(ROSTER) - self.lost if side == "solutions" else self.gained
        tests = [
            {
                "name": test.label,
                "score": test.points if index < passed and test.name not in self.left_out else 0,
                "max_score": test.points,
                "output": "the reason",
                "extra_data": {"test": test.name, "ran": test.name not in self.left_out},
            }
            for index, test in enumerate(ROSTER)
        ][self.missing :]
        extra = {"finished": self.finished}
        return Rehearsal({"tests": tests, "extra_data": extra, "output": "it stopped"}, "")


@pytest.fixture
def rehearsals(monkeypatch):
    fake = Rehearsals()
    monkeypatch.setattr(module, "rehearse", fake)
    # Files of the repo are not for a test to write; test_generated.py says if they are stale.
    monkeypatch.setattr(module, "generate", lambda assignments: [])
    monkeypatch.setattr(module, "record_hidden", lambda assignment, progress, dist: False)
    return fake


def test_what_has_not_changed_is_not_graded_again(rehearsals, tmp_path):
    first = release(A1, str, tmp_path)
    assert not first.unchanged
    assert (first.tests, first.points) == (len(ROSTER), 100)
    assert (first.checked.reference, first.checked.stub) == (100, 0)
    second = release(A1, str, tmp_path)
    assert second.unchanged
    assert second.checked == first.checked
    assert rehearsals.calls == ["solutions", "assignments"]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"fingerprint": 1}', None])
def test_a_damaged_memory_means_grading_again(rehearsals, tmp_path, damage):
    release(A1, str, tmp_path)
    memory = tmp_path / "a1-checked.json"
    if damage is None:
        memory.unlink()
    else:
        memory.write_text(damage)
    assert not release(A1, str, tmp_path).unchanged
    assert len(rehearsals.calls) == 4


@pytest.mark.parametrize("part", ["the zip", "the reference", "the stub"])
def test_what_has_changed_is_graded_again(rehearsals, tmp_path, monkeypatch, part):
    release(A1, str, tmp_path / "dist")
    if part == "the zip":
        monkeypatch.setattr(
            "autograder.packaging.build.read_semester", lambda: Semester("next", "other")
        )
    else:
        root = copy_repo(tmp_path / "repo")
        side = "solutions" if part == "the reference" else "assignments"
        file = root / side / "a1_convolution" / "convolution.py"
        file.write_text(file.read_text("utf-8") + "\n# changed\n", "utf-8")
        monkeypatch.setattr(module, "ROOT", root)
    assert not release(A1, str, tmp_path / "dist").unchanged
    assert len(rehearsals.calls) == 4


@pytest.mark.parametrize(
    ("fault", "value", "sentence"),
    [
        ("lost", 1, r"solutions/a1_convolution must get 100 of 100 points, but got \d+ of 100"),
        ("lost", len(ROSTER), "solutions/a1_convolution must get 100 of 100 .* but got 0 of 100"),
        ("gained", 1, r"assignments/a1_convolution must get 0 of 100 points, but got \d of 100"),
        ("missing", 1, rf"ran {len(ROSTER) - 1} tests on solutions, not {len(ROSTER)}"),
        ("missing", len(ROSTER), rf"ran 0 tests on solutions, not {len(ROSTER)}"),
        ("finished", False, "a1-autograder.zip: it stopped"),
        ("left_out", (ROSTER[0].name,), "must leave out what needs a GPU, and only that: test_"),
    ],
)
def test_a_check_that_fails_is_an_error_that_says_what_is_wrong(
    rehearsals, tmp_path, fault, value, sentence
):
    setattr(rehearsals, fault, value)
    with pytest.raises(CourseError, match=sentence) as error:
        release(A1, str, tmp_path)
    if fault in ("lost", "gained"):
        wrong = ROSTER[-1] if fault == "lost" else ROSTER[0]
        assert f"{wrong.label}: the reason" in str(error.value)
        assert str(error.value).count("the reason") == value
    # It must not be remembered as done.
    assert not (tmp_path / "a1-checked.json").exists()
    setattr(rehearsals, fault, Rehearsals().__dict__[fault])
    assert not release(A1, str, tmp_path).unchanged
    assert json.loads((tmp_path / "a1-checked.json").read_text())["reference"] == 100
