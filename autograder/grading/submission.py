"""Reads the assignment's files from a submitted folder, zip or file, and nothing else."""

import errno
import os
import stat
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Self

from autograder.grading.file_names import FileNames, printable_name
from autograder.grading.plain_files import FILE, FOLDER, NotPlain, open_below, read_below
from common.assignment import CLEAR_OUTPUTS, LAB_FILE, Assignment
from common.errors import CourseError, GraderFault

MAX_FILE_BYTES = 1024 * 1024
MAX_ENTRIES = 20_000
MAX_DEPTH = 50  # of folders within folders
# Python unpacks these bit by bit; of the other methods, a few bytes may become gigabytes at once.
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
NAMES_SHOWN = 5  # of what was found where a file is missing
# With these the machine can't read, whatever was submitted.
OF_THE_MACHINE = (
    *(errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ENODEV, errno.ENOENT),
    *(errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM),
)
FOLDER_INSIDE = None  # an entry of a folder that is a folder itself
ZIP_INSIDE = "There is a zip inside: submit its files, not the zip."


@dataclass
class Submission:
    """The files that count, and notes on how they were found."""

    files: dict[str, bytes] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)  # why a file was not taken, by name
    renamed: list[str] = field(default_factory=list)  # the first notes: on files of other names

    def refuse(self, file: str, reason: str) -> None:
        """Note why a file is not taken."""
        self.notes.append(reason)
        self.reasons[file] = reason

    def note_renamed(self, name: str, file: str) -> None:
        """Note, before all else, that a file was taken under another name."""
        note = f"{name} was taken as {file}. Rename it before you submit again."
        self.notes.insert(len(self.renamed), note)
        self.renamed.append(note)

    @property
    def code(self) -> dict[str, bytes]:
        """The files that are Python. Tests read the others, and the code doesn't."""
        return {name: content for name, content in self.files.items() if name.endswith(".py")}

    def write_to(self, folder: Path) -> Path:
        """Lay the code out in a folder."""
        folder.mkdir(parents=True)
        for name, content in self.code.items():
            (folder / name).write_bytes(content)
        return folder


def read_submission(path: Path, assignment: Assignment) -> Submission:
    """The submission at a path: a folder, a zip, or the file itself.

    The path is the caller's own and may be a link. Nothing below it is followed.
    """
    if not (path.is_dir() or path.is_file()):
        raise CourseError(f"{path} does not exist. Pass a folder, a zip or a file.")
    return read_opened(os.open(path, FILE), path.name, assignment)


def read_opened(descriptor: int, name: str, assignment: Assignment) -> Submission:
    """The submission that a descriptor leads to, which is closed; name: what it is called."""
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        with FolderSource(descriptor, name) as folder:
            return collect(assignment, folder)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise CourseError(f"{printable_name(name)} is neither a folder nor a regular file.")
        if name.lower().endswith(".zip") or zipfile.is_zipfile(stream):
            return read_zip_file(stream, name, assignment)
        return read_single_file(stream, name, assignment)


def read_zip_file(stream: BinaryIO, name: str, assignment: Assignment) -> Submission:
    """What is in a zip; one that is damaged is an empty submission with a note."""
    try:
        with zipfile.ZipFile(stream) as archive:
            return collect(assignment, ZipSource(archive))
    except Exception as error:  # a damaged, encrypted or exotic zip may raise nearly anything
        raise_if_machine_fault(error, name)
        return unreadable_zip(name, assignment)


def unreadable_zip(name: str, assignment: Assignment) -> Submission:
    """What is left of a zip that can't be read: the reason, for each file."""
    reason = f"{printable_name(name)} is not a readable zip file."
    return Submission(notes=[reason], reasons=dict.fromkeys(assignment.files, reason))


def read_single_file(stream: BinaryIO, name: str, assignment: Assignment) -> Submission:
    """A single file, which stands for the file of that name: code, the lab or another artifact."""
    limits = limits_of(assignment)
    file = name if name in limits else FileNames(limits, assignment.given).meant_by(name)
    if file not in limits:
        wanted = ", ".join(limits)
        raise CourseError(
            f"{printable_name(name)} is not a file of {assignment.short}. "
            f"Pass one of these, or a folder or zip that contains them: {wanted}."
        )
    submission, limit = Submission(), limits[file]
    stream.seek(0)
    add(submission, file, name, stream.read(limit + 1), limit)
    note_missing(submission, assignment, [])
    return submission


def limits_of(assignment: Assignment) -> dict[str, int]:
    """The files that are taken, and how many bytes each may have."""
    artifacts = {artifact.file: artifact.limit for artifact in assignment.artifacts}
    return {**dict.fromkeys(assignment.files, MAX_FILE_BYTES), **artifacts}


class FolderSource:
    """The regular files of an open folder. Links are not followed, whenever they came there."""

    def __init__(self, descriptor: int, title: str) -> None:
        self.descriptor = descriptor
        self.title = title

    def names(self) -> Iterator[tuple[str, bool]]:
        """Each entry's path in the folder, and whether it can be read."""
        waiting = [""]
        while waiting:
            place = waiting.pop()
            for name, kind in self.entries(place):
                if kind is not FOLDER_INSIDE:
                    yield name, kind
                elif name.count("/") < MAX_DEPTH:
                    waiting.append(f"{name}/")

    def entries(self, place: str) -> list[tuple[str, bool | None]]:
        """What lies in a folder: names, and whether each can be read; None for a folder."""
        try:
            folder = open_below(self.descriptor, place, FOLDER)
        except (OSError, NotPlain) as error:  # it was replaced after it was found
            raise_if_machine_fault(error, place or self.title)
            return []
        try:
            with os.scandir(folder) as found:
                ordered = sorted(found, key=lambda entry: entry.name)
            return [(f"{place}{entry.name}", self.kind(entry)) for entry in ordered]
        except OSError as error:
            raise_if_machine_fault(error, place or self.title)
            return []
        finally:
            os.close(folder)

    def kind(self, entry: os.DirEntry[str]) -> bool | None:
        """Whether it is a file, and no other name of a file that lies elsewhere."""
        try:
            if entry.is_dir(follow_symlinks=False):
                return FOLDER_INSIDE
            plain = entry.is_file(follow_symlinks=False)
            return plain and entry.stat(follow_symlinks=False).st_nlink == 1
        except OSError as error:
            raise_if_machine_fault(error, entry.name)
            return False

    def read(self, name: str, count: int) -> bytes:
        return read_below(self.descriptor, name, count)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self.descriptor)


class ZipSource:
    """The members of a zip, read without unpacking any other."""

    def __init__(
        self, archive: zipfile.ZipFile, members: list[zipfile.ZipInfo] | None = None
    ) -> None:
        self.archive = archive
        self.members = archive.infolist() if members is None else members

    def names(self) -> Iterator[tuple[str, bool]]:
        """Each member's name, and whether it can be taken."""
        for member in self.members:
            mode = member.external_attr >> 16
            parts = PurePosixPath(member.filename).parts
            odd = member.filename.startswith("/") or ".." in parts or "__MACOSX" in parts
            if member.filename and not member.is_dir() and not odd:
                yield member.filename, stat.S_IFMT(mode) in (0, stat.S_IFREG)

    def read(self, name: str, count: int) -> bytes:
        if self.archive.getinfo(name).compress_type not in METHODS:
            raise zipfile.BadZipFile("unsupported compression method")
        with self.archive.open(name) as stream:
            return stream.read(count)


def collect(assignment: Assignment, source: FolderSource | ZipSource) -> Submission:
    """Find each file of the assignment by its name, the one nearest to the top.

    A renamed one is taken where none has that name, and no other renamed one could be meant.
    """
    limits = limits_of(assignment)
    submission, found = Submission(), FileNames(limits, assignment.given)
    for count, (path, plain) in enumerate(source.names()):
        if count >= MAX_ENTRIES:
            submission.notes.append(f"Only the first {MAX_ENTRIES} files were searched.")
            break
        found.add(path, plain)
        if not plain and (file := PurePosixPath(path).name) in limits:
            submission.refuse(file, not_regular(path))
    for file, limit in limits.items():
        path, reason = found.choose(file)
        if not path and not reason and file not in submission.reasons:
            path, reason = found.choose_renamed(file)
        if reason:
            submission.refuse(file, reason)
        elif path:
            read_member(submission, source, file, path, limit)
    note_missing(submission, assignment, found.others)
    return submission


def note_missing(submission: Submission, assignment: Assignment, others: list[str]) -> None:
    """Note for each missing file what was found instead."""
    seen = submission.files.keys() | submission.reasons.keys()
    missing = [file for file in assignment.files if file not in seen]
    found = ""
    if any(name.lower().endswith(".zip") for name in others):
        found = f" {ZIP_INSIDE}"
    elif others:
        more = " and more." if len(others) > NAMES_SHOWN else "."
        found = f" Found: {', '.join(map(printable_name, others[:NAMES_SHOWN]))}{more}"
    for file in missing:
        submission.reasons[file] = f"{file} is missing.{found}"
    if missing:
        are = "is" if len(missing) == 1 else "are"
        submission.notes.append(f"{' and '.join(missing)} {are} missing.{found}")


def read_member(
    submission: Submission,
    source: FolderSource | ZipSource,
    file: str,
    place: str,
    limit: int,
) -> None:
    """Read one file, or note why it can't be read."""
    try:
        content = source.read(place, limit + 1)  # never all of a file that is too large
    except NotPlain:  # it was replaced after it was found
        submission.refuse(file, not_regular(place))
        return
    except Exception as error:  # as for the whole of a zip
        raise_if_machine_fault(error, place)
        submission.refuse(
            file,
            f"{printable_name(place)} can't be read: it is damaged, encrypted or compressed with "
            "an unsupported method.",
        )
        return
    add(submission, file, PurePosixPath(place).name, content, limit)


def add(submission: Submission, file: str, name: str, content: bytes, limit: int) -> None:
    """Take a file's content, unless it is larger than such a file may be.

    name: what the file is called in the submission.
    """
    if len(content) > limit:
        size = f"{limit // 1024} KB" if limit <= MAX_FILE_BYTES else f"{limit / 1024**2:g} MB"
        clear = f" {CLEAR_OUTPUTS}" if file == LAB_FILE else ""
        submission.refuse(file, f"{name} is larger than {size} and was skipped.{clear}")
        return
    submission.files[file] = content
    if name != file:
        submission.note_renamed(name, file)


def not_regular(name: str) -> str:
    """Why a link, a device or the like is not read."""
    return f"{printable_name(name)} is not a regular file and was skipped."


def raise_if_machine_fault(error: Exception, place: str) -> None:
    """Raise a fault if it was the machine that couldn't read: that is no verdict on the work."""
    if isinstance(error, GraderFault):
        raise error
    if isinstance(error, OSError) and error.errno in OF_THE_MACHINE:
        raise GraderFault(f"{printable_name(place)} can't be read: {error.strerror}.") from None


@contextmanager
def code_folder(submission: Submission, name: str) -> Iterator[dict[str, Path]]:
    """The submission's code in a folder, by the name of the package that it makes."""
    with tempfile.TemporaryDirectory(prefix="conv2gpt-submission-") as scratch:
        yield {name: submission.write_to(Path(scratch) / name)}
