"""Tests of lab grading: isolated, with its data, and the points of each question."""

import json

import numpy as np
import pytest

from autograder.authoring.lab_master import read_master, solved_notebook
from autograder.authoring.otter_assign import student_file
from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.grading.sandbox.lab_cells import REPLY_BYTES
from autograder.grading.sandbox.sandbox import Sandbox
from autograder.grading.submission import Submission, read_submission
from common.assignment import LAB_FILE, ROOT, load_all
from common.data import cache, load_mnist
from common.labs.lab_in_process import run_lab_in_process
from common.testing.graded_tests import read_graded_tests
from tests.tooling.grading_fixtures import FILE, REFERENCE, grade, with_lab
from tests.tooling.made_up_notebooks import A1, QUICK, notebook, run_isolated, why_unanswered
from tests.tooling.sampling import sample

WITH_LAB = [one for one in load_all() if one.lab]
LAB_POINTS = sum(
    test.points for test in read_graded_tests(ROOT / "tests" / A1.name) if test.reads_lab
)
SMALL, LARGE = notebook("q1_a = 1"), notebook("q1_a = 1") + b" " * 11_000_000
NOT_TAKEN = {
    "another name": (
        {"my lab.ipynb": LARGE},
        "my lab.ipynb was skipped: the lab must be named lab.ipynb.",
    ),
    "two names": (
        {"Lab.ipynb": SMALL, "lab (1).ipynb": SMALL, "other.ipynb": SMALL},
        "Lab.ipynb and lab (1).ipynb could both be lab.ipynb. Submit only one, named lab.ipynb.",
    ),
    "renamed and too large": (
        {"lab (1).ipynb": LARGE},
        "lab (1).ipynb is larger than 10 MB and was skipped. Clear its outputs and save it again.",
    ),
    "too large": (
        {"lab (1).ipynb": SMALL, LAB_FILE: LARGE},
        "lab.ipynb is larger than 10 MB and was skipped. Clear its outputs and save it again.",
    ),
}


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(QUICK) as made:
        yield made


FATAL = {
    "hangs": (
        "while True: pass",
        "It used more than the 2 seconds of processor time that a cell may take.",
    ),
    "dies": ("import os; os._exit(0)", "Its process died: a crash, out of memory, or"),
    "crashes": ("import ctypes; ctypes.string_at(0)", "Its process died"),
    "floods": ("while True: print('x' * 10000)", "It printed more than 1 MB."),
    "takes all memory": ("x = bytearray(2**35)", None),
}


def test_a_cell_that_sleeps_is_stopped_by_the_clock(sandbox):
    lab = run_isolated(sandbox, notebook("q1_a = 1", "import time; time.sleep(60)", "q3_a = 3"))
    assert lab.answer("q1_a") == 1 and "q3_a" not in lab.answers
    assert "It took longer than 8 seconds." in lab.cell_errors[0]


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(("source", "why"), FATAL.values(), ids=FATAL)
def test_a_notebook_that_is_stopped_keeps_what_it_answered_before(sandbox, source, why):
    lab = run_isolated(sandbox, notebook("q1_a = 1", f"q2_a = 2\n{source}", "q3_a = 3"))
    assert lab.answer("q1_a") == 1
    if why is None:  # an exception like any other
        assert lab.answer("q3_a") == 3
        assert "cell 2 (`q2_a = 2`): MemoryError" in lab.cell_errors[0]
        return
    assert f"lab.ipynb stopped at cell 2 (`q2_a = 2`). {why}" in lab.cell_errors[0]
    assert lab.cell_errors[0].endswith("Answers from earlier cells count.")
    for name in ("q2_a", "q3_a"):
        assert why_unanswered(lab, name).startswith(
            f"lab.ipynb doesn't define {name}.\nlab.ipynb stopped at"
        )


def test_answers_that_are_too_large_are_not_even_read(sandbox):
    patched = "from common.labs import cells\ncells.size_of = lambda *value: 0"
    lab = run_isolated(sandbox, notebook("q1_a = 1", f"{patched}\nq2_a = bytes({REPLY_BYTES})"))
    assert lab.answer("q1_a") == 1
    assert "q2_a" not in lab.answers and "stopped at cell 2" in lab.cell_errors[-1]


def graded(content):
    """The result of the reference's code with that lab."""
    return grade(Submission({FILE: REFERENCE.read_bytes(), LAB_FILE: content}), A1)


def lab_score(result):
    return sum(outcome.score for outcome in result.all_outcomes if outcome.test.reads_lab)


def test_the_solved_lab_gets_all_points_and_its_texts_are_kept():
    result = grade(with_lab(REFERENCE.read_bytes()), A1)
    assert result.score == result.maximum == 100
    assert LAB_POINTS == lab_score(result) == 15
    assert set(result.texts) == {"q6", "q11"} and all(result.texts.values())
    assert result.notes == []


def test_deleted_cells_and_cleared_metadata_cost_only_what_is_deleted():
    raw = json.loads(solved_notebook(read_master(A1)))
    raw["metadata"] = {}
    raw["cells"] = [
        {"cell_type": cell["cell_type"], "source": cell["source"]}
        for cell in raw["cells"]
        if "q8_corner = " not in "".join(cell["source"])
    ]
    result = graded(json.dumps(raw).encode())
    failed = [outcome for outcome in result.all_outcomes if not outcome.passed]
    assert [outcome.test.name for outcome in failed] == ["test_q8_padding_darkens_the_corner"]
    assert "lab.ipynb doesn't define q8_corner." in failed[0].text()


def test_the_lab_as_it_is_handed_out_gets_nothing_and_is_reported_where_it_ends():
    result = graded(student_file(A1).read_bytes())
    assert lab_score(result) == 0 and result.score == 100 - LAB_POINTS
    assert result.notes == ["lab.ipynb: the first unanswered question is q1_kernel."]


@pytest.mark.parametrize("notebook_there", [False, True])
def test_no_test_shows_what_the_test_before_printed(notebook_there):
    shouts = REFERENCE.read_text() + "\nprint('SEEN')\n"
    lab = {LAB_FILE: student_file(A1).read_bytes()} if notebook_there else {}
    result = grade(Submission({FILE: shouts.encode(), **lab}), A1)
    of_lab = [outcome for outcome in result.all_outcomes if outcome.test.reads_lab]
    assert of_lab and not any(outcome.printed for outcome in of_lab)


def test_what_a_lab_test_says_is_the_labs_and_the_same_in_every_grading(sandbox):
    face = IsolatedFace(sandbox)
    reported = "import os; raise ValueError(f'{os.getcwd()} {object()}')"
    lab = face.lab(notebook("print('of the lab')", reported))
    assert lab.cell_errors == [
        "lab.ipynb, cell 2 (`import os; raise ValueError(f'{os.getcwd...`): ValueError: "
        "/sandbox/homes/home <object object at 0x...>"
    ]


def test_a_submission_without_a_lab_is_reported_so():
    result = grade(Submission({FILE: REFERENCE.read_bytes()}), A1)
    assert result.score == 100 - LAB_POINTS
    failed = [outcome for outcome in result.all_outcomes if not outcome.passed]
    assert all("lab.ipynb is missing" in outcome.text() for outcome in failed)


@pytest.mark.parametrize(("files", "note"), NOT_TAKEN.values(), ids=NOT_TAKEN)
def test_each_question_says_why_the_lab_was_not_taken(tmp_path, files, note):
    for name, content in {FILE: REFERENCE.read_bytes(), **files}.items():
        (tmp_path / name).write_bytes(content)
    taken = read_submission(tmp_path, A1)
    assert set(taken.files) == {FILE} and taken.notes == [note]
    result = grade(taken, A1, direct=True)
    failed = [outcome for outcome in result.all_outcomes if outcome.test.reads_lab]
    assert len(failed) == 10
    for outcome in failed:  # a hidden one doesn't repeat the names of other files
        text = outcome.explanation.text(hidden=False)
        assert text.startswith("lab.ipynb is missing or") if outcome.test.hidden else text == note


@pytest.mark.parametrize(
    "assignment", sample("labs in process", WITH_LAB, 2), ids=lambda one: one.name
)
def test_every_solved_lab_answers_everything_and_every_students_lab_nothing(
    assignment, monkeypatch
):
    loaded = set()
    from_folder = cache.from_folder
    monkeypatch.setattr(
        cache, "from_folder", lambda name, *more: loaded.add(name) or from_folder(name, *more)
    )
    whole = run_lab_in_process(solved_notebook(read_master(assignment)), assignment)
    assert whole.cell_errors == [] and whole.notes() == []
    assert sorted(loaded) == sorted(assignment.lab.data)
    assert all(whole.texts.values())
    empty = run_lab_in_process(student_file(assignment).read_bytes(), assignment)
    assert empty.cell_errors == []
    assert list(empty.answers) == list(whole.answers)
    assert {kind for kind, _ in empty.answers.values()} == {"unanswered"}
    first = next(iter(whole.answers))
    assert empty.notes() == [f"lab.ipynb: the first unanswered question is {first}."]
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
