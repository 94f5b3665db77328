"""Tests of the catalog of mistakes: validation, and patches that ignore layout."""

import ast
import tomllib

import msgspec
import pytest

from autograder.proving import right_versions
from autograder.proving.verification import FEWEST_ALTERNATIVES, fewest_mistakes
from autograder.proving.wrong_versions import mistakes
from autograder.proving.wrong_versions.mistakes import apply, load_mistakes
from autograder.proving.wrong_versions.source_patch import extent
from common.assignment import ROOT, load_all
from common.errors import CourseError
from tests.tooling.proving.made_up_proofs import (
    A1,
    mistake,
)

EACH = pytest.mark.parametrize("assignment", load_all(), ids=lambda entry: entry.short)


@EACH
def test_every_assignment_has_enough_mistakes_and_alternatives(assignment):
    listed = tomllib.loads((ROOT / "solutions" / assignment.name / "mistakes.toml").read_text())
    assert len(listed["mistakes"]) >= fewest_mistakes(assignment) > 0
    assert len(right_versions.alternatives(assignment)) >= FEWEST_ALTERNATIVES == 2


def test_an_assignment_needs_five_mistakes_for_each_exercise_with_functions_and_at_most_15():
    written, lab = A1.exercises[0], A1.exercises[-1]
    assert written.functions and not lab.functions
    for count, fewest in ((1, 5), (2, 10), (3, 15), (4, 15)):
        exercises = (*[written] * count, lab)
        assert fewest_mistakes(msgspec.structs.replace(A1, exercises=exercises)) == fewest


def test_assignment_1_lists_at_least_25_mistakes_in_all_exercises():
    catalog = load_mistakes(A1)
    assert len(catalog) >= 25
    named = {number for entry in catalog for number in entry.exercises}
    assert named == {exercise.number for exercise in A1.exercises}


def test_a_mistake_changes_its_function_and_nothing_else():
    source = (ROOT / "solutions" / A1.name / "convolution.py").read_text("utf-8")
    patched = apply(mistake(), A1)["convolution.py"].decode()
    first, last = extent(source, "conv2d_forward", "here")
    assert patched[:first] == source[:first]
    assert patched.endswith(source[last:])
    assert "patch * w[k, :, ::-1]" in patched


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"find": "no such code"}, "must occur once in conv2d_forward, but occurs 0 times"),
        ({"find": "range("}, "must occur once in conv2d_forward, but occurs 4 times"),
        ({"replace": "patch*w[k]"}, "the patch changes nothing"),
        ({"replace": "patch *"}, "is not valid Python"),
        ({"function": "conv3d"}, "there is no function conv3d"),
        ({"file": "other.py"}, "`file` must name one of convolution.py"),
    ],
)
def test_a_patch_that_does_not_fit_is_an_error_that_names_the_mistake(changes, sentence):
    with pytest.raises(CourseError, match=r"mistakes\.toml, flipped: ") as error:
        apply(mistake(**changes), A1)
    assert sentence in str(error.value)


@pytest.fixture
def catalog(tmp_path, monkeypatch):
    """A scratch solutions/ folder; writes its mistakes.toml and loads it."""
    folder = tmp_path / "solutions" / A1.name
    folder.mkdir(parents=True)
    source = ROOT / "solutions" / A1.name / "convolution.py"
    monkeypatch.setattr(mistakes, "ROOT", tmp_path)
    monkeypatch.setattr(right_versions, "ROOT", tmp_path)

    def load(text, change=lambda source: source):
        (folder / "convolution.py").write_text(change(source.read_text("utf-8")))
        (folder / "mistakes.toml").write_text(text)
        return load_mistakes(A1)

    return load


ENTRY = """
[[mistakes]]
name = "flipped"
function = "conv2d_forward"
find = "patch * w[k]"
replace = "patch * w[k, :, ::-1]"
exercises = ["1.2"]
hint = "This is what you get when ..."
"""


def test_a_good_catalog_is_read(catalog):
    assert catalog(ENTRY) == [mistake()]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (ENTRY + ENTRY, "flipped: the name is used more than once"),
        (ENTRY.replace('"1.2"', '"1.99"'), "flipped: there is no exercise 1.99"),
        (ENTRY + "hidden = true", "flipped: hidden = true needs a reason"),
        (ENTRY + "color = 1", "unknown field `color`"),
        (ENTRY.replace("hint =", "hints ="), "hint"),
        ("mistakes = 3", "Expected `array`"),
        ("[[mistakes", "mistakes.toml"),
    ],
)
def test_a_bad_catalog_is_an_error_that_names_the_file(catalog, text, sentence):
    with pytest.raises(CourseError, match=r"mistakes\.toml") as error:
        catalog(text)
    assert sentence in str(error.value)


LINE = "out[i, k, r, s] = np.sum(patch * w[k]) + b[k]"


def edited(old, new):
    """Edits a source that has the old text."""

    def edit(source):
        assert old in source
        return source.replace(old, new)

    return edit


@pytest.mark.parametrize(
    "edit",
    [
        edited(LINE, f"# As in {LINE}\n                    {LINE}  # summed"),
        edited("np.sum(patch * w[k])", "np.sum(\n patch  # (c, kh, kw)\n * w[k],\n)"),
        edited(LINE, LINE.replace("= ", "= (\n                        ") + "\n)"),
        edited("left", "first_column"),
    ],
    ids=["comment", "line breaks", "wrapped line", "other names"],
)
def test_the_layout_of_the_reference_breaks_no_mistake(catalog, edit):
    (found,) = catalog(ENTRY.replace('"patch * w[k]"', f'"{LINE}"'), edit)
    assert found == mistake(find=LINE)
    code = ast.unparse(ast.parse(apply(found, A1)["convolution.py"]))
    assert "\n                    patch * w[k, :, ::-1]\n" in code
    assert LINE not in code


def test_mistakes_that_no_longer_apply_are_named_all_at_once(catalog):
    other = ENTRY.replace("flipped", "twice").replace("patch * w[k]", "np.sum(patch * w[k]) * 2")
    lost = ENTRY.replace("flipped", "lost").replace("conv2d_forward", "conv3d_forward")
    with pytest.raises(CourseError) as error:
        catalog(ENTRY + other + lost, edited("patch * w[k]", "window * w[k]"))
    where = f"solutions/{A1.name}/mistakes.toml"
    place = "must occur once in conv2d_forward, but occurs 0 times (convolution.py)"
    assert str(error.value).splitlines() == [
        f"{where}, flipped: the code to replace {place}; nearest: `window * w[k]`",
        f"{where}, twice: the code to replace {place}; nearest: `np.sum(window * w[k])`",
        f"{where}, lost: there is no function conv3d_forward.",
    ]
