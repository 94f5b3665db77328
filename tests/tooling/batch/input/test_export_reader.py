"""Finding submissions: Gradescope's exports, plain folders, and all that can be wrong with them."""

import os
import zipfile
from pathlib import Path
from textwrap import dedent

import msgspec
import pytest

from autograder.batch.batch_records import Student
from autograder.batch.input.export_reader import Export, read_export
from common.assignment import load_assignment
from common.errors import CourseError, GraderFault

A1 = load_assignment("a1")
METADATA = """
    ---
    submission_11:
      :submitters:
      - :name: Ada Lovelace
        :sid: 1815
        :email: ada@example.edu
      - :name: "Grace, Hopper"
        :sid: '1906'
        :email: grace@example.edu
      :created_at: 2026-01-05 10:00:00.000000000 Z
      :score: 3.0
      :results: !ruby/hash:ActiveSupport::HashWithIndifferentAccess
        tests: []
    submission_12:
      :submitters:
      - :name: Alan Turing
        :sid:
        :email: alan@example.edu
    """


def export_folder(folder: Path, metadata: str | None = METADATA) -> Path:
    """An export of two submissions."""
    root = folder / "assignment_7_export"
    for number in (11, 12):
        (root / f"submission_{number}").mkdir(parents=True)
        (root / f"submission_{number}" / "convolution.py").write_text(f"number = {number}\n")
    if metadata is not None:
        (root / "submission_metadata.yml").write_text(dedent(metadata))
    return root


def zipped(folder: Path, file: Path) -> Path:
    """A folder's content as a zip."""
    with zipfile.ZipFile(file, "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder.parent))
    return file


def files(export: Export) -> dict[str, dict[str, bytes]]:
    """The files of each submission, by its id."""
    return {one.id: export.read_submission(one, A1).files for one in export.submissions}


@pytest.mark.parametrize("shape", ("folder", "folder around it", "zip"))
def test_an_export_gives_submissions_with_their_students(shape, tmp_path):
    root = export_folder(tmp_path / "download")
    places = {
        "folder": lambda: root,
        "folder around it": lambda: root.parent,
        "zip": lambda: zipped(root, tmp_path / "export.zip"),
    }
    export = read_export(places[shape]())
    assert files(export) == {
        "11": {"convolution.py": b"number = 11\n"},
        "12": {"convolution.py": b"number = 12\n"},
    }
    assert export.submissions[0].students == (
        Student("Ada Lovelace", "1815", "ada@example.edu"),
        Student("Grace, Hopper", "1906", "grace@example.edu"),
    )
    assert export.submissions[0].created_at.startswith("2026-01-05T10:00:00")
    assert export.submissions[1].students == (Student("Alan Turing", "", "alan@example.edu"),)
    assert export.notes == []


@pytest.mark.parametrize(
    ("metadata", "reported"),
    (
        (None, "There is no submission_metadata.yml"),
        ("{}", "names no students for 2"),
        ("submission_11: [unclosed", "is damaged (line"),
        ("- a list", "contains no submissions"),
        ("\0", "is damaged"),
        ("submission_11: 5\nsubmission_12:\n  :submitters: 7\n", ""),
    ),
)
def test_bad_metadata_costs_the_names_and_nothing_else(metadata, reported, tmp_path):
    export = read_export(export_folder(tmp_path, metadata))
    assert [one.id for one in export.submissions] == ["11", "12"]
    assert all(one.students == () for one in export.submissions)
    assert any(reported in note for note in export.notes) or not reported


def test_what_the_metadata_names_and_nobody_finds_is_listed_without_a_grade(tmp_path):
    root = export_folder(tmp_path)
    (root / "submission_11" / "convolution.py").unlink()
    (root / "submission_11").rmdir()
    missing = {one.id: one for one in read_export(root).submissions}["11"]
    assert (
        missing.why
        == "submission_metadata.yml names submission_11, but the export doesn't contain it."
    )
    assert [student.name for student in missing.students] == ["Ada Lovelace", "Grace, Hopper"]


def test_a_plain_folder_takes_folders_and_zips_by_their_names(tmp_path):
    root = tmp_path / "handed in"
    (root / "ada").mkdir(parents=True)
    (root / "ada" / "convolution.py").write_text("a = 1\n")
    zipped(root / "ada", root / "grace.zip")
    (root / "broken.zip").write_bytes(b"PK\3\4 and no more")
    (root / "notes.txt").write_text("not a submission")
    (root / ".DS_Store").write_text("")
    os.symlink("/etc", root / "linked")
    export = read_export(root)
    taken = files(export)
    assert taken == {"ada": {"convolution.py": b"a = 1\n"}, "broken": {}, "grace": taken["ada"]}
    assert [one.students[0].name for one in export.submissions] == ["ada", "broken", "grace"]
    assert export.notes == [
        "linked is a link, which is not followed: skipped.",
        "notes.txt is neither a folder nor a zip: skipped.",
    ]
    broken = next(one for one in export.submissions if one.id == "broken")
    assert export.read_submission(broken, A1).notes == ["broken.zip is not a readable zip file."]


def test_a_zip_of_zips_is_a_plain_folder_too(tmp_path):
    (tmp_path / "all" / "ada").mkdir(parents=True)
    (tmp_path / "all" / "ada" / "convolution.py").write_text("a = 1\n")
    inner = zipped(tmp_path / "all" / "ada", tmp_path / "ada.zip")
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        archive.write(inner, "ada.zip")
        archive.writestr("bad.zip", b"no zip")
        archive.writestr("../evil/convolution.py", b"")
    export = read_export(tmp_path / "class.zip")
    assert files(export) == {"ada": {"convolution.py": b"a = 1\n"}, "bad": {}}


@pytest.mark.parametrize("packed", (False, True))
def test_a_folder_with_one_zip_is_that_zip_but_not_on_gradescope(packed, tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "convolution.py").write_text("a = 1\n")
    inner = zipped(tmp_path / "work", tmp_path / "inner.zip").read_bytes()
    root = tmp_path / "class"
    for name in ("ada", "submission_11", "two"):
        (root / name).mkdir(parents=True)
        (root / name / "a1-submission.zip").write_bytes(inner)
        (root / name / ".DS_Store").write_bytes(b"")
    (root / "two" / "notes.txt").write_text("")
    export = read_export(zipped(root, tmp_path / "class.zip") if packed else root)
    assert files(export) == {"11": {}, "ada": {"convolution.py": b"a = 1\n"}, "two": {}}


@pytest.mark.parametrize("link", (os.symlink, os.link))
def test_a_zip_that_lies_elsewhere_is_not_taken_out_of_a_folder(link, tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "convolution.py").write_text("a = 1\n")
    zipped(tmp_path / "work", tmp_path / "another.zip")
    (tmp_path / "class" / "eve").mkdir(parents=True)
    link(tmp_path / "another.zip", tmp_path / "class" / "eve" / "mine.zip")
    assert files(read_export(tmp_path / "class")) == {"eve": {}}


def test_dots_in_the_names_of_folders_are_part_of_a_student_s_name(tmp_path):
    for name in ("maria.garcia", "maria.lopez", "J. Smith"):
        (tmp_path / name).mkdir()
    (tmp_path / "ada.b.zip").write_bytes(b"")
    submissions = read_export(tmp_path).submissions
    names = [one.students[0].name for one in submissions]
    assert names == ["J. Smith", "ada.b", "maria.garcia", "maria.lopez"]


def test_metadata_that_somebody_has_handed_in_says_nothing_of_others(tmp_path):
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        archive.writestr("ada/convolution.py", b"a = 1")
        archive.writestr("eve/submission_metadata.yml", dedent(METADATA))
        archive.writestr("eve/submission_11/convolution.py", b"e = 1")
    export = read_export(tmp_path / "class.zip")
    assert [one.students for one in export.submissions] == [
        (Student(name="ada"),),
        (Student(name="eve"),),
    ]


def test_what_a_mac_leaves_beside_an_export_is_not_looked_at(tmp_path):
    root = export_folder(tmp_path)
    (tmp_path / "__MACOSX" / root.name).mkdir(parents=True)
    (tmp_path / ".Trashes").mkdir()
    assert [one.id for one in read_export(tmp_path).submissions] == ["11", "12"]


def test_names_become_ids_that_are_fit_for_files_and_differ(tmp_path):
    for name in ("Ömer Ç", "ada", "ADA", "..", "x" * 300, "a;rm -rf\n"):
        place = tmp_path / (name if name != ".." else "...dots")
        if len(place.name) < 250:
            place.mkdir()
    (tmp_path / "ada.zip").write_bytes(b"")
    ids = [one.id for one in read_export(tmp_path).submissions]
    assert len({one.lower() for one in ids}) == len(ids) == 5
    assert all(one.replace("_", "").replace("-", "").isalnum() and one.isascii() for one in ids)
    assert {"ADA", "ada-2", "ada-3"} <= {*ids}


def test_a_name_in_another_system_s_letters_stops_nothing(tmp_path):
    for name in (b"J\xf6rg", b"J\xe4rg"):
        place = tmp_path / "class" / os.fsdecode(name)
        place.mkdir(parents=True)
        (place / "convolution.py").write_bytes(name)
    export = read_export(tmp_path / "class")
    msgspec.json.encode(export.submissions)
    taken = [export.read_submission(one, A1).files["convolution.py"] for one in export.submissions]
    assert taken == [b"J\xe4rg", b"J\xf6rg"]
    assert len({one.id for one in export.submissions}) == 2


def test_a_student_in_two_submissions_is_reported(tmp_path):
    root = export_folder(tmp_path, METADATA.replace("alan@example.edu", "ada@example.edu"))
    assert read_export(root).notes == [
        "ada@example.edu is in 2 submissions: 11, 12. In canvas.csv it is 11 that counts."
    ]


def test_a_damaged_member_of_an_export_is_no_student_s_fault(tmp_path):
    file = zipped(export_folder(tmp_path), tmp_path / "export.zip")
    content = file.read_bytes()
    file.write_bytes(content.replace(b"number = 11", b"number = 99"))  # the checksum is wrong now
    export = read_export(file)
    first, second = export.submissions
    with pytest.raises(GraderFault, match=r"submission_11/.* can't be read: the export"):
        export.read_submission(first, A1)
    assert export.read_submission(second, A1).files


def test_a_damaged_zip_within_an_export_is_a_fault_only_where_the_export_is_damaged(tmp_path):
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        archive.writestr("ada.zip", b"no zip, and whole")
        archive.writestr("alan.zip", b"harmed on the way")
    content = (tmp_path / "class.zip").read_bytes()
    (tmp_path / "class.zip").write_bytes(content.replace(b"harmed", b"HARMED"))
    export = read_export(tmp_path / "class.zip")
    ada, alan = export.submissions
    assert export.read_submission(ada, A1).notes == ["ada.zip is not a readable zip file."]
    with pytest.raises(GraderFault, match="can't be read: the export is damaged"):
        export.read_submission(alan, A1)


def test_a_damaged_member_that_is_the_metadata_costs_the_names_and_nothing_else(tmp_path):
    file = zipped(export_folder(tmp_path), tmp_path / "export.zip")
    file.write_bytes(file.read_bytes().replace(b"Ada Lovelace", b"Eve Lovelace"))
    export = read_export(file)
    assert [one.id for one in export.submissions] == ["11", "12"]
    assert "submission_metadata.yml can't be read" in export.notes[0]


def test_a_damaged_zip_is_unreadable_however_its_name_is_spelled(tmp_path):
    (tmp_path / "ADA.ZIP").write_bytes(b"PK\3\4 and no more")
    export = read_export(tmp_path)
    taken = export.read_submission(export.submissions[0], A1)
    assert taken.notes == ["ADA.ZIP is not a readable zip file."]


@pytest.mark.parametrize("kind", ("nothing", "empty", "no zip"))
def test_where_there_are_no_submissions_one_sentence_says_so(kind, tmp_path):
    place = tmp_path / "export"
    if kind == "empty":
        place.mkdir()
    if kind == "no zip":
        place.write_text("not a zip")
    with pytest.raises(CourseError) as caught:
        read_export(place)
    assert str(place) in str(caught.value)
