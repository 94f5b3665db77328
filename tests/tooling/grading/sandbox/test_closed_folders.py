"""Tests that libraries below a folder that other users can't enter are open, and nothing else."""

import errno
import os

import pytest

from autograder.grading.sandbox import fork_client
from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.grading.sandbox.kernel import closed_folders
from autograder.grading.sandbox.kernel.closed_folders import open_libraries, reachable_by_others
from autograder.grading.sandbox.kernel.confine import change_uid
from autograder.grading.sandbox.kernel.home_folder import RECURSIVE, SLAVE
from autograder.grading.sandbox.kernel.namespaces import NEW_MOUNT
from autograder.grading.sandbox.kernel.syscalls import mount, unshare
from common.student_text import plain
from tests.tooling.grading_fixtures import admitted, write_package
from tests.tooling.scratch_copies import open_to_others
from tests.tooling.weakened_sandbox import NO_LANDLOCK, NO_OWN_MOUNTS, needs_root, weakened

pytestmark = needs_root
LIBRARY = '''def twice(x):
    """Return 2 * x."""
    return 2 * x
'''
CODE = """
import errno, inspect


def late():
    import closed_library
    return closed_library.twice(3)


def source():
    import closed_library
    return inspect.getsource(closed_library.twice)


def opened(path, mode):
    try:
        return open(path, mode).read()
    except OSError as error:
        return errno.errorcode[error.errno]
"""
REFUSALS = {"EACCES", "ENOENT", "EROFS"}


@pytest.fixture
def closed(tmp_path):
    """A library in a folder that only root may enter, beside what nobody else may read."""
    open_to_others(tmp_path)
    folder = tmp_path / "closed"
    (folder / "library").mkdir(parents=True)
    (folder / "library" / "closed_library.py").write_text(LIBRARY)
    (folder / "library" / "sitecustomize.py").write_text("import closed_library\n")
    (folder / "tests.txt").write_text("a secret")
    folder.chmod(0o700)
    return folder


@pytest.fixture
def package(tmp_path):
    return write_package(tmp_path, CODE)


@pytest.fixture
def _imported(closed, monkeypatch):
    """Fork servers import that library when they start, as they import PyTorch."""
    environment = fork_client.CLEAN_ENVIRONMENT
    path = f"{closed / 'library'}:{environment['PYTHONPATH']}"
    monkeypatch.setitem(environment, "PYTHONPATH", path)


@pytest.mark.usefixtures("_imported")
def test_a_child_reads_the_source_of_a_library_and_nothing_beside_it(closed, package):
    with admitted(package) as (made, _), IsolatedFace(made).open("1.1") as student:
        assert student.late() == 6
        assert plain(student.source()) == LIBRARY
        for place in ("tests.txt", "library/../tests.txt", "library/mine.py", "mine.py"):
            assert plain(student.opened(str(closed / place), "r")) in REFUSALS
            assert plain(student.opened(str(closed / place), "w")) in REFUSALS


@pytest.mark.usefixtures("_imported")
@pytest.mark.parametrize("patches", [(NO_LANDLOCK,), (NO_OWN_MOUNTS,)])
def test_with_fewer_defenses_it_can_be_imported_and_nothing_beside_it_be_read(
    closed, package, tmp_path, patches
):
    with (
        weakened(tmp_path / "patches", *patches),
        admitted(package) as (made, _),
        IsolatedFace(made).open("1.1") as student,
    ):
        assert student.late() == 6
        for place in ("tests.txt", "library/../tests.txt"):
            assert plain(student.opened(str(closed / place), "r")) in REFUSALS


def told_with_own_mounts(look):
    """What a function says in a process with mounts of its own, which ends with it."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            unshare(NEW_MOUNT)
            mount("none", "/", RECURSIVE | SLAVE)
            os.write(writing, repr(look()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(process, 0)
    with os.fdopen(reading) as answer:
        return answer.read()


def test_a_library_is_found_by_links_too(closed, tmp_path):
    (closed / "inner").symlink_to(closed / "library")
    (tmp_path / "outer").symlink_to(closed)
    ways = [closed / "inner", tmp_path / "outer" / "library", closed / "library"]

    def look():
        open_libraries(ways[:2])
        change_uid(65_534)
        texts = {(way / "closed_library.py").read_text() for way in ways}
        return texts == {LIBRARY}, sorted(os.listdir(closed))

    assert told_with_own_mounts(look) == repr((True, ["inner", "library"]))


def test_the_machine_sees_nothing_of_it(closed):
    told_with_own_mounts(lambda: open_libraries([closed / "library"]))
    assert (closed / "tests.txt").read_text() == "a secret"
    assert not reachable_by_others(closed / "library")


def test_where_the_kernel_refuses_all_stays_as_it_is(closed, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSYS, "no such call")

    monkeypatch.setattr(closed_folders, "move_mount", refuse)

    def look():
        with pytest.raises(OSError, match="no such call"):
            open_libraries([closed / "library"])
        return (closed / "tests.txt").read_text()

    assert told_with_own_mounts(look) == repr("a secret")


def test_a_library_whose_own_folder_is_closed_stays_closed(closed):
    def look():
        open_libraries([closed])
        return (closed / "tests.txt").read_text()

    assert told_with_own_mounts(look) == repr("a secret")
