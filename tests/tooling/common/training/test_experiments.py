"""Tests of the experiments: each assignment's run on its reference, and errors."""

import shutil
from pathlib import Path

import pytest

from common.assignment import ROOT
from common.errors import CourseError, Failure
from common.training.experiments import INTERRUPTED, new_parser, read_options, run
from tests.tooling.sampling import sample
from tests.tooling.scratch_copies import copy_finished, python

WITH_EXPERIMENTS = sorted(file.parent.name for file in ROOT.glob("assignments/*/experiments.py"))
# One of each that is quickly done. What they draw is looked at by people.
SHORTEST = {
    "a2_lenet": ["--epochs=1", "kernels"],
    "a3_recurrent": ["gradients"],
    "a4_bahdanau": ["alignment"],
    "a5_attention": ["scale", "lookup"],
    "a6_transformer": ["encoding", "maps"],
    "a7_minigpt": ["maps", "scaling"],
}


SOME = pytest.mark.parametrize("assignment", sample("experiments", WITH_EXPERIMENTS, 2))


@pytest.fixture
def course(tmp_path):
    """A student's folder in which every assignment is finished."""
    return copy_finished(tmp_path, "a[0-9]*_*")


def experiments(folder: Path, assignment: str, *arguments: str):
    """Run an assignment's experiments in a course folder."""
    module = f"assignments.{assignment}.experiments"
    return python("-m", module, "--quick", *arguments, cwd=folder)


def test_no_assignment_is_forgotten():
    assert sorted(SHORTEST) == WITH_EXPERIMENTS


@SOME
def test_experiments_draw_what_the_reference_does(course, assignment):
    done = experiments(course, assignment, *SHORTEST[assignment])
    assert done.returncode == 0, done.stderr
    drawn = sorted((course / "figures").glob("*.png"))
    assert drawn
    assert all(f"figures/{file.name}" in done.stdout for file in drawn)


@SOME
def test_experiments_say_what_is_not_written_yet(assignment, tmp_path):
    done = experiments(ROOT, assignment, f"--out={tmp_path}")
    assert done.returncode == 2
    assert done.stderr.startswith("Not written yet: ")
    assert "Traceback" not in done.stderr


def test_a_stand_in_takes_the_place_of_an_unfinished_assignment(course):
    stub = "assignments/a1_convolution"
    shutil.copytree(ROOT / stub, course / stub, dirs_exist_ok=True)
    short = ("a2_lenet", *SHORTEST["a2_lenet"])
    done = experiments(course, *short)
    assert done.returncode == 2
    assert "exercise 1." in done.stderr
    done = experiments(course, *short, "--prerequisites=standin")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nonsense"], "no experiment is named 'nonsense'; available: one, two"),
        (["one", "--seed=-1"], "--seed must be at least 0"),
        (["--out=pyproject.toml/there"], "can't write to pyproject.toml/there: Not a directory"),
    ],
)
def test_odd_arguments_are_reported(arguments, sentence, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit) as stopped:
        read_options(new_parser("a9_x", "about", "short"), ["one", "two"], arguments)
    assert stopped.value.code == 2
    assert sentence in capsys.readouterr().err


def test_all_run_if_none_is_named(tmp_path):
    parser = new_parser("a9_x", "about", "short")
    assert read_options(parser, ["one", "two"], [f"--out={tmp_path}"]).names == ["one", "two"]


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (NotImplementedError("f: exercise 9.1"), 2, "Not written yet: f: exercise 9.1."),
        (CourseError("No data."), 2, "No data."),
        (Failure("It is wrong.", "At line 3."), 2, "It is wrong. At line 3."),
        (KeyboardInterrupt(), INTERRUPTED, "Stopped."),
    ],
)
def test_what_a_person_can_mend_is_a_sentence(error, code, sentence, capsys):
    def work():
        raise error

    assert run(work) == code
    assert capsys.readouterr().err.strip() == sentence
