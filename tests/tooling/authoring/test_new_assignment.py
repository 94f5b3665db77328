"""Tests of `make new`: what it writes works as it is, and what it refuses leaves nothing."""

import re
import tomllib
from types import SimpleNamespace

import pytest

from autograder.authoring import new_assignment as module
from autograder.authoring.new_assignment import write_new_assignment
from common.assignment import ROOT
from common.errors import CourseError
from tests.tooling.made_once import made_once
from tests.tooling.scratch_copies import copy_repo, python, run

NAME, TITLE = "a11_diffusion", "Diffusion & $noise's `end`"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A scratch copy in which `make new` and then `make` have run, and what they printed."""

    def make(folder):
        root = copy_repo(folder / "repo")
        # make passes a title on as it is, but for its own dollar signs.
        for file, command in (
            ("new.txt", ["make", "new", f"A={NAME}", f"TITLE={TITLE.replace('$', '$$')}"]),
            ("make.txt", ["make", "A=a11"]),
        ):
            finished = run(command, root)
            assert finished.returncode == 0, finished.stderr
            (folder / file).write_text(finished.stdout, "utf-8")

    folder = made_once(tmp_path_factory, "new-assignment", make)
    texts = [(folder / name).read_text("utf-8") for name in ("new.txt", "make.txt")]
    return SimpleNamespace(root=folder / "repo", new=texts[0], make=texts[1])


def test_it_names_every_file_that_it_wrote_and_what_to_do_next(written):
    named = re.findall(r"^wrote (.*)$", written.new, re.MULTILINE)
    there = [
        str(file.relative_to(written.root))
        for folder in module.FOLDERS
        for file in (written.root / folder / NAME).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    ]
    assert sorted(named) == sorted([*there, "docs/architecture.md"])
    assert {f"tests/{NAME}/answers.npz", f"assignments/{NAME}/lab.ipynb"} <= {*named}
    assert "make A=a11 " in written.new and "make verify A=a11 " in written.new


def test_make_gives_its_reference_all_points_and_its_stub_none(written):
    (row,) = re.findall(rf"^[│|] {NAME} .*", written.make, re.MULTILINE)
    cells = [cell.strip() for cell in re.split("[│|]", row) if cell.strip()]
    assert cells[2:6] == ["100", "100", "0", "-"]


def test_its_quick_proof_shows_no_problem(written):
    finished = python("-m", "autograder", "verify", "a11", "--quick", cwd=written.root)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert re.search(r"problems +[│|] +0 ", finished.stdout), finished.stdout


def test_its_code_is_linted_and_its_title_is_the_one_given(written):
    folders = [written.root / folder / NAME for folder in module.FOLDERS[:-1]]
    for command in (["check"], ["format", "--check"]):
        finished = python("-m", "ruff", *command, *folders, cwd=written.root)
        assert finished.returncode == 0, finished.stdout
    settings = (written.root / "assignments" / NAME / "assignment.toml").read_text("utf-8")
    assert tomllib.loads(settings)["title"] == TITLE
    for folder in folders:
        for file in folder.rglob("*"):
            assert not file.is_file() or b"{{" not in file.read_bytes(), file


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """A tree with assignment 1, and what lies in it."""
    for name in ("assignments/a1_convolution/assignment.toml", "common/standins/a12_taken/x.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return tmp_path


def tree(root):
    return sorted(root.rglob("*"))


REFUSED = {
    "a name that exists": ("a1_convolution", "T", "assignments/a1_convolution exists already"),
    "a name of stand-ins": ("a12_taken", "T", "common/standins/a12_taken exists already"),
    "a number that is taken": ("a1_other", "T", "Number 1 belongs to a1_convolution: the next"),
    "no number": ("diffusion", "T", "'diffusion' can't be the name of an assignment: it must"),
    "a number alone": ("a11", "T", "'a11' can't be the name of an assignment: it must be"),
    "no identifier": ("a11_my-work", "T", "'a11_my-work' can't be the name of an assignment"),
    "a path": ("a11_../x", "T", r"'a11_\.\./x' can't be the name"),
    "a leading zero": ("a011_x", "T", "'a011_x' can't be the name of an assignment"),
    "a word of Python": ("a11_class", "T", r"no module can be named class\.py there"),
    "a name with a use": ("a11_lab", "T", r"no module can be named lab\.py there"),
    "an empty title": ("a11_x", " ", "' ' can't be the title of an assignment"),
    "a title of two lines": ("a11_x", "a\nb", "can't be the title of an assignment"),
    "a title in quotes": ("a11_x", 'an "a"', "can't be the title of an assignment"),
}


@pytest.mark.parametrize(("name", "title", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_one_sentence_and_writes_nothing(scratch, name, title, sentence):
    before = tree(scratch)
    with pytest.raises(CourseError, match=sentence) as error:
        write_new_assignment(name, title)
    assert str(error.value).endswith(".") and "\n" not in str(error.value)
    assert tree(scratch) == before


@pytest.mark.parametrize("error", [CourseError("no"), KeyboardInterrupt()])
def test_nothing_is_left_after_an_error_on_the_way(scratch, monkeypatch, error):
    there = []

    def stopped(name):
        there.extend(tree(scratch))
        raise error

    monkeypatch.setattr(module, "load_assignment", stopped)
    with pytest.raises(type(error)):
        write_new_assignment(NAME, "T")
    assert scratch / "solutions" / NAME / "diffusion.py" in there
    assert not [path for path in tree(scratch) if NAME in path.parts]


@pytest.mark.parametrize("given", [[], [f"A={NAME}"], ["TITLE=Diffusion"]])
def test_make_says_what_is_missing(given, tmp_path):
    (tmp_path / ".venv").mkdir()
    for name in ("requirements.txt", "common/data/requirements.txt", ".venv/.installed"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    finished = run(["make", "-f", ROOT / "Makefile", "new", *given], tmp_path)
    assert finished.returncode == 2
    assert 'Usage: make new A=a11_diffusion TITLE="Diffusion"' in finished.stderr
    assert "Traceback" not in finished.stderr
