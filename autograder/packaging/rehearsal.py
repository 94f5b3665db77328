"""Runs a built zip's run_autograder in a scratch copy of Gradescope's file tree."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from autograder.zip_archive import unpack
from common.errors import CourseError

SECONDS = 40 * 60  # the most that Gradescope allows
RUNNING: set[subprocess.Popen[str]] = set()  # in all threads
METADATA = {
    "id": 1,
    "submission_method": "upload",
    "users": [{"email": "ada@example.edu", "id": 1, "name": "Ada Example"}],
    "previous_submissions": [],
}


@dataclass(frozen=True)
class Rehearsal:
    """What came out of one run of run_autograder."""

    results: dict[str, Any]
    output: str

    @property
    def score(self) -> float:
        """The points, as Gradescope would add them up."""
        return sum(test["score"] for test in self.results["tests"])

    @property
    def maximum(self) -> float:
        """The points there are."""
        return sum(test["max_score"] for test in self.results["tests"])

    @property
    def not_run(self) -> set[str]:
        """The names of the tests that need what this machine lacks."""
        return {
            test["extra_data"]["test"]
            for test in self.results["tests"]
            if not test["extra_data"]["ran"]
        }

    @property
    def tests(self) -> int:
        """The number of tests."""
        return len(self.results["tests"])


@contextmanager
def laid_out(archive: Path, submission: Path) -> Iterator[Path]:
    """A tree like /autograder: source/, run_autograder, submission/, results/, the metadata."""
    with TemporaryDirectory(prefix="conv2gpt-gradescope-") as scratch:
        root = Path(scratch) / "autograder"
        unpack(archive, root / "source")
        shutil.copy(root / "source" / "run_autograder", root / "run_autograder")
        (root / "results").mkdir()
        (root / "submission_metadata.json").write_text(json.dumps(METADATA))
        if submission.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            try:
                shutil.copytree(submission, root / "submission", symlinks=True, ignore=ignored)
            except shutil.Error as error:  # all that it could not copy: the first will do
                file, _, reason = error.args[0][0]
                raise CourseError(f"{file} can't be copied: {reason}.") from None
        else:
            (root / "submission").mkdir()
            shutil.copy(submission, root / "submission" / submission.name)
        yield root


def rehearse(
    archive: Path, submission: Path, *options: str, prefix: Path = Path(sys.prefix)
) -> Rehearsal:
    """Grade a submission with the zip's own run_autograder, and Python from the given prefix."""
    if not archive.is_file():
        raise CourseError(f"{archive} is missing: run `make`.")
    if not submission.exists():
        raise CourseError(f"{submission} does not exist.")
    with laid_out(archive, submission) as root:
        with subprocess.Popen(
            [root / "run_autograder", *options],
            cwd=root,
            env={"PATH": "/usr/bin:/bin", "CONV2GPT_PREFIX": str(prefix), "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            RUNNING.add(process)
            try:
                output, _ = process.communicate(timeout=SECONDS)
            finally:
                process.kill()  # it still runs where there was an error
                RUNNING.discard(process)
        try:
            results = json.loads((root / "results" / "results.json").read_text("utf-8"))
        except (OSError, ValueError):
            raise CourseError(f"run_autograder wrote no result:\n{output}") from None
    return Rehearsal(results, output)


def end_rehearsals() -> None:
    """End the gradings that other threads wait for; a signal to this process doesn't reach them."""
    for process in RUNNING.copy():
        process.terminate()
