"""Tests of the handout as a student uses it: unzip, work, submit."""

import re
import shutil
import zipfile

import pytest

from autograder.authoring.lab_master import read_master, solved_notebook
from autograder.packaging.zip_contents import handout
from autograder.proving.wrong_versions.mistakes import load_mistakes
from common.assignment import LAB_FILE, ROOT, load_all, load_assignment
from common.testing.graded_tests import TRAINING, points_by_exercise, read_graded_tests
from tests.tooling.sampling import sample
from tests.tooling.scratch_copies import give_python, python, run, unzip

A1 = load_assignment("a1")
GRADED_TESTS = read_graded_tests(ROOT / "tests" / "a1_convolution")
PUBLIC = [test for test in GRADED_TESTS if not test.hidden]
SHOWN = sum(points_by_exercise(GRADED_TESTS, hidden=False).values())
KEPT = sum(points_by_exercise(GRADED_TESTS, hidden=True).values())
REFERENCE = ROOT / "solutions" / "a1_convolution" / "convolution.py"
# Students have none of these for assignment 1, so importing one must not be needed.
NOT_THERE = ("torch", "safetensors", "click", "rich", "hypothesis", "autograder", "solutions")

BLOCK = f"""
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {NOT_THERE!r}:
            raise ModuleNotFoundError(f"{{name}} is blocked")

sys.meta_path.insert(0, Blocked())
"""
# Formatting tracebacks that nobody sees took more than half of a student's run.
NO_TRACEBACKS = """
from _pytest._code.code import ExceptionInfo

def refuse(*args):
    raise RuntimeError("a traceback was formatted")

ExceptionInfo.getrepr = refuse
"""


def unzip_handout(folder):
    unzip(handout(A1), folder)
    give_python(folder)
    return folder


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    """A handout that nobody has worked in."""
    return unzip_handout(tmp_path_factory.mktemp("untouched") / "course")


@pytest.fixture
def course(tmp_path):
    """A handout to work in."""
    return unzip_handout(tmp_path / "course")


@pytest.fixture
def finished(course):
    """A handout of which all is written."""
    folder = course / "assignments" / "a1_convolution"
    shutil.copy(REFERENCE, folder)
    (folder / LAB_FILE).write_bytes(solved_notebook(read_master(A1)))
    return course


def pytest_in(folder, *options, plugins="", cwd=None):
    """A student's pytest, with hypothesis' own plugin kept out, which students don't have."""
    (folder / "plugins_of_this_test.py").write_text(plugins)
    options = ("-p", "plugins_of_this_test", *options)
    env = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(folder)}
    return python("-m", "pytest", *options, cwd=cwd or folder, env=env)


def test_everything_fails_on_the_stub_because_it_is_not_written_yet(untouched):
    result = pytest_in(untouched, plugins=BLOCK + NO_TRACEBACKS)
    assert result.returncode == 1, result.stdout
    assert f"{len(PUBLIC)} failed" in result.stdout
    assert "passed" not in result.stdout.splitlines()[-1]
    words = r"^\w+ is not (written|answered) yet\.$"
    assert len(re.findall(words, result.stdout, re.M)) == len(PUBLIC)
    for piece in ("traceback was formatted", "Traceback", "assert ", "common/", "not run"):
        assert piece not in result.stdout
    assert "  lab.ipynb: the first unanswered question is q1_kernel." in result.stdout
    assert re.search(r"  1\.1 +0 of 3   conv_output_size", result.stdout)
    for test in PUBLIC:
        unit = "point" if test.points == 1 else "points"
        assert f"Exercise {test.exercise}, {test.points:g} {unit}. {test.title}" in result.stdout
    last = f"0 of {SHOWN:g} points in this run. Hidden tests decide {KEPT:g} more."
    assert last in result.stdout


def test_everything_passes_on_the_reference_without_torch_or_the_graders_packages(finished):
    result = pytest_in(finished, plugins=BLOCK)
    assert result.returncode == 0, result.stdout
    assert f"{len(PUBLIC)} passed" in result.stdout
    lines = [line.split() for line in result.stdout.splitlines()]
    for number, points in points_by_exercise(GRADED_TESTS, hidden=False).items():
        assert [number, f"{points:g}", "of", f"{points:g}"] in [line[:4] for line in lines]
    last = f"{SHOWN:g} of {SHOWN:g} points in this run. Hidden tests decide {KEPT:g} more."
    assert last in result.stdout


def test_the_blocked_packages_are_really_blocked(untouched):
    for name in NOT_THERE:
        result = python("-c", f"{BLOCK}\nimport {name}", cwd=untouched)
        assert f"{name} is blocked" in result.stderr


def test_pytest_runs_with_the_working_directory_elsewhere(untouched, tmp_path):
    result = pytest_in(untouched, untouched / "tests", "-k", "parameters", cwd=tmp_path)
    assert result.returncode == 1
    assert "conv_parameters is not written yet." in result.stdout
    assert "points in this run" in result.stdout


def test_make_test_runs_pytest(course):
    file = course / "assignments" / "a1_convolution" / "convolution.py"
    file.write_text("def conv_parameters(:\n")
    for command in (["make", "test"], ["make", "test", "A=a1"]):
        result = run(command, course, {"PYTEST_ADDOPTS": "-k parameters"})
        assert result.returncode == 2
        assert "convolution.py is not valid Python." in result.stdout


def test_make_help_lists_the_targets(untouched):
    result = run(["make", "help"], untouched)
    assert result.returncode == 0
    assert [line.split()[1] for line in result.stdout.splitlines()] == [
        "help",
        "test",
        "submission",
        "shakespeare",
    ]


@pytest.mark.parametrize("choice", [["A=a1"], ["A=a1_convolution"], []])
def test_a_submission_holds_exactly_the_files_to_hand_in(finished, choice):
    (finished / "assignments" / "a1_convolution" / "notes.py").write_text("mine = 1\n")
    result = run(["make", "submission", *choice], finished)
    assert result.returncode == 0, result.stderr
    assert "a1-submission.zip (convolution.py, lab.ipynb)" in result.stdout
    with zipfile.ZipFile(finished / "a1-submission.zip") as archive:
        assert archive.namelist() == ["convolution.py", "lab.ipynb"]
        assert archive.read("convolution.py") == REFERENCE.read_bytes()


def submit(folder, *names):
    return python("-m", "common.submission_zip", *names, cwd=folder)


def assert_one_sentence(result, *parts):
    assert result.returncode == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    for part in parts:
        assert part in result.stderr


def test_a_missing_file_is_one_sentence_and_no_zip(course):
    (course / "assignments" / "a1_convolution" / "convolution.py").unlink()
    assert_one_sentence(submit(course, "a1"), "convolution.py is missing.")
    assert not (course / "a1-submission.zip").exists()


@pytest.mark.parametrize("content", [b"def f(:\n", b"x = '\xff'\n", b"x = 1\0\n", b"  x\n y\n"])
def test_a_file_that_is_not_python_is_one_sentence_and_no_zip(course, content):
    (course / "assignments" / "a1_convolution" / "convolution.py").write_bytes(content)
    assert_one_sentence(submit(course, "a1"), "convolution.py is not valid Python")
    assert not (course / "a1-submission.zip").exists()


def test_a_submission_says_which_questions_of_the_lab_are_open(course):
    lab = course / "assignments" / "a1_convolution" / LAB_FILE
    every = ", ".join(f"q{number}" for number in range(1, 12))
    reported = submit(course, "a1").stdout.splitlines()
    assert reported[1:] == [
        f"lab.ipynb has unanswered questions: {every}. Only saved answers count."
    ]
    solved = solved_notebook(read_master(A1))
    lab.write_bytes(solved)
    assert len(submit(course, "a1").stdout.splitlines()) == 1
    lab.write_bytes(re.sub(rb"q4_factor = 1 / 5", b"q4_factor = ...  # later", solved))
    assert "unanswered questions: q4." in submit(course, "a1").stdout
    lab.write_bytes(b"{}")
    result = submit(course, "a1")
    assert result.returncode == 0 and "lab.ipynb has no cells" in result.stdout


def test_an_unknown_assignment_is_one_sentence(course):
    assert_one_sentence(submit(course, "a9"), "No assignment is named 'a9'. Available: a1.")
    assert_one_sentence(submit(course, "a1", "a2"), "Name the assignment")


def second_handout():
    """Assignment 1's handout as if it were the second, with a newer requirements.txt."""
    renamed = {
        name.replace("a1_convolution", "a2_lenet"): content.replace(b"a1_convolution", b"a2_lenet")
        for name, content in handout(A1).items()
    }
    return renamed | {"requirements.txt": renamed["requirements.txt"] + b"torch==2.13.0\n"}


def follow_readme(folder, members):
    """What the two unzip commands of the handout's README do."""
    text = (folder / "README.md").read_text()
    assert re.findall(r"^    (unzip .*)$", text, re.M) == [
        "unzip -n aN-handout.zip",
        "unzip -o aN-handout.zip -x 'assignments/*'",
    ]
    for name, content in members.items():
        file = folder / name
        if not file.exists() or not name.startswith("assignments/"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)


def test_a_second_handout_leaves_earlier_work_alone_and_brings_the_rest_up_to_date(finished):
    follow_readme(finished, second_handout())
    for _ in range(2):  # unzipping the first handout again must not hurt either
        mine = finished / "assignments" / "a1_convolution" / "convolution.py"
        assert mine.read_bytes() == REFERENCE.read_bytes()
        follow_readme(finished, handout(A1))
    follow_readme(finished, second_handout())
    assert "torch==2.13.0" in (finished / "requirements.txt").read_text()
    result = pytest_in(finished, "-k", "parameters", plugins=BLOCK)
    # Each assignment has its own table, whose last line counts its own points.
    assert re.findall(r"^ +(\d+) of (\d+) points in this run", result.stdout, re.M) == [
        ("2", "2"),
        ("0", "2"),
    ]
    ambiguous = submit(finished)
    assert_one_sentence(ambiguous, "Name the assignment", "a1, a2")
    assert submit(finished, "a2").returncode == 0
    assert (finished / "a2-submission.zip").is_file()


def test_the_students_python_is_the_venvs_if_there_is_one(course):
    marker = "the venv's own"
    python_file = course / ".venv" / "bin" / "python"
    python_file.write_text(f'#!/bin/sh\necho "{marker}: $@"\n')
    result = run(["make", "submission", "A=a1"], course)
    assert result.stdout.splitlines()[-1] == f"{marker}: -m common.submission_zip a1"


@pytest.mark.parametrize("target", ["submission", "test"])
def test_missing_packages_are_reported(course, target):
    python_file = course / ".venv" / "bin" / "python"
    python_file.write_text("#!/bin/sh\nexit 1\n")
    result = run(["make", target, "A=a1"], course)
    assert "Packages are missing" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.returncode == 2


@pytest.mark.parametrize(
    "assignment",
    sample("handouts without torch", [one for one in load_all() if one.stores_answers], 1),
    ids=lambda one: one.short,
)
def test_public_tests_of_code_on_the_reference_do_not_import_torch(assignment, tmp_path):
    """The lab's are another matter: what stands in for code there may be written on it.

    Training takes long, and imports what the other tests of its file do.
    """
    (tmp_path / "spy.py").write_text(
        "import sys\n\n"
        "def pytest_sessionfinish(session):\n"
        "    loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "    print('LOADED', *sorted(loaded & {'numpy', 'torch', 'scipy', 'matplotlib'}))\n"
    )
    file = f"tests/{assignment.name}/test_public.py"
    tests = [
        test for test in read_graded_tests(ROOT / "tests" / assignment.name) if not test.hidden
    ]
    others = [test for test in tests if test.reads_lab or TRAINING in test.tags]
    left_out = [f"--deselect={file}::{test.name}" for test in others]
    result = python(
        *("-m", "pytest", "-q", "-s", "-p", "spy", "--impl=solutions", file, *left_out),
        cwd=ROOT,
        env={"PYTHONPATH": str(tmp_path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    assert result.returncode == 0, result.stdout
    assert f"{len(tests) - len(left_out)} passed" in result.stdout
    assert re.findall(r"LOADED (.*)", result.stdout) == ["numpy"]


def test_a_known_mistake_gets_its_hint_on_a_students_own_machine(finished):
    file = finished / "assignments" / "a1_convolution" / "convolution.py"
    file.write_text(file.read_text("utf-8").replace("patch * w[k]", "patch * w[k, :, ::-1, ::-1]"))
    result = pytest_in(finished, "-k", "conv2d_forward_moves_the_kernel", plugins=BLOCK)
    assert result.returncode == 1, result.stdout
    hint = next(m.hint for m in load_mistakes(load_assignment("a1")) if m.name == "kernel-flipped")
    assert hint in result.stdout
