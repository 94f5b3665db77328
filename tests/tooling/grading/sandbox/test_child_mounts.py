"""Tests of a child's mounts: reading leaves no trace, and /proc shows nobody else."""

import os

import torch

from autograder.grading.sandbox.kernel import namespaces
from autograder.grading.sandbox.kernel.child_mounts import ChildMounts
from autograder.grading.sandbox.kernel.confine import change_uid
from autograder.grading.sandbox.kernel.home_folder import Homes
from autograder.grading.sandbox.probe_targets import unread_file
from autograder.grading.sandbox.sandbox import Sandbox
from common.assignment import load_assignment
from tests.tooling.weakened_sandbox import NO_OWN_MOUNTS, NO_TREES, needs_root

pytestmark = needs_root
TRACES, OTHERS = "reading leaves no trace", "other processes are hidden"


def test_reading_changes_no_access_time(student, sandbox):
    file = unread_file(sandbox.folder / "packages")
    assert not student.changes_access_time(str(file))
    assert file.stat().st_atime == 0


def test_nothing_but_a_home_can_be_written_to_even_by_its_owner(student, sandbox):
    package = sandbox.folder / "packages"
    assert student.write("note") == "done"
    assert student.set_mode(".", 0o700) == "done"
    assert student.set_mode(str(package), 0o755) in ("EPERM", "EROFS")


def test_proc_shows_no_other_process_and_no_number_that_counts_them(student):
    assert student.own_id() == (1, "1")
    for path in (f"/proc/{os.getpid()}/stat", "/proc/loadavg", "/proc/meminfo", "/proc/locks"):
        assert student.read(path) == "ENOENT"


def test_pytorch_uses_the_code_for_this_processor_although_it_cannot_read_which_it_is():
    attention = load_assignment("a5")
    source = b"import torch\ncapability = torch.backends.cpu.get_cpu_capability()\n"
    with Sandbox(attention) as made:
        made.admit(dict.fromkeys(attention.files, source))
        with made.child() as child:
            module = child.ask("get", None, "attention", "attention.py")
            used = child.ask("get", module, "capability", "attention.py")
    assert used == torch.backends.cpu.get_cpu_capability()


def test_without_own_mounts_the_result_says_what_can_be_seen(without):
    with without(NO_OWN_MOUNTS) as (student, reported, made):
        assert reported[OTHERS] == "not protected"
        assert student.own_id()[1] != "1"
        seen = student.changes_access_time(str(unread_file(made.folder / "packages")))
        assert reported[TRACES] == "not protected" if seen else reported[TRACES]


def test_without_a_pid_namespace_access_times_stay_as_they_are(without):
    with without(NO_TREES) as (student, reported, made):
        assert reported[TRACES] == "read-only mounts"
        assert not student.changes_access_time(str(unread_file(made.folder / "packages")))


def test_who_owns_a_user_namespace_has_them_too(tmp_path):
    """As when a TA grades without root, where user namespaces are allowed."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder != folder.parent:
            folder.chmod(0o711 if folder != tmp_path else 0o777)
        if folder.parent.name == "tmp":
            break
    (tmp_path / "home").mkdir(mode=0o777)
    (tmp_path / "home").chmod(0o777)
    file = unread_file(tmp_path)
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            change_uid(65_534)
            namespaces.become_owner()
            homes = Homes(tmp_path)
            mounts = ChildMounts(namespaces.ProcessTrees(), homes.in_memory, needs_proc=False)
            home = tmp_path / "home" / "one"
            homes.make(home, None)
            mounts.enter(home, hide_processes=True)
            (home / "note").touch()
            file.read_bytes()
            os.write(writing, f"{mounts.available} {os.listdir('/proc')}".encode())
        finally:
            os._exit(0)
    os.waitpid(process, 0)
    os.close(writing)
    assert os.read(reading, 99) == b"True []"
    os.close(reading)
    assert file.stat().st_atime == 0
