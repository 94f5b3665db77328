"""Writes answers/: one page per lab question that the staff grade by hand."""

import json
import re
from html import escape
from pathlib import Path

from autograder.authoring.otter_assign import student_file
from autograder.batch.batch_records import Batch, Entry
from autograder.batch.output.anonymization import unnamed
from autograder.zip_archive import write_atomically
from common.assignment import Assignment, load_assignment
from common.labs.notebook import BEGIN, HEADING

TEXTS = "answers"
STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 1.5rem; }
main { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(22rem, 1fr)); }
article { border: 1px solid #8888; border-radius: 6px; padding: .6rem 1rem; }
h2 { font-size: 1rem; margin: 0 0 .4rem; overflow-wrap: anywhere; }
p { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.asked { max-width: 60rem; margin-bottom: 1rem; }
footer { margin-top: 1.5rem; }
"""
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
<p class="asked">{asked}</p>
<main>
{answers}
</main>
<footer>{without}</footer>
</body>
</html>
"""


def write_texts(batch: Batch, anonymous: bool) -> list[Path]:
    """Write a page for each question that people read, in answers/; those that were written."""
    assignment = load_assignment(batch.assignment)
    written = []
    given = {entry.id: texts_of(batch, entry) for entry in batch.entries}
    # In the order of other files, who knows these could tell who is who.
    entries = sorted(batch.entries, key=lambda e: e.alias) if anonymous else batch.entries
    for question, asked in prompts(assignment).items():
        title = f"{assignment.short}: {question} of the lab"
        answers = [(entry, given[entry.id].get(question, "")) for entry in entries]
        if anonymous:  # some sign what they write
            answers = [(entry, unnamed(text, entry)) for entry, text in answers]
        cards = [card(who(entry, anonymous), text) for entry, text in answers if text]
        without = [who(entry, anonymous) for entry, text in answers if not text]
        page = PAGE.format(
            title=escape(title),
            style=STYLE,
            asked=escape(asked),
            answers="\n".join(cards),
            without=escape(f"No answer: {'; '.join(without)}." if without else ""),
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
    """The questions of a lab that people read, by name; none where there is no lab."""
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
    """Whose answer it is, as far as that may be told."""
    if anonymous:
        return entry.alias
    names = ", ".join(student.name or student.email or student.sid for student in entry.students)
    return f"{names} ({entry.id})" if names and names != entry.id else entry.id


def card(name: str, text: str) -> str:
    """One answer."""
    return f"<article><h2>{escape(name)}</h2><p>{escape(text)}</p></article>"
