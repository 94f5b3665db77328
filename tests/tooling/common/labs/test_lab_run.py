"""Tests of lab runs: answers of any notebook count, and one sentence says what failed."""

import json

import msgspec
import numpy as np
import pytest
import torch

from autograder.grading.sandbox.sandbox import Sandbox
from common.assignment import LabSettings
from common.errors import ChildFailure
from common.labs.cells import find_answers
from common.labs.lab_in_process import run_lab_in_process
from common.labs.lab_run import Lab, checked_reply
from tests.tooling.grading_fixtures import FACES
from tests.tooling.made_up_notebooks import A1, QUICK, notebook, run_isolated, why_unanswered


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(QUICK) as made:
        yield made


@pytest.fixture(params=FACES)
def run(request, sandbox):
    """Runs a notebook in either face."""

    def run_it(content: bytes) -> Lab:
        if request.param == "direct":
            return run_lab_in_process(content, A1)
        return run_isolated(sandbox, content)

    return run_it


def test_answers_come_back_as_data(run):
    lab = run(
        notebook(
            "import numpy as np\nq1_number = np.float32(1.5)\nq1_pair = (1, [2, {'a': 'b'}])",
            ["q2_array = np.arange(6).reshape(2, 3)[:, ::2]\n", "other = 1"],
            "q2_array += 1",
        )
    )
    assert lab.cell_errors == [] and lab.notes() == [] and lab.cells == 3
    assert lab.answer("q1_number") == 1.5
    assert lab.answer("q1_pair") == (1, [2, {"a": "b"}])
    assert type(lab.answer("q1_pair")) is tuple
    np.testing.assert_array_equal(lab.answer("q2_array"), [[1, 3], [4, 6]])
    assert "other" not in lab.answers


def test_what_is_no_data_is_no_answer(run):
    lab = run(
        notebook(
            "import numpy as np\nq1_open = ...\nq2_none = None\nq3_function = print\n"
            "q4_large = np.zeros(2**18)\nq5_hidden = [1, object()]\n"
            "class Liar(np.ndarray): ...\nq6_liar = np.zeros(2).view(Liar)\nq7_small = 7"
        )
    )
    assert why_unanswered(lab, "q1_open") == "q1_open is not answered yet."
    assert why_unanswered(lab, "q2_none") == "q2_none is not answered yet."
    for name in ("q3_function", "q5_hidden", "q6_liar"):
        assert why_unanswered(lab, name).startswith(
            f"{name} must be a number, a string or an array"
        )
    assert why_unanswered(lab, "q4_large") == "q4_large exceeds the size limit of an answer."
    assert lab.answer("q7_small") == 7
    assert lab.notes() == ["lab.ipynb: the first unanswered question is q1_open."]


UNSENDABLE = {
    "a number of a million digits": ("10**10**6", "q1_a exceeds the size limit of an answer."),
    "a number beyond floats": ("10**400", "q1_a exceeds the size limit of an answer."),
    "half a character": ("'\\ud800'", "q1_a must be a number, a string or an array"),
    "half a key": ("{'\\ud800': 1}", "q1_a must be a number, a string or an array"),
    "lists within lists": (
        "eval('[' * 30 + ']' * 30)",
        "q1_a must be a number, a string or an array",
    ),
    "itself": ("[]; q1_a += [q1_a, q1_a]", "q1_a must be a number, a string or an array"),
}


@pytest.mark.parametrize(("value", "why"), UNSENDABLE.values(), ids=UNSENDABLE)
def test_an_answer_that_can_not_be_sent_costs_no_other(run, value, why):
    lab = run(notebook(f"q1_a = {value}", "q2_a = 2"))
    assert lab.answer("q2_a") == 2 and lab.cell_errors == []
    assert why_unanswered(lab, "q1_a").startswith(why)


def test_a_tensor_that_numpy_has_no_type_for_is_no_answer():
    tensors = {"q1_a": torch.zeros(2, dtype=torch.bfloat16), "q2_a": torch.ones(2)}
    assert {name: kind for name, (kind, _) in find_answers(tensors).items()} == {
        "q1_a": "object",
        "q2_a": "data",
    }


def test_a_cell_that_fails_costs_only_what_it_would_have_answered(run):
    lab = run(
        notebook(
            "q1_a = 1",
            "q2_a = 1 / 0",
            "q3_a = 3\nq3_b = int(input('how many?'))",
            "raise SystemExit",
            "q5_a = (",
            "class Odd(Exception):\n    def __str__(self): raise self\nraise Odd",
            "q7_a = 7",
        )
    )
    assert [lab.answer(name) for name in ("q1_a", "q3_a", "q7_a")] == [1, 3, 7]
    assert why_unanswered(lab, "q2_a").startswith(
        "lab.ipynb doesn't define q2_a.\nlab.ipynb, cell 2 (`"
    )
    kinds = [trouble.split(": ")[1] for trouble in lab.cell_errors]
    assert kinds == ["ZeroDivisionError", "EOFError", "SystemExit", "SyntaxError", "Exception"]
    assert "input() doesn't work" in lab.cell_errors[1]


def test_what_belongs_to_jupyter_does_nothing(run):
    lab = run(
        notebook(
            "import otter\ngrader = otter.Notebook('lab.ipynb')\ngrader.check('q1')",
            "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
            "!pip install something\nfor i in range(1):\n    %timeit i\nq1_a = 1\nlen?",
            "from IPython.display import display, HTML\ndisplay(HTML('x'))\ndisplay(1)",
            "import ipywidgets as w\nw.interact(print, x=w.IntSlider(1, 2, 3))\nget_ipython().x()",
        )
    )
    assert lab.cell_errors == []
    assert lab.answer("q1_a") == 1


COMPUTE = "import time\nend = time.process_time() + 0.9\nwhile time.process_time() < end: pass"
TOGETHER = "All cells together used more than 6 seconds of processor time, or took longer than"


@pytest.mark.usefixtures("patient")
def test_a_students_own_run_has_the_same_limits():
    lab = run_lab_in_process(notebook("q1_a = 1", "while True: pass", "q3_a = 3"), QUICK)
    assert lab.answer("q1_a") == 1 and "q3_a" not in lab.answers
    stopped = "lab.ipynb stopped at cell 2 (`while True: pass`). It used more than the 2 seconds of"
    assert lab.notes()[0].startswith(stopped)
    lab = run_lab_in_process(notebook(*[COMPUTE] * 9), QUICK)
    assert TOGETHER in lab.notes()[0]


def test_a_students_own_cells_may_not_wait_for_ever():
    brief = LabSettings(cell_seconds=0.5, total_seconds=0.7)
    for seconds, said in ((9, "It took longer than 2 seconds."), (1.6, "or took longer than 2.8.")):
        lab = run_lab_in_process(
            notebook(*[f"import time; time.sleep({seconds})"] * 2),
            msgspec.structs.replace(A1, lab=brief),
        )
        assert said in lab.notes()[0]


def test_who_interrupts_their_own_run_ends_it_and_not_a_cell_of_it(sandbox):
    interrupted = notebook("raise KeyboardInterrupt", "q2_a = 2")
    with pytest.raises(KeyboardInterrupt):
        run_lab_in_process(interrupted, A1)
    assert run_isolated(sandbox, interrupted).answer("q2_a") == 2


def test_what_stopped_a_lab_is_reported_before_what_went_wrong_earlier(sandbox):
    lab = run_isolated(sandbox, notebook(*["1 / 0"] * 9, "import os; os._exit(0)", "q3_a = 3"))
    assert why_unanswered(lab, "q3_a").startswith(
        "lab.ipynb doesn't define q3_a.\nlab.ipynb stopped at cell 10 (`import os; os._exit(0)`)."
    )
    assert lab.notes()[0].startswith("lab.ipynb stopped at cell 10 (")
    assert lab.notes()[-1] == "5 more cells failed."


@pytest.mark.usefixtures("patient")
def test_all_cells_together_have_a_limit_too(sandbox):
    lab = run_isolated(sandbox, notebook("q1_a = 1", *[COMPUTE] * 9, "q2_a = 2"))
    assert lab.answer("q1_a") == 1
    assert TOGETHER in lab.cell_errors[0]


NO_NOTEBOOK = {
    "nothing": (b"", "not valid JSON"),
    "no JSON": (b"{'cells': []}", "not valid JSON"),
    "half of it": (notebook("q1_a = 1")[:-9], "not valid JSON"),
    "no text": (b"\xff\xfe\x00", "not valid JSON"),
    "a list": (b"[]", "is not a notebook"),
    "cells that are none": (b'{"cells": [1], "nbformat": 4}', "is not a notebook"),
    "no cells": (notebook(), "has no cells"),
    "nothing but a number": (b'{"nbformat": 4}', "has no cells"),
    "format 3": (b'{"nbformat": 3, "worksheets": [{"cells": []}]}', "notebook format 3, but only"),
    "too many cells": (notebook(*["q1_a = 1"] * 501), "more than 500 cells"),
    "of another assignment": (
        notebook("own_or_standin('a2_lenet.lenet', 'LeNet', print)"),
        "This lab.ipynb belongs to a2_lenet, not to a1_convolution.",
    ),
    "deeper than any stack": (b'{"cells": ' + b"[" * 100_000, ""),
    "deep where nobody looks": (b'{"metadata": ' + b"[" * 100_000, ""),
}


@pytest.mark.parametrize(("content", "why"), NO_NOTEBOOK.values(), ids=NO_NOTEBOOK)
def test_what_is_no_notebook_is_reported_in_a_sentence(sandbox, content, why):
    lab = run_isolated(sandbox, content)
    assert why in why_unanswered(lab, "q1_kernel")
    assert why_unanswered(lab, "q1_kernel").startswith(("lab.ipynb", "This lab.ipynb"))
    assert lab.notes() == [why_unanswered(lab, "q1_kernel")]


def test_a_name_like_that_of_an_assignment_makes_no_lab_of_another_one(sandbox):
    lab = run_isolated(sandbox, notebook("a2_weights = 1", "q1_a = {'a3_bias': a2_weights}"))
    assert lab.answer("q1_a") == {"a3_bias": 1}


def test_a_cell_that_breaks_what_closes_figures_costs_nothing_else(sandbox):
    broken = "import matplotlib.pyplot as plt\nplt.close = None"
    lab = run_isolated(sandbox, notebook(broken, "q1_a = 1"))
    assert lab.answer("q1_a") == 1 and lab.cell_errors == []


def test_what_a_child_makes_up_is_no_answer():
    fine = ["", "", {"q1_a": ["data", 1]}]
    assert checked_reply(fine)[2] == {"q1_a": ["data", 1]}
    for odd in (None, [], fine[:2], ["Hidden: 3", "", {}], ["", 1, {}], ["", "", []]):
        with pytest.raises(ChildFailure):
            checked_reply(odd)
    for answers in ({"q1": ["data", 1]}, {1: ["data", 1]}, {"q1_a": 1}, {"q1_a": ["data"]}):
        with pytest.raises(ChildFailure):
            checked_reply(["", "", answers])
    assert checked_reply(["", "", {"q1_a": ["data", object()]}])[2] == {"q1_a": ["object", None]}
    assert checked_reply(["", "", {"q1_a": [["data"], 1]}])[2] == {"q1_a": ["object", None]}


def test_texts_are_found_without_metadata():
    def markdown(text):
        return {"cell_type": "markdown", "source": text}

    cells = [
        markdown("<!-- BEGIN QUESTION -->\n\n**Question 6.** Why?"),
        markdown("Because."),
        markdown(["Really", "."]),
        {"cell_type": "code", "source": "x = 1"},
        markdown("<!-- END QUESTION -->"),
        markdown("Not an answer."),
        markdown("<!-- BEGIN QUESTION -->\n\n**Question 11.** And why?"),
        markdown("_Type your answer here, replacing this text._"),
        markdown("**Question 12.** Which?"),
        markdown("nor this"),
    ]
    content = json.dumps({"cells": cells, "nbformat": 4}).encode()
    assert run_lab_in_process(content, A1).texts == {"q6": "Because.\n\nReally.", "q11": ""}
