"""Tests of the scratch folder of a batch's driver: its lock and its removal."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from autograder.batch.engines import driver_scratch
from autograder.batch.engines.driver_scratch import LOCK, PREFIX, Scratch, clear_leftovers
from autograder.batch.engines.local_engine import LocalEngine
from autograder.zip_archive import zip_bytes
from common.assignment import ROOT, load_assignment

DRIVER = """
from pathlib import Path
from sys import argv
from autograder.batch.engines.local_engine import LocalEngine
from common.assignment import load_assignment
engine = LocalEngine(load_assignment("a1"), Path(argv[1]), 1)
print(engine.source, flush=True)
input()
engine.close()
"""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch) -> Path:
    """The folder for temporary files."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


@pytest.fixture
def driver(tmp_path, place):
    """A process that has started the local engine."""
    (tmp_path / "grader.zip").write_bytes(zip_bytes({"tests/secret.py": b"salt = 1\n"}))
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, tmp_path / "grader.zip"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(place)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        process.source = Path(process.stdout.readline().strip())
        yield process
        process.kill()


def test_a_killed_driver_s_folder_is_cleared_by_the_next_and_a_living_one_s_is_not(driver, place):
    clear_leftovers()
    assert (driver.source / "tests" / "secret.py").is_file()
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    assert driver.source.is_dir()
    clear_leftovers()
    assert not [*place.iterdir()]


def test_a_driver_that_ends_leaves_no_folder(driver, place):
    driver.communicate("\n")
    assert driver.returncode == 0 and not [*place.iterdir()]


def test_a_zip_that_cannot_be_unpacked_leaves_no_folder(tmp_path, place):
    (tmp_path / "grader.zip").write_bytes(b"no zip")
    with pytest.raises(Exception, match="zip"):
        LocalEngine(load_assignment("a1"), tmp_path / "grader.zip", 1)
    assert not [*place.iterdir()]


def test_what_is_not_a_driver_s_folder_stays(tmp_path, place):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "thesis.txt").touch()
    (place / f"{PREFIX}link").symlink_to(tmp_path / "elsewhere")
    (place / f"{PREFIX}file").touch()
    (place / "conv2gpt-another").mkdir()
    clear_leftovers()
    assert len([*place.iterdir()]) == 3
    assert [item.name for item in (tmp_path / "elsewhere").iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("uid", (0, 1, 12345))
def test_another_user_s_folder_stays(uid, place, monkeypatch):
    (place / f"{PREFIX}x").mkdir()
    monkeypatch.setattr(driver_scratch.os, "getuid", lambda: place.stat().st_uid + uid)
    clear_leftovers()
    assert [*place.iterdir()] == [] if uid == 0 else [place / f"{PREFIX}x"]


def test_a_folder_that_is_cleared_before_it_is_locked_is_made_again(monkeypatch):
    make, made = tempfile.mkdtemp, []

    def make_and_lose(**given) -> str:
        made.append(make(**given))
        if len(made) == 1:
            clear_leftovers()
        return made[-1]

    monkeypatch.setattr(driver_scratch.tempfile, "mkdtemp", make_and_lose)
    kept = Scratch()
    assert [Path(folder).exists() for folder in made] == [False, True]
    assert str(kept.folder) == made[1]
    kept.remove()


def test_a_lock_that_was_waited_for_and_is_gone_does_not_count(place, monkeypatch):
    """Whoever clears has opened the lock of a folder that another cleared and a third made anew."""
    made = Scratch()
    flock = driver_scratch.fcntl.flock

    def late(lock: int, how: int) -> None:
        os.close(made.lock)
        (made.folder / LOCK).unlink()
        made.lock = os.open(made.folder / LOCK, os.O_CREAT | os.O_RDWR)
        flock(made.lock, how)
        flock(lock, how)

    monkeypatch.setattr(driver_scratch.fcntl, "flock", late)
    clear_leftovers()
    assert made.folder.is_dir()
