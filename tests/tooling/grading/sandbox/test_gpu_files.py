"""Tests of GPU device files: found, and accessible only if the assignment asks for a GPU."""

import os
import stat

import msgspec

from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.grading.sandbox.kernel import gpu_files
from autograder.grading.sandbox.sandbox import Sandbox
from common.assignment import Limits
from tests.tooling.grading_fixtures import assignment, code_in
from tests.tooling.scratch_copies import open_to_others
from tests.tooling.weakened_sandbox import needs_root, said, weakened

pytestmark = needs_root


def fake_machine(folder):
    for name in ("dev/nvidia0", "dev/nvidiactl", "dev/nvidia-uvm", "dev/sda", "proc/devices"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
        (folder / name).chmod(0o666)
    (folder / "dev" / "nvidia-caps").mkdir()
    (folder / "dev" / "nvidia-caps" / "nvidia-cap1").touch(mode=0o666)
    return folder


def test_the_files_of_a_gpu_are_found(tmp_path):
    fake_machine(tmp_path)
    names = ("nvidia-caps/nvidia-cap1", "nvidia-uvm", "nvidia0", "nvidiactl")
    assert gpu_files.devices(tmp_path) == [tmp_path / "dev" / name for name in names]
    assert gpu_files.readable(tmp_path) == [tmp_path / "proc" / "devices"]
    assert gpu_files.devices(tmp_path / "dev") == []


def test_a_gpu_is_in_reach_when_asked_for_and_only_then(tmp_path, tmp_path_factory, packages):
    machine = fake_machine(tmp_path_factory.mktemp("machine"))
    open_to_others(machine)
    device = str(machine / "dev" / "nvidia0")
    os.unlink(device)
    os.mknod(device, stat.S_IFCHR, os.makedev(1, 3))  # on a read-only mount, only devices open
    os.chmod(device, 0o666)
    line = "gpu_files.devices.__defaults__ = gpu_files.readable.__defaults__ = "
    line += f"(gpu_files.Path({str(machine)!r}),)\n"
    limits = Limits(5, 60, 512)
    for asked in (False, True):
        chosen = msgspec.structs.replace(
            assignment(), limits=msgspec.structs.replace(limits, gpu=asked)
        )
        with weakened(tmp_path / str(asked), line), Sandbox(chosen) as made:
            defenses = made.admit(code_in(packages))
            with IsolatedFace(made).open("1.1") as student:
                assert student.read(device) == ("done" if asked else "EACCES")
                assert student.read(str(machine / "dev" / "sda")) == "EACCES"
                assert student.use(device) == ("done" if asked else "EACCES")
            assert said(defenses).get("GPU") == ("accessible, as requested" if asked else None)
            assert said(defenses)["memory"].startswith("512 MB")
