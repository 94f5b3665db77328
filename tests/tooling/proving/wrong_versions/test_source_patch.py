"""Tests of source patches: they match tokens in any layout, and errors name the nearest code."""

import ast
import subprocess
import sys
import tomllib

import msgspec
import pytest

from autograder.authoring.lab_master import read_master
from autograder.authoring.syntax_hash import python_hash
from autograder.proving.right_versions import reference
from autograder.proving.wrong_versions.line_wrapping import unwrapped
from autograder.proving.wrong_versions.mistakes import MistakeFile
from autograder.proving.wrong_versions.source_patch import Patch, apply_patch
from autograder.proving.wrong_versions.source_tokens import tokens_of
from common.assignment import ROOT, load_all
from common.errors import CourseError
from tests.tooling.sampling import sample

SOURCE = '''class Model:
    def forward(self, x, mask):
        """The score: score(x, mask) + 1."""
        if mask is None:
            mask = ones("all")
        for row in x:
            row += score(x, mask)
        return x, mask


def other(x):
    return score(x, None)
'''


def patched(source, find, replacement, **more):
    """The source after a patch of the method; layout doesn't count."""
    patch = Patch("model.py", "Model.forward", find, replacement, **more)
    return ast.dump(ast.parse(apply_patch(source, patch, "here")))


def edited(old, new):
    """The syntax of the source with a piece of it replaced by hand."""
    assert SOURCE.count(old) == 1
    return ast.dump(ast.parse(SOURCE.replace(old, new)))


LINE = "            row += score(x, mask)\n"


@pytest.mark.parametrize(
    "line",
    [
        "            row += score(x, mask)  # a sum\n",
        "    # score(x, mask)\n\n            row += score(x, mask)\n",
        "            row += score(\n                x,\n                mask,\n            )\n",
        "            row += score( x,mask )\n",
        "            row += (\n                score(x, mask)\n            )\n",
        "            row += score \\\n(x, mask)\n",
    ],
)
@pytest.mark.parametrize(
    ("find", "replacement"),
    [
        ("score(x, mask)", "score(x)"),
        ("score(x, mask)\n", "score(x)\n"),
        ("row += score(x, mask)", "row += score(x)"),
        ("for row in x:\n    row += score(x, mask)\n", "for row in x:\n    row += score(x)\n"),
        ("for row in x:  # all\n  row += score(x, mask,)", "for row in x:\n  row += score(x)"),
    ],
)
def test_a_patch_fits_in_any_layout(line, find, replacement):
    assert SOURCE.count(LINE) == 1
    expected = edited("row += score(x, mask)", "row += score(x)")
    assert patched(SOURCE.replace(LINE, line), find, replacement) == expected


def test_quotes_do_not_count():
    assert patched(SOURCE, "ones('all')", "1") == edited('ones("all")', "1")


def test_statements_keep_their_depth_wherever_the_patch_was_written():
    find = "if mask is None:\n    mask = ones('all')\nfor row in x:\n"
    replacement = "for row in x:\n    mask = 1\n"
    old = '        if mask is None:\n            mask = ones("all")\n        for row in x:\n'
    expected = edited(old, "        for row in x:\n            mask = 1\n")
    for indent in ("", "    ", "        ", "            "):
        moved = [
            "".join(f"{indent}{line}" for line in text.splitlines(keepends=True))
            for text in (find, replacement)
        ]
        assert patched(SOURCE, *moved) == expected


def test_a_patch_may_begin_deep_inside_and_move_statements_out():
    find = "        row += score(x, mask)\n    return x, mask\n"
    replacement = "        row += 1\n    row += score(x, mask)\n    return x\n"
    old = "            row += score(x, mask)\n        return x, mask\n"
    new = "            row += 1\n        row += score(x, mask)\n        return x\n"
    assert patched(SOURCE, find, replacement) == edited(old, new)


def test_depth_is_part_of_the_code():
    with pytest.raises(CourseError, match="occurs 0 times"):
        patched(SOURCE, "row += score(x, mask)\nreturn x, mask\n", "pass\n")


def test_lines_that_are_replaced_by_nothing_are_gone():
    find = "for row in x:\n    row += score(x, mask)\n"
    old = "        for row in x:\n            row += score(x, mask)\n"
    assert patched(SOURCE, find, "") == edited(old, "")


def test_pieces_of_a_call_over_several_lines_fit():
    source = SOURCE.replace(LINE, "            row += score(\n    1,  # one\n    2,\n    )\n")
    expected = edited("row += score(x, mask)", "row += score(3, 2)")
    assert patched(source, "1,\n2", "3,\n2") == expected
    assert patched(source, "score(1,", "score(3,") == expected
    assert patched(source, "1, 2)\n", "3, 2)\n") == expected


def test_one_of_several_is_named_by_its_number():
    source = SOURCE.replace("return x, mask", "return x, ones('all')")
    with pytest.raises(CourseError, match=r"must occur once in .*, but occurs 2 times"):
        patched(source, "ones('all')", "0")
    second = patched(source, "ones('all')", "0", occurrence=2)
    assert second == ast.dump(ast.parse(SOURCE.replace("return x, mask", "return x, 0")))


@pytest.mark.parametrize(
    ("find", "nearest"),
    [
        ("score(y, mask)", "score(x, mask)"),
        ("mask = zeros('all')", 'mask = ones("all")'),
        ("return x, masks\n", "return x, mask"),
        ("for row in y:\n    row -= score(x, mask)\n", "for row in x:\n    row += score(x, mask)"),
    ],
)
def test_the_nearest_code_is_named_and_fits(find, nearest):
    with pytest.raises(CourseError) as error:
        patched(SOURCE, find, "pass")
    place = "must occur once in Model.forward, but occurs 0 times (model.py)"
    assert str(error.value) == f"here: the code to replace {place}; nearest: `{nearest}`"
    assert patched(SOURCE, nearest, "pass" if "=" in nearest or "return" in nearest else "1")


def test_where_nothing_is_alike_nothing_is_named():
    with pytest.raises(CourseError, match=r"occurs 0 times \(model.py\)\.$"):
        patched(SOURCE, "nowhere", "1")


def test_brackets_that_only_break_lines_are_taken_out():
    text = "x = (\n    a  # first\n    + b\n)\ny = (\n    1,\n    2,\n)\nz = f(\n    1\n)\n"
    assert " ".join(unwrapped(text).split()) == "x = a + b y = 1, 2 z = f( 1 )"
    for needed in (
        "x = (\n    a for a in b\n)\n",
        "x = (\n    1,\n)\n",
        "y = 2 * (\n    a + b\n)\n",
    ):
        assert unwrapped(needed) == needed
    assert unwrapped("x = (\n") == "x = (\n"


def test_tokens_know_their_places():
    text = "    if x:  # why\n        f(\n            'a',\n        )\n    y\n"
    tokens = tokens_of(text)
    assert [text[token.start : token.end] for token in tokens[:3]] == ["if", "x", ":"]
    assert [token.value for token in tokens if token.ends_line] == ["\n>", "\n<", "\n"]
    assert [token.column for token in tokens if token.column is not None] == [4, 8, 4]


def reformatted(source):
    """The source as a formatter writes it who likes short lines."""
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length=60", "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize(
    "assignment",
    sample("reformatted references", load_all(), 1),
    ids=lambda entry: entry.short,
)
def test_all_mistakes_are_the_same_in_a_reformatted_reference(assignment):
    sources = {name: content.decode() for name, content in reference(assignment).items()}
    if assignment.lab:
        sources["lab.py"] = read_master(assignment)
    others = {name: reformatted(source) for name, source in sources.items()}
    text = (ROOT / "solutions" / assignment.name / "mistakes.toml").read_text("utf-8")
    for mistake in msgspec.convert(tomllib.loads(text), MistakeFile).mistakes:
        name = mistake.file or assignment.files[0]
        patch = Patch(name, mistake.function, mistake.find, mistake.replace)
        hashes = {
            python_hash(apply_patch(source, patch, mistake.name).encode())
            for source in (sources[name], others[name])
        }
        assert len(hashes) == 1, mistake.name
