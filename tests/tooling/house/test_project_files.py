"""Tests of the files at the top: licenses, metadata, how to contribute, linters before a commit."""

import re
import tomllib

import pytest
import yaml

from common.assignment import ROOT
from tests.tooling.file_linters import check_form
from tests.tooling.scratch_copies import give_python, python, run

ALLOWED = {
    *("README.md", "Makefile", "requirements.txt", "pyproject.toml", "LICENSE", "CITATION.cff"),
    *("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
    *("docs", "assignments", "solutions", "autograder", "common", "tests"),
}
GUIDES = ("CONTRIBUTING.md", "SECURITY.md")
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
LICENSE = (ROOT / "LICENSE").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
HOOKS = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]

EACH_GUIDE = pytest.mark.parametrize("name", GUIDES)


def test_the_top_level_has_only_names_that_belong_there():
    listed = run(["git", "ls-files"], ROOT)
    if listed.returncode:
        pytest.skip("not a Git checkout")
    tops = {line.partition("/")[0] for line in listed.stdout.splitlines()}
    assert {top for top in tops if not top.startswith(".")} <= ALLOWED


def test_the_license_holds_both_licenses_and_says_what_each_is_for():
    text = " ".join(LICENSE.split())
    mit, _, creative = text.partition("Creative Commons Attribution 4.0 International")
    for part in (
        "Permission is hereby granted, free of charge, to any person obtaining a copy of this",
        "The above copyright notice and this permission notice shall be included in all copies",
        'THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED,',
        "OTHER DEALINGS IN THE SOFTWARE.",
    ):
        assert part in mit
    assert "https://creativecommons.org/licenses/by/4.0/" in creative
    for part in ("handouts", "figures", "labs"):
        assert part in mit and part in creative
    assert text.count("Copyright (c) 2026 The conv2gpt authors") == 2


def test_every_place_that_the_license_names_exists():
    named = re.findall(r"\b(?:[a-z]+/)(?:[\w*./]*\w)?", LICENSE.partition("MIT License")[0])
    assert len(named) >= 8
    assert [name for name in named if not [*ROOT.glob(name)]] == []


def test_the_metadata_agree_with_each_other():
    assert PROJECT["name"] == CITATION["title"].partition(":")[0] == "conv2gpt"
    assert PROJECT["version"] == CITATION["version"] == "1.0.0"
    assert PROJECT["authors"] == CITATION["authors"] == [{"name": "The conv2gpt authors"}]
    assert PROJECT["license"].split(" AND ") == [CITATION["license"], "CC-BY-4.0"]
    assert PROJECT["license-files"] == ["LICENSE"]
    assert (ROOT / PROJECT["readme"]).is_file()


def test_the_metadata_ask_for_the_python_that_make_asks_for():
    least = re.search(r"sys\.version_info < \((\d+), (\d+)\)", MAKEFILE)
    assert PROJECT["requires-python"] == f">={least[1]}.{least[2]}"


def test_the_citation_is_valid_and_one_without_authors_is_not(tmp_path):
    finished = check_form("citation-file-format", ROOT / "CITATION.cff")
    assert finished.returncode == 0, finished.stdout
    worse = tmp_path / "CITATION.cff"
    worse.write_text(yaml.safe_dump({key: CITATION[key] for key in CITATION if key != "authors"}))
    assert check_form("citation-file-format", worse).returncode == 1


@EACH_GUIDE
def test_links_of_a_guide_lead_somewhere(name):
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / name).read_text("utf-8"))
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


@EACH_GUIDE
def test_a_guide_names_only_targets_and_files_that_exist(name):
    text = (ROOT / name).read_text("utf-8")
    targets = {*re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE)}
    named = {*re.findall(r"(?:`|^    )make ([a-z]+)", text, re.MULTILINE)}
    assert named and named <= targets
    paths = re.findall(r"\b(?:tests|autograder|solutions|common|docs)/[\w./]*", text)
    paths = [path.replace("aN", "a1_convolution").rstrip(".") for path in paths]
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_command_for_one_file_of_tests_runs():
    (command,) = re.findall(r"^    \.venv/bin/python (-m pytest .*)$", guide(), re.MULTILINE)
    arguments = command.replace("'", "").split()
    finished = python(*arguments, "--collect-only", cwd=ROOT)
    assert finished.returncode == 0, finished.stdout
    assert "test_results.py" in finished.stdout


def guide():
    """What CONTRIBUTING.md says."""
    return (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def test_the_security_page_is_linked_where_holes_are_reported():
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    assert "](docs/security.md)" in text
    assert "Report a vulnerability" in text
    assert '"What is not\nstopped"' in text or '"What is not stopped"' in text
    assert "## What is not stopped" in (ROOT / "docs" / "security.md").read_text("utf-8")


def hooks():
    """The hooks, by their names; all come from this checkout."""
    (local,) = HOOKS
    assert local["repo"] == "local"
    return {hook["id"]: hook for hook in local["hooks"]}


def test_hooks_run_what_make_lint_runs():
    assert {*hooks()} == {"ruff-check", "ruff-format", "mypy"}
    calls = re.findall(r"-m ((?:ruff|mypy).*)", run(["make", "-n", "lint"], ROOT).stdout)
    wanted = {call.removesuffix(" .") for call in calls}
    entries = [hook["entry"] for hook in hooks().values()]
    assert all(entry.startswith(".venv/bin/python -m ") for entry in entries)
    found = {entry.partition(" -m ")[2].replace(" --force-exclude", "") for entry in entries}
    assert found == wanted
    assert {hook["language"] for hook in hooks().values()} == {"system"}
    assert hooks()["mypy"]["pass_filenames"] is False


@pytest.mark.parametrize(
    ("name", "before", "after", "code"),
    [
        ("ruff-check", "import os\n", "", 0),
        ("ruff-check", "def f(x=[]):\n    return x\n", None, 1),
        ("ruff-format", "x=1\n", "x = 1\n", 0),
    ],
)
def test_a_hook_fixes_a_file_or_refuses_it(tmp_path, name, before, after, code):
    """As pre-commit calls it: from the checkout, with the names of the changed files."""
    give_python(tmp_path)
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text("utf-8"))
    for place in ("changed.py", "dist/left_alone.py"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(before)
    files = ["changed.py", "dist/left_alone.py"]
    finished = run([*hooks()[name]["entry"].split(), *files], tmp_path)
    assert finished.returncode == code, finished.stdout + finished.stderr
    assert (tmp_path / "changed.py").read_text() == (before if after is None else after)
    assert (tmp_path / "dist" / "left_alone.py").read_text() == before
