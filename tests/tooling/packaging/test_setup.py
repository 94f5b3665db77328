"""Tests of setup.sh: for real into a scratch prefix, and step by step with stand-ins on PATH."""

import os
import re
import shutil
import tempfile
from pathlib import Path

import pytest

from autograder.packaging.rehearsal import rehearse
from autograder.packaging.requirement_parts import grader_requirements
from autograder.packaging.zip_build import build
from autograder.packaging.zip_contents import TEMPLATES, autograder_zip
from autograder.zip_archive import unpack, zip_bytes
from common.assignment import ROOT, load_assignment
from common.testing.graded_tests import read_graded_tests
from tests.tooling.grading_fixtures import REFERENCE, with_lab
from tests.tooling.scratch_copies import run, script

SCRIPTS = sorted((TEMPLATES / "gradescope").iterdir())
TOOLS = ("bash", "sh", "dirname", "sed", "chmod", "mkdir", "cp", "cat", "env")
STEPS = (
    "make a virtual environment",
    "install torch",
    "install the pinned packages",
    "install the data",
    "let other users read them",
    "check that they can be imported",
)


@pytest.fixture(scope="module")
def prefix():
    """Where setup.sh installs: in a folder that other users may enter, as /opt is."""
    with tempfile.TemporaryDirectory(prefix="conv2gpt-setup-") as scratch:
        Path(scratch).chmod(0o755)
        yield Path(scratch) / "prefix"


def test_setup_makes_all_that_grading_the_reference_needs(prefix, tmp_path):
    assignment = load_assignment("a1")
    built = build(assignment, tmp_path / "dist")
    unpack(built.autograder, tmp_path / "source")
    # What is compiled ahead is mostly never imported, and takes longest.
    env = {"CONV2GPT_PREFIX": str(prefix), "PIP_NO_COMPILE": "1"}
    result = run([tmp_path / "source" / "setup.sh"], tmp_path, env)
    assert result.returncode == 0, result.stdout + result.stderr
    said = re.findall(r"^setup: (.*)$", result.stdout, re.MULTILINE)
    assert said[-1] == "done"
    assert all(line.startswith(step) for line, step in zip(said[:-1], STEPS, strict=True))
    pinned = dict(line.split("==") for line in grader_requirements().splitlines())
    installed = run([prefix / "bin" / "pip", "list", "--format=freeze"], tmp_path).stdout
    versions = dict(line.split("==") for line in installed.lower().splitlines())
    for name, version in pinned.items():
        assert versions[name].partition("+")[0] == version
    assert "conda" not in installed
    whole = tmp_path / "whole"
    whole.mkdir()
    for name, content in with_lab(REFERENCE.read_bytes()).files.items():
        (whole / name).write_bytes(content)
    rehearsal = rehearse(built.autograder, whole, prefix=prefix)
    assert rehearsal.tests == len(read_graded_tests(ROOT / "tests" / assignment.name)) > 0
    assert (rehearsal.score, rehearsal.maximum) == (100, 100), rehearsal.results


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.name)
def test_scripts_are_valid_bash(file):
    result = run(["bash", "-n", file], ROOT)
    assert (result.returncode, result.stderr) == (0, "")
    assert file.read_text().startswith("#!/usr/bin/env bash\n")


class Machine:
    """A machine whose only programs are a few tools and stand-ins that note how they are called."""

    def __init__(self, folder):
        self.bin, self.notes, self.prefix = folder / "bin", folder / "notes", folder / "prefix"
        self.source = folder / "source"
        for made in (self.bin, self.source):
            made.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool))
        for file in SCRIPTS:
            shutil.copy(file, self.source)
        (self.source / "requirements.txt").write_text(grader_requirements())

    def program(self, name, *lines):
        """Put a program on PATH."""
        note = f'echo "{name} $*" >> "{self.notes}"'
        script(self.bin / name, "\n".join([note, *lines]))

    def new_python(self, name="python3.11", pip="exit 0", imports="exit 0"):
        """A Python that is new enough, and whose virtual environments hold stand-ins too."""
        for inner, body in (("pip", pip), ("python", imports)):
            script(self.bin / f"inner-{inner}", f'echo "{inner} $*" >> "{self.notes}"\n{body}')
        self.program(
            name,
            '[ "$1" = -m ] || { [ "$1" != --version ] || echo Python 3.11.0; exit 0; }',
            f'mkdir -p "$4/bin" && cp "{self.bin}/inner-pip" "$4/bin/pip"',
            f'cp "{self.bin}/inner-python" "$4/bin/python"',
        )

    def old_python(self):
        """Gradescope's own: Python 3.10, which fails our question for the version."""
        self.program("python3", '[ "$1" != -c ] || exit 1', "echo Python 3.10.12")

    def set_up(self):
        env = {"PATH": str(self.bin), "CONV2GPT_PREFIX": str(self.prefix), "PYTHON": ""}
        return run([self.bin / "bash", self.source / "setup.sh"], self.source, env)

    def called(self, program):
        """The arguments of each call of a program, in order."""
        lines = self.notes.read_text().splitlines()
        return [line.partition(" ")[2] for line in lines if line.partition(" ")[0] == program]


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_a_new_python_is_taken_and_apt_left_alone(machine):
    machine.old_python()
    machine.new_python("python3.12")
    machine.program("apt-get", "exit 1")
    result = machine.set_up()
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith("setup: done\n")
    assert machine.called("apt-get") == []
    assert f"-m venv --clear {machine.prefix}" in machine.called("python3.12")


def test_where_only_an_older_python_is_a_newer_one_comes_from_apt(machine):
    machine.old_python()
    machine.new_python("python3.11")
    os.rename(machine.bin / "python3.11", machine.bin / "held-back")
    machine.program(
        "apt-get",
        'case "$*" in *python3.12*) exit 100;; esac',
        f'held="{machine.bin}/held-back"',
        f'case "$*" in *python3.11*) cp "$held" "{machine.bin}/python3.11";; esac',
    )
    result = machine.set_up()
    assert result.returncode == 0, result.stderr
    assert "setup: install Python 3.11 or later with apt" in result.stdout
    assert machine.called("apt-get") == [
        "update -q",
        "install -y -q python3.12 python3.12-venv",
        "install -y -q python3.11 python3.11-venv",
    ]
    assert f"-m venv --clear {machine.prefix}" in machine.called("python3.11")
    assert not any("venv" in call and "-m" in call for call in machine.called("python3"))


@pytest.mark.parametrize("step", ["update", "install"])
def test_an_apt_that_fails_stops_the_setup_and_is_named(machine, step):
    machine.old_python()
    machine.program("apt-get", f'[ "$1" != {step} ] || exit 100')
    result = machine.set_up()
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert last == "setup.sh stopped at this step: install Python 3.11 or later with apt"
    assert "virtual environment" not in result.stdout


FAILURES = {
    "install torch": {"pip": 'case "$*" in *torch==*) exit 1;; esac'},
    "install the pinned packages": {"pip": 'case "$*" in *-r*) exit 1;; esac'},
    "check that they can be imported": {"imports": "exit 1"},
}


@pytest.mark.parametrize("step", FAILURES)
def test_a_step_that_fails_stops_the_setup_and_is_named(machine, step):
    machine.new_python(**FAILURES[step])
    result = machine.set_up()
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith(f"setup.sh stopped at this step: {step}")
    assert re.findall(r"^setup: (.*)$", result.stdout, re.MULTILINE)[-1].startswith(step)
    assert "done" not in result.stdout


def test_a_virtual_environment_that_cannot_be_made_is_named(machine):
    machine.new_python()
    machine.prefix.write_text("a file, not a folder")
    result = machine.set_up()
    assert result.returncode == 1
    assert "stopped at this step: make a virtual environment in" in result.stderr
    assert machine.called("pip") == []


def torch_calls(machine):
    return [call for call in machine.called("pip") if "torch==" in call]


def test_the_cpu_build_of_torch_is_taken_where_pips_own_index_offers_it(machine):
    machine.new_python()
    assert machine.set_up().returncode == 0
    assert torch_calls(machine) == ["install -q torch==2.13.0+cpu"]


def test_a_named_index_is_asked_for_the_cpu_build_before_the_large_one_is_taken(machine):
    machine.new_python(pip='case "$*" in *+cpu*) exit 1;; esac')
    (machine.source / "torch_index").write_text("https://index.example/cpu\n")
    assert machine.set_up().returncode == 0
    first, second = torch_calls(machine)
    assert first == "install -q --extra-index-url https://index.example/cpu torch==2.13.0+cpu"
    assert second == "install -q torch==2.13.0"


def test_the_index_given_to_make_goes_into_the_zip(monkeypatch):
    assert "torch_index" not in autograder_zip(load_assignment("a1"), b"")
    monkeypatch.setenv("TORCH_INDEX", "https://index.example/cpu")
    members = autograder_zip(load_assignment("a1"), b"")
    assert members["torch_index"] == b"https://index.example/cpu\n"


def test_the_pinned_packages_come_from_the_zips_own_list(machine):
    machine.new_python()
    assert machine.set_up().returncode == 0
    assert f"install -q -r {machine.source}/requirements.txt" in machine.called("pip")


def test_run_autograder_grades_from_its_own_folder_with_the_prefixs_python(tmp_path):
    root = tmp_path / "auto grader"
    archive = tmp_path / "a.zip"
    archive.write_bytes(zip_bytes({file.name: file.read_bytes() for file in SCRIPTS}))
    unpack(archive, root / "source")
    shutil.copy(root / "source" / "run_autograder", root)
    (tmp_path / "prefix" / "bin").mkdir(parents=True)
    script(tmp_path / "prefix" / "bin" / "python", 'pwd; printf "<%s>" "$@"; exit 3')
    env = {"CONV2GPT_PREFIX": str(tmp_path / "prefix")}
    result = run([root / "run_autograder"], Path("/"), env)
    arguments = f"<-E><-s><-m><autograder><gradescope><--root><{root}>"
    assert result.stdout == f"{root}/source\n{arguments}"
    assert result.returncode == 3
