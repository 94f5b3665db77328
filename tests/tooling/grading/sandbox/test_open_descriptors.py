"""Tests that no open descriptor of a child leads to the tests."""

import json

import pytest

from tests.tooling.scratch_copies import copy_repo, python
from tests.tooling.weakened_sandbox import (
    NO_LANDLOCK,
    NO_OWN_MOUNTS,
    needs_root,
    sitecustomize,
)

pytestmark = needs_root

NO_DETACHED = "syscalls.OPEN_TREE = 1 << 30\n"  # a call that no kernel knows
CODE = """
import os

FILE = "tests/a1_convolution/test_hidden.py"


def found():
    ways = ["."] + [f"/proc/self/fd/{number}" for number in range(64)]
    seen = []
    for way in ways:
        for height in range(16):
            try:
                seen.append(open(way + "/.." * height + "/" + FILE).read(1) and way)
            except OSError:
                pass
    return seen


def late():
    import common.testing.graded_tests, late_library
    return late_library.NUMBER
"""
SCRIPT = """
import json, sys
from pathlib import Path
from autograder.grading.sandbox import fork_client
from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.grading.sandbox.sandbox import Sandbox
from common.assignment import ROOT, load_assignment
from common.student_text import plain

package, *folders = sys.argv[1:]
fork_client.CLEAN_ENVIRONMENT["PYTHONPATH"] = ":".join([*folders, str(ROOT)])
with Sandbox(load_assignment("a1")) as sandbox:
    code = {file.name: file.read_bytes() for file in Path(package).glob("*.py")}
    defenses = sandbox.admit(code, [ROOT / "tests"])
    with IsolatedFace(sandbox).open("1.1") as student:
        print(json.dumps([str(defenses[0]), [*map(plain, student.found())], plain(student.late())]))
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A checkout with libraries in it, below a folder that only root may enter."""
    folder = tmp_path_factory.mktemp("closed")
    folder.chmod(0o700)
    course = copy_repo(folder / "course")
    library = course / ".venv" / "lib" / "late_library.py"
    library.parent.mkdir()
    library.write_text("NUMBER = 7\n")
    (folder / "package").mkdir()
    (folder / "package" / "convolution.py").write_text(CODE)
    return course


@pytest.mark.parametrize(
    ("patches", "means"),
    [
        ((), "own uid"),
        ((NO_LANDLOCK,), "own uid"),
        ((NO_LANDLOCK, NO_OWN_MOUNTS), "own uid"),
        # Libraries beside the tests then need a kernel that can cut the way up from them.
        ((NO_LANDLOCK, NO_DETACHED), "not protected"),
    ],
)
def test_the_tests_of_a_closed_checkout_are_out_of_reach_or_reported_to_be_open(
    course, tmp_path, patches, means
):
    sitecustomize(tmp_path, *patches)
    folders = (course.parent / "package", tmp_path, course / ".venv" / "lib")
    ran = python("-c", SCRIPT, *folders, cwd=course)
    assert ran.returncode == 0, ran.stderr
    reported, found, late = json.loads(ran.stdout)
    assert late == 7
    assert bool(found) == (means == "not protected")
    assert reported.partition(": ")[2].startswith(means)
