"""Tests of the pages with the answers to a lab's written questions."""

import json
import re

import pytest
from msgspec.structs import replace

from autograder.batch.batch_records import read_batch, result_file
from autograder.batch.output.html_report import write_report
from autograder.batch.output.written_answers import prompts
from common.assignment import load_assignment
from tests.tooling.drawn_batches import HOSTILE_TEXT, write_batch

COUNT = 8


@pytest.fixture
def folder(tmp_path):
    """A batch in which the first three have written something."""
    folder = write_batch(tmp_path / "out", COUNT)
    written = ["Grain goes,\nand <thin> things too.", HOSTILE_TEXT, "Grüße & so on"]
    for entry, text in zip(read_batch(folder).entries, written, strict=False):
        file = result_file(folder, entry.id)
        result = json.loads(file.read_bytes())
        result["extra_data"]["texts"] = {"q6": text, "q11": ""}
        file.write_text(json.dumps(result))
    return folder


def test_each_question_that_people_read_has_a_page_with_all_answers(folder):
    write_report(folder)
    assert sorted(file.name for file in (folder / "answers").iterdir()) == ["q11.html", "q6.html"]
    page = (folder / "answers" / "q6.html").read_text("utf-8")
    assert page.count("<article>") == 3
    assert "Question 6. Move the slider." in page
    assert "Grain goes,\nand &lt;thin&gt; things too." in page and "Grüße &amp; so on" in page
    first, *_, last = read_batch(folder).entries
    assert f"{first.students[0].name}" in page and f"({first.id})" in page
    assert f"({last.id})" in page[page.index("No answer: ") :]
    other = (folder / "answers" / "q11.html").read_text("utf-8")
    assert "<article>" not in other and other.count("(21") == COUNT


def test_nothing_that_was_written_becomes_markup(folder):
    write_report(folder)
    page = (folder / "answers" / "q6.html").read_text("utf-8")
    assert "&lt;/script&gt;" in page
    assert not re.search(r"<(script|img|b)\b", page)
    assert "default-src 'none'" in page


def test_without_names_nobody_can_be_identified(folder):
    write_report(folder, anonymous=True)
    page = (folder / "answers" / "q6.html").read_text("utf-8")
    entries = read_batch(folder).entries
    headings = re.findall(r"<h2>(.*)</h2>", page)
    assert headings == sorted(headings) and len(headings) == 3
    assert headings == sorted(entry.alias for entry in entries[:3])
    for entry in entries:
        assert entry.id not in page and entry.alias in page
        assert not any(student.name in page for student in entry.students)


def test_who_signs_an_answer_is_hidden_too(folder):
    first = read_batch(folder).entries[0]
    file = result_file(folder, first.id)
    result = json.loads(file.read_bytes())
    name, mail = first.students[0].name, first.students[0].email
    result["extra_data"]["texts"] = {"q6": f"All is well. {name.upper()} <{mail}>"}
    file.write_text(json.dumps(result))
    write_report(folder, anonymous=True)
    page = (folder / "answers" / "q6.html").read_text("utf-8")
    assert "All is well. [hidden] &lt;[hidden]&gt;" in page
    assert name.upper() not in page and mail not in page


def test_an_assignment_without_a_lab_has_no_such_pages(tmp_path, monkeypatch):
    folder = write_batch(tmp_path / "out", COUNT)
    bare = replace(load_assignment("a1"), lab=None)
    monkeypatch.setattr(
        "autograder.batch.output.written_answers.load_assignment", lambda name: bare
    )
    write_report(folder)
    assert not (folder / "answers").exists()
    assert prompts(bare) == {}
