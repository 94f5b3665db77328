"""Runs a submission through gradescope-utils or otter-grader, in a pid namespace."""

import json
import os
import subprocess
import sys
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from autograder.benchmarks.other_graders.comparison_exercise import (
    HIDDEN_SIZE,
    OTTER_TEST,
    RUN_AUTOGRADER,
    RUN_TESTS,
    UNITTEST,
)
from autograder.proving.hostile.hostile_corpus import SUCCESS_TEXT
from autograder.zip_archive import zip_bytes

INIT = Path(__file__).with_name("namespace_init.py")
CANARY = "canary-elsewhere"
SECONDS = 30  # after which a grader without a limit of its own counts as hung
TESTS = 4
SHOWN = ("visible", "after_published", "after_due_date", None)


@dataclass(frozen=True)
class Harm:
    """What a submission that solves nothing has got out of a grader."""

    points: float = 0.0  # which it has not earned
    secret: bool = False  # shown to the student
    deed: bool = False  # something done that must not be possible, as its own words say
    lost: bool = False  # no complete result, or none in time
    left: bool = False  # a process that keeps running

    def __str__(self) -> str:
        kinds = ("secret", "deed", "lost", "left")
        words = [f"{self.points:g} points"] if self.points else []
        return ", ".join(words + [kind for kind in kinds if getattr(self, kind)]) or "nothing"

    def __bool__(self) -> bool:
        return bool(self.points or self.secret or self.deed or self.lost or self.left)


class OtherGrader(ABC):
    """A grader that is given the submission's text as convolution.py."""

    name: str

    @abstractmethod
    def lay_out(self, folder: Path, source: str) -> list[str]:
        """Write what the grader needs into a folder; the command that grades."""

    def points(self, results: dict[str, Any]) -> tuple[float, float]:
        """The points that a result gives, and how many it says there are."""
        tests = results["tests"]
        given = results.get("score", sum(test.get("score", 0) for test in tests))
        return float(given), float(sum(test.get("max_score", 0) for test in tests))

    def missing(self) -> str:
        """Why the grader can't be run here; nothing if it can."""
        return "" if contained([sys.executable, "-c", ""], Path("/"), 10) else CANNOT_CONTAIN

    def grade(self, source: str) -> Harm:
        """Grade one submission."""
        with TemporaryDirectory(prefix="conv2gpt-elsewhere-") as scratch:
            root = Path(scratch) / "autograder"
            for name in ("source/tests", "submission", "results", "home"):
                (root / name).mkdir(parents=True)
            (root / "submission" / "convolution.py").write_text(source)
            outcome = contained(self.lay_out(root, source), root, SECONDS)
            if outcome is None:
                raise RuntimeError(f"{self.name} could not be run")
            results: dict[str, Any] | None = None
            with suppress(OSError, ValueError):
                results = json.loads((root / "results" / "results.json").read_text())
            return self.harm(results, outcome)

    def harm(self, results: dict[str, Any] | None, outcome: dict[str, Any]) -> Harm:
        """What a result, or there being none, means."""
        left = bool(outcome["left"])
        if results is None or not isinstance(results.get("tests"), list):
            return Harm(lost=True, left=left)
        points, maximum = self.points(results)
        shown = [test for test in results["tests"] if test.get("visibility") in SHOWN]
        text = json.dumps([results.get("output"), shown])
        forged = bool(points) and maximum != TESTS
        return Harm(
            points=points,
            secret=CANARY in text or str(HIDDEN_SIZE) in text,
            deed=SUCCESS_TEXT in text,
            lost=bool(outcome["timed_out"]) or (maximum < TESTS and not forged),
            left=left,
        )


CANNOT_CONTAIN = "not run: this machine has no `unshare` that could contain hostile code"


def contained(command: list[str], root: Path, seconds: float) -> dict[str, Any] | None:
    """Run a command in a process tree of its own; what it left. None where that can't be had."""
    user = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
    close = ["unshare", *user, "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
    environment = {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": str(root / "home"),
        "TMPDIR": str(root),
        "JUDGE_SECRET": CANARY,
    }
    try:
        finished = subprocess.run(
            [*close, sys.executable, "-I", INIT, str(seconds), *command],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds + 30,
            check=False,
        )
        return json.loads(finished.stdout.splitlines()[-1])  # after all that the grader printed
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired):
        return None


class GradescopeUtils(OtherGrader):
    """gradescope-utils' runner, as its documentation sets it up."""

    name = f"gradescope-utils {version('gradescope-utils')}"

    def lay_out(self, folder: Path, source: str) -> list[str]:
        (folder / "source" / "tests" / "test_exercise.py").write_text(with_canary(UNITTEST))
        (folder / "source" / "tests" / "__init__.py").touch()
        (folder / "source" / "run_tests.py").write_text(RUN_TESTS)
        script = folder / "run_autograder"
        script.write_text(RUN_AUTOGRADER.replace("@python@", sys.executable))
        script.chmod(0o755)
        return [str(script)]


class Otter(OtherGrader):
    """`otter run` of otter-grader, with the Python that has it."""

    def __init__(self, python: Path | None) -> None:
        self.python = python
        self.name = f"otter-grader {otter_version(python)}" if python else "otter-grader"

    def missing(self) -> str:
        if self.python is None:
            return "not run: otter-grader is not installed"
        return super().missing()

    def lay_out(self, folder: Path, source: str) -> list[str]:
        members = {
            "tests/convolution.py": with_canary(OTTER_TEST).encode(),
            "otter_config.json": b'{"lang": "python"}',
        }
        (folder / "autograder.zip").write_bytes(zip_bytes(members))
        submission = folder / "submission" / "convolution.py"
        run = ["-m", "otter", "run", "--no-logo", "-a", str(folder / "autograder.zip")]
        return [str(self.python), *run, "-o", str(folder / "results"), str(submission)]


def otter_version(python: Path) -> str:
    """Which otter-grader that Python has; empty where it has none."""
    ask = "from importlib.metadata import version; print(version('otter-grader'))"
    outcome = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
    return outcome.stdout.strip()


def with_canary(text: str) -> str:
    """The tests with the secret in them."""
    return text.replace("@canary@", CANARY)
