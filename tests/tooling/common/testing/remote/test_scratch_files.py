"""Tests of files that student code saves and loads: in a folder for one test only."""

from pathlib import Path

import pytest

from common.errors import Failure
from common.student_text import plain
from common.testing.remote.scratch_files import scratch_bytes, scratch_path, write_scratch
from tests.tooling.grading_fixtures import FACES


def test_what_the_code_saves_can_be_read_and_what_it_loads_written(student):
    path = scratch_path(student, "saved.bin")
    assert scratch_path(student, "saved.bin") == path != scratch_path(student, "other.bin")
    student.save(path, b"abc")
    assert scratch_bytes(student, path, 3) == b"abc"
    with pytest.raises(Failure, match="larger than the limit of 2 bytes"):
        scratch_bytes(student, path, 2)
    write_scratch(student, path, bytes(range(256)))
    assert student.load(path) == bytes(range(256))
    student.remove(path)
    with pytest.raises(Failure, match="The file was not written"):
        scratch_bytes(student, path, 3)


def test_code_may_make_temporary_folders_of_its_own(student):
    assert student.make_folder() is True


@pytest.mark.parametrize("kind", FACES)
def test_the_scratch_folder_is_private_to_one_test_and_gone_after_it(faces, kind):
    paths = []
    for _ in range(2):
        with faces[kind].open("1.1") as code:
            paths.append(scratch_path(code, "saved.bin"))
            code.save(paths[-1], b"abc")
            assert scratch_bytes(code, paths[-1], 3) == b"abc"
            if paths[0] != paths[-1]:
                with pytest.raises(Failure, match="was not written"):
                    scratch_bytes(code, paths[0], 3)
        assert not Path(plain(paths[-1])).parent.exists()
    assert paths[0] != paths[1]
