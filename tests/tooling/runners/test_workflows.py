"""Tests of GitHub's workflows and issue forms: linted, pinned, and calling what is there."""

import re

import pytest
import yaml

from common.assignment import ROOT
from tests.tooling.file_linters import check_form, check_safety, shellcheck

GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").iterdir())
FORMS = sorted((GITHUB / "ISSUE_TEMPLATE").iterdir())
GPU, SITE, TEST, VERIFY = (
    GITHUB / "workflows" / f"{name}.yml" for name in ("grade-gpu", "site", "test", "verify")
)
CHECKOUT = "@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2"

EACH_WORKFLOW = pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
EACH_FORM = pytest.mark.parametrize("file", FORMS, ids=lambda file: file.stem)


def check_workflow(file):
    """Check a workflow's form."""
    return check_form("github-workflows", file)


def check_issue_form(file):
    """Check an issue form's form."""
    return check_form("github-issue-forms", file)


def read(file):
    """The content of a YAML file."""
    return yaml.safe_load(file.read_text("utf-8"))


def steps(file):
    """All steps of a workflow."""
    return [step for job in read(file)["jobs"].values() for step in job["steps"]]


def test_there_are_four_workflows_and_three_forms():
    assert WORKFLOWS == [GPU, SITE, TEST, VERIFY]
    names = [read(file)["name"] for file in FORMS]
    assert names == ["Grading failed", "A handout is wrong", "A test is wrong"]


@EACH_WORKFLOW
@pytest.mark.parametrize("check", [check_workflow, check_safety])
def test_linters_pass_each_workflow(check, file):
    finished = check(file)
    assert finished.returncode == 0, finished.stdout + finished.stderr


@EACH_FORM
def test_the_linter_passes_each_form(file):
    finished = check_issue_form(file)
    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.mark.parametrize(
    ("check", "source", "find", "put"),
    [
        (check_workflow, GPU, "runs-on:", "runs_on:"),
        (check_workflow, GPU, "permissions: {}", "permissions: all"),
        (check_workflow, TEST, "pull_request:", "pull_requests:"),
        (check_safety, GPU, 'A="$ASSIGNMENT"', "A=${{ inputs.export }}"),
        (check_safety, GPU, CHECKOUT, "@main"),
        (check_safety, TEST, CHECKOUT, "@v4"),
        (check_safety, TEST, "persist-credentials: false", "fetch-depth: 1"),
        (check_safety, TEST, "  pull_request:", "  pull_request_target:"),
        (check_issue_form, FORMS[0], "description: A command", "descriptions: A command"),
        (check_issue_form, FORMS[1], "type: input", "type: field"),
        (check_issue_form, FORMS[2], "    id: kind", "    id: two words"),
    ],
)
def test_linters_notice_what_is_wrong(check, source, find, put, tmp_path):
    text = source.read_text("utf-8")
    assert text.count(find) == 1
    file = tmp_path / source.relative_to(ROOT)
    file.parent.mkdir(parents=True)
    file.write_text(text.replace(find, put), "utf-8")
    assert check(file).returncode != 0


@EACH_WORKFLOW
def test_the_commands_of_each_workflow_are_sound(file):
    commands = [step["run"] for step in steps(file) if "run" in step]
    assert commands
    for command in commands:
        assert "${{" not in command, "values reach commands by the environment only"
        finished = shellcheck("--shell=bash", "-", text=command)
        assert finished.returncode == 0, finished.stdout


@EACH_WORKFLOW
def test_actions_are_pinned_and_one_action_everywhere_to_one_commit(file):
    pinned = {}
    for other in WORKFLOWS:
        for line in re.findall(r"uses: (.+)", other.read_text("utf-8")):
            action, _, commit = line.partition("@")
            pinned.setdefault(action, commit)
            assert re.fullmatch(r"[0-9a-f]{40} # v\d+\.\d+\.\d+", commit), line
            if other == file:
                assert pinned[action] == commit, line
    assert pinned["actions/checkout"] == CHECKOUT.removeprefix("@")


@EACH_WORKFLOW
def test_every_job_has_a_time_limit(file):
    assert all(job["timeout-minutes"] for job in read(file)["jobs"].values())


@EACH_WORKFLOW
def test_workflows_call_only_targets_that_exist(file):
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    commands = "\n".join(step.get("run", "") for step in steps(file))
    assert {*re.findall(r"\bmake ([a-z]+)", commands)} <= {*targets}


def test_every_push_and_pull_request_runs_what_ci_runs():
    text = read(TEST)
    assert {*text[True]} == {"push", "pull_request"}  # YAML 1.1 reads the key `on` as true
    assert text["permissions"] == {"contents": "read"}
    (command,) = [step["run"] for step in steps(TEST) if "run" in step]
    assert command == ".ci/run"


@EACH_FORM
def test_a_form_asks_for_something_and_names_what_exists(file):
    asked = [entry for entry in read(file)["body"] if entry["type"] != "markdown"]
    assert len(asked) >= 3
    assert any(entry.get("validations", {}).get("required") for entry in asked)
    text = file.read_text("utf-8")
    for name in re.findall(r"\b[A-Z]+\.md\b|assignments/[\w/.]+", text):
        assert (ROOT / name).exists(), name
