"""Takes the named files out of whatever a student handed in, and nothing else."""

import lzma
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from common.assignment import Assignment
from common.errors import CourseError

MAX_FILE_BYTES = 1024 * 1024
MAX_ENTRIES = 20_000
# What reading a damaged, encrypted or exotic zip may raise.
UNREADABLE = (
    *(OSError, EOFError, ValueError, RuntimeError, NotImplementedError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
)


@dataclass
class Submission:
    """The files that count, and what there is to say about how they were found."""

    files: dict[str, bytes] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def write_to(self, folder: Path) -> Path:
        """Lay the code out in a folder. Artifacts stay here: tests read them, the code doesn't."""
        folder.mkdir(parents=True)
        for name, content in self.files.items():
            if name.endswith(".py"):
                (folder / name).write_bytes(content)
        return folder


def take(path: Path, assignment: Assignment) -> Submission:
    """The submission at a path: a folder, a zip, or the file itself."""
    if path.is_dir():
        return collect(assignment, FolderSource(path))
    if path.is_file() and (path.suffix == ".zip" or zipfile.is_zipfile(path)):
        return take_zip(path, assignment)
    if path.is_file():
        return take_file(path, assignment)
    raise CourseError(f"There is nothing at {path}: give a folder, a zip or a Python file.")


def take_zip(path: Path, assignment: Assignment) -> Submission:
    """What is in a zip; one that is damaged is an empty submission with a note."""
    try:
        with zipfile.ZipFile(path) as archive:
            return collect(assignment, ZipSource(archive))
    except UNREADABLE:
        return Submission(notes=[f"{path.name} is not a readable zip file."])


def take_file(path: Path, assignment: Assignment) -> Submission:
    """A single file, which stands for the file of that name."""
    if path.name not in assignment.files:
        wanted = " and ".join(assignment.files)
        raise CourseError(f"{path.name} is not a file of {assignment.short}: it takes {wanted}.")
    submission = Submission()
    with path.open("rb") as stream:
        add(submission, path.name, stream.read(MAX_FILE_BYTES + 1), MAX_FILE_BYTES)
    return submission


def limits_of(assignment: Assignment) -> dict[str, int]:
    """The files that are taken, and how many bytes each may have."""
    artifacts = {artifact.file: artifact.limit for artifact in assignment.artifacts}
    return {**dict.fromkeys(assignment.files, MAX_FILE_BYTES), **artifacts}


class FolderSource:
    """The regular files of a folder. Links are not followed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def names(self) -> Iterator[str]:
        for path in self.folder.rglob("*"):
            if stat.S_ISREG(path.lstat().st_mode) and not self.through_a_link(path):
                yield path.relative_to(self.folder).as_posix()

    def through_a_link(self, path: Path) -> bool:
        """Whether a folder on the way to a file is a link."""
        inner = path.relative_to(self.folder).parents
        return any((self.folder / parent).is_symlink() for parent in inner if parent.name)

    def read(self, name: str, count: int) -> bytes:
        with (self.folder / name).open("rb") as stream:
            return stream.read(count)


class ZipSource:
    """The members of a zip, read without unpacking any other."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive

    def names(self) -> Iterator[str]:
        for member in self.archive.infolist():
            mode = member.external_attr >> 16
            parts = PurePosixPath(member.filename).parts
            odd = member.filename.startswith("/") or ".." in parts or "__MACOSX" in parts
            if not member.is_dir() and not stat.S_ISLNK(mode) and not odd:
                yield member.filename

    def read(self, name: str, count: int) -> bytes:
        with self.archive.open(name) as stream:
            return stream.read(count)


def collect(assignment: Assignment, source: FolderSource | ZipSource) -> Submission:
    """Find each file of the assignment by its name, the one nearest to the top."""
    limits = limits_of(assignment)
    found: dict[str, list[str]] = {name: [] for name in limits}
    submission = Submission()
    for count, name in enumerate(source.names()):
        if count >= MAX_ENTRIES:
            submission.notes.append(f"Only the first {MAX_ENTRIES} files were looked at.")
            break
        last = PurePosixPath(name).name
        if last in found:
            found[last].append(name)
    for file, places in found.items():
        nearest = sorted(places, key=lambda place: (place.count("/"), place))[:2]
        if len(nearest) == 2 and nearest[0].count("/") == nearest[1].count("/"):
            submission.notes.append(
                f"{file} is there twice ({nearest[0]} and {nearest[1]}), so it can't be told "
                "which one to grade. Submit one."
            )
        elif nearest:
            take_member(submission, source, file, nearest[0], limits[file])
    return submission


def take_member(
    submission: Submission,
    source: FolderSource | ZipSource,
    file: str,
    place: str,
    limit: int,
) -> None:
    """Read one file, or note why it can't be read."""
    try:
        content = source.read(place, limit + 1)  # never all of a file that is too large
    except UNREADABLE:
        submission.notes.append(f"{place} can't be read: it is damaged or encrypted.")
        return
    add(submission, file, content, limit)


def add(submission: Submission, file: str, content: bytes, limit: int) -> None:
    """Take a file's content, unless it is larger than such a file may be."""
    if len(content) > limit:
        size = f"{limit // 1024} KB" if limit <= MAX_FILE_BYTES else f"{limit / 1024**2:g} MB"
        submission.notes.append(f"{file} is larger than {size}: not taken.")
        return
    submission.files[file] = content
