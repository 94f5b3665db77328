"""Tests of `make doctor`: the defenses that work here, what is missing, and what that costs."""

from click.testing import CliRunner
from rich.console import Console

from autograder.commands.doctor_command import doctor, say_verdict
from autograder.grading.sandbox import defenses
from autograder.grading.sandbox.defenses import Defense, Mechanism
from autograder.packaging.zip_contents import autograder_zip
from common.assignment import load_assignment
from tests.tooling.scratch_copies import python, unzip
from tests.tooling.weakened_sandbox import (
    NO_FILTER,
    NO_GROUPS,
    NO_OWN_IPC,
    NO_OWN_MOUNTS,
    NO_OWN_NETWORK,
    NO_TREES,
    needs_root,
    weakened,
)

WIDE = {"COLUMNS": "240"}


def row(text, name):
    """The cells of the table's row that starts with the name."""
    lines = [line for line in text.splitlines() if line.startswith(f"│ {name} ")]
    assert len(lines) == 1, (name, lines)
    return [cell.strip() for cell in lines[0].strip("│").split("│")]


@needs_root
def test_on_a_machine_that_has_everything_nothing_is_lacking():
    finished = CliRunner().invoke(doctor, env=WIDE)
    assert finished.exit_code == 0, finished.output
    assert "Grading works here, and every defense holds." in finished.output
    for name, cost in defenses.COSTS.items():
        if name != "GPU":
            _, holds, means, reported = row(finished.output, name)
            assert holds == "yes" and means and reported.startswith(cost)


@needs_root
def test_what_is_lacking_is_named_with_what_it_costs(tmp_path):
    missing = (NO_FILTER, NO_GROUPS, NO_OWN_IPC, NO_OWN_MOUNTS, NO_OWN_NETWORK, NO_TREES)
    with weakened(tmp_path, *missing):
        finished = CliRunner().invoke(doctor, env=WIDE)
    assert finished.exit_code == 0, finished.output
    for name, cost in (
        ("system call filter", "more of the kernel is exposed"),
        ("pid namespace", "leftover processes are found and killed"),
        ("mount namespace", "disk use is monitored, not limited"),
        ("cgroup for memory", "each process has its own limit"),
    ):
        assert row(finished.output, name)[1:] == ["no", cost]
    assert row(finished.output, "dangerous system calls are blocked")[1:3] == ["no", ""]
    assert row(finished.output, "disk")[1:3] == ["no", ""]
    verdict = "Grading works here, but this isn't ensured: dangerous system calls are blocked; "
    assert verdict in finished.output
    assert "other processes are hidden; no messages through shared files; disk." in finished.output


def test_below_the_floor_it_fails_and_says_what_to_do():
    console = Console(record=True, width=200, quiet=False)
    floor = (Defense(defenses.FILES, False, "uid 1"), Defense(defenses.RESULTS, True, "uid 1"))
    assert say_verdict(console, floor, (Mechanism("Landlock 1: files", False, "much"),)) == 1
    text = console.export_text()
    assert "Missing here: Landlock 1: files." in text
    assert "Refusing to grade: on this machine student code could" in text
    assert "--unsafe" not in text  # which neither this command nor a batch has


def test_it_is_in_the_built_zip_too(tmp_path):
    members = autograder_zip(load_assignment("a1"), b'{"name": "x", "salt": "y"}\n')
    source = unzip(members, tmp_path / "source")
    finished = python("-m", "autograder", "doctor", cwd=source, env=WIDE)
    assert finished.returncode in (0, 1), finished.stderr
    assert row(finished.stdout, defenses.RESULTS)[1] in ("yes", "no")
