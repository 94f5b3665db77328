"""Grades in Gradescope's file tree: submission/ in, results/results.json out."""

import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from autograder.grading.grade import grade
from autograder.grading.judge import Settings
from autograder.grading.results import Result, write_results
from autograder.grading.submission import Submission, read_submission
from autograder.semester import PRACTICE_NOTE, read_semester
from common.assignment import ROOT, Assignment, load_all
from common.errors import CourseError, GraderFault
from common.testing.graded_tests import read_graded_tests
from common.visible_text import visible


def grade_tree(
    root: Path,
    training: bool = True,
    submitted: Path | None = None,
    grading: Callable[[Assignment, Submission, Settings], Result] = grade,
) -> Result | None:
    """Grade root/submission into root/results/results.json. There is a result whatever happens.

    submitted: what to grade instead of root/submission.
    grading: what grades it, if not a sandbox of its own.
    Returns the result, or None where grading failed, which the file then says.
    """
    (assignment,) = load_all()
    out = root / "results" / "results.json"
    out.parent.mkdir(exist_ok=True)
    metadata = root / "submission_metadata.json"
    private = [path for path in (out.parent, metadata, root / "submission") if path.exists()]
    with reporting_failure(assignment, out):
        hide((ROOT, *private))
        settings = Settings(
            semester=read_semester(), out=out, private=tuple(private), training=training
        )
        submission = read_or_note(submitted or root / "submission", assignment)
        return grading(assignment, submission, settings)
    return None


@contextmanager
def reporting_failure(assignment: Assignment, out: Path) -> Iterator[None]:
    """Where grading fails, a complete result says so. One that can't even be written is raised.

    The earlier result, which says that grading did not finish, then stays as it is.
    """
    try:
        yield
    except Exception as error:
        print(visible(traceback.format_exc()))
        try:
            write_fault(assignment, error, out)
        except Exception as other:
            raise GraderFault(
                f"Grading failed: {reason_of(error)}. Writing this to the result failed too: "
                f"{reason_of(other)}."
            ) from None


def read_or_note(folder: Path, assignment: Assignment) -> Submission:
    """The submission; one that can't be read is an empty one with a note."""
    try:
        return read_submission(folder, assignment)
    except GraderFault:
        raise
    except CourseError as error:
        return Submission(notes=[str(error)])


def hide(paths: tuple[Path, ...]) -> None:
    """Leave files and folders to root alone, where we are root."""
    if os.getuid() == 0:
        for path in paths:
            path.chmod(0o700 if path.is_dir() else 0o600)


def reason_of(error: Exception) -> str:
    """What went wrong, in words where there are some."""
    if isinstance(error, CourseError):
        return str(error).rstrip(".")
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__


def write_fault(assignment: Assignment, error: Exception, out: Path) -> None:
    """A complete result that says that the grader, not the submission, failed."""
    result = Result(assignment, read_graded_tests(ROOT / "tests" / assignment.name), salt="")
    with suppress(CourseError, OSError):  # the fault may be that the term can't be read
        semester = read_semester()
        result.salt = semester.fingerprint
        if semester.is_practice:
            result.notes.append(f"{PRACTICE_NOTE.capitalize()}.")
    result.notes.append(
        f"The grader could not grade this submission: {reason_of(error)}. This says nothing about "
        "your work. Please contact the course staff, who can rerun the grader."
    )
    write_results(result, out)
