"""Parses a submitted .ipynb: code cells, and written answers for the staff."""

import re
from dataclasses import dataclass

import msgspec

from common.assignment import LAB_FILE, Assignment
from common.errors import Failure
from common.labs.questions import ANSWER
from common.student_text import StudentText

MAX_CELLS = 500
TEXT_LIMIT = 8000
BEGIN, END = "<!-- BEGIN QUESTION -->", "<!-- END QUESTION -->"  # Otter's, around such a text
PLACEHOLDER = "_Type your answer here, replacing this text._"
HEADING = re.compile(r"\*\*Question ([1-9]\d?)\b")  # no more questions than ANSWER has
# A line that gives an answer, or still has the dots: q1_kernel = ...
GIVEN = re.compile(rf"^({ANSWER.pattern})[ \t]*=(?!=)[ \t]*(.*)$", re.MULTILINE)
# A module of an assignment, as labs name it: "a1_convolution.convolution", assignments.a1_...
ASSIGNMENT = re.compile(r"""(?:assignments[./]|["'])(a\d_[a-z]+)(?=[./ ])""")


class RawCell(msgspec.Struct):
    """A cell as the file has it. Outputs and metadata are never looked at."""

    cell_type: str
    source: str | list[str] = ""

    @property
    def text(self) -> str:
        """Its source."""
        return self.source if isinstance(self.source, str) else "".join(self.source)


class RawNotebook(msgspec.Struct):
    """A notebook as the file has it. Before format 4, cells lay in worksheets."""

    nbformat: int = 0
    cells: list[RawCell] | None = None


@dataclass(frozen=True)
class Notebook:
    """What counts of a notebook."""

    code: tuple[tuple[int, str], ...]  # each code cell that isn't empty, and which one it is
    texts: dict[str, str]  # the answers to written questions: {"q9": "..."}

    def open_questions(self) -> list[str]:
        """The questions that still have dots instead of an answer, or no text. Nothing is run."""
        given = [pair for _, source in self.code for pair in GIVEN.findall(source)]
        last = {name: line.partition("#")[0].strip() for name, line in given}
        found = {name.partition("_")[0] for name, line in last.items() if line == "..."}
        found |= {question for question, text in self.texts.items() if not text}
        return sorted(found, key=lambda question: int(question[1:]))


def read_notebook(content: bytes, assignment: Assignment) -> Notebook:
    """The notebook in a file's content; a Failure says in words why there is none."""
    try:
        raw = msgspec.json.decode(content, type=RawNotebook)
    except (msgspec.ValidationError, RecursionError):
        raise Failure(f"{LAB_FILE} is not a notebook: {NEW_COPY}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Failure(f"{LAB_FILE} can't be read: it is not valid JSON. {SAVE_AGAIN}") from None
    if 0 < raw.nbformat < 4:
        raise Failure(
            f"{LAB_FILE} has notebook format {raw.nbformat}, but only format 4 is supported. "
            f"{SAVE_AGAIN}"
        )
    if not raw.cells:
        raise Failure(f"{LAB_FILE} has no cells: {NEW_COPY}")
    if len(raw.cells) > MAX_CELLS:
        raise Failure(f"{LAB_FILE} has more than {MAX_CELLS} cells.")
    code = [cell.text if cell.cell_type == "code" else "" for cell in raw.cells]
    check_assignment(code, assignment)
    numbered = tuple((number, text) for number, text in enumerate(code, 1) if text.strip())
    return Notebook(numbered, written_texts(raw.cells))


SAVE_AGAIN = "Open it in JupyterLab, save it, and submit it again."
NEW_COPY = "start from the lab in the handout and copy your answers into it."


def check_assignment(code: list[str], assignment: Assignment) -> None:
    """Refuse the lab of another assignment. Its code decides, since metadata may be gone."""
    named = {name for text in code for name in ASSIGNMENT.findall(text)}
    if named and assignment.name not in named:
        raise Failure(
            f"This {LAB_FILE} belongs to {StudentText(max(named))}, not to {assignment.name}.",
            help=f"Submit assignments/{assignment.name}/{LAB_FILE}.",
        )


def written_texts(cells: list[RawCell]) -> dict[str, str]:
    """The texts between a written question and its end, or the next question."""
    texts: dict[str, list[str]] = {}
    question = ""
    for cell in cells:
        if cell.cell_type != "markdown":
            continue
        heading = HEADING.search(cell.text)
        if heading or END in cell.text:
            question = f"q{heading[1]}" if heading and BEGIN in cell.text else ""
            if question:
                texts.setdefault(question, [])
        elif question and cell.text.strip() not in ("", PLACEHOLDER):
            texts[question].append(cell.text.strip())
    return {name: "\n\n".join(parts)[:TEXT_LIMIT] for name, parts in texts.items()}
