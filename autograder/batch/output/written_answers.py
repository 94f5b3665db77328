"""Writes answers/: one page per lab question that the staff grade by hand."""

import json
import re
from pathlib import Path

from autograder.authoring.html_pages import render_page
from autograder.authoring.otter_assign import student_file
from autograder.batch.batch_records import Batch, Entry
from autograder.batch.output.anonymization import anonymized
from common.assignment import Assignment, load_assignment
from common.atomic_write import write_atomically
from common.labs.notebook import BEGIN, HEADING

TEXTS = "answers"
TEMPLATE = Path(__file__).parent / "page" / "written_answers.html"


def write_texts(batch: Batch, anonymous: bool) -> list[Path]:
    """Write a page for each written question into answers/; the pages."""
    assignment = load_assignment(batch.assignment)
    written = []
    given = {entry.id: texts_of(batch, entry) for entry in batch.entries}
    # In the order of other files, whoever knows those could identify the students.
    entries = sorted(batch.entries, key=lambda e: e.alias) if anonymous else batch.entries
    for question, asked in prompts(assignment).items():
        title = f"{assignment.short}: {question} of the lab"
        answers = [(entry, given[entry.id].get(question, "")) for entry in entries]
        if anonymous:  # some sign what they write
            answers = [(entry, anonymized(text, entry)) for entry, text in answers]
        named = [(who(entry, anonymous), text) for entry, text in answers]
        page = render_page(
            TEMPLATE,
            title=title,
            asked=asked,
            answers=[(name, text) for name, text in named if text],
            without=[name for name, text in named if not text],
        )
        file = batch.folder / TEXTS / f"{question}.html"
        write_atomically(file, page.encode("utf-8", "replace"))
        written.append(file)
    return written


def texts_of(batch: Batch, entry: Entry) -> dict[str, str]:
    """What a submission has written, by question."""
    result = batch.result(entry)
    return result["extra_data"].get("texts", {}) if result else {}


def prompts(assignment: Assignment) -> dict[str, str]:
    """The written questions of a lab, by name; none where there is no lab."""
    if not assignment.lab:
        return {}
    cells = json.loads(student_file(assignment).read_bytes())["cells"]
    found = {}
    for cell in cells:
        text = "".join(cell["source"])
        heading = HEADING.search(text)
        if BEGIN in text and heading:
            found[f"q{heading[1]}"] = re.sub(r"\*\*", "", text.replace(BEGIN, "")).strip()
    return found


def who(entry: Entry, anonymous: bool) -> str:
    """Whose answer it is, as far as that may be shown."""
    if anonymous:
        return entry.alias
    names = ", ".join(student.name or student.email or student.sid for student in entry.students)
    return f"{names} ({entry.id})" if names and names != entry.id else entry.id
