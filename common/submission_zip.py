"""Zips a student's submission (`make submission`), after checking its files."""

import ast
import sys
import zipfile
from pathlib import Path

from common.assignment import (
    CLEAR_OUTPUTS,
    LAB_FILE,
    ROOT,
    Assignment,
    assignment_files,
    load_assignment,
)
from common.errors import CourseError, Failure
from common.labs.notebook import read_notebook
from common.student_text import unmarked


def write_submission(assignment: Assignment, root: Path = ROOT) -> Path:
    """Write aN-submission.zip; a file that is missing or doesn't parse is said at once."""
    target = root / f"{assignment.short}-submission.zip"
    folder = root / "assignments" / assignment.name
    for name in assignment.files:
        if not (folder / name).is_file():
            raise CourseError(f"{folder / name} is missing.")
        try:
            ast.parse((folder / name).read_bytes(), name)
        except (SyntaxError, ValueError) as error:
            raise CourseError(
                f"{name} is not valid Python, so it can't be graded: {error}"
            ) from None
    taken, _ = find_artifacts(assignment, folder)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in (*assignment.files, *taken):
            archive.write(folder / name, name)
    return target


def find_artifacts(assignment: Assignment, folder: Path) -> tuple[list[str], list[str]]:
    """The artifacts that are there, and those that aren't; one that is too large is said at once.

    They are optional: without them, only the tests that read them fail.
    """
    there = [entry for entry in assignment.artifacts if (folder / entry.file).is_file()]
    for entry in there:
        if (folder / entry.file).stat().st_size > entry.limit:
            raise CourseError(
                f"{entry.file} is larger than the limit of {entry.megabytes:g} MB."
                + (f" {CLEAR_OUTPUTS}" if entry.file == LAB_FILE else "")
            )
    missing = [entry.file for entry in assignment.artifacts if entry not in there]
    return [entry.file for entry in there], missing


def missing_artifacts_note(assignment: Assignment, missing: list[str]) -> str:
    """What to say of artifacts that aren't there."""
    commands = {f"`{assignment.artifact(name).command}`" for name in missing} - {"``"}
    one = len(missing) == 1
    they_are, them = ("It is", "it") if one else ("They are", "them")
    made = f"Run {' and '.join(sorted(commands))} to create {them}."
    if not commands:
        made = f"The handout explains how to create {them}."
    return (
        f"Not in the zip: {', '.join(missing)}. {they_are} optional, but some points depend on "
        f"{them}. {made}"
    )


def lab_note(assignment: Assignment, folder: Path) -> str:
    """What to say of a lab that can't be graded, or not in full; nothing, if all is well."""
    try:
        notebook = read_notebook((folder / LAB_FILE).read_bytes(), assignment)
    except Failure as failure:
        words = (failure.explanation.sentence, failure.explanation.help)
        return unmarked(" ".join(filter(None, words)))
    unanswered = notebook.open_questions()
    if not unanswered:
        return ""
    return (
        f"{LAB_FILE} has unanswered questions: {', '.join(unanswered)}. Only saved answers count."
    )


def main() -> None:
    """Zip the assignment that is named, or the only one there is."""
    names = sys.argv[1:] or [file.parent.name for file in assignment_files()]
    try:
        if len(names) != 1:
            short = ", ".join(name.partition("_")[0] for name in names)
            raise CourseError(f"Name the assignment: make submission A=... (one of: {short})")
        assignment = load_assignment(names[0])
        file = write_submission(assignment)
    except CourseError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    folder = ROOT / "assignments" / assignment.name
    taken, missing = find_artifacts(assignment, folder)
    content = ", ".join([*assignment.files, *taken])
    print(f"Wrote {file.name} ({content}). Upload it to Gradescope.")
    if missing:
        print(missing_artifacts_note(assignment, missing))
    if LAB_FILE in taken and (note := lab_note(assignment, folder)):
        print(note)


if __name__ == "__main__":
    main()
