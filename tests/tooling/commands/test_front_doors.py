"""Tests of the entry points: command line, Makefile, CI's script, first lines of the README."""

import functools
import io
import re
import shutil

import click
import pytest
from rich.console import Console

from autograder.__main__ import COMMANDS, is_there, main
from autograder.commands.progress_display import progress_bar
from autograder.grading.sandbox.defenses import FILES, Defense, check_required
from autograder.packaging.zip_build import Built, Kind, find_autograder
from autograder.proving.ledgers import proof_ledger
from common.assignment import ROOT, load_all, load_assignment
from common.testing.feedback.hints import HIDDEN_HINTS
from tests.tooling.scratch_copies import give_python, python, run, script

MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE)


@pytest.fixture
def front_door(tmp_path):
    """A folder with the Makefile and nothing to make."""
    (tmp_path / "common" / "data").mkdir(parents=True)
    for name in ("Makefile", "requirements.txt", "common/data/requirements.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    give_python(tmp_path)
    (tmp_path / ".venv" / ".installed").touch()
    return tmp_path


REFUSED = {
    "unknown assignment to build": (["build", "a9"], "No assignment is named 'a9'. Available: a1"),
    "unknown assignment to grade": (["grade", "a9", "."], "No assignment is named 'a9'"),
    "unknown path to grade": (["grade", "a1", "nowhere"], "nowhere does not exist"),
    "another file to grade": (
        ["grade", "a1", str(ROOT / "README.md")],
        "README.md is not a file of a1. Pass one of these, or a folder or zip that contains them: ",
    ),
    "unknown path to time": (["time", "a1", "nowhere"], "nowhere does not exist"),
    "nothing to time": (
        ["time", "a1", str(ROOT / "solutions" / "a1_convolution")],
        "a1 can't be timed: it has no baseline",
    ),
    "missing path to grade": (["grade", "a1"], "Missing argument 'PATH'. See `"),
    "unknown option": (["build", "--fast"], "No such option '--fast'. See `"),
    "unknown command": (["polish"], "No such command 'polish'. See `"),
    "out without a folder": (
        ["grade", "a1", ".", "--out", "nowhere/results.json"],
        "nowhere/results.json can't be written: there is no folder nowhere.",
    ),
    "out that is a device": (
        ["grade", "a1", ".", "--out", "/dev/full"],
        "/dev/full can't be written: it is not a regular file.",
    ),
    "out below a file": (
        ["grade", "a1", ".", "--out", "/dev/null/results.json"],
        "/dev/null/results.json can't be written: /dev/null is not a folder.",
    ),
    "no faults": (
        ["chaos", "--faults", "0"],
        "Invalid value for '--faults': 0 is not in the range",
    ),
    "otter that is nowhere": (
        ["hostile", "--otter", "nowhere"],
        "No environment with otter-grader at nowhere.",
    ),
    "one argument too many": (["doctor", "x"], "Got unexpected extra argument (x). See `"),
    "out that is a folder": (
        ["rehearse", "a1", ".", "--out", "."],
        ". can't be written: it is a folder.",
    ),
}


@pytest.mark.parametrize(("arguments", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_a_person_can_put_right_is_one_sentence_and_exit_code_2(
    arguments, sentence, autograder, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    code, out, err = autograder(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith(sentence)
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_the_real_command_line_says_the_same_from_any_folder(tmp_path):
    command = ("-m", "autograder", "grade", "a9", ".")
    result = python(*command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)})
    there = ", ".join(entry.short for entry in load_all())
    sentence = f"No assignment is named 'a9'. Available: {there}.\n"
    assert (result.returncode, result.stdout, result.stderr) == (2, "", sentence)


def test_building_a_zip_says_where_its_hints_do_not_fit(autograder, monkeypatch):
    ledger = proof_ledger.read_ledger(load_assignment("a1"))
    monkeypatch.setattr(proof_ledger, "proof_fingerprint", lambda given: ledger.fingerprint)
    cut_off = {**ledger.hints, HIDDEN_HINTS: "0"}
    monkeypatch.setattr(proof_ledger, "hint_hashes", lambda given: cut_off)
    built = Built(ROOT / "README.md", ROOT / "Makefile", Kind.PRACTICE)
    monkeypatch.setattr("autograder.commands.packaging_commands.build_zips", lambda given: built)
    code, out, _ = autograder("build", "a1")
    assert code == 0
    assert out.splitlines()[2:] == [
        "a1: solutions/a1_convolution/proof.json doesn't fit tests/a1_convolution/hidden.hints: "
        "run `make verify A=a1`."
    ]


def test_rehearsing_without_a_zip_or_a_submission_is_one_sentence(
    autograder, tmp_path, monkeypatch
):
    find = functools.partial(find_autograder, dist=tmp_path)
    monkeypatch.setattr("autograder.commands.packaging_commands.find_autograder", find)
    code, _, err = autograder("rehearse", "a1", str(tmp_path))
    missing = f"{tmp_path}/a1-autograder-practice.zip"
    assert (code, err) == (2, f"{missing} is missing: run `make`.\n")
    (tmp_path / "a1-autograder-practice.zip").touch()
    code, _, err = autograder("rehearse", "a1", "nowhere")
    assert (code, err) == (2, "nowhere does not exist.\n")


@pytest.mark.parametrize(
    ("command", "work"),
    [
        (("grade", "a1"), "autograder.commands.grading_commands.grade_submission"),
        (("time", "a7"), "autograder.commands.timing_command.measure"),
    ],
)
def test_a_refusal_names_the_option_where_there_is_one(
    autograder, tmp_path, monkeypatch, command, work
):
    def refuse(*arguments):
        check_required((Defense(FILES, False, "uid 1"),), unsafe=False)

    monkeypatch.setattr(work, refuse)
    code, _, err = autograder(*command, str(tmp_path))
    assert code == 2 and len(err.splitlines()) == 1
    assert err.startswith("Refusing to grade: on this machine student code could ")
    assert err.endswith("other users can't read them. To grade anyway, add --unsafe.\n")


def test_help_lists_every_command_and_each_says_what_it_does(autograder):
    assert all(is_there(place) for place in COMMANDS.values())
    for flag in ("--help", "-h"):
        code, out, _ = autograder(flag)
        assert code == 0
        for name in COMMANDS:
            assert re.search(rf"^  {name} +[A-Z].+", out, re.MULTILINE), name


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_explains_what_it_takes(autograder, name):
    code, out, _ = autograder(name, "--help")
    assert code == 0
    said = "ASSIGNMENTS: a1 a2 ...; none: all" in " ".join(out.split())
    assert ("[ASSIGNMENTS]..." in out) == said
    command = main.get_command(click.Context(main), name)
    options = [entry for entry in command.params if isinstance(entry, click.Option)]
    assert [option.name for option in options if not option.help] == []


def test_no_command_at_all_shows_the_help_and_fails(autograder):
    code, _, err = autograder()
    assert code == 2
    assert "release" in err


@pytest.mark.parametrize(
    ("named", "recorded", "said"),
    [
        ([], ["a1", "a2", "a3"], []),
        (["a3"], ["a3"], []),
        (["a4", "a1"], ["a1"], ["a4 stores no answers: its public tests call PyTorch"]),
    ],
)
def test_answers_are_recorded_only_where_public_tests_read_them(
    autograder, monkeypatch, named, recorded, said
):
    done = []

    def record(assignment):
        done.append(assignment.short)
        return ROOT / "tests" / assignment.name / "answers.npz"

    monkeypatch.setattr("autograder.commands.authoring_commands.record_to_file", record)
    code, out, err = autograder("answers", *named)
    assert (code, done, err) == (0, recorded, "")
    lines = [line for line in out.splitlines() if not line.startswith("wrote tests/")]
    assert lines == said
    stored = {file.parent.name.partition("_")[0] for file in ROOT.glob("tests/*/answers.npz")}
    assert set(recorded) <= stored == {"a1", "a2", "a3"}


def test_make_help_lists_every_target_with_a_line_of_help():
    result = run(["make", "help"], ROOT)
    assert result.returncode == 0, result.stderr
    listed = re.findall(r"^  make ([a-z]+) +\w.{8,}$", result.stdout, re.MULTILINE)
    assert listed == TARGETS
    assert len(listed) == len(result.stdout.splitlines())


def test_make_help_needs_no_tool_that_a_bare_machine_lacks(tmp_path):
    tools = {name: shutil.which(name) for name in ("make", "sh", "sed", "expand", "awk", "grep")}
    for name, tool in tools.items():
        (tmp_path / name).symlink_to(tool)
    result = run([tools["make"], "help"], ROOT, {"PATH": str(tmp_path)})
    assert result.returncode == 0, result.stderr
    assert "make gradescope" in result.stdout


def test_every_target_is_phony_and_none_is_phony_that_is_not_there():
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split()
    assert sorted(phony) == sorted(TARGETS)


def test_every_command_that_the_makefile_calls_exists():
    called = re.findall(r"-m autograder ([a-z]+)", MAKEFILE)
    assert called
    assert set(called) <= set(COMMANDS)


@pytest.mark.parametrize("target", ["grade", "gradescope"])
@pytest.mark.parametrize("given", [[], ["A=a1"], ["SUBMISSION=x"]])
def test_make_says_which_argument_is_missing(front_door, target, given):
    result = run(["make", target, *given], front_door)
    assert result.returncode == 2
    assert f"Usage: make {target} A=a1 SUBMISSION=path" in result.stderr
    assert "Traceback" not in result.stderr


def test_make_grade_takes_a_path_with_spaces(front_door):
    script(front_door / ".venv" / "bin" / "python", 'printf "<%s>" "$@"')
    result = run(["make", "grade", "A=a1", "SUBMISSION=my work", "OUT=my results"], front_door)
    assert result.stdout == "<-m><autograder><grade><a1><my work><--out><my results>"


def test_make_clean_keeps_the_grades_of_a_class(front_door):
    kept = front_door / "dist" / "batch-a1" / "grades.csv"
    gone = front_door / "dist" / "a1 build" / "x.zip", front_door / "dist" / ".hidden"
    for file in (kept, *gone):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    assert run(["make", "clean"], front_door).returncode == 0
    assert [file.name for file in (front_door / "dist").iterdir()] == ["batch-a1"]
    assert kept.is_file()
    assert (front_door / ".venv").is_dir()


def test_make_clean_leaves_no_empty_folder_and_can_be_repeated(front_door):
    (front_door / "dist").mkdir()
    for _ in range(2):
        result = run(["make", "clean"], front_door)
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
        assert not (front_door / "dist").exists()


def test_make_refuses_a_python_that_is_too_old(front_door):
    (front_door / ".venv" / ".installed").unlink()
    result = run(["make", "PYTHON=false"], front_door)
    assert result.returncode == 2
    assert "Python 3.11 or later is needed" in result.stderr


@pytest.mark.parametrize("code", [0, 1])
def test_make_says_how_long_the_installation_took(front_door, code):
    """With a Python whose environments have a pip that only waits."""
    installed = front_door / ".venv" / ".installed"
    installed.unlink()
    pip = f"printf '#!/bin/sh\\nsleep 0.6; exit {code}\\n' > .venv/bin/pip; chmod +x .venv/bin/pip"
    script(front_door / "python", f'test "$1" = -c || {{ {pip}; }}')
    result = run(["make", ".venv/.installed", "PYTHON=./python"], front_door)
    said = re.fullmatch(r"installing [^\n]+\n(?:installed in ([1-9]) s\n)?", result.stdout)
    assert (result.returncode == 0) == bool(said[1]) == installed.exists() == (code == 0)


def test_ci_runs_make_test(tmp_path):
    file = ROOT / ".ci" / "run"
    assert file.stat().st_mode & 0o111
    script(tmp_path / "make", 'echo "make $@ in $(pwd)"\nexit 7')
    script(tmp_path / "chromium", "exit 1")
    result = run([file], tmp_path, {"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert result.stdout == f"make test in {ROOT}\n"
    assert result.returncode == 7


@pytest.mark.parametrize(
    ("uid", "apt", "said"),
    [
        (0, 0, "installing Debian's chromium\n"),
        (0, 1, "installing Debian's chromium\nchromium could not be installed\n"),
        (1, 0, "installing Debian's chromium\nchromium can't be installed here: that takes root"),
    ],
)
def test_ci_tries_to_install_a_browser_and_goes_on_without_one(tmp_path, uid, apt, said):
    for tool in ("bash", "dirname"):
        (tmp_path / tool).symlink_to(shutil.which(tool))
    script(tmp_path / "make", 'echo "make $@"\nexit 7')
    script(tmp_path / "id", f"echo {uid}")
    script(tmp_path / "apt-get", f'echo "$@" >> {tmp_path}/asked\nexit {apt}')
    result = run([ROOT / ".ci" / "run"], tmp_path, {"PATH": str(tmp_path)})
    assert result.stdout.startswith(said)
    assert result.stdout.endswith("make test\n")
    assert result.returncode == 7
    asked = tmp_path / "asked"
    assert asked.exists() == (uid == 0)
    if not uid and not apt:
        assert asked.read_text().splitlines()[-1].endswith(" chromium")


def test_make_test_runs_the_linters_the_types_and_these_tests():
    result = run(["make", "--dry-run", "test"], ROOT)
    for part in ("ruff check", "ruff format --quiet --check", "mypy", "tests/tooling"):
        assert part in result.stdout


def test_the_readme_begins_with_the_commands_from_the_quickest_to_the_longest():
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()[:12]
    commands = [line.split("#")[0].strip() for line in lines if line.startswith("    ")]
    assert commands == ["make", "make test"]


@pytest.mark.parametrize(("every", "lines"), [(0.0, 3), (60.0, 0)])
def test_a_log_gets_a_line_now_and_then(every, lines, monkeypatch):
    monkeypatch.setattr("autograder.commands.progress_display.LINE_EVERY", every)
    console = Console(file=io.StringIO(), width=80)
    with progress_bar(console, "proving a1") as show:
        for done in (1, 2, 3):
            show(done, 3)
    said = console.file.getvalue().splitlines()
    assert len(said) == lines
    assert all(re.fullmatch(r"proving a1: \d of 3 \(0 s\)", line) for line in said)
