"""Reads submissions from an export that is a folder."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from autograder.batch.input.export_items import PREFIX, Item, hides, is_ignored, is_only_a_zip
from autograder.batch.input.gradescope_metadata import METADATA
from autograder.grading.submission import FolderSource, Submission, read_submission
from common.assignment import Assignment


class ExportFolder:
    """Submissions in a folder."""

    def __init__(self, folder: Path) -> None:
        inner = [
            item
            for item in folder.iterdir()
            if item.is_dir() and not item.is_symlink() and not is_ignored(item.name)
        ]
        alone = len(inner) == 1 and (inner[0] / METADATA).is_file()
        self.folder = inner[0] if alone and not (folder / METADATA).is_file() else folder
        self.disk_names: dict[str, str] = {}  # what each is called there

    def metadata(self) -> bytes | None:
        """The content of submission_metadata.yml, if there is one."""
        file = self.folder / METADATA
        return file.read_bytes() if file.is_file() else None

    def items(self) -> Iterator[Item]:
        """All that lies there, in order."""
        with os.scandir(self.folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                # Another system's letters, which are no Unicode: JSON would not take them.
                name = os.fsencode(entry.name).decode("utf-8", "backslashreplace")
                self.disk_names[name] = entry.name
                if entry.is_symlink():
                    yield Item(name, "is a link, which is not followed")
                elif entry.is_dir() or name.lower().endswith(".zip"):
                    yield Item(name)
                else:
                    yield Item(name, "is neither a folder nor a zip")

    def read_submission(self, name: str, assignment: Assignment) -> Submission:
        """The submission of that name."""
        path = self.folder / self.disk_names[name]
        if path.is_dir() and not name.startswith(PREFIX):
            names = (entry for entry in FolderSource(path).names() if not hides(entry[0]))
            inside = list(islice(names, 2))  # a second one shows that there are more
            if is_only_a_zip([name for name, _ in inside]) and inside[0][1]:  # no link
                path /= inside[0][0]
        return read_submission(path, assignment)
