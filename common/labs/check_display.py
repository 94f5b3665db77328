"""Shows in one sentence what `grader.check` found. Otter itself prints doctest's tracebacks."""

import re
import sys
from html import escape
from typing import Any

from common.labs.questions import is_unanswered

OTTER_CLASS = "otter.test_files.abstract_test", "TestFile"  # what grader.check returns
NAME = re.compile(r"\bq[1-9][0-9]?_[a-z0-9_]+")
# What doctest writes of the first line that failed: frames are indented further than the error.
ERROR = re.compile(r"^ *Traceback \(most recent call last\):\n(?: {6}.*\n)* {4}(?! )(.*)$", re.M)
UNDEFINED = re.compile(r"NameError: name '(\w+)' is not defined")


def show_checks_in_words() -> None:
    """Let this notebook, if there is one, show the results of checks as sentences."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module else None
    if shell is None:
        return
    html, plain = (shell.display_formatter.formatters[f"text/{kind}"] for kind in ("html", "plain"))

    def sentence(result: Any) -> str:
        return result_in_words(result, shell.user_ns)

    html.for_type_by_name(*OTTER_CLASS, lambda result: f"<p>{escape(sentence(result))}</p>")
    plain.for_type_by_name(*OTTER_CLASS, lambda result, printer, _: printer.text(sentence(result)))


def result_in_words(result: Any, names: dict[str, Any]) -> str:
    """What a check found. names: the notebook's variables."""
    failed = next((case for case in result.test_case_results if not case.passed), None)
    if failed is not None:
        return failure_in_words(result.name, failed.test_case.body, failed.message, names)
    messages = [case.test_case.success_message for case in result.test_case_results]
    return f"{result.name}: {next(filter(None, messages), 'The answer passed.')}"


def failure_in_words(question: str, code: str, output: str, names: dict[str, Any]) -> str:
    """Why a check failed. code: the check's; output: what doctest wrote of it."""
    for name in NAME.findall(code):
        if name in names and is_unanswered(names[name]):
            return f"{name} is not answered yet: replace the three dots and rerun that cell."
    found = ERROR.search(output)
    error = found[1] if found else ""
    undefined = UNDEFINED.match(error)
    if undefined:
        return f"{undefined[1]} is not defined: run the cells above first."
    kind, _, message = error.partition(": ")
    if kind == "AssertionError" and message:
        return f"{question} is not right yet: {message}."
    if kind in ("", "AssertionError"):
        return f"{question} is not right yet."
    return f"{question} doesn't have the form that this check expects ({error})."
