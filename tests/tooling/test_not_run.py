"""A run of the tests says in its last line what was not run, and why."""

import shutil
from pathlib import Path

from tests.tooling.scratch import python

SKIPPED = """
import pytest

def test_one():
    pytest.skip("no browser here")

@pytest.mark.skipif(True, reason="no browser here")
def test_two():
    assert False

@pytest.mark.xfail
def test_three():
    assert False

def test_four():
    pass
"""


def last_line(folder, source):
    """The last line of a run of these tests."""
    folder.mkdir()
    shutil.copy(Path(__file__).with_name("conftest.py"), folder)
    (folder / "test_some.py").write_text(source)
    finished = python("-m", "pytest", "-p", "no:cacheprovider", folder, cwd=folder)
    assert finished.returncode == 0, finished.stdout
    return finished.stdout.rstrip("\n").splitlines()[-1]


def test_what_was_skipped_is_told_last_and_only_that(tmp_path):
    assert (
        last_line(tmp_path / "some", SKIPPED)
        == "Not run here: 2 of test_some.py (no browser here)."
    )
    assert "1 passed in" in last_line(tmp_path / "none", "def test_it():\n    pass\n")
