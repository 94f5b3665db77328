"""Lists every grading of a proof, and its tests: reference, alternatives, mistakes, mutants."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from autograder.authoring.lab_master import MASTER
from autograder.authoring.reference_artifacts import reference_artifacts
from autograder.grading.warm.judge_messages import GradingRequest
from autograder.proving.function_coverage import FunctionCoverage
from autograder.proving.right_versions import alternatives, reference, stub
from autograder.proving.wrong_versions.equivalents import read_equivalents
from autograder.proving.wrong_versions.mistakes import (
    Mistake,
    affected_questions,
    apply,
    load_mistakes,
)
from autograder.proving.wrong_versions.mutants import Mutant, mutants
from autograder.proving.wrong_versions.unnamed import Unnamed, apply_unnamed, load_unnamed
from common.assignment import ROOT, Assignment
from common.testing.graded_tests import (
    GPU,
    PRACTICE_SALT,
    TIMING,
    TRAINING,
    GradedTest,
    read_graded_tests,
)

# Of processor time: by a clock, a busy machine would seem to notice mutants that no test notices.
MUTANT_SECONDS = 5.0
# Under how many of the salts alternatives are graded, and the reference on slow or public tests.
FEW_SALTS = 5


@dataclass(frozen=True)
class Scope:
    """How much to prove."""

    seeds: int
    mutants: bool
    training: bool = True  # whether mistakes that are to be trained are
    salt: str = PRACTICE_SALT


ONE_SALT = Scope(seeds=1, mutants=False, training=False)


def hint_job(mutant: str) -> str:
    """The name of the grading of a mutant on all of its tests."""
    return f"hints of mutant {mutant}"


def unnamed_job(mistake: str) -> str:
    """The name of the grading of a mistake that no hint names."""
    return f"unnamed {mistake}"


class ProofPlan:
    """One assignment, and all that is graded to prove its grader."""

    def __init__(self, assignment: Assignment, scope: Scope) -> None:
        self.assignment = assignment
        self.scope = scope
        # Nothing is known yet, so every test may notice everything.
        self.coverage = FunctionCoverage({})
        self.tests: list[GradedTest] = read_graded_tests(ROOT / "tests" / assignment.name)
        self.mistakes: list[Mistake] = load_mistakes(assignment)
        self.alternatives = alternatives(assignment)
        self.mutants: list[Mutant] = mutants(assignment) if scope.mutants else []
        self.unnamed: list[Unnamed] = load_unnamed(assignment) if scope.mutants else []
        self.equivalents = read_equivalents(assignment, self.mutants)
        more = (f"{scope.salt}/{seed}" for seed in range(1, scope.seeds))
        self.salts = [scope.salt, *more]

    @cached_property
    def right_versions(self) -> dict[str, dict[str, bytes]]:
        """All code that must get every point."""
        others = {f"alternative {name}": files for name, files in self.alternatives.items()}
        return {"reference": reference(self.assignment), **others}

    def salts_of(self, name: str, salts: int) -> list[int]:
        """The numbers of the salts, out of so many, under which a right version is graded.

        The reference meets all. Each alternative meets the first and a few others, no two the same.
        """
        numbers = range(salts)
        if name == "reference":
            return [*numbers]
        others = [other for other in self.right_versions if other != "reference"]
        return [0, *numbers[1 + others.index(name) :: len(others)][: FEW_SALTS - 1]]

    def right_tests(self, name: str, number: int) -> dict[str, tuple[str, ...]]:
        """The tests that a right version is graded on under a salt, by the names of the jobs.

        The first salt has all tests, the first few all but public ones that train, the others those
        hidden ones that are quick. The solved lab is the same in all right versions, and runs on
        stand-ins of their code: it is graded once for all.
        """
        jobs: dict[str, list[str]] = {}
        for test in self.tests:
            trains = TRAINING in test.tags
            slow = trains or TIMING in test.tags or test.reads_lab
            side = "hidden" if test.hidden else "public"
            version = name
            if test.reads_lab:
                version, side = "reference", "lab"
            elif trains and not test.hidden:
                side = "training"
            if number < (1 if side == "training" else FEW_SALTS) or (test.hidden and not slow):
                jobs.setdefault(f"{version}: {side} {number}", []).append(test.name)
        return {job: tuple(tests) for job, tests in jobs.items()}

    def jobs(self) -> dict[str, GradingRequest]:
        """Every grading of the proof, by name."""
        jobs: dict[str, GradingRequest] = {}
        for name, files in self.right_versions.items():
            for number in self.salts_of(name, len(self.salts)):
                for job, tests in self.right_tests(name, number).items():
                    if job not in jobs:  # the reference's lab, which is there
                        jobs[job] = self.job(files, self.salts[number], tests)
        everything = self.names(hidden=False) + self.names(hidden=True)
        jobs["stub"] = GradingRequest(stub(self.assignment), self.salts[0], everything)
        jobs |= self.mistake_jobs(hidden=False) | self.mistake_jobs(hidden=True)
        for mutant in self.mutants:
            jobs[f"mutant {mutant.name}"] = self.mutant_job(mutant, self.order_for(mutant))
        for entry in self.unnamed:
            tests = self.tests_noticing(self.file_of(entry.file), entry.function)
            files = apply_unnamed(entry, self.assignment)
            jobs[unnamed_job(entry.name)] = self.job(files, self.salts[0], tests)
        return jobs

    def mutant_job(
        self, mutant: Mutant, tests: tuple[str, ...], to_the_end: bool = False
    ) -> GradingRequest:
        """A mutant on these tests, up to the first that notices it, or to the end."""
        files = reference(self.assignment) | {mutant.file: mutant.source}
        return self.job(files, self.salts[0], tests, not to_the_end, MUTANT_SECONDS)

    def job(
        self, files: dict[str, bytes], salt: str, tests: tuple[str, ...], *rest: Any, **more: Any
    ) -> GradingRequest:
        """A grading of code with the reference's artifacts, where one of the tests reads them.

        Other tests don't need megabytes sent, hashed and remembered.
        """
        if any(test.reads_artifacts for test in self.tests if test.name in tests):
            files = self.artifacts | files  # where there is a wrong lab, it stays
        return GradingRequest(files, salt, tests, *rest, **more)

    @cached_property
    def artifacts(self) -> dict[str, bytes]:
        """The reference's artifacts. The stub has none."""
        return reference_artifacts(self.assignment)

    def mistake_jobs(self, hidden: bool) -> dict[str, GradingRequest]:
        """Each mistake, on the public or on the hidden tests.

        A lab takes seconds to run, so its mistakes go through both at once, as hidden ones.
        """
        side = "hidden" if hidden else "public"
        return {
            f"mistake {mistake.name}: {side}": self.job(
                apply(mistake, self.assignment), self.salts[0], tests, compare_all=True
            )
            for mistake in self.mistakes
            if (tests := self.tests_together(mistake, hidden))
        }

    def tests_together(self, mistake: Mistake, hidden: bool) -> tuple[str, ...]:
        """The tests that a mistake goes through in one grading."""
        if mistake.file != MASTER:
            return self.tests_for(mistake, hidden)
        if not hidden:
            return ()
        return self.tests_for(mistake, False) + self.tests_for(mistake, True)

    def names(self, hidden: bool) -> tuple[str, ...]:
        """The names of the public or of the hidden tests."""
        return tuple(test.name for test in self.tests if test.hidden == hidden)

    def tests_for(self, mistake: Mistake, hidden: bool) -> tuple[str, ...]:
        """The tests that may notice it, but the slow and timed ones of exercises it doesn't name.

        A busy machine could fail a timed test for no reason.
        """
        file = mistake.file or self.assignment.files[0]
        if file == MASTER:  # graded on stand-ins, so that no code matters
            spoiled = {*affected_questions(mistake, self.assignment)}
            labs = [t for t in self.tests if t.reads_lab and t.hidden == hidden]
            return tuple(test.name for test in labs if test.question in spoiled)
        return tuple(
            test.name
            for test in self.tests
            if test.hidden == hidden
            and not test.reads_lab
            and not test.needs_gpu
            and (TIMING not in test.tags or test.exercise in mistake.exercises)
            and (TRAINING not in test.tags or self.trains(mistake, test))
            and self.coverage.may_notice(test.name, file, mistake.function)
        )

    def trains(self, mistake: Mistake, test: GradedTest) -> bool:
        """Whether a mistake goes through a training test, which takes long: a few are enough."""
        return self.scope.training and mistake.trained and test.exercise in mistake.exercises

    def file_of(self, named: str) -> str:
        """The file that a mistake lies in, which may be left unnamed where there is one only."""
        return named or self.assignment.files[0]

    def order_for(self, mutant: Mutant) -> tuple[str, ...]:
        """The tests that may notice it, those of its own exercise first: one failure is enough."""
        return self.tests_noticing(mutant.file, mutant.function)

    def tests_noticing(self, file: str, changed: str) -> tuple[str, ...]:
        """The quick tests that may notice a changed function, those of its own exercise first."""
        function = changed.partition(".")[0]
        own = {e.number for e in self.assignment.exercises if function in e.functions}
        ordered = sorted(self.tests, key=lambda test: (test.exercise not in own, test.hidden))
        # A busy machine could fail a timing test for no reason, and so kill a mutant.
        return tuple(
            test.name
            for test in ordered
            if not {TRAINING, TIMING, GPU} & {*test.tags}
            and not test.reads_lab
            and self.coverage.may_notice(test.name, file, changed)
        )
