"""Tests of reading submissions: the named files are read, and nothing else."""

import os
import stat
import struct
import subprocess
import zipfile

import pytest

from autograder.grading import submission as intake
from autograder.grading.grade import grade
from autograder.grading.judge import Settings
from autograder.grading.submission import MAX_FILE_BYTES, read_submission
from common.assignment import LAB_FILE
from common.errors import CourseError
from tests.tooling.grading_fixtures import FILE, SEMESTER, assignment

CODE = b"x = 1\n"
A1 = assignment()


def make_zip(path, members, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def taken_files(path):
    return read_submission(path, A1).files


def test_a_folder_a_file_and_a_zip_give_the_same(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / FILE).write_bytes(CODE)
    (folder / "conftest.py").write_text("raise SystemExit")
    (folder / "numpy.py").write_text("raise SystemExit")
    zipped = make_zip(tmp_path / "work.zip", [(FILE, CODE), ("sitecustomize.py", b"")])
    unnamed = make_zip(tmp_path / "upload", [(FILE, CODE)])
    for path in (folder, folder / FILE, zipped, unnamed):
        submission = read_submission(path, A1)
        assert (submission.files, submission.notes) == ({FILE: CODE}, [])


def test_the_copy_nearest_to_the_top_counts(tmp_path):
    members = [(f"old/deeper/{FILE}", b"old"), (f"work/{FILE}", CODE), (f"__MACOSX/{FILE}", b"mac")]
    assert taken_files(make_zip(tmp_path / "a.zip", members)) == {FILE: CODE}
    for name, content in members[:2]:
        (tmp_path / "folder" / name).parent.mkdir(parents=True)
        (tmp_path / "folder" / name).write_bytes(content)
    assert taken_files(tmp_path / "folder") == {FILE: CODE}


def test_two_copies_at_the_same_depth_are_said_and_neither_is_taken(tmp_path):
    submission = read_submission(
        make_zip(tmp_path / "a.zip", [(f"a/{FILE}", b""), (f"b/{FILE}", b"")]), A1
    )
    assert submission.files == {}
    assert f"a/{FILE} and b/{FILE}" in submission.notes[0] and len(submission.notes) == 1


def test_links_lead_nowhere(tmp_path):
    secret = tmp_path / "secret.py"
    secret.write_bytes(b"secret")
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    (folder / FILE).symlink_to(secret)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / FILE).write_bytes(b"secret")
    (folder / "inner" / "linked").symlink_to(tmp_path / "elsewhere")
    assert taken_files(folder) == {}
    link = zipfile.ZipInfo(FILE)
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    assert taken_files(make_zip(tmp_path / "a.zip", [(link, str(secret))])) == {}


def test_another_name_of_a_file_that_lies_elsewhere_is_not_taken(tmp_path):
    """A hard link is as good as the file itself, which may be one that must stay secret."""
    (tmp_path / "secret.py").write_bytes(b"secret")
    (tmp_path / "folder").mkdir()
    os.link(tmp_path / "secret.py", tmp_path / "folder" / FILE)
    submission = read_submission(tmp_path / "folder", A1)
    assert submission.files == {}
    assert submission.notes == [f"{FILE} is not a regular file and was skipped."]


def test_folders_within_folders_do_not_exhaust_the_stack(tmp_path):
    """Beyond some depth nothing is looked at."""
    (tmp_path / FILE).write_bytes(CODE)
    place = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=place)
        below = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)
    try:
        assert taken_files(tmp_path) == {FILE: CODE}
    finally:
        subprocess.run(["rm", "-rf", tmp_path / "d"], check=True)  # shutil's would recurse


def test_a_name_that_is_empty_or_endless_or_holds_controls_harms_nobody(tmp_path):
    folder = "\x1b[31m\n" + 300 * "x"
    members = [(f"{folder}1/{FILE}", b""), (f"{folder}2/{FILE}", b""), ("EMPTY", b"")]
    path = make_zip(tmp_path / "a.zip", members)
    data = path.read_bytes()
    entry = data.rindex(b"EMPTY") - 46
    no_name_but_a_comment = struct.pack("<HHH", 0, 0, 5)
    data = data[: entry + 28] + no_name_but_a_comment + data[entry + 34 :]
    path.write_bytes(data)
    (note,) = read_submission(path, A1).notes
    assert note.isprintable() and len(note) < 400 and "found twice" in note


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_python_unpacks_all_at_once_are_refused(method, tmp_path):
    submission = read_submission(make_zip(tmp_path / "a.zip", [(FILE, CODE)], method), A1)
    assert submission.files == {} and "compressed with an unsupported method" in submission.notes[0]


def test_what_is_no_regular_file_is_passed_over(tmp_path):
    os.mkfifo(tmp_path / FILE)
    (tmp_path / "inner" / FILE).mkdir(parents=True)
    submission = read_submission(tmp_path, A1)
    assert submission.files == {}
    assert submission.notes == [f"{FILE} is not a regular file and was skipped."]


@pytest.mark.parametrize("name", [f"/{FILE}", f"../{FILE}", f"a/../../{FILE}", f"a/../{FILE}"])
def test_names_that_lead_out_of_a_zip_are_passed_over(name, tmp_path):
    assert taken_files(make_zip(tmp_path / "a.zip", [(name, CODE)])) == {}


def test_a_zip_bomb_and_a_huge_file_are_not_taken(tmp_path):
    bomb = make_zip(tmp_path / "bomb.zip", [(FILE, bytes(30 * MAX_FILE_BYTES))])
    assert bomb.stat().st_size < MAX_FILE_BYTES
    (tmp_path / FILE).write_bytes(bytes(MAX_FILE_BYTES + 1))
    for path in (bomb, tmp_path / FILE):
        submission = read_submission(path, A1)
        assert submission.files == {} and "is larger than 1024 KB" in submission.notes[0]
    (tmp_path / FILE).write_bytes(bytes(MAX_FILE_BYTES))
    assert taken_files(tmp_path / FILE)


def test_of_too_many_files_the_first_are_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(intake, "MAX_ENTRIES", 100)
    members = [(f"{number}", b"") for number in range(100)]
    submission = read_submission(make_zip(tmp_path / "a.zip", [*members, (FILE, CODE)]), A1)
    assert submission.files == {} and "Only the first" in submission.notes[0]


def spoil(path, start, content):
    data = bytearray(path.read_bytes())
    data[start : start + len(content)] = content
    path.write_bytes(data)
    return path


def encrypted(path):
    """A zip whose one member says that it needs a password."""
    make_zip(path, [(FILE, CODE)], zipfile.ZIP_STORED)
    data = path.read_bytes()
    spoil(path, 6, b"\x01")
    return spoil(path, data.index(b"PK\x01\x02") + 8, b"\x01")


def exotic(path):
    """A zip that is packed by a method that nobody has heard of."""
    make_zip(path, [(FILE, CODE)])
    return spoil(path, path.read_bytes().index(b"PK\x01\x02") + 10, b"\x63\x00")


def damaged(compression):
    def make(path):
        make_zip(path, [(FILE, os.urandom(500))], compression)
        return spoil(path, 30 + len(FILE) + 9, b"\xff" * 200)

    return make


@pytest.mark.parametrize(
    "make",
    [encrypted, exotic, damaged(zipfile.ZIP_STORED), damaged(zipfile.ZIP_DEFLATED)],
    ids=["encrypted", "exotic", "stored", "deflated"],
)
def test_a_zip_that_cannot_be_read_is_an_empty_submission_with_a_sentence(make, tmp_path):
    submission = read_submission(make(tmp_path / "a.zip"), A1)
    assert submission.files == {}
    assert len(submission.notes) == 1
    assert "can't be read" in submission.notes[0] or "not a readable" in submission.notes[0]


def huge(path):
    return make_zip(path, [(FILE, bytes(MAX_FILE_BYTES + 1))])


def link(path):
    member = zipfile.ZipInfo(FILE)
    member.external_attr = (stat.S_IFLNK | 0o777) << 16
    return make_zip(path, [(member, b"/etc/passwd")])


def holding(*names):
    return lambda path: make_zip(path, [(name, CODE) for name in names])


REASONS = {
    "no zip": (
        lambda path: path.write_bytes(b"no zip") and path,
        "a.zip is not a readable zip file.",
    ),
    "huge": (huge, f"{FILE} is larger than 1024 KB and was skipped."),
    "link": (link, f"{FILE} is not a regular file and was skipped."),
    "other names": (
        holding("conv.py", "notes.txt", ".DS_Store"),
        f"{FILE} is missing. Found: conv.py, notes.txt.",
    ),
    "many names": (holding(*"abcdefg"), f"{FILE} is missing. Found: a, b, c, d, e and more."),
    "a zip inside": (
        holding("work.ZIP", "notes.txt"),
        f"{FILE} is missing. There is a zip inside: submit its files, not the zip.",
    ),
    "nothing": (holding(), f"{FILE} is missing."),
}


@pytest.mark.parametrize(("make", "reason"), REASONS.values(), ids=REASONS)
def test_why_a_file_was_not_taken_is_noted_and_leads_what_tests_say(make, reason, tmp_path):
    submission = read_submission(make(tmp_path / "a.zip"), A1)
    assert submission.notes == [reason]
    name = "test_conv_output_size_counts_the_kernel_positions"
    settings = Settings(SEMESTER, direct=True, only=(name,))
    (outcome,) = grade(A1, submission, settings).all_outcomes
    reported = outcome.explanation.text(hidden=True).splitlines()
    assert reported == [reason, "Submit it under exactly this name."][: 1 + ("missing" in reason)]


def test_a_path_that_is_not_there_or_another_file_is_an_error_in_a_sentence(tmp_path):
    (tmp_path / "other.py").write_bytes(CODE)
    for path in (tmp_path / "nothing", tmp_path / "other.py"):
        with pytest.raises(CourseError) as raised:
            read_submission(path, A1)
        assert path.name in str(raised.value) and "\n" not in str(raised.value)


def test_the_lab_alone_is_taken_like_a_folder_with_nothing_else(tmp_path):
    (tmp_path / LAB_FILE).write_bytes(bytes(MAX_FILE_BYTES + 1))  # a notebook may be larger
    alone, folder = read_submission(tmp_path / LAB_FILE, A1), read_submission(tmp_path, A1)
    assert alone == folder
    assert [*alone.files] == [LAB_FILE]
    assert alone.notes == [f"{FILE} is missing."]
