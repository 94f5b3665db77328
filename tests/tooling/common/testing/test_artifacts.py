"""Tests of artifacts: declared, size-limited, zipped by students, and read by tests."""

import os
import tracemalloc
import zipfile

import msgspec
import pytest

from autograder.grading.submission import MAX_FILE_BYTES, Submission, read_submission
from common.assignment import Artifact
from common.errors import CourseError
from common.submission_zip import find_artifacts, missing_artifacts_note, write_submission
from tests.tooling.common.test_assignment import GOOD, read
from tests.tooling.grading_fixtures import FILE, assignment, grade, outcome, write_tests

WEIGHTS, SETTINGS = "weights.safetensors", "config.json"
CODE = b"def one():\n    return 1\n"
WITH_ARTIFACTS = msgspec.structs.replace(
    assignment(),
    artifacts=(Artifact(WEIGHTS, 2, "python -m train"), Artifact(SETTINGS, 0.5, "python -m train")),
)
DECLARED = """
[[artifacts]]
file = "weights.safetensors"
megabytes = 48
"""


def test_artifacts_are_declared_with_their_size(tmp_path):
    (entry,) = read(tmp_path, GOOD + DECLARED).artifacts
    assert (entry.file, entry.limit, entry.command) == (WEIGHTS, 48 * 1024 * 1024, "")


@pytest.mark.parametrize(
    ("find", "put", "named"),
    [
        ("weights.safetensors", "../weights", "artifacts"),
        ("weights.safetensors", "a/weights", "artifacts"),
        ("weights.safetensors", ".weights", "artifacts"),
        ("weights.safetensors", "weights.py", "artifacts"),
        ("= 48", "= 0", "artifacts.*megabytes"),
        ("megabytes = 48", "", "megabytes"),
        ("megabytes = 48", f"megabytes = 48\n{DECLARED}", "weights.safetensors more than once"),
    ],
)
def test_a_wrong_declaration_names_file_and_key(tmp_path, find, put, named):
    with pytest.raises(CourseError, match=rf"(?s)assignment\.toml.*{named}"):
        read(tmp_path, GOOD + DECLARED.replace(find, put))


@pytest.mark.parametrize("zipped", [False, True])
def test_artifacts_are_taken_like_code_each_with_its_own_limit(tmp_path, zipped):
    folder = tmp_path / "work"
    folder.mkdir()
    content = {FILE: CODE, WEIGHTS: os.urandom(2 * 1024**2), SETTINGS: b"{}", "other.bin": b"1"}
    for name, data in content.items():
        (folder / name).write_bytes(data)
    path = folder
    if zipped:
        path = tmp_path / "work.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in content.items():
                archive.writestr(name, data)
    taken = read_submission(path, WITH_ARTIFACTS)
    assert taken.notes == []
    assert taken.files == {name: content[name] for name in (FILE, WEIGHTS, SETTINGS)}
    # Code is not allowed to be as large as an artifact, nor one artifact as large as another.
    (folder / SETTINGS).write_bytes(bytes(512 * 1024 + 1))
    (folder / FILE).write_bytes(bytes(MAX_FILE_BYTES + 1))
    taken = read_submission(folder, WITH_ARTIFACTS)
    assert set(taken.files) == {WEIGHTS}
    assert f"{SETTINGS} is larger than 512 KB and was skipped." in taken.notes
    assert f"{FILE} is larger than 1024 KB and was skipped." in taken.notes


def test_of_a_huge_artifact_no_more_than_its_limit_is_read(tmp_path):
    (tmp_path / FILE).write_bytes(CODE)
    (tmp_path / WEIGHTS).touch()
    os.truncate(tmp_path / WEIGHTS, 300 * 1024**2)  # without using the disk
    tracemalloc.start()
    try:
        taken = read_submission(tmp_path, WITH_ARTIFACTS)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken.notes == [f"{WEIGHTS} is larger than 2 MB and was skipped."]
    assert set(taken.files) == {FILE}
    assert peak < 20 * 1024**2


def test_code_alone_is_laid_out(tmp_path):
    folder = Submission({FILE: CODE, WEIGHTS: b"weights"}).write_to(tmp_path / "a")
    assert [path.name for path in folder.iterdir()] == [FILE]


def test_a_submission_holds_the_artifacts_that_there_are(tmp_path):
    folder = tmp_path / "assignments" / WITH_ARTIFACTS.name
    folder.mkdir(parents=True)
    (folder / FILE).write_bytes(CODE)
    (folder / WEIGHTS).write_bytes(b"weights")
    with zipfile.ZipFile(write_submission(WITH_ARTIFACTS, tmp_path)) as archive:
        assert archive.namelist() == [FILE, WEIGHTS]
    assert find_artifacts(WITH_ARTIFACTS, folder) == ([WEIGHTS], [SETTINGS])
    said = missing_artifacts_note(WITH_ARTIFACTS, [SETTINGS])
    assert said.startswith(f"Not in the zip: {SETTINGS}. It is optional")
    assert said.endswith("Run `python -m train` to create it.")
    (folder / WEIGHTS).write_bytes(bytes(2 * 1024**2 + 1))
    with pytest.raises(CourseError, match="larger than the limit of 2 MB"):
        write_submission(WITH_ARTIFACTS, tmp_path)


READS = """
@weight(2)
@number("1.1")
def test_reads(artifact):
    \"\"\"The weights are there.\"\"\"
    assert_equal(artifact("weights.safetensors"), b"weights", what="weights")


@weight(2)
@number("1.1")
def test_code(student):
    \"\"\"The code doesn't see them.\"\"\"
    assert_equal(student.names(), ["convolution.py"], what="names")
"""
LISTS = b"""
from pathlib import Path


def names():
    return sorted(path.name for path in Path(__file__).parent.iterdir() if path.is_file())
"""


@pytest.mark.parametrize("direct", [False, True])
def test_a_graded_test_reads_an_artifact_and_the_code_does_not(tmp_path, direct):
    tests = write_tests(tmp_path, READS)
    files = {FILE: LISTS, WEIGHTS: b"weights"}
    result = grade(Submission(files), WITH_ARTIFACTS, direct=direct, tests=tests)
    assert [o.passed for o in result.all_outcomes] == [True, True], result.all_outcomes
    result = grade(Submission({FILE: LISTS}), WITH_ARTIFACTS, direct=direct, tests=tests)
    failed = outcome(result, "test_reads")
    assert not failed.passed
    assert failed.explanation.sentence == f"{WEIGHTS} is missing or larger than 2 MB."
    assert "Create it with `python -m train`" in failed.explanation.help
    assert "Traceback" not in failed.text()
