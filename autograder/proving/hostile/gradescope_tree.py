"""Grades hostile submissions in a Gradescope tree, and compares it before and after."""

import compileall
import json
import re
import secrets
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

from autograder.grading.sandbox.wire.frames import ChannelClosed
from autograder.grading.warm.judge_client import JudgeClient
from autograder.grading.warm.judge_messages import GradingRequest, JudgeOptions, SandboxInUse
from autograder.packaging.rehearsal import laid_out
from autograder.packaging.zip_contents import autograder_zip
from autograder.proving.hostile.corpus_test_selection import keep_only, kept_tests
from autograder.proving.hostile.hostile_corpus import HostileSubmission, honest_parts
from autograder.proving.hostile.leftover_traces import (
    Snapshot,
    differences,
    leftover_files,
    snapshot,
    survivors,
)
from autograder.proving.process_table import peak_memory_mb, reset_peak_memory
from autograder.semester import Semester
from autograder.zip_archive import zip_bytes
from common.assignment import ROOT, Assignment
from common.testing.graded_tests import HIDDEN_FILE, PUBLIC_FILE, read_graded_tests

SECONDS = 600  # the longest that a grading may take before the tree gives up
# Short, so that what hangs ends soon; what is honest here takes a tenth of a second.
LIMITS = {"test_seconds": 3, "total_seconds": 30}
WALL_SECONDS = 3
NUMPY_MEMORY_MB, TORCH_MEMORY_MB = 512, 1024
# Quick and certain exercises, if the first isn't: what follows an attack must still earn exactly
# these.
HONEST = {
    "a1": ["1.1", "1.7"],
    "a2": ["2.2"],
    "a3": ["3.4"],
    "a4": ["4.1"],
    "a5": ["5.4"],
    "a6": ["6.1"],
    "a7": ["7.1"],
}
# What a checkout has beside the content of a zip: code that does what exercises ask for.
CHECKOUT = ("common/standins", "common/labs/standins", "solutions")


@dataclass(frozen=True)
class Graded:
    """What was to be seen after a submission was graded."""

    results: bytes
    printed: str
    seconds: float
    uid: int | None
    changes: list[str]
    leftover_files: list[str]
    survivors: list[str]
    peak_mb: float | None  # of the judge; None where another process graded

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


class GradescopeTree:
    """Grades hostile submissions to one assignment, in one slot, with the content of its zip."""

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment
        word = secrets.token_hex(8)
        # One secret in each location from which nothing may leak.
        self.canaries = {
            place: f"canary-{place}-{word}"
            for place in ("hidden", "salt", "metadata", "environment")
        }
        self.stack = ExitStack()
        scratch = Path(
            self.stack.enter_context(tempfile.TemporaryDirectory(prefix="conv2gpt-tree-"))
        )
        archive = scratch / f"{assignment.short}-autograder.zip"
        archive.write_bytes(zip_bytes(prepared_zip(assignment, self.canaries)))
        (scratch / "nothing").mkdir()
        self.root = self.stack.enter_context(laid_out(archive, scratch / "nothing"))
        source = self.root / "source"
        self.graded_tests = read_graded_tests(source / "tests" / assignment.name)
        self.parts = honest_parts(assignment, honest_exercises(assignment))
        compileall.compile_dir(source, quiet=2)  # or the first import of a file would be a change
        self.home = self.root / "home"
        self.home.mkdir()
        self.output = scratch / "output"
        self.judge = self.start()
        self.sandbox: SandboxInUse | None = None
        self.cold: int | None = None  # the pid of a grading from a cold start
        self.beside: list[GradescopeTree] = []
        self.settled = False
        try:
            self.honest = self.grade_honest()  # whatever Python caches is there after this one
            self.settled = True
            self.honest = self.grade_honest()
        except BaseException:
            self.close()
            raise

    def start(self) -> JudgeClient:
        """Start the warm judge in the tree. All that it prints is read after each grading."""
        with self.output.open("ab") as output:
            return JudgeClient(
                self.root / "source",
                JudgeOptions(self.assignment.short),
                reply_timeout=SECONDS,
                environment=self.environment(),
                output=output,
            )

    def environment(self) -> dict[str, str]:
        """What the judge's process finds: a home of its own, and a secret."""
        return {
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HOME": str(self.home),
            "CONV2GPT_PREFIX": sys.prefix,
            "JUDGE_SECRET": self.canaries["environment"],
        }

    def grade(self, entry: HostileSubmission, honest: Mapping[str, str]) -> Graded:
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
        """Grade a submission, and compare the tree before and after."""
        before, start = self.look(), time.monotonic()
        reset_peak_memory(self.judge.process.pid)
        if cold:
            self.run_cold()
        else:
            self.sandbox = self.run_warm(handed_in)
        assert self.sandbox is not None  # the first of a tree is never cold
        seconds = time.monotonic() - start
        peak_mb = None if cold else peak_memory_mb(self.judge.process.pid)
        results = (self.root / "results" / "results.json").read_bytes()
        uid = None if cold else self.sandbox.uid  # run_autograder takes another one
        folder = Path(self.sandbox.folder)
        homes = folder / "homes"
        elsewhere = set().union(*(tree.judges for tree in self.beside))
        places = [Path("/root"), Path(sys.prefix), *map(Path, sys.path), homes, folder]
        graded = Graded(
            results=results,
            printed=self.output.read_text("utf-8", "replace"),
            seconds=seconds,
            uid=uid,
            changes=differences(before, self.look()) if self.settled else [],
            leftover_files=leftover_files(uid, places) + [str(home) for home in homes.glob("*")],
            survivors=survivors(uid, self.judge.process.pid, {*self.sandbox.servers}, elsewhere),
            peak_mb=peak_mb,
        )
        beside = {item.name for item in (self.root / "results").iterdir()} - {"results.json"}
        return replace(graded, changes=[*graded.changes, *sorted(beside)])

    def run_warm(self, handed_in: Path) -> SandboxInUse:
        """Have the warm judge grade, and write the result where run_autograder writes it."""
        request = GradingRequest(tree=str(self.root), submitted=str(handed_in))
        try:
            reply = self.judge.grade(request)
        except (ChannelClosed, OSError):
            raise RuntimeError(f"the judge gave no answer:\n{self.output.read_text()}") from None
        if reply.sandbox is None:
            raise RuntimeError(f"the judge graded nothing: {reply.fault}")
        return reply.sandbox

    def run_cold(self) -> None:
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
        return {self.judge.process.pid} | ({self.cold} if self.cold else set())

    def close(self) -> None:
        """End the judge and remove the tree."""
        self.judge.close()
        self.stack.close()

    def __enter__(self) -> "GradescopeTree":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def honest_exercises(assignment: Assignment) -> list[str]:
    """The exercises that an honest submission solves."""
    return HONEST.get(assignment.short, [assignment.exercises[0].number])


def prepared_zip(assignment: Assignment, canaries: Mapping[str, str]) -> dict[str, bytes]:
    """The content of the assignment's zip, with secrets to look for, and made quick.

    What else lies in a checkout is there too. Limits are short, and of tests that would meet an
    attack in the same way, one is kept.
    """
    members = autograder_zip(assignment, Semester("hostile", canaries["salt"]).to_bytes())
    kept = kept_tests(assignment)
    for name in (PUBLIC_FILE, HIDDEN_FILE):
        file = f"tests/{assignment.name}/{name}"
        members[file] = keep_only(members[file].decode(), kept).encode()
    members[file] += f'\nSECRET = "{canaries["hidden"]}"\n'.encode()
    settings = f"assignments/{assignment.name}/assignment.toml"
    text = members[settings].decode()
    memory_mb = TORCH_MEMORY_MB if "torch" in assignment.libraries else NUMPY_MEMORY_MB
    for key, value in {**LIMITS, "memory_mb": memory_mb}.items():
        text = re.sub(rf"(?m)^{key} = .*$", f"{key} = {value}", text)
    members[settings] = text.replace(
        "[limits]", f"[limits]\nwall_seconds = {WALL_SECONDS}"
    ).encode()
    for folder in CHECKOUT:
        for path in (ROOT / folder).rglob("*.py"):
            members[str(path.relative_to(ROOT))] = path.read_bytes()
    return members
