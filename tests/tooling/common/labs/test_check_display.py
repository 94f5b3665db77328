"""Tests of what `grader.check` shows: a sentence, without source and without a traceback."""

import pytest
from IPython.core.interactiveshell import InteractiveShell
from otter.test_files.ok_test import OKTestFile

from common.labs import check_display
from common.labs.check_display import result_in_words, show_checks_in_words

CODE = """>>> total = sum(q1_sizes)
>>> assert len(q1_sizes) == 2, 'two numbers'
>>> assert total == 3, 'they add up to 3'
"""
FORM = "The form is right."


def checked(names, code=CODE, message=None):
    """The result of Otter's check of question 1, with these variables in the notebook."""
    cases = [{"code": part, "hidden": False} for part in (">>> assert True\n", code)]
    cases[-1]["success_message"] = message
    file = OKTestFile.from_spec({"name": "q1", "suites": [{"cases": cases, "type": "doctest"}]})
    file.run(names)
    return file


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ({"q1_sizes": [1, 2]}, "q1: The answer passed."),
        ({"q1_sizes": [3]}, "q1 is not right yet: two numbers."),
        ({"q1_sizes": [3, 1]}, "q1 is not right yet: they add up to 3."),
        ({"q1_sizes": ...}, "q1_sizes is not answered yet: replace the three dots"),
        ({}, "q1_sizes is not defined: run the cells above first."),
        ({"q1_sizes": 3}, "q1 doesn't have the form that this check expects (TypeError: 'int'"),
    ],
)
def test_a_check_says_one_sentence(names, sentence):
    text = result_in_words(checked(dict(names)), names)
    assert text.startswith(sentence) and "\n" not in text
    assert "assert" not in text and "Traceback" not in text


def test_a_check_of_the_form_says_so_only_if_it_passed():
    right, wrong = {"q1_sizes": [1, 2]}, {"q1_sizes": [1]}
    assert result_in_words(checked(dict(right), message=FORM), right) == f"q1: {FORM}"
    assert FORM not in result_in_words(checked(dict(wrong), message=FORM), wrong)


def test_a_check_without_a_message_says_that_the_answer_is_wrong():
    names = {"q1_sizes": 3}
    assert result_in_words(checked(names, ">>> assert q1_sizes == 4\n"), names) == (
        "q1 is not right yet."
    )


def test_a_notebook_shows_the_sentence_in_place_of_otters_result(monkeypatch):
    shell = InteractiveShell()
    shell.user_ns["q1_sizes"] = ...
    fake = type("IPython", (), {"get_ipython": staticmethod(lambda: shell)})
    monkeypatch.setitem(check_display.sys.modules, "IPython", fake)
    show_checks_in_words()
    shown, _ = shell.display_formatter.format(checked({"q1_sizes": ...}))
    assert shown["text/plain"].startswith("q1_sizes is not answered yet")
    assert shown["text/html"] == f"<p>{shown['text/plain']}</p>"


def test_without_a_notebook_nothing_happens(monkeypatch):
    monkeypatch.delitem(check_display.sys.modules, "IPython", raising=False)
    show_checks_in_words()
