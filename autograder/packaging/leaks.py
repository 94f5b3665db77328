"""Opens a built zip and fails if anything of a solution is in it."""

import io
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from types import CodeType

from autograder.authoring.markers import find_blocks, solution_lines
from common.assignment import ROOT, Assignment, load_all
from common.errors import CourseError

# Shorter lines, such as `return out`, are nobody's secret.
SHORTEST_LINE = 12
SHORTEST_CODE = 40
BINARY_KINDS = (".png", ".npz")
NEVER = ("solutions", "mistakes.toml", "alternatives", "__pycache__")


def check_zip(file: Path) -> None:
    """Raise CourseError, naming member and line, if the zip holds what it must not."""
    secrets = Secrets(load_all())
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            check_name(file, member.filename)
            secrets.check(f"{file.name}: {member.filename}", archive.read(member))


def check_name(file: Path, name: str) -> None:
    """No solution, no mistake list, no bytecode, no hidden file."""
    parts = PurePosixPath(name).parts
    if any(part in NEVER or part.startswith(".") for part in parts) or name.endswith(".pyc"):
        raise CourseError(f"{file.name} must not hold {name}.")


class Secrets:
    """What only solutions have: lines of code, and those lines compiled."""

    def __init__(self, assignments: Iterable[Assignment]) -> None:
        self.lines: dict[str, str] = {}
        self.compiled: dict[bytes, str] = {}
        for assignment in assignments:
            for name in assignment.files:
                self.add(ROOT / "solutions" / assignment.name / name)

    def add(self, file: Path) -> None:
        """Learn one solution file."""
        source = file.read_text("utf-8")
        place = file.relative_to(ROOT).as_posix()
        for line in solution_lines(source, place):
            if len(line) >= SHORTEST_LINE:
                self.lines[line] = place
        functions = {block.function for block in find_blocks(source, place)}
        for code in code_objects(compile(source, place, "exec")):
            if code.co_qualname in functions and len(code.co_code) >= SHORTEST_CODE:
                self.compiled[code.co_code] = place

    def check(self, where: str, content: bytes) -> None:
        """Look for secrets in the bytes of one member, and in the members of a zip inside it."""
        for code, place in self.compiled.items():
            if code in content:
                raise CourseError(f"{where} holds compiled code of {place}.")
        if zipfile.is_zipfile(io.BytesIO(content)):
            with zipfile.ZipFile(io.BytesIO(content)) as inner:
                for member in inner.infolist():
                    self.check(f"{where}: {member.filename}", inner.read(member))
            return
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            if where.endswith((*BINARY_KINDS, ".npy")):
                return
            raise CourseError(f"{where} is neither text nor a picture.") from None
        for line in text.splitlines():
            if line.strip() in self.lines:
                place = self.lines[line.strip()]
                raise CourseError(f"{where} holds a line of {place}: {line.strip()}")


def code_objects(code: CodeType) -> Iterator[CodeType]:
    """A code object and all inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from code_objects(constant)
