"""Grading by a user who isn't root: the built zip gives the same points, and says what is missing.

Python may lie below a folder that only root may enter. Then the grading runs in mounts of its own,
where other users may enter that folder and find nothing there but Python.
"""

import json
import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from autograder.packaging.rehearsal import METADATA
from autograder.packaging.zip_contents import autograder_zip
from autograder.proving.hostile.hostile_corpus import honest_parts
from common.assignment import load_assignment
from tests.tooling.grading_fixtures import SEMESTER
from tests.tooling.scratch_copies import open_to_others, run, unzip
from tests.tooling.weakened_sandbox import needs_root

pytestmark = needs_root

USER = 65_533  # of nobody's
A1 = load_assignment("a1")
EARNED = ["1.1", "1.7"]


def closed_parent(folder: Path) -> Path | None:
    """The uppermost folder on the way there that other users can't enter."""
    ways = [*reversed(folder.resolve().parents), folder.resolve()]
    return next((way for way in ways if not way.stat().st_mode & 0o001), None)


def as_other_user(command: list[str | Path], scratch: Path) -> str:
    """A shell script that runs a command as that user, who can read Python there."""
    lines = ["set -e", "mount --make-rprivate /"]
    needed = {Path(prefix).resolve() for prefix in (sys.prefix, sys.base_prefix)}
    closed = {folder: parent for folder in needed if (parent := closed_parent(folder))}
    for number, folder in enumerate(closed):
        (scratch / str(number)).mkdir()
        lines.append(f"mount --bind {shlex.quote(str(folder))} {scratch / str(number)}")
    lines += [f"mount -t tmpfs -o mode=755 tmpfs {parent}" for parent in {*closed.values()}]
    for number, folder in enumerate(closed):
        quoted = shlex.quote(str(folder))
        lines += [f"mkdir -p {quoted}", f"mount --move {scratch / str(number)} {quoted}"]
    user = f"setpriv --reuid {USER} --regid {USER} --clear-groups"
    return "\n".join([*lines, f"exec {user} {shlex.join(map(str, command))}"])


@pytest.fixture
def tree(tmp_path):
    """Gradescope's tree, with a submission of two exercises, all of it the user's."""
    open_to_others(tmp_path)
    root = tmp_path / "autograder"
    root.mkdir()
    unzip(autograder_zip(A1, SEMESTER.to_bytes()), root / "source")
    shutil.copy(root / "source" / "run_autograder", root)
    for name in ("results", "submission", "home"):
        (root / name).mkdir(mode=0o700)
    (root / "submission_metadata.json").write_text(json.dumps(METADATA))
    for name, text in honest_parts(A1, EARNED).items():
        (root / "submission" / name).write_text(text)
    for place in (root, *root.rglob("*")):
        os.chown(place, USER, USER)
    return root


def test_a_user_who_is_not_root_grades_as_root_does(tree, tmp_path):
    script = as_other_user([tree / "run_autograder"], tmp_path)
    environment = {"HOME": str(tree / "home"), "CONV2GPT_PREFIX": sys.prefix, "TMPDIR": "/tmp"}
    ran = run(["unshare", "--mount", "sh", "-c", script], tree, environment)
    assert ran.returncode == 0, ran.stderr
    file = tree / "results" / "results.json"
    assert file.stat().st_uid == USER
    result = json.loads(file.read_bytes())
    assert result["extra_data"]["finished"], result["output"]
    points = {test["number"] for test in result["tests"] if test["score"]}
    right = [test["name"] for test in result["tests"] if test["number"] in EARNED]
    assert points == {*EARNED}
    assert [test["name"] for test in result["tests"] if test["score"]] == right
    defenses = dict(text.split(": ", 1) for text in result["extra_data"]["defenses"])
    assert "own uid" not in defenses["tests and metadata can't be read"]
    assert defenses["results can't be written"].startswith("Landlock")
