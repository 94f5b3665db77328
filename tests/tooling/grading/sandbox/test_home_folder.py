"""Tests of a child's home folder: empty, private, limited, and removed with the child."""

import os
from pathlib import Path

import pytest

from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.grading.sandbox.kernel import home_folder
from autograder.grading.sandbox.kernel.confine import change_uid
from autograder.grading.sandbox.kernel.tree_removal import remove_tree
from common.errors import ChildFailure
from common.student_text import plain
from tests.tooling.grading_fixtures import FILE, admitted, code_in, write_package
from tests.tooling.weakened_sandbox import (
    NO_LANDLOCK,
    NO_OWN_MOUNTS,
    needs_root,
    said,
    weakened,
)

pytestmark = needs_root
TOO_MUCH = {
    "many files": ((4, 10), "ENOSPC"),
    "files without a name": ((4, 10, False), "ENOSPC"),
    "one file": ((1, 64), "EFBIG"),
}


def test_a_home_is_new_for_each_test(sandbox):
    for _ in range(2):
        with IsolatedFace(sandbox).open("1.1") as student:
            assert student.what_is_at_home()[0] == []
            home = student.keep_file()
            assert student.what_is_at_home() == (["notes.txt"], home, home)
        sandbox.settle()
        assert not Path(plain(home)).exists()


def test_a_child_changes_its_own_files_alone(student, tmp_path):
    assert student.write("note") == student.set_mode("note", 0o640) == "done"
    assert student.set_mode(str(tmp_path), 0o777) in ("EPERM", "EACCES", "EROFS")


@pytest.mark.parametrize(("files", "error"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_files_are_bounded(student, files, error):
    assert student.many_files(*files) == error


def test_the_number_of_files_is_bounded(student):
    assert student.many_names(10_000) == student.many_files(1, 1) == "ENOSPC"


def test_without_mounts_of_its_own_a_home_is_watched(tmp_path, packages, monkeypatch):
    monkeypatch.setattr(home_folder, "HOME_FILES", 100)
    with weakened(tmp_path, NO_OWN_MOUNTS), admitted(packages) as (made, defenses):
        assert said(defenses)["disk"] == "not protected"
        for deed, *numbers in (("many_files", 4, 10), ("many_names", 200)):
            with (
                IsolatedFace(made).open("1.1") as student,
                pytest.raises(ChildFailure, match="wrote more than 32 MB of files"),
            ):
                getattr(student, deed)(*numbers)
                student.sleep(5)
            made.settle()
            assert list((made.folder / "homes").iterdir()) == []
        # Files without a name are not seen: why watching counts for nothing.
        for files in ((1, 1), (4, 10, False)):
            with IsolatedFace(made).open("1.1") as student:
                assert student.many_files(*files) == "done"
                student.sleep(1)


@pytest.mark.parametrize("name", ["d", "d" * 200])
def test_deep_folders_cost_the_next_submission_nothing(tmp_path, packages, name):
    """Without mounts of its own a home is removed file by file."""
    code = (packages["a1_convolution"] / FILE).read_text()
    deep = "import os\nfor _ in range(1200):\n"
    deep += f"    os.mkdir({name!r})\n    os.chdir({name!r})\nos.mkdir('closed', 0)\n"
    hostile = write_package(tmp_path / "hostile", deep + code)
    with weakened(tmp_path, NO_OWN_MOUNTS), admitted(hostile) as (made, _):
        with IsolatedFace(made).open("1.1") as student:
            assert student.thread() == [1]
        made.settle()
        assert list((made.folder / "homes").iterdir()) == []
        made.admit(code_in(packages))
        with IsolatedFace(made).open("1.1") as student:
            assert student.many_files(1, 1) == "done"
    assert not made.folder.exists()


def test_a_tree_is_removed_by_its_owner_and_links_lead_nowhere(tmp_path):
    """Folders that nobody may enter, files that nobody may write to, links to what is not ours."""
    tree, other = tmp_path / "tree", tmp_path / "other"
    for folder in (tree / "a" / "b" / "c", other):
        folder.mkdir(parents=True)
        (folder / "file").touch(mode=0o400)
    (tree / "a" / "link").symlink_to(other)
    (tree / "link").symlink_to(other)
    for path in (tmp_path, tree, *tree.rglob("*")):
        os.chown(path, 61_999, 61_999, follow_symlinks=False)
    for path in (tree / "a" / "b" / "c", tree / "a" / "b", tree / "a", tree):
        path.chmod(0)
    # As that user, from a folder below those that only root may enter.
    here = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    child = os.fork()
    if child == 0:
        try:
            os.fchdir(here)
            change_uid(61_999)
            remove_tree("tree")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(here)
    assert [path.name for path in tmp_path.iterdir()] == ["other"]
    assert (other / "file").exists()


def test_without_landlock_files_left_elsewhere_are_swept_away(tmp_path, packages):
    place = Path("/dev/shm") / f"conv2gpt-test-{os.getpid()}"
    with weakened(tmp_path, NO_LANDLOCK, NO_OWN_MOUNTS), admitted(packages) as (made, defenses):
        assert said(defenses)["no files elsewhere"] == "sweep"
        with IsolatedFace(made).open("1.1") as student:
            assert student.write(str(place)) == "done"
            assert place.exists()
        made.settle()
        assert not place.exists()


def test_only_the_users_own_files_are_swept(tmp_path):
    for name, uid in (("mine", 61_999), ("other", 0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "inner").touch()
        (tmp_path / f"{name}.txt").touch()
        for path in (tmp_path / name, tmp_path / f"{name}.txt"):
            os.chown(path, uid, uid)
    (tmp_path / "link").symlink_to("other")
    os.lchown(tmp_path / "link", 61_999, 61_999)
    home_folder.sweep_files(61_999, [tmp_path, tmp_path / "absent"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "other.txt"]
    assert (tmp_path / "other" / "inner").exists()
