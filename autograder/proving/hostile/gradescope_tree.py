"""A tree like Gradescope's in which one hostile submission after another is graded, and watched."""

import compileall
import json
import os
import re
import secrets
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autograder.packaging.rehearsal import laid_out
from autograder.packaging.zip_contents import autograder_zip
from autograder.proving.hostile.corpus_test_selection import keep_only, kept_tests
from autograder.proving.hostile.hostile_corpus import Entry, honest_parts
from autograder.proving.hostile.leftover_traces import (
    Snapshot,
    differences,
    snapshot,
    strays,
    survivors,
)
from autograder.semester import Semester
from autograder.zip_archive import zip_bytes
from common.assignment import Assignment
from common.testing.graded_tests import HIDDEN_FILE, PUBLIC_FILE, read_roster

WARM = Path(__file__).with_name("warm.py")
SECONDS = 600  # the longest that a grading may take before the lane gives up
# Short, so that what hangs ends soon; what is honest here takes a tenth of a second.
LIMITS = {"test_seconds": 3, "total_seconds": 30}
MEMORY_MB = {"a1": 512, "a5": 1024}
# Quick and certain exercises: what follows an attack must still earn exactly these.
HONEST = {"a1": ["1.1", "1.7"], "a5": ["5.4"]}


@dataclass(frozen=True)
class Graded:
    """What was to be seen after a submission was graded."""

    results: bytes
    printed: str
    seconds: float
    uid: int | None
    changes: list[str]
    strays: list[str]
    survivors: list[str]

    @property
    def content(self) -> dict[str, Any]:
        """results.json."""
        return json.loads(self.results)

    @property
    def passed(self) -> set[str]:
        """The names of the tests that gave points."""
        return {test["extra_data"]["test"] for test in self.content["tests"] if test["score"] > 0}

    @property
    def timeless(self) -> dict[str, Any]:
        """results.json without what differs from run to run."""
        return {**self.content, "execution_time": 0}


class Lane:
    """Grades hostile submissions to one assignment, in one slot, with the content of its zip."""

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment
        word = secrets.token_hex(8)
        # One secret in each place from which nothing may get out.
        self.canaries = {
            place: f"canary-{place}-{word}"
            for place in ("hidden", "salt", "metadata", "environment")
        }
        self.stack = ExitStack()
        scratch = Path(
            self.stack.enter_context(tempfile.TemporaryDirectory(prefix="conv2gpt-lane-"))
        )
        archive = scratch / f"{assignment.short}-autograder.zip"
        archive.write_bytes(zip_bytes(prepared_zip(assignment, self.canaries)))
        (scratch / "nothing").mkdir()
        self.root = self.stack.enter_context(laid_out(archive, scratch / "nothing"))
        source = self.root / "source"
        self.roster = read_roster(source / "tests" / assignment.name)
        self.parts = honest_parts(assignment, HONEST[assignment.short])
        compileall.compile_dir(source, quiet=2)  # or the first import of a file would be a change
        self.home = self.root / "home"
        self.home.mkdir()
        self.output = scratch / "output"
        self.process, self.jobs, self.answers = self.start()
        self.servers: set[int] = set()
        self.folder, self.uid = scratch, None
        self.cold: int | None = None  # the pid of a grading from a cold start
        self.beside: list[Lane] = []
        self.settled = False
        try:
            self.honest = self.grade_honest()  # whatever Python caches is there after this one
            self.settled = True
            self.honest = self.grade_honest()
        except BaseException:
            self.close()
            raise

    def start(self) -> tuple[subprocess.Popen, int, int]:
        """Start the warm judge in the tree."""
        incoming, jobs = os.pipe()
        answers, outgoing = os.pipe()
        with self.output.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-E", "-s", "-P", WARM, self.root, str(incoming), str(outgoing)],
                cwd=self.root / "source",
                env=self.environment(),
                pass_fds=[incoming, outgoing],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        os.close(incoming)
        os.close(outgoing)
        return process, jobs, answers

    def environment(self) -> dict[str, str]:
        """What the judge's process finds: a home of its own, and a secret."""
        return {
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HOME": str(self.home),
            "CONV2GPT_PREFIX": sys.prefix,
            "JUDGE_SECRET": self.canaries["environment"],
        }

    def grade(self, entry: Entry, honest: Mapping[str, str]) -> Graded:
        """Grade an entry of the corpus, with its honest parts."""
        folder = self.empty_tree()
        return self.watch(entry.lay_out(folder, honest), cold=entry.cold)

    def grade_honest(self) -> Graded:
        """Grade a submission that does nothing but a few exercises, right."""
        folder = self.empty_tree()
        for name, source in self.parts.items():
            (folder / name).write_text(source)
        return self.watch(folder)

    def empty_tree(self) -> Path:
        """Do as Gradescope's harness does before each submission; where the submission goes."""
        for name in ("submission", "results"):
            shutil.rmtree(self.root / name)
            (self.root / name).mkdir(mode=0o700)
        metadata = self.root / "submission_metadata.json"
        users = [{"email": "student@example.edu", "id": 1, "name": self.canaries["metadata"]}]
        metadata.write_text(json.dumps({"id": 1, "users": users}))
        metadata.chmod(0o600)
        return self.root / "submission"

    def look(self) -> Snapshot:
        """The tree as it is, but for the results."""
        return snapshot(self.root, [self.root / "results"])

    def watch(self, handed_in: Path, cold: bool = False) -> Graded:
        """Grade what was handed in, and look around before and after."""
        before, start = self.look(), time.monotonic()
        run = self.run_cold if cold else self.run_warm
        run(handed_in)
        seconds = time.monotonic() - start
        results = (self.root / "results" / "results.json").read_bytes()
        uid = None if cold else self.uid  # run_autograder takes another one
        homes = self.folder / "homes"
        elsewhere = set().union(*(lane.judges for lane in self.beside))
        places = [Path("/root"), Path(sys.prefix), *map(Path, sys.path), homes, self.folder]
        graded = Graded(
            results=results,
            printed=self.output.read_text("utf-8", "replace"),
            seconds=seconds,
            uid=uid,
            changes=differences(before, self.look()) if self.settled else [],
            strays=strays(uid, places) + [str(home) for home in homes.glob("*")],
            survivors=survivors(uid, self.process.pid, self.servers, elsewhere),
        )
        beside = {item.name for item in (self.root / "results").iterdir()} - {"results.json"}
        return replace(graded, changes=[*graded.changes, *sorted(beside)])

    def run_warm(self, handed_in: Path) -> None:
        """Have the warm judge grade."""
        os.write(self.jobs, json.dumps(str(handed_in)).encode() + b"\n")
        ready, _, _ = select.select([self.answers], [], [], SECONDS)
        answer = os.read(self.answers, 1 << 16) if ready else b""
        if not answer:
            raise RuntimeError(f"the judge gave no answer:\n{self.output.read_text()}")
        told = json.loads(answer)
        self.servers, self.folder = set(told["servers"]), Path(told["folder"])
        self.uid = told["uid"]

    def run_cold(self, handed_in: Path) -> None:
        """Have the zip's own script grade, from a cold start."""
        script = self.root / "run_autograder"
        with (
            self.output.open("ab") as output,
            subprocess.Popen(
                [script],
                cwd=self.root,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            ) as process,
        ):
            self.cold = process.pid
            try:
                code = process.wait(timeout=SECONDS)
            finally:
                process.kill()  # which does nothing to one that has ended
                self.cold = None
        if code:
            raise subprocess.CalledProcessError(code, script)

    @property
    def judges(self) -> set[int]:
        """The processes that grade here now."""
        return {self.process.pid} | ({self.cold} if self.cold else set())

    def close(self) -> None:
        """End the judge and remove the tree."""
        os.close(self.jobs)
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.answers)
        self.stack.close()

    def __enter__(self) -> "Lane":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def prepared_zip(assignment: Assignment, canaries: Mapping[str, str]) -> dict[str, bytes]:
    """The content of the assignment's zip, with secrets to look for, and made quick.

    Limits are short, and of tests that would meet an attack in the same way, one is kept.
    """
    members = autograder_zip(assignment, Semester("hostile", canaries["salt"]).to_bytes())
    kept = kept_tests(assignment)
    for name in (PUBLIC_FILE, HIDDEN_FILE):
        file = f"tests/{assignment.name}/{name}"
        members[file] = keep_only(members[file].decode(), kept).encode()
    members[file] += f'\nSECRET = "{canaries["hidden"]}"\n'.encode()
    settings = f"assignments/{assignment.name}/assignment.toml"
    text = members[settings].decode()
    for key, value in {**LIMITS, "memory_mb": MEMORY_MB[assignment.short]}.items():
        text = re.sub(rf"(?m)^{key} = .*$", f"{key} = {value}", text)
    members[settings] = text.encode()
    return members
