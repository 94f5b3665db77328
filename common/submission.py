"""Zips what a student hands in: `python -m common.submission a1`."""

import ast
import sys
import zipfile
from pathlib import Path

from common.assignment import ROOT, Assignment, assignment_files, load_assignment
from common.errors import CourseError


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
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in assignment.files:
            archive.write(folder / name, name)
    return target


def main() -> None:
    """Zip the assignment that is named, or the only one there is."""
    names = sys.argv[1:] or [file.parent.name for file in assignment_files()]
    try:
        if len(names) != 1:
            short = ", ".join(name.partition("_")[0] for name in names)
            raise CourseError(f"Say which assignment: make submission A=... (one of: {short})")
        assignment = load_assignment(names[0])
        file = write_submission(assignment)
    except CourseError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    print(f"Written: {file.name} ({', '.join(assignment.files)}). Upload it to Gradescope.")


if __name__ == "__main__":
    main()
