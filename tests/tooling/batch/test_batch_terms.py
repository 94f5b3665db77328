"""Tests of batches graded under another term's salt: terms are never mixed silently."""

import json
import shutil

import pytest

from autograder.semester import read_semester
from common.assignment import ROOT
from tests.tooling.graded_class import graded_class
from tests.tooling.scratch_copies import python


@pytest.fixture
def earlier(tmp_path, tmp_path_factory):
    """A batch of a class, and a copy of it as of an earlier term."""
    class_folder = graded_class(tmp_path_factory)
    folder = tmp_path / "earlier"
    shutil.copytree(class_folder / "batch", folder)
    index = json.loads((folder / "batch.json").read_text("utf-8"))
    (folder / "batch.json").write_text(json.dumps({**index, "salt": "0a0b0c0d"}), "utf-8")
    return class_folder, folder


def state_of(folder):
    """All files of a batch but its log."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {file: file.read_bytes() for file in files if file.name != "batch.log"}


@pytest.mark.parametrize("again", ["regrade", "batch"])
def test_grading_again_under_another_salt_is_refused(earlier, again):
    class_folder, folder = earlier
    before = state_of(folder)
    words = ["regrade", str(folder)]
    if again == "batch":
        export = next((class_folder / "class").glob("*_export"))
        words = ["batch", "a1", str(export), "--out", str(folder)]
    result = python("-m", "autograder", *words, cwd=ROOT)
    assert result.returncode == 2
    assert "was graded under a term with salt 0a0b0c0d, and this checkout" in result.stderr
    assert read_semester().label in result.stderr
    assert "To restore the earlier term, " in result.stderr
    assert "copy the backup of that term's .semester here; or choose" in result.stderr
    assert "cp .semester-0a0b0c0d" not in result.stderr  # this checkout doesn't have it
    assert len(result.stderr.splitlines()) == 1
    assert state_of(folder) == before


def test_batches_of_two_salts_are_not_compared(earlier):
    class_folder, folder = earlier
    result = python("-m", "autograder", "compare", folder, class_folder / "batch", cwd=ROOT)
    assert result.returncode == 2
    assert "under a term with salt 0a0b0c0d" in result.stderr
    assert read_semester().fingerprint in result.stderr
    assert "To restore the term with salt 0a0b0c0d in this checkout, " in result.stderr
    assert "copy the backup of that term's .semester here.\n" in result.stderr
    assert len(result.stderr.splitlines()) == 1
