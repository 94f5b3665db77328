"""Writes a submission's files where children can read them, and compiles them once."""

import compileall
import importlib.util
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from autograder.grading.sandbox.conversation import Conversation
from common.assignment import ROOT, STANDINS

# The head of a .pyc file that Python doesn't compare with its source: a flag, and no hash.
UNCHECKED = (1).to_bytes(4, "little") + bytes(8)


def place_package(files: Mapping[str, bytes], folder: Path) -> None:
    """Write a package that every user can read and only we can change; it replaces the last."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    open_to_all(folder)


def copy_common(target: Path) -> None:
    """A copy of common/, compiled, without stand-ins.

    They do what exercises ask for. And a descriptor of the original would lead to the tests.
    """
    shutil.copytree(ROOT / "common", target, ignore=shutil.ignore_patterns(STANDINS.name))
    compileall.compile_dir(target, quiet=2)
    open_to_all(target)


def open_to_all(target: Path) -> None:
    """Let every user read a folder and what is in it, and only us change it."""
    for path in [target, *target.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def compile_files(folder: Path, files: tuple[str, ...], child: Conversation) -> None:
    """Have the submission compiled by a child that runs nothing of it, for all others.

    The bytecode goes to where Python looks for it. Here it is bytes, and is never loaded.
    """
    (folder / "__pycache__").mkdir(exist_ok=True)
    (folder / "__pycache__").chmod(0o755)
    for file in files:
        # What doesn't compile is reported by the tests, each in its own words.
        with suppress(Exception):
            code = child.ask("compile", file)
            target = Path(importlib.util.cache_from_source(str(folder / file)))
            target.write_bytes(importlib.util.MAGIC_NUMBER + UNCHECKED + code)
            target.chmod(0o644)
