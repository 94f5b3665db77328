"""Checks a built zip for leaked solutions: source lines, bytecode, forbidden names."""

import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath
from types import CodeType

from autograder.authoring.lab_master import master_file, read_master, secret_lines
from autograder.authoring.solution_markers import find_blocks, solution_lines
from autograder.packaging.public_helpers import unused_helpers
from common.assignment import LAB_FILE, ROOT, STANDINS, Assignment, load_all
from common.errors import CourseError
from common.testing.graded_tests import HIDDEN_FILE

# Shorter lines, such as `return out`, are nobody's secret.
SHORTEST_LINE = 12  # of the zip's own assignment; of others, lines must be distinctive
SHORTEST_CODE = 40
# Nor is what every training loop and every signature has.
COMMONPLACE = {
    "raise ValueError(",
    "model.eval()",
    "if batch_size < 1 or context_length < 1:",
    "with torch.no_grad():",
    "loss.backward()",
    "optimizer.zero_grad()",
    "optimizer.step()",
    "for _ in range(repeats):",
    "start = time.perf_counter()",
    "optimizer = torch.optim.Adam(",
    'optimizer.param_groups[0]["lr"] = rate',
    "for step in range(steps):",
    "losses.append(loss.item())",
    ") -> tuple[Tensor, Tensor]:",
    "mask: Tensor | None = None,",
    "optimizer: torch.optim.Optimizer,",
    "generator = torch.Generator()",
    "rng = np.random.default_rng(config.seed)",
    "for step in range(1, config.steps + 1)",
    "for step in range(1, config.steps + 1):",
    '"""Raises ValueError for settings that make no sense."""',
    "if not math.isfinite(loss):",
}
# Lines of at least this length are found inside other text too: comments, prose, data.
DISTINCTIVE_LINE = 24
# What files that are not text begin with.
ZLIB = b"\x78\xda"
BINARY_KINDS = {
    ".png": (b"\x89PNG\r\n\x1a\n", "a picture"),
    ".npz": (b"PK", "an archive of arrays"),
    ".npy": (b"\x93NUMPY", "an array"),
    ".hints": (ZLIB, "a hint file"),
}
NEVER = (
    "solutions",
    "mistakes.toml",
    "unnamed.toml",
    "equivalent.toml",
    "alternatives",
    "__pycache__",
)


def check_zip(file: Path, assignment: Assignment) -> None:
    """Raise CourseError, naming member and line, if the zip holds what it must not."""
    secrets = Secrets(load_all(), assignment.name)
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            check_name(file, member.filename)
            path = PurePosixPath(member.filename)
            # A stand-in goes along when its own assignment is over.
            over = path.parent.name if ROOT / path.parent.parent == STANDINS else ""
            secrets.check(f"{file.name}: {path}", archive.read(member), over)
        check_helpers(file, archive)


def check_name(file: Path, name: str) -> None:
    """No solution, no mistake list, no bytecode, no hidden file."""
    parts = PurePosixPath(name).parts
    if any(part in NEVER or part.startswith(".") for part in parts) or name.endswith(".pyc"):
        raise CourseError(f"{file.name} must not contain {name}.")


def check_helpers(file: Path, archive: zipfile.ZipFile) -> None:
    """Without the hidden tests, nothing that only they use."""
    names = [name for name in archive.namelist() if re.fullmatch(r"tests/\w+/\w+\.py", name)]
    if not any(PurePosixPath(name).name == HIDDEN_FILE for name in names):
        for name, helpers in unused_helpers({name: archive.read(name) for name in names}).items():
            raise CourseError(
                f"{file.name}: {name} has what no public test uses: {', '.join(helpers)}."
            )


class Secrets:
    """What only solutions have: lines of code, and those lines compiled."""

    def __init__(self, assignments: Iterable[Assignment], own: str) -> None:
        self.lines: dict[str, str] = {}
        self.compiled: dict[bytes, str] = {}
        for assignment in assignments:
            folder = ROOT / "solutions" / assignment.name
            for name in assignment.files:
                shortest = SHORTEST_LINE if assignment.name == own else DISTINCTIVE_LINE
                self.add(folder / name, shortest)
                stub = ROOT / "assignments" / assignment.name / name
                for alternative in sorted(folder.glob(f"alternatives/*/{name}")):
                    self.add_alternative(alternative, stub)
            if assignment.lab:
                origin = master_file(assignment).relative_to(ROOT).as_posix()
                self.lines |= dict.fromkeys(secret_lines(read_master(assignment)), origin)
        self.heads = {
            line[:DISTINCTIVE_LINE] for line in self.lines if len(line) >= DISTINCTIVE_LINE
        }

    def add(self, file: Path, shortest: int) -> None:
        """Learn one solution file, and of its lines those that are long enough."""
        origin = file.relative_to(ROOT).as_posix()
        lines, compiled = read_solution(file.read_text("utf-8"), origin)
        for line in lines:
            if len(line) >= shortest and line not in COMMONPLACE:
                self.lines[line] = origin
        self.compiled |= dict.fromkeys(compiled, origin)

    def add_alternative(self, file: Path, stub: Path) -> None:
        """Learn a solution without markers: its functions' lines that the stub doesn't have."""
        given = stub.read_text("utf-8")
        for line in file.read_text("utf-8").splitlines():
            code = line.strip()
            known = code in given or code in COMMONPLACE
            if line.startswith(" ") and len(code) >= DISTINCTIVE_LINE and not known:
                self.lines[code] = file.relative_to(ROOT).as_posix()

    def check(self, where: str, content: bytes, over: str = "") -> None:
        """Look for secrets in the bytes of one member, and in what is compressed inside it.

        over: an assignment whose solutions are no secret any more.
        """
        if content.startswith(ZLIB):
            with suppress(zlib.error):
                content += zlib.decompress(content)
        for code, origin in self.compiled.items():
            if code in content:
                raise CourseError(f"{where} contains compiled code of {origin}.")
        if zipfile.is_zipfile(io.BytesIO(content)):
            with zipfile.ZipFile(io.BytesIO(content)) as inner:
                for member in inner.infolist():
                    self.check(f"{where}: {member.filename}", inner.read(member))
        # Arrays of text hold it in four bytes for each character, three of them 0.
        text = content.replace(b"\0", b"").decode("utf-8", errors="replace")
        if where.endswith(LAB_FILE):  # where each line is a string of its own
            with suppress(ValueError, KeyError, TypeError):
                cells = json.loads(content)["cells"]
                text += "\n".join(["", *("".join(cell["source"]) for cell in cells)])
        whole = {line.strip() for line in text.splitlines()}
        # One way through the text for the beginnings of all lines: there are thousands of them.
        begun = self.heads.intersection(
            text[start : start + DISTINCTIVE_LINE] for start in range(len(text))
        )
        for line, origin in self.lines.items():
            if over and origin.startswith(f"solutions/{over}/"):
                continue
            if line in whole or (line[:DISTINCTIVE_LINE] in begun and line in text):
                raise CourseError(f"{where} contains a line of {origin}: {line}")
        check_kind(where, content)


@cache  # every zip is searched for the solutions of all assignments
def read_solution(source: str, origin: str) -> tuple[tuple[str, ...], tuple[bytes, ...]]:
    """The lines of a solution, and the code to which its functions are compiled."""
    functions = {block.function for block in find_blocks(source, origin)}
    compiled = [
        code.co_code
        for level in (0, 1, 2)
        for code in code_objects(compile(source, origin, "exec", optimize=level))
        if code.co_qualname in functions and len(code.co_code) >= SHORTEST_CODE
    ]
    return tuple(solution_lines(source, origin)), tuple(compiled)


def check_kind(where: str, content: bytes) -> None:
    """A member is text, or what its name says: in anything else, secrets could not be found."""
    beginning, kind = BINARY_KINDS.get(PurePosixPath(where).suffix, (b"", ""))
    if kind and not content.startswith(beginning):
        raise CourseError(f"{where} is not {kind}.")
    if not kind:
        try:
            content.decode("utf-8")
        except UnicodeDecodeError:
            raise CourseError(f"{where} is neither text nor a picture.") from None


def code_objects(code: CodeType) -> Iterator[CodeType]:
    """A code object and all inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from code_objects(constant)
