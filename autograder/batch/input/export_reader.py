"""Finds all submissions of an export, which is a folder or a zip, with their students."""

from dataclasses import dataclass, field
from pathlib import Path

from autograder.batch.batch_records import Student, Submitted
from autograder.batch.input.export_folder import ExportFolder
from autograder.batch.input.export_items import PREFIX, Item, is_ignored
from autograder.batch.input.export_zip import ExportZip
from autograder.batch.input.gradescope_metadata import METADATA, Facts, read_metadata
from autograder.grading.file_names import printable_name
from autograder.grading.submission import Submission
from common.assignment import Assignment
from common.errors import CourseError


@dataclass
class Export:
    """All submissions of a class, and what was odd about where they lie."""

    path: Path
    container: ExportFolder | ExportZip
    submissions: list[Submitted] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def read_submission(self, submitted: Submitted, assignment: Assignment) -> Submission:
        """The files of one submission."""
        return self.container.read_submission(submitted.place, assignment)


def read_export(path: Path) -> Export:
    """Find all submissions. What is odd is noted, and stops nothing."""
    if path.is_dir():
        export = Export(path, ExportFolder(path))
    elif path.is_file():
        export = Export(path, ExportZip(path))
    else:
        raise nothing_at(path)
    known, problem = metadata_of(export.container)
    if problem:
        export.notes.append(problem)
    facts = known or {}
    nameless = add_submissions(export, facts)
    if nameless and known is None:
        export.notes.append(f"There is no {METADATA}: names, ids and groups are missing.")
    elif nameless and not problem:
        export.notes.append(f"{METADATA} names no students for {nameless} of the submissions.")
    add_missing(export, facts)
    note_repeated_students(export)
    if not export.submissions:
        raise CourseError(f"{path} contains no submissions: no folder and no zip.")
    return export


def nothing_at(path: Path) -> CourseError:
    """That there is no export."""
    return CourseError(f"{path} does not exist. Pass an export, as a folder or a zip.")


def metadata_of(container: ExportFolder | ExportZip) -> tuple[dict[str, Facts] | None, str]:
    """What a file says of each submission, if it is there, and what was wrong with it."""
    try:
        content = container.metadata()
    except Exception as error:  # of a zip, nearly anything
        lost = "names, ids and groups are missing, and canvas.csv is empty"
        return {}, f"{METADATA} can't be read ({error}): {lost}. Download the export again."
    return read_metadata(content) if content is not None else (None, "")


def add_submissions(export: Export, facts: dict[str, Facts]) -> int:
    """List what lies there, with its students; how many of Gradescope's have none."""
    taken: dict[str, str] = {}
    nameless = 0
    for item in export.container.items():
        if item.name == METADATA or is_ignored(item.name):
            continue
        shown = printable_name(item.name)
        if item.problem:
            export.notes.append(f"{shown} {item.problem}: skipped.")
            continue
        from_gradescope = item.name.startswith(PREFIX)
        known = facts.get(item.name)
        nameless += from_gradescope and known is None
        identifier = unused(item.identifier, taken)
        if identifier != item.identifier:
            other = printable_name(taken[item.identifier.lower()])
            export.notes.append(f"{shown} has the same name as {other}: here it is {identifier}.")
        taken[identifier.lower()] = item.name
        students = known.students if known else ()
        if not from_gradescope and not known:
            students = (Student(name=item.title),)
        created_at = known.created_at if known else ""
        export.submissions.append(Submitted(identifier, item.name, students, created_at))
    return nameless


def unused(identifier: str, taken: dict[str, str]) -> str:
    """The identifier, with a number if it is taken. Some file systems know no small letters."""
    number, candidate = 1, identifier
    while candidate.lower() in taken:
        number += 1
        candidate = f"{identifier}-{number}"
    return candidate


def add_missing(export: Export, facts: dict[str, Facts]) -> None:
    """List what the metadata names and nobody finds: no score, but no one forgotten either."""
    there = {one.place for one in export.submissions}
    taken = {one.id.lower(): one.place for one in export.submissions}
    for name, known in facts.items():
        if name not in there:
            identifier = unused(Item(name).identifier, taken)
            taken[identifier.lower()] = name
            why = f"{METADATA} names {printable_name(name)}, but the export doesn't contain it."
            export.notes.append(why)
            missing = Submitted(identifier, name, known.students, known.created_at, why)
            export.submissions.append(missing)


def note_repeated_students(export: Export) -> None:
    """Note students with more than one submission."""
    seen: dict[str, list[Submitted]] = {}
    for one in export.submissions:
        for student in one.students:
            seen.setdefault(student.key, []).append(one)
    for who, ones in seen.items():
        if who and len(ones) > 1:
            names = ", ".join(one.id for one in ones)
            last = sorted(ones, key=lambda one: one.created_at)[-1].id  # as canvas.csv has it
            export.notes.append(
                f"{printable_name(who)} is in {len(ones)} submissions: {names}. "
                f"In canvas.csv it is {last} that counts."
            )
