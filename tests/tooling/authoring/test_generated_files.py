"""Tests that all committed generated files are up to date."""

import re

import matplotlib.image
import msgspec
import numpy as np
import pytest

from autograder.authoring.answer_recorder import answers_file
from autograder.authoring.generated_files import (
    TABLE_BEGIN,
    TABLE_END,
    check_forbidden,
    exercise_table,
    generate,
    stale_files,
    with_table,
)
from autograder.authoring.handout_figures import draw_figures, has_figures
from common.assignment import ROOT, Forbidden, load_all, load_assignment
from common.errors import CourseError
from tests.tooling.scratch_copies import copy_repo, python

EACH = pytest.mark.parametrize("assignment", load_all(), ids=lambda entry: entry.name)


@EACH
def test_stubs_tables_and_hidden_points_are_current(assignment):
    stale = [str(file.relative_to(ROOT)) for file in stale_files(assignment)]
    assert not stale, f"`make stubs` brings these up to date: {', '.join(stale)}"


def test_each_generated_file_that_is_changed_is_found_stale_and_written_again(tmp_path):
    root = copy_repo(tmp_path / "repo")
    assignment = load_assignment("a1", root)
    changes = {
        "assignments/a1_convolution/convolution.py": ("exercise 1.1", "exercise 1.0"),
        "assignments/a1_convolution/README.md": ("| **325** |", "| **326** |"),
        "tests/a1_convolution/hidden_points.json": ('"1.7": 1.0', '"1.7": 3.0'),
    }
    for name, (find, put) in changes.items():
        file = root / name
        before = file.read_text("utf-8")
        assert before.count(find) == 1
        file.write_text(before.replace(find, put), "utf-8")
        assert list(stale_files(assignment, root)) == [file]
        assert generate([assignment], root) == [file]
        assert file.read_text("utf-8") == before
        assert generate([assignment], root) == []


def test_a_test_of_an_unknown_exercise_is_refused(tmp_path):
    root = copy_repo(tmp_path / "repo")
    file = root / "tests/a1_convolution/test_hidden.py"
    file.write_text(file.read_text("utf-8").replace('@number("1.7")', '@number("1.99")'), "utf-8")
    with pytest.raises(CourseError, match=r"names exercise 1\.99, which assignment\.toml lacks"):
        exercise_table(load_assignment("a1", root), file.parent)


def test_a_forbidden_call_that_does_not_exist_is_an_error():
    assignment = load_assignment("a1")
    check_forbidden(assignment)
    wrong = Forbidden("numpy.convlve", ["1.2"], "slide the kernel yourself")
    changed = msgspec.structs.replace(assignment, forbidden=(wrong,))
    with pytest.raises(CourseError, match=r"toml: .* numpy\.convlve, which doesn't exist"):
        check_forbidden(changed)


def test_a_forbidden_operator_that_does_not_exist_is_an_error():
    assignment = load_assignment("a6")
    check_forbidden(assignment)  # also names a module that PyTorch loads when it is needed
    wrong = Forbidden("torch.nn.LayerNorm", ["6.2"], "write it", ["aten::layernorm"])
    changed = msgspec.structs.replace(assignment, forbidden=(wrong,))
    with pytest.raises(CourseError, match=r"operators names aten::layernorm, which doesn't exist"):
        check_forbidden(changed)


@pytest.mark.parametrize(
    "text",
    ["no table", f"{TABLE_BEGIN}\n", f"{TABLE_BEGIN}\n{TABLE_END}\n" * 2, f"{TABLE_END}\n"],
)
def test_a_handout_without_one_place_for_the_table_is_refused(tmp_path, text):
    readme = tmp_path / "README.md"
    readme.write_text(text)
    with pytest.raises(CourseError, match=r"README\.md must contain"):
        with_table(readme, "| table |")


@pytest.mark.parametrize(
    "assignment", [one for one in load_all() if one.stores_answers], ids=lambda one: one.name
)
def test_stored_answers_are_current(assignment):
    finished = python("-m", "autograder", "answers", assignment.short, "--check", cwd=ROOT)
    assert finished.returncode == 0, finished.stderr
    with np.load(answers_file(assignment)) as stored:
        assert len(stored.files) > 0


def images_of(assignment):
    return ROOT / "assignments" / assignment.name / "images"


@EACH
def test_the_handout_names_every_image_there_is_and_no_other(assignment):
    text = (images_of(assignment).parent / "README.md").read_text("utf-8")
    named = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert bool(named) == has_figures(assignment)
    assert len(re.findall(r"!\[", text)) == len(named), "an image lacks its description"
    there = [f"images/{file.name}" for file in images_of(assignment).glob("*")]
    assert sorted(named) == sorted(there)


@EACH
def test_links_of_the_handout_lead_somewhere(assignment):
    folder = images_of(assignment).parent
    text = (folder / "README.md").read_text("utf-8")
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert links
    for link in links:
        path, _, heading = link.partition("#")
        assert not path or (folder / path).exists(), link
        if heading and not path:
            titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
            slugs = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
            assert heading in slugs, link


@pytest.mark.parametrize(
    "assignment", [one for one in load_all() if has_figures(one)], ids=lambda one: one.name
)
def test_drawing_the_figures_again_gives_the_same_pictures(assignment, tmp_path):
    drawn = draw_figures(assignment, tmp_path)
    assert sorted(file.name for file in drawn) == sorted(
        file.name for file in images_of(assignment).iterdir()
    )
    for file in drawn:
        new, stored = (
            matplotlib.image.imread(path) for path in (file, images_of(assignment) / file.name)
        )
        assert new.shape == stored.shape, file.name
        # Another version of a font library may move an edge of a letter by a shade.
        assert np.mean(np.abs(new - stored) > 0.1) < 0.001, file.name
