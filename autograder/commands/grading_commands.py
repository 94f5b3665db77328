"""Commands `grade` (one submission) and `gradescope` (what run_autograder runs)."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from autograder.commands.progress_display import progress_bar
from autograder.grading.grade import grade as grade_submission
from autograder.grading.grade import with_gpu
from autograder.grading.gradescope import grade_tree
from autograder.grading.judge import Settings
from autograder.grading.results import Outcome
from autograder.grading.sandbox.defenses import Unprotected
from autograder.grading.submission import read_submission
from autograder.grading.terminal import print_result
from autograder.screen import Screen
from autograder.semester import read_semester
from common.assignment import ROOT, load_assignment
from common.errors import CourseError
from common.testing.graded_tests import read_graded_tests


def writable(context: click.Context, parameter: click.Parameter, out: Path | None) -> Path | None:
    """Refuse a result file that could not be written, before any work is done for it."""
    if out is not None and (reason := why_not_writable(out)):
        raise CourseError(f"{out} can't be written: {reason}.")
    return out


def why_not_writable(out: Path) -> str:
    """Why a file can't be written, as far as can be checked without writing it."""
    try:
        if out.is_dir():
            return "it is a folder"
        if out.exists() and not out.is_file():
            return "it is not a regular file"  # a device would be replaced by a file
        if out.parent.exists() and not out.parent.is_dir():
            return f"{out.parent} is not a folder"
        if not out.parent.is_dir():
            return f"there is no folder {out.parent}"
    except PermissionError as error:  # of a folder on the way there
        return error.strerror or "permission denied"
    if not os.access(
        out.parent, os.W_OK | os.X_OK
    ):  # results are written to a temporary file, then renamed
        return f"files can't be created in {out.parent}"
    return ""


@contextmanager
def offering_unsafe() -> Iterator[None]:
    """Where the machine can't protect the grader, name the option that grades anyway."""
    try:
        yield
    except Unprotected as error:
        raise CourseError(f"{error} To grade anyway, add --unsafe.") from None


OUT = click.Path(path_type=Path)


@click.command()
@click.argument("assignment")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--out", type=OUT, callback=writable, help="Write results.json here.")
@click.option("--direct", is_flag=True, help="Grade without isolation, for debugging.")
@click.option("--gpu", is_flag=True, help="Also run the tests that need a GPU.")
@click.option(
    "--unsafe",
    is_flag=True,
    help="Grade even where student code could read hidden tests or change its result.",
)
def grade(
    assignment: str, path: Path, out: Path | None, direct: bool, gpu: bool, unsafe: bool
) -> None:
    """Grade one submission to an assignment (a1, for instance): a folder, a zip or a file."""
    chosen = load_assignment(assignment)
    if gpu:
        with_gpu(chosen)  # an error here and now, where there is none
    submission = read_submission(path, chosen)
    console = Screen()
    count = len(read_graded_tests(ROOT / "tests" / chosen.name))
    done: list[Outcome] = []
    with progress_bar(console, f"grading {chosen.short}") as show:

        def note(outcome: Outcome) -> None:
            done.append(outcome)
            show(len(done), count)

        settings = Settings(
            semester=read_semester(),
            out=out,
            direct=direct,
            unsafe=unsafe,
            private=(out.parent.resolve(),) if out else (),
            on_test=note,
            gpu=gpu,
        )
        with offering_unsafe():
            result = grade_submission(chosen, submission, settings)
    print_result(result, console)
    if out:
        console.print(f"Wrote {out}")


@click.command()
@click.option(
    "--root",
    type=click.Path(path_type=Path),
    default=Path("/autograder"),
    show_default=True,
    help="Root of Gradescope's file tree.",
)
@click.option("--without-training", is_flag=True, help="Skip the tests that train.")
def gradescope(root: Path, without_training: bool) -> None:
    """What run_autograder runs on Gradescope."""
    grade_tree(root, training=not without_training)
