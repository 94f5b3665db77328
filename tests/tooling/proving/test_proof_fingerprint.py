"""Tests of an assignment's fingerprint: each part changes with its own input only."""

import json

import pytest

from tests.tooling.scratch_copies import copy_repo, python

SOLUTION = "solutions/a1_convolution"
TESTS = "tests/a1_convolution"
SETTINGS = "assignments/a1_convolution/assignment.toml"
# What is replaced by what in which file (nothing is replaced: it is added), and what changes.
CHANGES = {
    "a test": (f"{TESTS}/test_public.py", "((7, 3), 5)", "((8, 3), 6)", "tests"),
    "a helper of tests": (f"{TESTS}/cases.py", '"image", "patch', '"picture", "patch', "tests"),
    "a comment in a test": (f"{TESTS}/test_public.py", "", "\n# Said.\n", ""),
    "stored answers": (f"{TESTS}/answers.npz", "", "x", ""),
    "the solution": (f"{SOLUTION}/convolution.py", "", "\nNEW = 1\n", "solution"),
    "a comment in the solution": (f"{SOLUTION}/convolution.py", "", "\n# Said.\n", ""),
    "an alternative": (
        f"{SOLUTION}/alternatives/einsum/convolution.py",
        "",
        "\nNEW = 1\n",
        "alternatives",
    ),
    "a mistake": (f"{SOLUTION}/mistakes.toml", '"plus-one-missing"', '"no-one"', "mistakes"),
    "a comment on mistakes": (f"{SOLUTION}/mistakes.toml", "", "\n# Said.\n", ""),
    "an equivalent mutant": (f"{SOLUTION}/equivalent.toml", "", "\nnew = 1\n", "mistakes"),
    "the lab": (f"{SOLUTION}/lab.py", "", "\n# %%\nNEW = 1\n", "lab"),
    "weights": (f"{SOLUTION}/artifacts/made_from.json", "{}", '{"a": 1}', "artifacts"),
    "what compares": ("common/testing/compare.py", "", "\nNEW = 1\n", "shared code"),
    "a docstring in common": ("common/testing/compare.py", '"""', '"""In other words: ', ""),
    "the judge": ("autograder/grading/judge.py", "", "\nNEW = 1\n", "shared code"),
    "what runs labs": ("common/labs/lab_run.py", "", "\nNEW = 1\n", "shared code"),
    "a limit": (SETTINGS, "test_seconds = 10", "test_seconds = 11", "shared code"),
    "a title": (SETTINGS, "Convolution and pooling", "Pooling and convolution", ""),
    "a pinned version": ("requirements.txt", "numpy==", "numpy==1", "shared code"),
    "a version that grades nothing": ("requirements.txt", "mypy==", "mypy==1", ""),
    "data of others": ("common/data/shakespeare.py", "", "\nNEW = 1\n", ""),
    "the proof's page": ("autograder/proving/proof_page.py", "", "\nNEW = 1\n", ""),
    "what finds mutants": (
        "autograder/proving/wrong_versions/mutants.py",
        "",
        "\nNEW = 1\n",
        "proving code",
    ),
    "what composes": ("autograder/authoring/overlay.py", "", "\nNEW = 1\n", "proving code"),
    "what remembers": ("autograder/proving/verdict_cache.py", "", "\nNEW = 1\n", ""),
    "a comment on data": ("common/data/requirements.txt", "", "\n# Said.\n", ""),
    "the version of data": ("common/data/requirements.txt", "==", "==1", "shared code"),
    "a handout": ("assignments/a1_convolution/README.md", "", "\nMore.\n", ""),
}
# All in one process: every other start would cost a second.
WATCH = """
import json, sys
from pathlib import Path
from autograder.proving.proof_fingerprint import fresh_fingerprint
from common.assignment import load_assignment


def now():
    return fresh_fingerprint(load_assignment("a1"))


before, changed = now(), {}
for name, (file, old, new, _) in json.loads(sys.argv[1]).items():
    content = Path(file).read_bytes()
    assert old.encode() in content, name
    other = content.replace(old.encode(), new.encode(), 1) if old else content + new.encode()
    Path(file).write_bytes(other)
    after = now()
    Path(file).write_bytes(content)
    assert before.keys() == after.keys()
    changed[name] = ", ".join(part for part in before if before[part] != after[part])
assert now() == before
print(json.dumps(changed))
"""


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """Which parts each change alters."""
    root = copy_repo(tmp_path_factory.mktemp("fingerprint") / "repo")
    record = root / SOLUTION / "artifacts" / "made_from.json"
    record.parent.mkdir()
    record.write_text("{}")
    result = python("-c", WATCH, json.dumps(CHANGES), cwd=root)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_alters_its_own_part_and_no_other(changed, change):
    assert changed[change] == CHANGES[change][3]
