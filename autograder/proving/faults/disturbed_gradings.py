"""Runs gradings, injects one fault into each, and checks their results."""

import importlib
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from autograder.grading.grade import grade
from autograder.grading.gradescope import reporting_failure
from autograder.grading.judge import Settings
from autograder.grading.sandbox.kernel.syscalls import PR_SET_PDEATHSIG, prctl
from autograder.grading.submission import Submission
from autograder.proving.faults.fault_injector import Fault, FaultInjector, kill, plan_faults
from autograder.proving.faults.grading_faults import CLOCK_JUMPS, GRADING_FAULTS, JumpingClock
from autograder.proving.faults.grading_processes import RunningGrading, make_folders, own_mounts
from autograder.proving.faults.result_checks import (
    points_by_test,
    read_complete_result,
    result_problems,
    tests_with_fewer_points,
)
from autograder.proving.process_table import is_alive
from autograder.semester import Semester
from common.assignment import ROOT, Assignment, Limits, load_assignment
from common.errors import CourseError, GraderFault
from common.testing.graded_tests import TIMING, read_graded_tests

SEMESTER = Semester("chaos", "a salt for faults")
TESTS = 10
AT_ONCE = 2
POLL_SECONDS = 0.006
LONGEST = 300.0  # seconds that a grading may take
EXIT_SECONDS = 60.0
BROKEN = "\n\ndef conv2d_backward(dout, cache):\n    return cache\n\n\nconv_parameters = None\n"


@dataclass(frozen=True)
class FaultReport:
    """What became of one grading into which a fault was injected."""

    number: int
    fault: str
    seconds: float  # into the grading
    message: str  # what the result, or the judge, says of it
    points: float
    problems: tuple[str, ...]


class DisturbedGrading:
    """One grading in a process of its own, from its start to the check of its result."""

    def __init__(
        self,
        gradings: "DisturbedGradings",
        number: int,
        fault: Fault[RunningGrading] | None,
        moment: float,
    ) -> None:
        self.gradings, self.number, self.fault, self.moment = gradings, number, fault, moment
        rng = random.Random(f"{gradings.seed}-{number}")
        folder = gradings.folder / f"run-{gradings.started}"
        gradings.started += 1
        make_folders(folder, gradings.own_disks)
        self.errors = folder / "errors"
        start = time.monotonic()
        self.problems: list[str] = []
        self.result_seen = False
        judge = os.fork()
        if judge == 0:
            gradings.run_judge(folder, self.errors, rng if fault is CLOCK_JUMPS else None)
        self.grading = RunningGrading(folder, judge, gradings.own_disks, start)
        self.injector = FaultInjector([fault] if fault else [], rng, moment)
        self.status: int | None = None

    @property
    def missed(self) -> bool:
        """Whether the grading ended before the fault could be injected."""
        return self.fault is not None and not self.injector.injections

    def step(self) -> bool:
        """Read the result, inject the fault when it is time; whether the grading is over."""
        self.read_result()
        # Where there is no result yet, none can be kept: what is tried is gradings under way.
        if self.result_seen:
            self.injector.step(self.grading)
        if self.grading.progress > LONGEST:
            self.problems.append(f"the judge still ran after {LONGEST:g} s")
            kill(self.grading.judge)
        ended, status = os.waitpid(self.grading.judge, os.WNOHANG)
        if ended:
            self.status, self.grading.ended = os.waitstatus_to_exitcode(status), True
        return bool(ended)

    def read_result(self) -> None:
        """Read what any reader would find now."""
        try:
            read_complete_result(self.grading.out)
            self.result_seen = True
        except FileNotFoundError:
            if self.result_seen:
                self.problems.append("the result vanished")
        except ValueError as error:
            self.problems.append(f"a reader found an incomplete result: {error}")

    def report(self) -> FaultReport:
        """Check what is left, and remove it."""
        found = [*dict.fromkeys(self.problems)]
        message, points = "", 0.0
        try:
            result = read_complete_result(self.grading.out)
            found += result_problems(result, self.gradings.earned, self.status == 0)
            points = sum(points_by_test(result).values())
            message = self.message(result)
        except (OSError, ValueError) as error:
            found.append(f"there is no result at the end: {error}")
        found += self.leftovers()
        self.grading.remove()
        name = self.fault.name if self.fault else ""
        seconds = self.injector.injections[0].progress if self.injector.injections else 0.0
        return FaultReport(self.number, name, seconds, message, points, tuple(found))

    def message(self, result: dict[str, Any]) -> str:
        """What the judge said as it ended, or the result says, or the tests that lost points."""
        printed = self.errors.read_text("utf-8", "replace").strip().splitlines()
        if self.status not in (0, None) and printed:
            return printed[-1].replace(f"{self.grading.folder}/", "")
        lines = result["output"].split("\n\n")
        notes = [line for line in lines if not line.startswith("Graded with")]
        lost = tests_with_fewer_points(result, self.gradings.earned)
        return (notes or [test["output"].split("\n\n")[1] for test in lost] or ["no harm done"])[0]

    def leftovers(self) -> list[str]:
        """Processes that outlive their judge, and folders that nobody will remove."""
        end = time.monotonic() + EXIT_SECONDS
        while time.monotonic() < end:
            alive = [process for process in self.grading.servers if is_alive(process)]
            left = [path.name for path in self.grading.scratch.glob("conv2gpt-*")]
            if not alive and not left:
                return []
            time.sleep(0.02)
        return [f"left behind: {', '.join([*map(str, alive), *left])}"]


class DisturbedGradings:
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
        graded_tests = read_graded_tests(ROOT / "tests" / self.assignment.name)
        quick = [test.name for test in graded_tests if TIMING not in test.tags]
        self.only = tuple(random.Random(seed).sample(quick, TESTS))
        self.earned: dict[str, float] = {}
        self.seconds = 1.0
        sys.path.insert(0, str(ROOT))
        # Once, here, and not in each judge: it takes PyTorch seconds.
        importlib.import_module(f"tests.{self.assignment.name}.oracle")

    def run_judge(self, folder: Path, errors: Path, clock: random.Random | None) -> None:
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
            with reporting_failure(self.assignment, out):
                grade(self.assignment, self.submission, settings)
            code = 0
        except CourseError as error:
            os.write(2, f"{error}\n".encode())
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(code)

    def undisturbed_points(self) -> dict[str, float]:
        """The points of a grading without a fault, by test."""
        run = DisturbedGrading(self, -1, None, 0.0)
        while not run.step():
            time.sleep(POLL_SECONDS)
        self.seconds = run.grading.progress
        try:
            result = read_complete_result(run.grading.out)
        except (OSError, ValueError):
            raise GraderFault(f"nothing was graded:\n{run.errors.read_text()}") from None
        run.grading.remove()
        if not result["extra_data"]["finished"]:
            printed = " ".join([*run.problems, run.errors.read_text("utf-8", "replace")])
            raise GraderFault(f"an undisturbed grading failed: {result['output']} {printed}")
        return points_by_test(result)

    def inject(self, count: int, on_report: Callable[[FaultReport], None]) -> list[FaultReport]:
        """Inject so many faults, each into a grading of its own, some gradings at a time."""
        self.earned = self.undisturbed_points()
        planned = plan_faults(GRADING_FAULTS, count, self.seconds, self.seed)
        running: list[DisturbedGrading] = []
        reports: list[FaultReport] = []
        try:
            while running or len(reports) < count:
                while len(running) < AT_ONCE and (plan := next(planned, None)) is not None:
                    running.append(DisturbedGrading(self, plan.number, plan.fault, plan.moment))
                time.sleep(POLL_SECONDS)
                for run in [run for run in running if run.step()]:
                    running.remove(run)
                    report = run.report()
                    if run.missed and not report.problems:
                        again = DisturbedGrading(self, run.number, run.fault, run.moment / 2)
                        running.append(again)
                        continue
                    reports.append(report)
                    on_report(report)
        finally:
            for run in running:
                run.grading.remove()
        return reports

    def lasting_damage(self) -> list[str]:
        """How a grading after all faults differs from the one before them."""
        try:
            after = self.undisturbed_points()
        except GraderFault as error:
            return [str(error)]
        changed = [name for name in after if after[name] != self.earned[name]]
        return [f"after all faults, {name} gets different points than before" for name in changed]
