"""Renders a batch's report.html: one self-contained file, which needs no network."""

import json
from html import escape
from pathlib import Path
from typing import Any

from autograder.batch.batch_records import Batch, read_batch, writing
from autograder.batch.output.report_data import ReportData
from autograder.batch.output.written_answers import prompts, write_texts
from autograder.proving.mistakes import load_mistakes
from autograder.zip_archive import write_atomically
from common.assignment import load_assignment

PAGE = Path(__file__).parent / "page"
REPORT = "report.html"
# All that could end a script or begin markup; in JSON such letters only occur within strings.
SPELLED = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&"}


def write_report(folder: Path, anonymous: bool = False) -> None:
    """Write what people read of the batch in a folder; without names if the batch says so, too."""
    write_page(read_batch(folder), anonymous)


def write_page(batch: Batch, anonymous: bool = False) -> None:
    """Write report.html of a batch that has been read, and the pages of the lab's texts."""
    page = report_page(batch, anonymous)
    with writing(batch.folder):
        write_atomically(batch.folder / REPORT, page.encode())
        write_texts(batch, anonymous or batch.anonymous)


def report_page(batch: Batch, anonymous: bool = False) -> str:
    """The page as HTML."""
    assignment = load_assignment(batch.assignment)
    hints = [mistake.hint for mistake in load_mistakes(assignment)]
    data = ReportData(batch, assignment, hints, anonymous or batch.anonymous)
    parts = {
        "title": escape(f"{assignment.short}: {assignment.title}"),
        "style": read_part("report.css"),
        "script": read_part("report.js"),
        "data": script_json(data.to_json() | {"answers": [*prompts(assignment)]}),
    }
    page = read_part("report.html")
    before, *rest = page.split("{{")
    for piece in rest:  # in one pass, so that nothing in the data is taken for a place of its own
        name, _, after = piece.partition("}}")
        before += parts[name] + after
    return before


def read_part(name: str) -> str:
    """A file that the page is made from."""
    return (PAGE / name).read_text("utf-8")


def script_json(content: dict[str, Any]) -> str:
    """JSON that can stand in a script element, whatever students have written."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.translate(SPELLED)
