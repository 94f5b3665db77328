"""Renders a batch's report.html: one self-contained file, which needs no network."""

from pathlib import Path

from autograder.authoring.html_pages import render_page
from autograder.batch.batch_records import Batch, read_batch, writing
from autograder.batch.output.report_data import ReportData
from autograder.batch.output.written_answers import prompts, write_texts
from autograder.proving.wrong_versions.mistakes import load_mistakes
from common.assignment import load_assignment
from common.atomic_write import write_atomically

TEMPLATE = Path(__file__).parent / "page" / "report.html"
REPORT = "report.html"


def write_report(folder: Path, anonymous: bool = False) -> None:
    """Write a batch's report and written answers; without names also if the batch says so."""
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
    return render_page(
        TEMPLATE,
        title=f"{assignment.short}: {assignment.title}",
        data=data.to_json() | {"answers": [*prompts(assignment)]},
    )
