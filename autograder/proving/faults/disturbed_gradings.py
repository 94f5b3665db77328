"""Runs gradings, lets a fault strike each, and watches what becomes of their results."""

import importlib
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from autograder.grading.grade import grade
from autograder.grading.gradescope import told_if_it_fails
from autograder.grading.judge import Settings
from autograder.grading.sandbox.kernel.syscalls import PR_SET_PDEATHSIG, prctl
from autograder.grading.submission import Submission
from autograder.proving.faults.grading_faults import FAULTS, Fault, JumpingClock
from autograder.proving.faults.grading_processes import Scene, is_alive, lay_out, own_mounts
from autograder.proving.faults.result_checks import complaints, read_whole, scores
from autograder.semester import Semester
from common.assignment import ROOT, Assignment, Limits, load_assignment
from common.errors import CourseError, GraderFault
from common.testing.graded_tests import TIMING, read_roster

SEMESTER = Semester("chaos", "a salt for faults")
TESTS = 10
AT_ONCE = 2
POLL_SECONDS = 0.006
LONGEST = 300.0  # seconds that a grading may take
GONE_SECONDS = 60.0
BROKEN = "\n\ndef conv2d_backward(dout, cache):\n    return cache\n\n\nconv_parameters = None\n"


@dataclass(frozen=True)
class Report:
    """What became of one grading that a fault struck."""

    number: int
    fault: str
    seconds: float  # into the grading
    told: str  # what the result, or the judge, says of it
    points: float
    complaints: tuple[str, ...]


class Run:
    """One grading in a process of its own, from its start to the check of its result."""

    def __init__(self, chaos: "Chaos", number: int, fault: Fault | None, moment: float) -> None:
        self.chaos, self.number, self.fault, self.moment = chaos, number, fault, moment
        self.rng = random.Random(f"{chaos.seed}-{number}")
        folder = chaos.folder / f"run-{chaos.started}"
        chaos.started += 1
        lay_out(folder, chaos.own_disks)
        self.errors = folder / "errors"
        self.start = time.monotonic()
        self.struck: float | None = None
        self.torn: list[str] = []
        self.seen = False
        judge = os.fork()
        if judge == 0:
            chaos.judge(folder, self.errors, self.rng if fault and fault.clock else None)
        self.scene = Scene(folder, judge, chaos.own_disks)
        self.status: int | None = None

    def step(self) -> bool:
        """Look at the result, strike when it is time; whether the grading is over."""
        self.read()
        passed = time.monotonic() - self.start
        due = self.fault is not None and self.struck is None and passed >= self.moment
        # Where there is no result yet, none can be kept: what is tried is gradings under way.
        if due and self.seen and self.fault and self.fault.strike(self.scene, self.rng):
            self.struck = passed
        if passed > LONGEST:
            self.torn.append(f"the judge still ran after {LONGEST:g} s")
            os.kill(self.scene.judge, signal.SIGKILL)
        ended, status = os.waitpid(self.scene.judge, os.WNOHANG)
        if ended:
            self.status, self.scene.ended = os.waitstatus_to_exitcode(status), True
        return bool(ended)

    def read(self) -> None:
        """What any reader would find now."""
        try:
            read_whole(self.scene.out)
            self.seen = True
        except FileNotFoundError:
            if self.seen:
                self.torn.append("the result vanished")
        except ValueError as error:
            self.torn.append(f"a reader found a result that isn't whole: {error}")

    def report(self) -> Report:
        """Check what is left, and clear it away."""
        found = [*dict.fromkeys(self.torn)]
        told, points = "", 0.0
        try:
            result = read_whole(self.scene.out)
            found += complaints(result, self.chaos.earned, self.status == 0)
            points = sum(scores(result).values())
            told = self.sentence(result)
        except (OSError, ValueError) as error:
            found.append(f"there is no result at the end: {error}")
        found += self.leftovers()
        self.scene.clear()
        name = self.fault.name if self.fault else ""
        return Report(self.number, name, self.struck or 0.0, told, points, tuple(found))

    def sentence(self, result: dict) -> str:
        """What is said of it: by the judge as it ended, by the result, or by the tests it cost."""
        said = self.errors.read_text("utf-8", "replace").strip().splitlines()
        if self.status not in (0, None) and said:
            return said[-1].replace(f"{self.scene.folder}/", "")
        lines = result["output"].split("\n\n")
        notes = [line for line in lines if not line.startswith("Graded with")]
        lost = [test for test in result["tests"] if self.chaos.cost(test)]
        return (notes or [test["output"].split("\n\n")[1] for test in lost] or ["no harm done"])[0]

    def leftovers(self) -> list[str]:
        """Processes that outlive their judge, and folders that nobody will remove."""
        end = time.monotonic() + GONE_SECONDS
        while time.monotonic() < end:
            alive = [process for process in self.scene.servers if is_alive(process)]
            left = [path.name for path in self.scene.scratch.glob("conv2gpt-*")]
            if not alive and not left:
                return []
            time.sleep(0.02)
        return [f"left behind: {', '.join([*map(str, alive), *left])}"]


class Chaos:
    """Many gradings of one submission that is half right."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed, self.started = folder, seed, 0
        self.own_disks = own_mounts()
        # Time enough on a busy machine: what is late is to be late because of a fault.
        a1, limits = (
            load_assignment("a1"),
            Limits(test_seconds=30, total_seconds=240, memory_mb=1024),
        )
        self.assignment: Assignment = msgspec.structs.replace(a1, limits=limits)
        source = ROOT / "solutions" / self.assignment.name / self.assignment.files[0]
        code = source.read_text("utf-8") + BROKEN
        self.submission = Submission({self.assignment.files[0]: code.encode()})
        roster = read_roster(ROOT / "tests" / self.assignment.name)
        quick = [test.name for test in roster if TIMING not in test.tags]
        self.only = tuple(random.Random(seed).sample(quick, TESTS))
        self.earned: dict[str, float] = {}
        self.seconds = 1.0
        sys.path.insert(0, str(ROOT))
        # Once, here, and not in each judge: it takes PyTorch seconds.
        importlib.import_module(f"tests.{self.assignment.name}.oracle")

    def judge(self, folder: Path, errors: Path, clock: random.Random | None) -> None:
        """Be the judge of one grading. Never returns."""
        code = 1
        try:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # it ends with us, however we end
            descriptor = os.open(errors, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
            os.dup2(descriptor, 1)
            os.dup2(descriptor, 2)
            tempfile.tempdir = str(folder / "scratch")
            if clock is not None:
                time.monotonic = JumpingClock(clock)
            out = folder / "results" / "results.json"
            settings = Settings(SEMESTER, out=out, only=self.only, private=(out.parent,))
            with told_if_it_fails(self.assignment, out):
                grade(self.assignment, self.submission, settings)
            code = 0
        except CourseError as error:
            os.write(2, f"{error}\n".encode())
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(code)

    def cost(self, test: dict) -> bool:
        """Whether a test got fewer points than it does undisturbed."""
        return test["score"] < self.earned.get(test["extra_data"]["test"], 0)

    def undisturbed(self) -> dict[str, float]:
        """The points of a grading that nothing strikes."""
        run = Run(self, -1, None, 0.0)
        while not run.step():
            time.sleep(POLL_SECONDS)
        self.seconds = time.monotonic() - run.start
        try:
            result = read_whole(run.scene.out)
        except (OSError, ValueError):
            raise GraderFault(f"nothing was graded:\n{run.errors.read_text()}") from None
        run.scene.clear()
        if not result["extra_data"]["finished"]:
            said = " ".join([*run.torn, run.errors.read_text("utf-8", "replace")])
            raise GraderFault(f"an undisturbed grading failed: {result['output']} {said}")
        return scores(result)

    def strike(self, faults: int, on_report: Callable[[Report], None]) -> list[Report]:
        """Let so many faults strike, some gradings at a time."""
        self.earned = self.undisturbed()
        wanted = self.wanted(faults)
        running: list[Run] = []
        reports: list[Report] = []
        try:
            while running or len(reports) < faults:
                while len(running) < AT_ONCE and (order := next(wanted, None)) is not None:
                    running.append(Run(self, *order))
                time.sleep(POLL_SECONDS)
                for run in [run for run in running if run.step()]:
                    running.remove(run)
                    report = run.report()
                    if run.struck is None and run.fault and not report.complaints:
                        # It ended before the fault found its moment: once more, and earlier.
                        running.append(Run(self, run.number, run.fault, run.moment / 2))
                        continue
                    reports.append(report)
                    on_report(report)
        finally:
            for run in running:
                run.scene.clear()
        return reports

    def wanted(self, faults: int) -> Iterator[tuple[int, Fault, float]]:
        """Each kind equally often, in an order and at moments that the seed decides."""
        rng = random.Random(self.seed)
        kinds = [FAULTS[number % len(FAULTS)] for number in range(faults)]
        rng.shuffle(kinds)
        for number, kind in enumerate(kinds):
            yield number, kind, rng.uniform(0, self.seconds)


def lasting_harm(chaos: Chaos) -> list[str]:
    """What is wrong with a grading after all faults; it must be as it was before any."""
    try:
        after = chaos.undisturbed()
    except GraderFault as error:
        return [str(error)]
    changed = [name for name in after if after[name] != chaos.earned[name]]
    return [f"after all faults, {name} gets other points than before" for name in changed]
