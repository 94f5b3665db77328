"""Tests of renamed files: the only one that can be meant is taken, and the result says so first."""

import os
import stat
import zipfile

import msgspec
import pytest

from autograder.grading.grade import new_result
from autograder.grading.judge import Settings
from autograder.grading.results import to_gradescope
from autograder.grading.submission import read_submission
from autograder.grading.terminal import print_result
from autograder.screen import Screen
from autograder.semester import PRACTICE
from common.assignment import LAB_FILE, Artifact
from common.errors import CourseError
from tests.tooling.grading_fixtures import assignment, grade, write_tests

CODE, OTHER, WEIGHTS = "attention.py", "attention_2.py", "weights.safetensors"
CONTENT = b"x = 1\n"
WANTED = msgspec.structs.replace(
    assignment(),
    files=(CODE,),
    given=("lstm.py", "attention_9.py"),
    artifacts=(*assignment().artifacts, Artifact(WEIGHTS, 2)),
)
WITH_OTHER = msgspec.structs.replace(WANTED, files=(CODE, OTHER))
RENAMED = {
    CODE: (
        *("attention (1).py", "attention(2).py", "attention-2.py", "attention_2.py"),
        *("attention 3.py", "Attention.py", "ATTENTION.PY", "attention copy.py"),
        *("attention copy 2.py", "attention - Copy.py", "attention - Copy (3).py"),
        *("attention (copy).py", "attention-copy.py", "attention_copy.py", "Copy of attention.py"),
        *("Copy of attention (1).py", "Copy (2) of attention.py"),
    ),
    LAB_FILE: (
        *("lab (1).ipynb", "Lab.ipynb", "lab-2.ipynb", "lab_1.ipynb", "lab copy.ipynb"),
        *("Copy of lab.ipynb", "lab - Copy.ipynb", "lab-Copy1.ipynb", "lab.IPYNB"),
    ),
    WEIGHTS: ("weights (1).safetensors", "Weights.safetensors", "weights-2.SAFETENSORS"),
}
EACH = [(name, file) for file, names in RENAMED.items() for name in names]
NOT_THAT = (
    *(
        "my attention.py",
        "attention_final.py",
        "attention2.py",
        "attentions.py",
        "attention.py.txt",
    ),
    *("attention (1).txt", "attention_20261119.py", "attention (1) (2).py", "attention ().py"),
    *("attention (1)py", "attention\n(1).py", "attention (\u0661).py", "weight\u017f.safetensors"),
    *(".attention (1).py", "._attention (1).py", "lab (1).py", "attention (1).py\n"),
)


def folder_of(path, names):
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(CONTENT)
    return path


def zip_of(path, names):
    with zipfile.ZipFile(path / "work.zip", "w") as archive:
        for name in names:
            archive.writestr(name, CONTENT)
    return path / "work.zip"


FOLDER_AND_ZIP = pytest.mark.parametrize("make", [folder_of, zip_of], ids=["folder", "zip"])


def taken_note(name, file):
    return f"{name} was taken as {file}. Rename it before you submit again."


@pytest.mark.parametrize(("name", "file"), EACH)
@FOLDER_AND_ZIP
def test_the_only_file_that_can_be_meant_is_taken_and_the_first_note_says_so(
    make, name, file, tmp_path
):
    names = [name] if file == CODE else [CODE, name]
    taken = read_submission(make(tmp_path, [*names, "notes.txt"]), WANTED)
    assert taken.files == {CODE: CONTENT, file: CONTENT}
    assert taken.notes == taken.renamed == [taken_note(name, file)]
    assert taken.reasons == {}


@pytest.mark.parametrize(("name", "file"), EACH)
def test_a_single_renamed_file_is_taken_like_a_folder_with_nothing_else(name, file, tmp_path):
    alone = read_submission(folder_of(tmp_path, [name]) / name, WANTED)
    assert alone == read_submission(tmp_path, WANTED)
    assert alone.files == {file: CONTENT}
    assert alone.notes[0] == taken_note(name, file)


@pytest.mark.parametrize("name", NOT_THAT)
def test_a_name_that_is_not_clearly_that_of_a_copy_is_not_taken(name, tmp_path):
    for path in (folder_of(tmp_path / "work", [name]), zip_of(tmp_path, [name])):
        taken = read_submission(path, WANTED)
        assert (taken.files, taken.renamed) == ({}, [])
    with pytest.raises(CourseError, match="is not a file of a1"):
        read_submission(tmp_path / "work" / name, WANTED)


@FOLDER_AND_ZIP
@pytest.mark.parametrize(
    ("first", "second", "file"),
    [
        ("attention (1).py", "attention (2).py", CODE),
        ("Attention.py", "attention-2.py", CODE),
        ("attention (1).py", "work/attention (1).py", CODE),
        ("Lab.ipynb", "lab (1).ipynb", LAB_FILE),
        ("weights (1).safetensors", "weights (2).safetensors", WEIGHTS),
    ],
)
def test_of_two_that_can_be_meant_none_is_taken_and_the_sentence_names_both(
    make, first, second, file, tmp_path
):
    names = [second, first] if file == CODE else [CODE, second, first]
    taken = read_submission(make(tmp_path, names), WANTED)
    reason = f"{first} and {second} could both be {file}. Submit only one, named {file}."
    assert file not in taken.files
    assert (taken.notes, taken.reasons, taken.renamed) == ([reason], {file: reason}, [])


@FOLDER_AND_ZIP
@pytest.mark.parametrize("place", ["", "work/deeper/"])
def test_a_file_of_the_right_name_wins_wherever_it_is(make, place, tmp_path):
    names = ["attention (1).py", "Attention.py", "lab (1).ipynb", f"{place}{LAB_FILE}"]
    path = make(tmp_path, [*names, f"{place}{CODE}"])
    taken = read_submission(path, WANTED)
    assert set(taken.files) == {CODE, LAB_FILE}
    assert (taken.notes, taken.renamed) == ([], [])


def test_a_file_of_the_right_name_that_is_refused_is_not_replaced_by_a_renamed_one(tmp_path):
    folder_of(tmp_path, ["attention (1).py"])
    (tmp_path / CODE).symlink_to(tmp_path / "attention (1).py")
    taken = read_submission(tmp_path, WANTED)
    assert (taken.files, taken.notes) == ({}, [f"{CODE} is not a regular file and was skipped."])


@FOLDER_AND_ZIP
def test_what_is_another_file_of_the_assignment_is_never_taken_for_it(make, tmp_path):
    path = make(tmp_path, [OTHER])
    assert read_submission(path, WANTED).files == {CODE: CONTENT}
    taken = read_submission(path, WITH_OTHER)
    assert (set(taken.files), taken.notes) == ({OTHER}, [f"{CODE} is missing."])


@pytest.mark.parametrize("name", ["Attention_2.py", "attention_2 (1).py"])
def test_a_copy_of_another_file_is_taken_for_that_one_alone(name, tmp_path):
    taken = read_submission(folder_of(tmp_path, [name]), WITH_OTHER)
    assert set(taken.files) == {OTHER}
    assert taken.notes == [taken_note(name, OTHER), f"{CODE} is missing."]
    folder_of(tmp_path, [OTHER])
    taken = read_submission(tmp_path, WITH_OTHER)
    assert (set(taken.files), taken.renamed) == ({OTHER}, [])


@pytest.mark.parametrize("name", ["attention_9.py", "Attention_9.py", "attention_9 (1).py"])
def test_a_module_of_the_handout_is_no_copy(name, tmp_path):
    folder_of(tmp_path, [name])
    assert read_submission(tmp_path, WANTED).files == {}
    with pytest.raises(CourseError, match="is not a file of a1"):
        read_submission(tmp_path / name, WANTED)


@FOLDER_AND_ZIP
def test_several_renamed_files_are_noted_before_all_that_is_missing_or_skipped(make, tmp_path):
    names = ["attention (1).py", "attention_2 (1).py", "weights (1).safetensors", "a.ipynb"]
    missing = msgspec.structs.replace(WITH_OTHER, files=("absent.py", CODE, OTHER))
    taken = read_submission(make(tmp_path, names), missing)
    assert (
        taken.renamed
        == taken.notes[:3]
        == [
            taken_note("attention (1).py", CODE),
            taken_note("attention_2 (1).py", OTHER),
            taken_note("weights (1).safetensors", WEIGHTS),
        ]
    )
    assert set(taken.notes[3:]) == {
        "a.ipynb was skipped: the lab must be named lab.ipynb.",
        "absent.py is missing. Found: a.ipynb.",
    }


@FOLDER_AND_ZIP
def test_a_renamed_file_may_lie_in_a_folder_but_in_none_that_systems_keep(make, tmp_path):
    ignored = [".history/attention_2.py", "__MACOSX/work/attention (2).py", ".x/y/Attention.py"]
    path = make(tmp_path, [*ignored, "my work (2)/attention (1).py"])
    taken = read_submission(path, WANTED)
    assert taken.files == {CODE: CONTENT}
    assert taken.notes == [taken_note("attention (1).py", CODE)]


def test_a_folder_or_a_link_or_a_device_of_such_a_name_is_not_taken(tmp_path):
    folder_of(tmp_path, ["Attention.py/notes.txt", "secret"])
    (tmp_path / "attention (1).py").symlink_to(tmp_path / "secret")
    os.link(tmp_path / "secret", tmp_path / "attention (2).py")
    os.mkfifo(tmp_path / "attention (3).py")
    link = zipfile.ZipInfo("attention (1).py")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("Attention.py/", b"")
        archive.writestr(link, "/etc/passwd")
    for path in (tmp_path, tmp_path / "a.zip"):
        assert read_submission(path, WANTED).files == {}
    folder_of(tmp_path, ["attention - Copy.py"])  # these others leave no doubt about it
    assert read_submission(tmp_path, WANTED).renamed == [taken_note("attention - Copy.py", CODE)]


@FOLDER_AND_ZIP
def test_a_renamed_file_that_is_too_large_is_named_and_not_noted_as_taken(make, tmp_path):
    small = msgspec.structs.replace(WANTED, artifacts=(Artifact(WEIGHTS, 1e-6),))
    taken = read_submission(make(tmp_path, [CODE, "Weights.safetensors"]), small)
    (note,) = taken.notes
    assert note.startswith("Weights.safetensors is larger than 0 KB and was skipped.")
    assert (set(taken.files), taken.renamed) == ({CODE}, [])


def test_a_damaged_renamed_file_is_named_and_not_noted_as_taken(tmp_path):
    path = zip_of(tmp_path, ["attention (1).py"])
    path.write_bytes(path.read_bytes().replace(CONTENT, b"x = 2\n"))
    taken = read_submission(path, WANTED)
    assert (taken.files, taken.renamed) == ({}, [])
    assert taken.notes[0].startswith("attention (1).py can't be read")


TEST = """
@weight(2)
@number("1.2")
def test_double_is_right(student):
    \"\"\"double doubles.\"\"\"
    assert_equal(student.double(2), 4, what="the value")
"""


@pytest.fixture
def renamed(tmp_path):
    """A submission whose one file was renamed, and in which something else is wrong."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "Convolution (1).py").write_text("def double(x):\n    return 2 * x\n")
    (tmp_path / "work" / "other.ipynb").write_bytes(b"{}")
    return read_submission(tmp_path / "work", assignment())


def test_the_result_says_it_first_thing_and_the_work_earns_its_points(renamed, tmp_path):
    result = grade(renamed, tests=write_tests(tmp_path, TEST), direct=True)
    assert result.score == result.maximum == 2
    note = taken_note("Convolution (1).py", "convolution.py")
    assert to_gradescope(result)["output"].startswith(f"{note}\n\n")
    screen = Screen(record=True, width=200)
    print_result(result, screen)
    assert screen.export_text().startswith(note)


def test_it_is_said_before_what_is_said_of_the_term(renamed):
    first, *rest = new_result(assignment(), renamed, Settings(PRACTICE)).notes
    assert first == taken_note("Convolution (1).py", "convolution.py")
    assert len(rest) == 2 and rest[-1].startswith("Practice term")
