"""Whatever notebook is handed in: what it answers counts, and a sentence says what went wrong."""

import json

import msgspec
import numpy as np
import pytest
import torch

from autograder.authoring.lab_master import read_master, solved_notebook
from autograder.authoring.otter_assign import student_file
from autograder.grading.lab_grading import REPLY_BYTES, cells_in_a_child
from autograder.grading.sandbox.fork_server import hold_data
from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.grading.sandbox.sandbox import Sandbox
from autograder.grading.submission import Submission, take
from common.assignment import LAB_FILE, LabSettings, load_all, load_assignment
from common.data import cache, load_mnist
from common.labs.cells import answers_in
from common.labs.lab_in_process import run_directly
from common.labs.lab_run import Lab, checked, run_lab
from common.testing.feedback.failure import ChildFailure, Failure
from common.testing.graded_tests import read_roster
from tests.tooling.grading_fixtures import FILE, REFERENCE, grade

A1 = load_assignment("a1")
QUICK = msgspec.structs.replace(
    A1, lab=LabSettings(cell_seconds=2, total_seconds=6, data=["mnist"])
)
WITH_LAB = [one for one in load_all() if one.lab]


def notebook(*sources, **more):
    """A notebook with these code cells."""
    cells = [{"cell_type": "code", "metadata": {}, "source": source} for source in sources]
    return json.dumps({"cells": cells, "nbformat": 4, "metadata": {}, **more}).encode()


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(QUICK) as made:
        yield made


@pytest.fixture(params=["direct", "isolated"])
def run(request, sandbox):
    """Runs a notebook in either face."""

    def run_it(content: bytes) -> Lab:
        if request.param == "direct":
            return run_directly(content, A1)
        return run_isolated(sandbox, content)

    return run_it


def run_isolated(sandbox, content):
    with cells_in_a_child(sandbox) as run_cell:
        return run_lab(content, A1, run_cell)


def sentence(lab, name):
    """Why there is no such answer."""
    with pytest.raises(Failure) as failure:
        lab.answer(name)
    return failure.value.explanation.sentence


def test_answers_come_back_as_data(run):
    lab = run(
        notebook(
            "import numpy as np\nq1_number = np.float32(1.5)\nq1_pair = (1, [2, {'a': 'b'}])",
            ["q2_array = np.arange(6).reshape(2, 3)[:, ::2]\n", "other = 1"],
            "q2_array += 1",
        )
    )
    assert lab.troubles == [] and lab.notes() == [] and lab.cells == 3
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
    assert sentence(lab, "q1_open") == "q1_open is not answered yet."
    assert sentence(lab, "q2_none") == "q2_none is not answered yet."
    for name in ("q3_function", "q5_hidden", "q6_liar"):
        assert sentence(lab, name).startswith(f"{name} must be numbers, text or arrays")
    assert sentence(lab, "q4_large") == "q4_large is larger than an answer may be."
    assert lab.answer("q7_small") == 7
    assert lab.notes() == ["lab.ipynb: the first question without an answer is q1_open."]


UNSENDABLE = {
    "a number of a million digits": ("10**10**6", "q1_a is larger than an answer may be."),
    "a number beyond floats": ("10**400", "q1_a is larger than an answer may be."),
    "half a character": ("'\\ud800'", "q1_a must be numbers, text or arrays of numbers"),
    "half a key": ("{'\\ud800': 1}", "q1_a must be numbers, text or arrays of numbers"),
    "lists within lists": ("eval('[' * 30 + ']' * 30)", "q1_a must be numbers, text or arrays"),
    "itself": ("[]; q1_a += [q1_a, q1_a]", "q1_a must be numbers, text or arrays of numbers"),
}


@pytest.mark.parametrize(("value", "why"), UNSENDABLE.values(), ids=UNSENDABLE)
def test_an_answer_that_can_not_be_sent_costs_no_other(run, value, why):
    lab = run(notebook(f"q1_a = {value}", "q2_a = 2"))
    assert lab.answer("q2_a") == 2 and lab.troubles == []
    assert sentence(lab, "q1_a").startswith(why)


def test_a_tensor_that_numpy_has_no_type_for_is_no_answer():
    tensors = {"q1_a": torch.zeros(2, dtype=torch.bfloat16), "q2_a": torch.ones(2)}
    assert {name: kind for name, (kind, _) in answers_in(tensors).items()} == {
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
    assert sentence(lab, "q2_a").startswith("lab.ipynb gives no q2_a.\nlab.ipynb, cell 2 (`")
    kinds = [trouble.split(": ")[1] for trouble in lab.troubles]
    assert kinds == ["ZeroDivisionError", "EOFError", "SystemExit", "SyntaxError", "Exception"]
    assert "input() has nobody to ask" in lab.troubles[1]


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
    assert lab.troubles == []
    assert lab.answer("q1_a") == 1


JUPYTERS_LINES = {
    "a comment that asks": "%matplotlib inline\nq1_a = 7  # why?",
    "a text that asks": '%matplotlib inline\ntext = """Why\nso?\n% 9\n"""\nq1_a = len(text) - 5',
    "a line that goes on": "%matplotlib inline\nq1_a = (47\n% 10)",
    "a timed line": "%time q1_a = 7",
    "a timed value": "q1_a = %time 3 + 4",
    "a timed cell": "\n%%time\nq1_a = 7",
    "a captured cell": "%%capture out\nprint(1)\n%time q1_a = 7",
    "a command's lines": "files = !ls *.py | grep \"it's (\nq1_a = 7",
    "a long command": "!pip install \\\n    something \\\n  more\nq1_a = 7",
    "help": "?len\nlen?\nlen??\nstr.split?\nq1_a = 7",
    "within a block": "for q1_a in range(8):\n    %timeit q1_a\n    !ls\n    len?",
    "pasted": "\n    q1_a = 6\n    if q1_a:\n        q1_a += 1",
    "Windows' lines": "%cd x\r\nq1_a = 7\r\nlen?\r\n",
}


@pytest.mark.parametrize("source", JUPYTERS_LINES.values(), ids=JUPYTERS_LINES)
def test_code_beside_what_belongs_to_jupyter_is_run_as_it_is(source):
    lab = run_directly(notebook(source), A1)
    assert lab.troubles == []
    assert lab.answer("q1_a") == 7


def test_a_cell_of_another_language_does_nothing():
    lab = run_directly(notebook("%%bash\nq1_a = 7\nls -l | grep", "%%html\n<b>q1_a = 7</b>"), A1)
    assert lab.troubles == [] and lab.answers == {}


def test_what_jupyter_can_not_read_either_is_told_with_its_line():
    lab = run_directly(notebook("%time q1_a = 7\nq1_b = = 8  # why?"), A1)
    assert lab.troubles == [
        "lab.ipynb, cell 1 (`%time q1_a = 7`): SyntaxError: invalid syntax (<cell 1>, line 2)",
    ]


FATAL = {
    "hangs": ("while True: pass", "It took longer than 2 seconds."),
    "dies": ("import os; os._exit(0)", "It ended its process, by a crash, too much memory or"),
    "crashes": ("import ctypes; ctypes.string_at(0)", "It ended its process"),
    "floods": ("while True: print('x' * 10000)", "It printed more than 1 MB."),
    "takes all memory": ("x = bytearray(2**35)", None),
}


@pytest.mark.parametrize(("source", "why"), FATAL.values(), ids=FATAL)
def test_a_notebook_that_is_stopped_keeps_what_it_answered_before(sandbox, source, why):
    lab = run_isolated(sandbox, notebook("q1_a = 1", f"q2_a = 2\n{source}", "q3_a = 3"))
    assert lab.answer("q1_a") == 1
    if why is None:  # an exception like any other
        assert lab.answer("q3_a") == 3
        assert "cell 2 (`q2_a = 2`): MemoryError" in lab.troubles[0]
        return
    assert f"lab.ipynb stopped at cell 2 (`q2_a = 2`). {why}" in lab.troubles[0]
    assert lab.troubles[0].endswith("What was answered before counts.")
    for name in ("q2_a", "q3_a"):
        assert sentence(lab, name).startswith(f"lab.ipynb gives no {name}.\nlab.ipynb stopped at")


def test_a_students_own_run_has_the_same_limits():
    lab = run_directly(notebook("q1_a = 1", "while True: pass", "q3_a = 3"), QUICK)
    assert lab.answer("q1_a") == 1 and "q3_a" not in lab.answers
    stopped = "lab.ipynb stopped at cell 2 (`while True: pass`). It took longer than 2 seconds."
    assert lab.notes()[0].startswith(stopped)
    lab = run_directly(notebook(*["import time; time.sleep(1.5)"] * 9), QUICK)
    assert "All cells together took longer than 6 seconds." in lab.notes()[0]


def test_who_interrupts_their_own_run_ends_it_and_not_a_cell_of_it(sandbox):
    interrupted = notebook("raise KeyboardInterrupt", "q2_a = 2")
    with pytest.raises(KeyboardInterrupt):
        run_directly(interrupted, A1)
    assert run_isolated(sandbox, interrupted).answer("q2_a") == 2


def test_what_stopped_a_lab_is_told_before_what_went_wrong_earlier(sandbox):
    lab = run_isolated(sandbox, notebook(*["1 / 0"] * 9, "import os; os._exit(0)", "q3_a = 3"))
    assert sentence(lab, "q3_a").startswith(
        "lab.ipynb gives no q3_a.\nlab.ipynb stopped at cell 10 (`import os; os._exit(0)`)."
    )
    assert lab.notes()[0].startswith("lab.ipynb stopped at cell 10 (")
    assert lab.notes()[-1] == "5 more cells failed."


def test_a_server_that_gets_ready_late_ends_no_child_of_another():
    with Sandbox(QUICK) as sandbox, sandbox.child() as child:
        _ = sandbox.lab_server.mechanisms  # it is ready now
        held = child.operate("hold", "hold", (1,), {})
        assert child.operate("fetch", "fetch", (held,), {}) == 1


def test_all_cells_together_have_a_limit_too(sandbox):
    slow = ["import time; time.sleep(1.5)"] * 9
    lab = run_isolated(sandbox, notebook("q1_a = 1", *slow, "q2_a = 2"))
    assert lab.answer("q1_a") == 1
    assert "All cells together took longer than 6 seconds." in lab.troubles[0]


NO_NOTEBOOK = {
    "nothing": (b"", "not valid JSON"),
    "no JSON": (b"{'cells': []}", "not valid JSON"),
    "half of it": (notebook("q1_a = 1")[:-9], "not valid JSON"),
    "no text": (b"\xff\xfe\x00", "not valid JSON"),
    "a list": (b"[]", "is no notebook"),
    "cells that are none": (b'{"cells": [1], "nbformat": 4}', "is no notebook"),
    "no cells": (notebook(), "has no cells"),
    "nothing but a number": (b'{"nbformat": 4}', "has no cells"),
    "format 3": (b'{"nbformat": 3, "worksheets": [{"cells": []}]}', "notebook format 3, and only"),
    "too many cells": (notebook(*["q1_a = 1"] * 501), "more than 500 cells"),
    "of another assignment": (
        notebook("own_or_standin('a2_lenet.lenet', 'LeNet', print)"),
        "This lab.ipynb is the lab of a2_lenet, not of a1_convolution.",
    ),
    "deeper than any stack": (b'{"cells": ' + b"[" * 100_000, ""),
    "deep where nobody looks": (b'{"metadata": ' + b"[" * 100_000, ""),
}


@pytest.mark.parametrize(("content", "why"), NO_NOTEBOOK.values(), ids=NO_NOTEBOOK)
def test_what_is_no_notebook_is_told_in_a_sentence(sandbox, content, why):
    lab = run_isolated(sandbox, content)
    assert why in sentence(lab, "q1_kernel")
    assert sentence(lab, "q1_kernel").startswith(("lab.ipynb", "This lab.ipynb"))
    assert lab.notes() == [sentence(lab, "q1_kernel")]


def test_a_name_like_that_of_an_assignment_makes_no_lab_of_another_one(sandbox):
    lab = run_isolated(sandbox, notebook("a2_weights = 1", "q1_a = {'a3_bias': a2_weights}"))
    assert lab.answer("q1_a") == {"a3_bias": 1}


def test_a_cell_that_breaks_what_closes_figures_costs_nothing_else(sandbox):
    broken = "import matplotlib.pyplot as plt\nplt.close = None"
    lab = run_isolated(sandbox, notebook(broken, "q1_a = 1"))
    assert lab.answer("q1_a") == 1 and lab.troubles == []


def test_answers_that_are_too_large_are_not_even_read(sandbox):
    patched = "from common.labs import cells\ncells.size_of = lambda *value: 0"
    lab = run_isolated(sandbox, notebook("q1_a = 1", f"{patched}\nq2_a = bytes({REPLY_BYTES})"))
    assert lab.answer("q1_a") == 1
    assert "q2_a" not in lab.answers and "stopped at cell 2" in lab.troubles[-1]


def test_what_a_child_makes_up_is_no_answer():
    fine = ["", "", {"q1_a": ["data", 1]}]
    assert checked(fine)[2] == {"q1_a": ["data", 1]}
    for odd in (None, [], fine[:2], ["Hidden: 3", "", {}], ["", 1, {}], ["", "", []]):
        with pytest.raises(ChildFailure):
            checked(odd)
    for answers in ({"q1": ["data", 1]}, {1: ["data", 1]}, {"q1_a": 1}, {"q1_a": ["data"]}):
        with pytest.raises(ChildFailure):
            checked(["", "", answers])
    assert checked(["", "", {"q1_a": ["data", object()]}])[2] == {"q1_a": ["object", None]}
    assert checked(["", "", {"q1_a": [["data"], 1]}])[2] == {"q1_a": ["object", None]}


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
    assert run_directly(content, A1).texts == {"q6": "Because.\n\nReally.", "q11": ""}


def solved():
    """The solved lab of assignment 1, as JSON."""
    return json.loads(solved_notebook(read_master(A1)))


def graded(content):
    """The result of the reference's code with that lab; and the points of the lab, by test."""
    files = {FILE: REFERENCE.read_bytes(), LAB_FILE: content}
    return grade(Submission(files), A1)


def lab_score(result):
    return sum(outcome.score for outcome in result.all_outcomes if outcome.test.reads_lab)


LAB_POINTS = sum(
    test.points for test in read_roster(REFERENCE.parents[2] / "tests" / A1.name) if test.reads_lab
)


def test_the_solved_lab_gets_all_points_and_its_texts_are_kept():
    result = graded(solved_notebook(read_master(A1)))
    assert result.score == result.maximum == 100
    assert LAB_POINTS == lab_score(result) == 15
    assert set(result.texts) == {"q6", "q11"} and all(result.texts.values())
    assert result.notes == []


def test_deleted_cells_and_cleared_metadata_cost_only_what_is_deleted():
    raw = solved()
    raw["metadata"] = {}
    raw["cells"] = [
        {"cell_type": cell["cell_type"], "source": cell["source"]}
        for cell in raw["cells"]
        if "q8_corner = " not in "".join(cell["source"])
    ]
    result = graded(json.dumps(raw).encode())
    failed = [outcome for outcome in result.all_outcomes if not outcome.passed]
    assert [outcome.test.name for outcome in failed] == ["test_q8_padding_darkens_the_corner"]
    assert "lab.ipynb gives no q8_corner." in failed[0].text()


def test_the_lab_as_it_is_handed_out_gets_nothing_and_is_told_where_it_ends():
    result = graded(student_file(A1).read_bytes())
    assert lab_score(result) == 0 and result.score == 100 - LAB_POINTS
    assert result.notes == ["lab.ipynb: the first question without an answer is q1_kernel."]


def test_what_a_lab_test_says_is_the_labs_and_the_same_in_every_grading(sandbox):
    face = IsolatedFace(sandbox)
    face.printed = "of the test before"
    told = "import os; raise ValueError(f'{os.getcwd()} {object()}')"
    lab = face.lab(notebook("print('of the lab')", told))
    assert face.printed == ""
    assert lab.troubles == [
        "lab.ipynb, cell 2 (`import os; raise ValueError(f'{os.getcwd...`): ValueError: "
        "/sandbox/homes/home <object object at 0x...>"
    ]


def test_a_submission_without_a_lab_is_told_so():
    result = grade(Submission({FILE: REFERENCE.read_bytes()}), A1)
    assert result.score == 100 - LAB_POINTS
    failed = [outcome for outcome in result.all_outcomes if not outcome.passed]
    assert all("lab.ipynb isn't there" in outcome.text() for outcome in failed)


def test_a_renamed_and_an_overlarge_notebook_are_told_in_a_note(tmp_path):
    (tmp_path / FILE).write_bytes(REFERENCE.read_bytes())
    (tmp_path / "lab (1).ipynb").write_bytes(notebook("q1_a = 1"))
    taken = take(tmp_path, A1)
    assert set(taken.files) == {FILE}
    assert taken.notes == ["lab (1).ipynb is not taken: the lab must be named lab.ipynb."]
    outputs = [{"output_type": "stream", "text": "x" * 50_000_000}]
    cells = [{"cell_type": "code", "source": "q1_a = 1", "outputs": outputs}]
    (tmp_path / LAB_FILE).write_text(json.dumps({"cells": cells, "nbformat": 4}))
    taken = take(tmp_path, A1)
    assert set(taken.files) == {FILE}
    assert taken.notes == [
        "lab.ipynb is larger than 10 MB: not taken. Clear its outputs, and save it."
    ]


@pytest.mark.parametrize("name", ["lab (1).ipynb", LAB_FILE])
def test_each_question_says_why_the_lab_was_not_taken(tmp_path, name):
    (tmp_path / FILE).write_bytes(REFERENCE.read_bytes())
    (tmp_path / name).write_bytes(notebook("q1_a = 1") + b" " * 11_000_000)
    taken = take(tmp_path, A1)
    result = grade(taken, A1, direct=True)
    failed = [outcome for outcome in result.all_outcomes if outcome.test.reads_lab]
    assert [outcome.explanation.text(hidden=False) for outcome in failed] == taken.notes * 10


@pytest.mark.parametrize("assignment", WITH_LAB, ids=lambda one: one.name)
def test_every_solved_lab_answers_everything_and_every_students_lab_nothing(
    assignment, monkeypatch
):
    loaded = set()
    from_folder = cache.from_folder
    monkeypatch.setattr(
        cache, "from_folder", lambda name, *more: loaded.add(name) or from_folder(name, *more)
    )
    whole = run_directly(solved_notebook(read_master(assignment)), assignment)
    assert whole.troubles == [] and whole.notes() == []
    assert sorted(loaded) == sorted(assignment.lab.data)
    assert all(whole.texts.values())
    empty = run_directly(student_file(assignment).read_bytes(), assignment)
    assert empty.troubles == []
    assert list(empty.answers) == list(whole.answers)
    assert {kind for kind, _ in empty.answers.values()} == {"unanswered"}
    first = next(iter(whole.answers))
    assert empty.notes() == [f"lab.ipynb: the first question without an answer is {first}."]
    assert set(empty.texts) == set(whole.texts) and not any(empty.texts.values())


def test_the_labs_data_is_in_memory_where_it_is_graded(sandbox):
    content = notebook(
        "from common.data import load_mnist, mnist\n"
        "mnist.interleaved_pixels = None  # what makes it, where there is no cache\n"
        "q1_images = load_mnist().train_images[:2]",
    )
    lab = run_isolated(sandbox, content)
    np.testing.assert_array_equal(lab.answer("q1_images"), load_mnist().train_images[:2])


def test_what_one_lab_does_to_the_data_stays_there(sandbox):
    spoil = notebook(
        "from common.data import cache, load_mnist\n"
        "for key in cache.held: cache.held[key] = bytes(len(cache.held[key]))\n"
        "q1_ink = load_mnist().train_images.sum()",
    )
    look = notebook(
        "from common.data import load_mnist\nq1_ink = load_mnist().train_images.sum()",
    )
    assert run_isolated(sandbox, spoil).answer("q1_ink") == 0
    assert run_isolated(sandbox, look).answer("q1_ink") > 0


def test_data_that_cannot_be_had_is_left_to_the_cell_that_loads_it(monkeypatch):
    monkeypatch.setattr(cache, "held", None)
    monkeypatch.setattr(cache, "from_folder", lambda *arguments: 1 / 0)
    hold_data(["mnist"])
    with pytest.raises(ZeroDivisionError):
        load_mnist()


def test_a_server_that_is_stopped_while_it_loads_leaves_the_folder_to_the_others():
    with Sandbox(QUICK) as sandbox:
        sandbox.restart()
        assert sandbox.folder.is_dir()
        with cells_in_a_child(sandbox) as run_cell:
            assert run_lab(notebook("q1_a = 1"), A1, run_cell).answer("q1_a") == 1
