"""Linters of files that other programs read: workflows, issue forms, shell scripts."""

import subprocess
import sys
from pathlib import Path

from common.assignment import ROOT
from tests.tooling.scratch_copies import run

BESIDE = Path(sys.executable).parent  # where the linters lie


def check_form(schema, *files):
    """Check the form of YAML files by a schema that the linter brings along."""
    arguments = ("--builtin-schema", f"vendor.{schema}", "--default-filetype", "yaml")
    return run([BESIDE / "check-jsonschema", *arguments, *files], ROOT)


def check_safety(file):
    """Look for what makes a workflow unsafe."""
    return run([BESIDE / "zizmor", "--offline", "--no-progress", file], ROOT)


def shellcheck(*arguments, text=None):
    """What shellcheck says of a script."""
    return subprocess.run(
        [BESIDE / "shellcheck", *arguments], input=text, capture_output=True, text=True, check=False
    )
