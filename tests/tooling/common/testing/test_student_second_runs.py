"""Tests that a student's own `pytest` runs failed tests once more, as grading does."""

import re

import pytest

from common.assignment import ROOT
from tests.tooling.scratch_copies import copy_repo, python

CODE = "a1_convolution/convolution.py"
WRONG = ("last_start // stride + 1", "last_start // stride")
CHOSEN = "counts_the_kernel or moves_the_kernel or sums_over or im2col_lays or conv_parameters"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course whose student has made one mistake in exercise 1.1, and one in 1.6."""
    folder = tmp_path_factory.mktemp("course")
    copy_repo(folder)
    source = (ROOT / "solutions" / CODE).read_text("utf-8")
    for find, put in (WRONG, ("cols.reshape(n, c * kh * kw, out_h", "cols.reshape(n, -1, out_w")):
        assert find in source
        source = source.replace(find, put, 1)
    (folder / "assignments" / CODE).write_text(source)
    return folder


def run(course, *options):
    tests = "tests/a1_convolution/test_public.py"
    more = ("-q", "-p", "no:cacheprovider", "-k", CHOSEN)
    return python("-m", "pytest", *more, *options, tests, cwd=course, env={"COLUMNS": "200"})


def test_the_summary_says_what_to_fix_first_and_counts_what_passes_then(course):
    done = run(course)
    assert done.returncode == 1
    said = (
        "  Fix 1.1 first: tests of 1.2 that failed pass with a right conv_output_size. "
        "Their points are counted, as in grading.\n"
    )
    assert said in done.stdout
    earned = dict(re.findall(r"  (1\.\d) +(\d+) of \d+   ", done.stdout))
    assert earned["1.1"] == "0" and earned["1.6"] == "0" and int(earned["1.2"]) > 0
    assert re.search(r"4 failed, \d passed", done.stdout)


def test_a_debugger_is_entered_once_for_each_failure(course):
    done = run(course, "--pdb")
    assert "Fix 1.1 first" not in done.stdout
