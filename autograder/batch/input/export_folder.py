"""Reads submissions from an export that is a folder."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path, PurePath
from weakref import finalize

from autograder.batch.input.export_items import PREFIX, Item, hides, is_ignored, is_only_a_zip
from autograder.batch.input.gradescope_metadata import METADATA
from autograder.grading.file_names import printable_name
from autograder.grading.plain_files import FOLDER, NotPlain, open_below, read_below
from autograder.grading.submission import FolderSource, Submission, read_opened
from common.assignment import Assignment
from common.errors import CourseError


class ExportFolder:
    """Submissions in a folder."""

    def __init__(self, folder: Path) -> None:
        inner = [
            item
            for item in folder.iterdir()
            if item.is_dir() and not item.is_symlink() and not is_ignored(item.name)
        ]
        alone = len(inner) == 1 and (inner[0] / METADATA).is_file()
        top = inner[0] if alone and not (folder / METADATA).is_file() else folder
        self.folder = os.open(top, FOLDER)
        finalize(self, os.close, self.folder)
        self.disk_names: dict[str, str] = {}  # what each is called there

    def metadata(self) -> bytes | None:
        """The content of submission_metadata.yml, if there is one."""
        try:
            return read_below(self.folder, METADATA)
        except FileNotFoundError:
            return None
        except NotPlain:
            raise CourseError("it is not a regular file") from None

    def items(self) -> Iterator[Item]:
        """All that lies there, in order."""
        with os.scandir(self.folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                # Another system's letters, which are no Unicode: JSON would not take them.
                name = os.fsencode(entry.name).decode("utf-8", "backslashreplace")
                self.disk_names[name] = entry.name
                if entry.is_symlink():
                    yield Item(name, "is a link, which is not followed")
                elif entry.is_dir(follow_symlinks=False) or name.lower().endswith(".zip"):
                    yield Item(name)
                else:
                    yield Item(name, "is neither a folder nor a zip")

    def read_submission(self, name: str, assignment: Assignment) -> Submission:
        """The submission of that name."""
        place = PurePath(self.disk_names[name])
        try:
            if not name.startswith(PREFIX):
                place /= self.only_zip(place)
            return read_opened(open_below(self.folder, str(place)), place.name, assignment)
        except NotPlain:  # it was replaced after it was listed
            raise CourseError(f"{printable_name(name)} is a link, which is not followed.") from None

    def only_zip(self, place: PurePath) -> str:
        """The zip that a student's folder holds and nothing else; "" where it is not so."""
        try:
            folder = open_below(self.folder, str(place), FOLDER)
        except NotPlain:  # a zip itself, for instance
            return ""
        with FolderSource(folder, place.name) as source:
            names = (entry for entry in source.names() if not hides(entry[0]))
            inside = list(islice(names, 2))  # a second one shows that there are more
        alone = is_only_a_zip([name for name, _ in inside]) and inside[0][1]  # no link
        return inside[0][0] if alone else ""
