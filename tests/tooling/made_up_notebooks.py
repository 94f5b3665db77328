"""Notebooks made up by tests, run as students run them or as in grading."""

import json

import msgspec
import pytest

from autograder.grading.sandbox.lab_cells import cells_in_a_child
from autograder.grading.sandbox.sandbox import Sandbox
from common.assignment import LabSettings, load_assignment
from common.errors import Failure
from common.labs.lab_run import Lab, run_lab
from common.student_text import unmarked

A1 = load_assignment("a1")
QUICK = msgspec.structs.replace(
    A1, lab=LabSettings(cell_seconds=2, total_seconds=6, data=["mnist"])
)


def notebook(*sources: str | list[str]) -> bytes:
    """A notebook with these code cells."""
    cells = [{"cell_type": "code", "metadata": {}, "source": source} for source in sources]
    return json.dumps({"cells": cells, "nbformat": 4, "metadata": {}}).encode()


def run_isolated(sandbox: Sandbox, content: bytes) -> Lab:
    """Run a notebook as it is graded."""
    with cells_in_a_child(sandbox) as run_cell:
        return run_lab(content, A1, run_cell)


def why_unanswered(lab: Lab, name: str) -> str:
    """The sentence that says why there is no such answer."""
    with pytest.raises(Failure) as failure:
        lab.answer(name)
    why = failure.value.explanation
    return unmarked("\n".join(filter(None, (why.sentence, why.details))))
