"""Reads submissions from an export that is a zip, without unpacking it."""

import zipfile
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path, PurePosixPath
from zipfile import ZipInfo

from autograder.batch.input.export_items import PREFIX, Item, hides, is_only_a_zip
from autograder.batch.input.gradescope_metadata import METADATA
from autograder.grading.file_names import printable_name
from autograder.grading.submission import (
    Submission,
    ZipSource,
    collect,
    raise_if_machine_fault,
    unreadable_zip,
)
from common.assignment import Assignment
from common.errors import CourseError, GraderFault

DOWNLOAD_AGAIN = "the export is damaged. Download it again."
MAX_ZIP_BYTES = 256 * 1024 * 1024  # of a zip within a zip


class DamagedExport(GraderFault):
    """What a new download fixes, and nothing else."""


class PartOfZip(ZipSource):
    """Those members of a zip that lie in one of its folders."""

    def __init__(self, archive: zipfile.ZipFile, folder: str, members: list[ZipInfo]) -> None:
        super().__init__(archive, members)
        self.folder = folder

    def names(self) -> Iterator[tuple[str, bool]]:
        for name, plain in super().names():
            yield name.removeprefix(self.folder), plain

    def read(self, name: str, count: int) -> bytes:
        return read_whole(self, self.folder + name, count)


def read_whole(source: ZipSource, name: str, count: int) -> bytes:
    """A member of the export itself. That it is damaged is no student's fault."""
    try:
        return ZipSource.read(source, name, count)
    except Exception as error:  # as for any zip
        raise_if_machine_fault(error, name)
        raise DamagedExport(f"{printable_name(name)} can't be read: {DOWNLOAD_AGAIN}") from None


class ExportZip:
    """Submissions in a zip, read without unpacking it."""

    def __init__(self, path: Path) -> None:
        try:
            self.archive = zipfile.ZipFile(path)
        except Exception as error:  # a damaged or exotic zip may raise nearly anything
            raise CourseError(f"{path} is not a readable zip file ({error}).") from None
        members = [one for one in self.archive.infolist() if is_sound(one.filename)]
        self.root = root_of([one.filename for one in members])
        self.members: dict[str, list[ZipInfo]] = {}
        for one in members:
            top, _, rest = one.filename.removeprefix(self.root).partition("/")
            if one.filename.startswith(self.root) and top and (rest or not one.is_dir()):
                self.members.setdefault(top, []).append(one)

    def metadata(self) -> bytes | None:
        """The content of submission_metadata.yml, if there is one."""
        with suppress(KeyError):
            return self.archive.read(self.root + METADATA)
        return None

    def items(self) -> Iterator[Item]:
        """All that lies there, in order."""
        for name, members in sorted(self.members.items()):
            is_folder = members[0].filename != self.root + name
            if is_folder or name.lower().endswith(".zip"):
                yield Item(name)
            else:
                yield Item(name, "is neither a folder nor a zip")

    def read_submission(self, name: str, assignment: Assignment) -> Submission:
        """The submission of that name."""
        members = self.members[name]
        if members[0].filename == self.root + name:
            return self.read_inner_zip(members[0], assignment)
        inside = [one for one in members if not one.is_dir() and not hides(one.filename)]
        names = [one.filename.removeprefix(f"{self.root}{name}/") for one in inside]
        if not name.startswith(PREFIX) and is_only_a_zip(names):
            return self.read_inner_zip(inside[0], assignment)
        return collect(assignment, PartOfZip(self.archive, f"{self.root}{name}/", members))

    def read_inner_zip(self, member: ZipInfo, assignment: Assignment) -> Submission:
        """A submission that is a zip within the zip."""
        try:
            content = read_whole(ZipSource(self.archive), member.filename, MAX_ZIP_BYTES)
            with zipfile.ZipFile(BytesIO(content)) as inner:
                return collect(assignment, ZipSource(inner))
        except Exception as error:  # as for any zip
            raise_if_machine_fault(error, member.filename)
            return unreadable_zip(PurePosixPath(member.filename).name, assignment)


def is_sound(name: str) -> bool:
    """Whether a member's name stays inside the zip."""
    parts = PurePosixPath(name).parts
    return bool(parts) and not name.startswith("/") and not {"..", "__MACOSX"} & {*parts}


def root_of(names: list[str]) -> str:
    """The folder in which submissions lie: the top, or the only folder there.

    Metadata further down is part of a submission, and says nothing about others.
    """
    tops = {name.partition("/")[0] for name in names}
    if len(tops) != 1 or any("/" not in name for name in names):
        return ""
    top = f"{tops.pop()}/"
    holds_folders = any(name.count("/") > 1 for name in names)
    return top if holds_folders or f"{top}{METADATA}" in names else ""
