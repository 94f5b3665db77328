"""Scratch copies of the repository and of built zips, and commands that run in them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from autograder.zip_archive import unpack, zip_bytes
from common.assignment import ROOT

FOLDERS = ("assignments", "autograder", "common", "docs", "solutions", "tests")
FILES = ("Makefile", "pyproject.toml", "requirements.txt")
# One assignment stands for all: with every one, each test that runs `make` would take minutes.
LEFT_OUT = shutil.ignore_patterns("__pycache__", "tooling", "a[2-9]_*", "a[1-9][0-9]_*")


def run(
    command: list[str | Path], cwd: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; whether it succeeded is for the test to say."""
    return subprocess.run(
        command,
        cwd=cwd,
        env={**clean_environment(), **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )


def python(
    *arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run this Python."""
    return run([sys.executable, *arguments], cwd, env)


def clean_environment() -> dict[str, str]:
    """The environment without what an outer make or pytest has put there."""
    outer = ("MAKE", "MFLAGS", "PYTEST", "PYTHONPATH", "COLUMNS")
    return {key: value for key, value in os.environ.items() if not key.startswith(outer)}


def open_to_others(folder: Path) -> None:
    """Let any user enter a scratch folder, however deep pytest and its workers have put it."""
    for place in (folder, *folder.parents):
        if any(part.startswith("pytest-of-") for part in place.parts):
            place.chmod(0o755)


def copy_repo(target: Path) -> Path:
    """The repo with assignment 1 alone, no tests of the machinery, and this Python as its .venv."""
    for name in FOLDERS:
        shutil.copytree(ROOT / name, target / name, ignore=LEFT_OUT)
    for name in FILES:
        shutil.copy(ROOT / name, target / name)
    give_python(target)
    (target / ".venv" / ".installed").touch()
    return target


def copy_finished(target: Path, assignments: str) -> Path:
    """A student's folder in which the assignments of that pattern are finished."""
    ignore = shutil.ignore_patterns("__pycache__", "alternatives", "*.toml", "images")
    for kind in ("assignments", "solutions"):  # a solution over its stub
        for folder in (ROOT / kind).glob(assignments):
            place = target / "assignments" / folder.name
            shutil.copytree(folder, place, ignore=ignore, dirs_exist_ok=True)
    shutil.copytree(ROOT / "common", target / "common", ignore=ignore)
    return target


def unzip(members: Mapping[str, bytes], target: Path) -> Path:
    """What a zip of these members unpacks to."""
    archive = target.with_suffix(".zip")
    archive.write_bytes(zip_bytes(members))
    unpack(archive, target)
    return target


def give_python(folder: Path) -> None:
    """Make this Python the one in the folder's .venv."""
    file = folder / ".venv" / "bin" / "python"
    file.parent.mkdir(parents=True)
    script(file, f'exec "{sys.executable}" "$@"')


def script(file: Path, text: str) -> None:
    """Write an executable shell script."""
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
