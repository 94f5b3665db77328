"""Tests of lab masters: the notebooks that they generate for students and for Otter."""

import functools
import json
import re
import resource
import uuid
import zipfile
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from autograder.authoring import otter_assign
from autograder.authoring.lab_master import (
    HIDDEN,
    check_master,
    master_cells,
    master_file,
    question_points,
    questions_with_hidden_tests,
    read_master,
    secret_lines,
    solved_notebook,
)
from autograder.authoring.otter_assign import (
    FORM_OK,
    assigned,
    check_student,
    is_stale,
    student_file,
    write_labs,
)
from autograder.grading.submission import read_submission
from autograder.packaging.otter_zip import OtterProof, OtterScore, build_and_prove, check_proof
from autograder.packaging.zip_build import build
from autograder.zip_archive import unpack
from common.assignment import LAB_FILE, ROOT, load_all, load_assignment
from common.errors import CourseError
from common.labs.own_code import own_or_standin
from common.labs.questions import ANSWER, Unanswered, answered
from common.student_code.loader import mount, unmount
from common.testing.graded_tests import read_graded_tests
from tests.tooling.sampling import sample
from tests.tooling.scratch_copies import copy_repo

WITH_LAB = [one for one in load_all() if one.lab]
EACH = pytest.mark.parametrize("assignment", WITH_LAB, ids=lambda one: one.name)
# Each lab's answers are looked at by test_lab_grading; here it is how they get on with Jupyter.
ONE = pytest.mark.parametrize(
    "assignment", sample("labs in Jupyter", WITH_LAB, 1), ids=lambda one: one.name
)
A1 = load_assignment("a1")
# Of processor time, for all cells of a solved lab: by a clock, a busy machine would fail it. The
# last cell exports the lab, and for that Otter runs all the others once more.
LIMIT = 180
TRIAL_SECONDS = 900  # seconds for one cell by the clock


@functools.cache
def made(short):
    """What Otter makes of a master, once for all tests."""
    with assigned(load_assignment(short)) as found:
        return found


@EACH
def test_the_students_notebook_is_made_from_the_current_master(assignment):
    assert not is_stale(assignment), "`make labs` brings it up to date"


@ONE
def test_otter_makes_the_same_notebook_again(assignment):
    stored = student_file(assignment).read_bytes()
    assert stored == made(assignment.short).student, "`make labs` brings it up to date"


@EACH
def test_the_students_notebook_holds_no_output_no_solution_and_no_hidden_test(assignment):
    text = student_file(assignment).read_text("utf-8")
    raw = json.loads(text)
    assert all(not cell.get("outputs") for cell in raw["cells"])
    assert all(cell.get("execution_count") is None for cell in raw["cells"])
    assert len(secret_lines(read_master(assignment))) > 0
    check_student(text.encode(), read_master(assignment), assignment)
    tests = json.dumps(raw["metadata"]["otter"])
    assert '"hidden": false' in tests and '"hidden": true' not in tests


@EACH
def test_a_check_of_the_form_alone_says_so(assignment):
    raw = json.loads(student_file(assignment).read_bytes())
    said = {
        name: [case.get("success_message") for case in test["suites"][0]["cases"]]
        for name, test in raw["metadata"]["otter"]["tests"].items()
    }
    hidden = questions_with_hidden_tests(read_master(assignment))
    for name, messages in said.items():
        assert messages[:-1] == [None] * (len(messages) - 1)
        assert messages[-1] == (FORM_OK if name in hidden else None)


@EACH
def test_the_students_notebook_says_what_its_zip_lacks(assignment):
    raw = json.loads(student_file(assignment).read_bytes())
    text = "".join(raw["cells"][-2]["source"])
    assert "The zip contains this notebook and your code" in text
    lacking = [one.file for one in assignment.artifacts if one.file != LAB_FILE]
    assert bool(lacking) == (assignment.short == "a7")
    for name in lacking:
        assert name in text
    assert (f"`make submission A={assignment.short}`" in text) == bool(lacking)


@EACH
def test_a_question_has_the_same_points_in_the_master_and_in_the_tests(assignment):
    graded_tests = [t for t in read_graded_tests(ROOT / "tests" / assignment.name) if t.reads_lab]
    asked = {exercise.number: exercise.questions for exercise in assignment.exercises}
    points: dict[str, float] = {}
    for test in graded_tests:
        question = re.match(r"test_(q\d+)_", test.name)[1]
        assert question in asked[test.exercise], test.name
        points[question] = points.get(question, 0) + test.points
    assert points == question_points(read_master(assignment))


@EACH
def test_the_guide_says_what_the_written_questions_are_worth(assignment):
    settings = read_master(assignment).split("# # BEGIN QUESTION")[1:]
    manual = [one for one in settings if "# manual: true" in one.split("# %%")[0]]
    assert [re.search(r"# points: (\d+)", one)[1] for one in manual] in (["2", "2"], [])
    guide = " ".join((ROOT / "docs" / "students.md").read_text("utf-8").split())
    assert "Two short written answers are graded by the staff, usually for 2 extra" in guide
    assert "docs/students.md#labs" in (
        ROOT / "assignments" / assignment.name / "README.md"
    ).read_text("utf-8")


@EACH
def test_answers_are_named_after_their_questions_and_asked_for(assignment):
    for cell in master_cells(read_master(assignment)):
        if cell.part == "solution" and cell.kind == "code":
            names = re.findall(r"^(\w+) = ", cell.source, re.MULTILINE)
            answers = [name for name in names if ANSWER.fullmatch(name)]
            assert answers and all(name.startswith(f"{cell.question}_") for name in answers)


@pytest.fixture
def made_by_master(monkeypatch):
    """Has Otter run once for each text of a master; it takes seconds."""
    kept = {}

    @contextmanager
    def assigned_once(assignment, root):
        text = read_master(assignment, root)
        if text not in kept:
            with assigned(assignment, root) as kept[text]:
                pass
        yield kept[text]

    monkeypatch.setattr(otter_assign, "assigned", assigned_once)


@pytest.mark.usefixtures("made_by_master")
def test_a_changed_master_is_noticed_and_made_again_with_the_same_bytes(tmp_path):
    root = copy_repo(tmp_path / "repo")
    file, before = student_file(A1, root), student_file(A1, root).read_bytes()
    master = master_file(A1, root)
    text = master.read_text("utf-8")
    master.write_text(text.replace("# Lab 1: edges", "# Lab 1: sharp edges"), "utf-8")
    assert is_stale(A1, root)
    assert list(write_labs([A1], root)) == [file]
    assert b"sharp edges" in file.read_bytes() and not is_stale(A1, root)
    master.write_text(text, "utf-8")
    assert list(write_labs([A1], root)) == [file]
    assert file.read_bytes() == before
    assert list(write_labs([A1], root)) == []
    file.write_bytes(before.replace(b"Question 1", b"Question 0"))
    assert list(write_labs([A1], root)) == [file]
    assert file.read_bytes() == before


BAD_MASTERS = {
    "not Python": ("q2_sum = 0", "q2_sum = = 0", "not valid Python"),
    "a gap": ("name: q5", "name: q55", "must be q1, q2, ... in this order"),
    "no name": ("# name: q5\n", "", "a question's name is q1 to q99"),
    "a raw cell of another kind": ("# # BEGIN TESTS", "# # BEGIN TEST", "a raw cell that is no"),
    "points that are no number": ("points: 4", "points: four", "points must be a number"),
    "settings that are no YAML": ("points: 4", "points: 4: 5", "settings are not YAML"),
    "an answer without its mark": ("q2_sum = 0  # SOLUTION", "q2_sum = 0", "students get this li"),
    "a question within another": ("# # END QUESTION", "# # BEGIN QUESTION", "out of place"),
}


@pytest.mark.parametrize(("find", "put", "why"), BAD_MASTERS.values(), ids=BAD_MASTERS)
def test_an_error_in_a_master_is_reported(find, put, why):
    text = read_master(A1)
    assert find in text
    with pytest.raises(CourseError, match=f"lab.py.*{why}"):
        check_master(text.replace(find, put, 1), "lab.py")


def test_a_solution_that_would_be_handed_out_is_refused(tmp_path):
    root = copy_repo(tmp_path / "repo")
    master = master_file(A1, root)
    text = master.read_text("utf-8")
    master.write_text(text.replace("It takes about an hour.", 'Put q9_shift = "c" there.'), "utf-8")
    with pytest.raises(CourseError, match=r"would contain a secret line: q9_shift = \"c\""):
        list(write_labs([A1], root))


@pytest.fixture
def course(tmp_path):
    """Unpacks a handout into a student's course folder; the lab's own folder in it."""

    def unpacked(assignment) -> Path:
        unpack(build(assignment, tmp_path / "dist").handout, tmp_path / "course")
        return tmp_path / "course" / "assignments" / assignment.name

    return unpacked


def executed(file: Path, content: bytes):
    """A notebook after Jupyter has run all its cells, in its own folder."""
    file.write_bytes(content)
    notebook = nbformat.reads(content.decode(), as_version=4)
    resources = {"metadata": {"path": str(file.parent)}}
    NotebookClient(notebook, timeout=TRIAL_SECONDS, resources=resources).execute()
    return notebook


def processor_seconds() -> float:
    """What the processes have used that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def outputs(cell) -> str:
    """All that a cell has put out as text."""
    found = []
    for output in cell.get("outputs", []):
        found += [output.get("text", ""), *output.get("data", {}).values()]
    return "\n".join(map(str, found))


def with_all_checks_again(content: bytes) -> bytes:
    """A notebook that runs every check once more before it is exported, as who goes back does."""
    notebook = nbformat.reads(content.decode(), as_version=4)
    checks = [cell.source for cell in notebook.cells if cell.source.startswith("grader.check(")]
    (end,) = [n for n, cell in enumerate(notebook.cells) if "grader.export(" in cell.source]
    notebook.cells[end:end] = [nbformat.v4.new_code_cell(source) for source in checks]
    return nbformat.writes(notebook).encode()


@ONE
def test_jupyter_runs_the_solved_lab_checks_every_answer_and_exports_it(assignment, course):
    folder = course(assignment)
    for one in (*map(load_assignment, assignment.prerequisites), assignment):
        place = folder.parent / one.name  # a student has the earlier assignments there too
        place.mkdir(exist_ok=True)
        for name in one.files:
            (place / name).write_bytes((ROOT / "solutions" / one.name / name).read_bytes())
    before = processor_seconds()
    notebook = executed(folder / LAB_FILE, with_all_checks_again(made(assignment.short).solved))
    # Near 0, the kernel would not have been counted.
    assert 1 < processor_seconds() - before < LIMIT
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    said = "\n".join(map(outputs, code))
    assert ": using your own." in said and "the stand-in" not in said
    checks = [cell for cell in code if cell.source.startswith("grader.check(")]
    assert len(checks) == 2 * len(question_points(read_master(assignment)))
    passed = ("The answer passed.", FORM_OK)
    assert all(any(end in outputs(cell) for end in passed) for cell in checks)
    (exported,) = folder.glob("lab_*.zip")
    taken = read_submission(exported, assignment)
    assert set(taken.files) >= {LAB_FILE, *assignment.files}
    sent = nbformat.reads(taken.files[LAB_FILE].decode(), as_version=4)
    assert [cell.source for cell in sent.cells] == [cell.source for cell in notebook.cells]


@ONE
def test_jupyter_stops_at_the_first_question_without_an_answer_and_says_so(assignment, course):
    folder = course(assignment)
    with pytest.raises(CellExecutionError) as stopped:
        executed(folder / LAB_FILE, student_file(assignment).read_bytes())
    assert "Question 1 is not answered yet: replace the three dots" in str(stopped.value)


def test_a_wrong_answer_is_reported_by_the_check_beneath_it(course):
    folder = course(A1)
    wrong = made("a1").solved.replace(b"q2_sum = 0 ", b"q2_sum = 1 ")
    assert wrong != made("a1").solved
    notebook = executed(folder / LAB_FILE, wrong)
    (check,) = [c for c in notebook.cells if c.source.startswith('grader.check("q2")')]
    assert "q2 is not right yet: try it: print kernel.sum()" in outputs(check)
    assert "Traceback" not in outputs(check) and "assert" not in outputs(check)
    said = "\n".join(outputs(cell) for cell in notebook.cells)
    assert "conv2d_forward: using the stand-in, because yours is not written yet." in said


@ONE  # `make otter` proves all that it builds
def test_plain_otter_gives_the_solved_lab_all_points_and_the_students_none(assignment, tmp_path):
    proof = build_and_prove(assignment, tmp_path)
    points = question_points(read_master(assignment))
    assert (proof.solved.score, proof.solved.tests) == (sum(points.values()), len(points))
    assert (proof.student.score, proof.student.tests) == (0, len(points))
    with zipfile.ZipFile(proof.archive) as archive:
        text = "\n".join(archive.read(name).decode() for name in archive.namelist())
        assert "has none of its protection" in archive.read("README.md").decode()
        assert f"tests/{next(iter(points))}.py" in archive.namelist()
    cells = master_cells(read_master(assignment))
    hidden = "\n".join(cell.source for cell in cells if cell.source.startswith(HIDDEN))
    answers = [line for line in secret_lines(read_master(assignment)) if line not in hidden]
    assert answers and not [line for line in answers if line in text]


NOTHING, WHOLE = OtterScore(0.0, 15.0, 9), OtterScore(15.0, 15.0, 9)
WRONG_SCORES = {
    "nothing ran at all": (OtterScore(0.0, 0.0, 0), OtterScore(0.0, 0.0, 0), "the solved lab"),
    "a point is lost": (OtterScore(14.0, 15.0, 9), NOTHING, "the solved lab must get"),
    "a test is lost": (OtterScore(15.0, 15.0, 8), NOTHING, "the solved lab must get"),
    "a gift": (WHOLE, OtterScore(1.0, 15.0, 9), "the student's lab must get 0"),
}


@pytest.mark.parametrize(("solved", "student", "why"), WRONG_SCORES.values(), ids=WRONG_SCORES)
def test_plain_otter_is_not_trusted_when_it_grades_otherwise(solved, student, why):
    points = question_points(read_master(A1))
    check_proof(OtterProof(Path("a1-otter.zip"), WHOLE, NOTHING), points)
    with pytest.raises(CourseError, match=f"a1-otter.zip: {why}"):
        check_proof(OtterProof(Path("a1-otter.zip"), solved, student), points)


def test_the_student_stops_where_an_answer_is_missing():
    answered(q1_a=0, q2_a=False, q3_a="")
    with pytest.raises(Unanswered, match=r"Question 12 is not answered yet.* after q12_a ="):
        answered(q1_a=1, q12_a=...)


CODES = {
    "def double(x):\n    return 2 * x\n": "",
    "def double(x):\n    raise NotImplementedError\n": "is not written",
    "def double(x):\n    return 3 * x\n": "gives a different result",
    "def double(x):\n    return [x, x]\n": "gives a different result",
    "def double(x):\n    return x.nothing\n": "raised an AttributeError",
    "def double(:\n": "raised a SyntaxError",
    "": "raised an AttributeError",
    "def double(x):\n    while True: pass\n": "took longer than 1",
}


@pytest.mark.parametrize(("code", "said"), CODES.items(), ids=map(str, range(len(CODES))))
def test_the_lab_runs_on_own_code_that_is_right_and_says_so(
    code, said, tmp_path, monkeypatch, capsys
):
    standins = f"standins_{uuid.uuid4().hex}"  # nothing of that name is loaded
    for place, content in (
        ("a1_some", code),
        (f"{standins}/a1_some", "def double(x):\n    return 2.0 * x\n"),
    ):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "module.py").write_text(content)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("common.labs.own_code.STANDINS", standins)
    monkeypatch.setattr("common.labs.own_code.TRIAL_SECONDS", 1)
    mount({"a1_some": tmp_path / "a1_some"})
    try:
        chosen = own_or_standin("a1_some.module", "double", lambda function: function(1.5))
    finally:
        unmount()
    assert chosen(2) == 4
    assert capsys.readouterr().out.startswith(
        f"double: using the stand-in, because yours {said}" if said else "double: using your own."
    )


@EACH
def test_the_solved_notebook_is_what_the_master_says(assignment):
    raw = json.loads(solved_notebook(read_master(assignment)))
    text = "\n".join("".join(cell["source"]) for cell in raw["cells"])
    assert "# SOLUTION" not in text and "HIDDEN" not in text
    assert text.count("<!-- BEGIN QUESTION -->") == text.count("<!-- END QUESTION -->")
    nbformat.validate(nbformat.from_dict(raw))
    nbformat.validate(nbformat.reads(student_file(assignment).read_text("utf-8"), as_version=4))


def test_what_students_and_the_course_install_for_labs_is_the_same():
    pins = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    labs = (ROOT / "common/labs/requirements.txt").read_text("utf-8").splitlines()
    wanted = [line for line in labs if "==" in line and not line.startswith("jupyterlab")]
    assert len(wanted) == 3 and set(wanted) <= set(pins)
