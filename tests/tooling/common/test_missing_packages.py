"""Tests of pytest outside the course's environment: one sentence, and no traceback."""

import ast

import pytest

from common.assignment import ROOT
from common.missing_packages import missing_sentence, why_tests_cannot_run
from tests.tooling.scratch_copies import python

WHAT_TO_DO = (
    "activate the course's environment (. .venv/bin/activate) "
    "or run pip install -r requirements.txt."
)
BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(name + " is blocked", name=name)

sys.meta_path.insert(0, Blocked())
"""


@pytest.fixture
def pytest_without(tmp_path):
    """Runs the public tests of an assignment where some packages can't be imported."""

    def run(assignment, *names, options=()):
        (tmp_path / "blocking.py").write_text(BLOCK.format(names=names))
        arguments = ("-p", "blocking", *options, f"tests/{assignment}/test_public.py")
        env = {"PYTHONPATH": str(tmp_path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        return python("-m", "pytest", *arguments, cwd=ROOT, env=env)

    return run


@pytest.mark.parametrize("options", [(), ("--prerequisites=standin",)], ids=str)
def test_a_missing_package_ends_pytest_with_one_sentence(pytest_without, options):
    done = pytest_without("a1_convolution", "numpy", options=options)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert done.stderr.strip() == f"ERROR: numpy is missing: {WHAT_TO_DO}"
    assert done.stdout == ""


def test_a_package_that_only_a_new_handout_needs_is_named(pytest_without):
    done = pytest_without("a4_bahdanau", "torch")
    assert f"torch is missing: {WHAT_TO_DO}" in done.stdout.splitlines()
    assert "Traceback" not in done.stdout and "import torch" not in done.stdout


def test_an_old_python_is_named_and_this_one_is_right():
    assert why_tests_cannot_run((3, 9)) == (
        "Python 3.9 is older than 3.11: activate the course's environment (. .venv/bin/activate)."
    )
    assert why_tests_cannot_run() == ""


def test_several_packages_are_listed():
    assert missing_sentence("numpy", "msgspec", "rich").startswith("numpy, msgspec and rich are ")
    assert missing_sentence("numpy", "rich").startswith("numpy and rich are missing: ")


@pytest.mark.parametrize("file", ["tests/conftest.py", "common/missing_packages.py"])
def test_old_pythons_can_read_what_asks(file):
    ast.parse((ROOT / file).read_text("utf-8"), feature_version=(3, 6))
