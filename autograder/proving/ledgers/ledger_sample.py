"""Regrades a sample of a ledger, chosen by the commit, and compares (`make test`)."""

import random
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from autograder.grading.warm.judge_messages import GradingReply, GradingRequest, Verdict
from autograder.packaging.zip_build import build
from autograder.proving.hint_findings import diagnosis_of
from autograder.proving.hints.hint_recorder import committed_file
from autograder.proving.ledgers.proof_ledger import Ledger
from autograder.proving.parallel_grader import ParallelGrader
from autograder.proving.proof_findings import HINTED_AT_LEAST, SALTS, MistakeRow
from autograder.proving.proof_jobs import ProofPlan, Scope
from autograder.proving.wrong_versions.mutants import mutants_of, mutated_functions
from autograder.semester import PRACTICE
from common.assignment import Assignment
from common.testing.feedback.diagnosis import Hints
from common.testing.graded_tests import TIMING, TRAINING

FEWEST = 3  # mistakes that are graded whatever the budget
MUTANTS = 2  # noticed ones, each graded on the test that noticed it
OTHERS = 4  # tests of other exercises that are graded on a mistake, which must pass them
SLOW = {TRAINING, TIMING}


@dataclass(frozen=True)
class Sample:
    """What was graded afresh, and how it differs from the ledger."""

    versions: tuple[str, ...]
    mistakes: tuple[str, ...]
    differences: tuple[str, ...]


class Sampler:
    """Chooses what to grade by a seed, such as the commit."""

    def __init__(self, assignment: Assignment, ledger: Ledger, seed: str) -> None:
        self.plan = ProofPlan(assignment, Scope(seeds=1, mutants=False))
        self.ledger = ledger
        self.rows = {row.name: row for row in ledger.proof.mistakes}
        self.seed = f"{seed}/{assignment.name}"
        self.random = random.Random(self.seed)
        self.tests = {test.name: test for test in self.plan.tests}
        # To make all mutants takes long: any function, and one with noticed mutants, stand for all.
        functions = mutated_functions(assignment)
        noticed = {function_of(name) for name in ledger.proof.noticed}
        known = [function for function in functions if function in noticed] or functions
        self.functions = {self.random.choice(functions), self.random.choice(known)}
        made = [mutant for one in self.functions for mutant in mutants_of(assignment, *one)]
        self.mutants = {mutant.name: mutant for mutant in made}

    def contradictions(self) -> list[str]:
        """What the ledger says that can't be, seen without any grading."""
        return [*self.listed(), *self.wrong_scores(), *self.wrong_losses(), *self.bad_margins()]

    def listed(self) -> Iterator[str]:
        """Versions of the assignment that the ledger lacks, or lists though they are gone."""
        proof = self.ledger.proof
        said = {*(row.name for row in proof.scored), *self.rows}
        mutants = [*proof.noticed, *(survivor.name for survivor in proof.survivors)]
        said |= {name for name in mutants if function_of(name) in self.functions}
        there = {"stub", *self.plan.right_versions, *self.mutants}
        there |= {mistake.name for mistake in self.plan.mistakes}
        functions = {function_of(name) for name in mutants}
        if not functions <= {*mutated_functions(self.plan.assignment)}:
            yield "there are mutants of functions that have none"
        yield from (f"{name} is not in both" for name in sorted(there ^ said))

    def wrong_scores(self) -> Iterator[str]:
        """Right versions that don't have all points under their salts, and a stub that has some."""
        proof, tests = self.ledger.proof, self.plan.tests
        points = sum(test.points for test in tests)
        if (proof.tests, proof.points) != (len(tests), points):
            yield f"{proof.tests} tests with {proof.points:g} points; there are {len(tests)}"
        not_run = sum(test.points for test in tests if test.needs_gpu)
        due_salts = {
            name: len(self.plan.salts_of(name, SALTS)) for name in self.plan.right_versions
        }
        for row in proof.scored:
            due = 0.0 if row.name == "stub" else points - not_run
            salts = due_salts.get(row.name, 1)
            if (row.lowest, row.highest) != (due, due) or row.salts < salts:
                yield f"{row.name} has {row.lowest:g} points, not {due:g} under {salts} salts"

    def wrong_losses(self) -> Iterator[str]:
        """Mistakes that cost other points than those of the tests they fail, or get no hint."""
        for row in self.rows.values():
            lost: dict[str, float] = {}
            for name in row.failed & self.tests.keys():
                test = self.tests[name]
                lost[test.exercise] = lost.get(test.exercise, 0.0) + test.points
            if lost != row.lost or {*lost} != {*row.named}:
                yield f"{row.name} loses {row.lost}; the tests that it fails have {lost}"
            if not row.failed.issuperset(row.hinted):
                yield f"{row.name} has a hint at a test that it passes"
        if self.ledger.proof.hinted < HINTED_AT_LEAST:
            yield f"only {self.ledger.proof.hinted:.1%} of the mistakes get their own hint"
        for name, noticing in self.ledger.proof.noticed.items():
            if noticing not in self.tests:
                yield f"mutant {name} is noticed by {noticing}, which is not a test"

    def bad_margins(self) -> Iterator[str]:
        """Margins of tests that don't exist; none at all."""
        margins = self.ledger.proof.margins
        if not margins:
            yield "there are no margins"
        yield from (f"a margin of {m.test}" for m in margins if m.test not in self.tests)

    def mutant_jobs(self) -> dict[str, GradingRequest]:
        """Some mutants, each on the test that noticed it."""
        noticed = self.ledger.proof.noticed
        known = [name for name in self.mutants if noticed.get(name) in self.tests]
        return {
            f"mutant {name}": self.plan.mutant_job(self.mutants[name], (noticed[name],))
            for name in shuffled(known, self.seed)[:MUTANTS]
        }

    def right_jobs(self, training: bool) -> dict[str, GradingRequest]:
        """The reference on all tests, the stub, and one side of an alternative.

        Only the reference trains, and only where that is asked for: it takes longest.
        """
        jobs = self.plan.jobs()
        chosen = self.random.choice(sorted(self.plan.alternatives))
        side = f"alternative {chosen}: {self.random.choice(('public 0', 'hidden 0'))}"
        left_out = set() if training else {TRAINING}
        found = {
            name: self.without(left_out, job)
            for name, job in jobs.items()
            if name.startswith("reference")
        }
        found |= {"stub": jobs["stub"], side: self.without(SLOW, jobs[side])}
        return {name: job for name, job in found.items() if job.only}

    def without(self, tags: set[str], job: GradingRequest) -> GradingRequest:
        """A job but for its tests with one of these tags."""
        only = tuple(name for name in job.only or () if not tags & {*self.tests[name].tags})
        return replace(job, only=only)

    def mistake_jobs(self) -> Iterable[tuple[str, dict[str, GradingRequest]]]:
        """All mistakes in the order of the sample, each on tests of all of its sides.

        A clock says now this and now that, and training takes long: neither is graded here.
        """
        both = self.plan.mistake_jobs(hidden=False) | self.plan.mistake_jobs(hidden=True)
        for name in shuffled(self.rows, self.seed):
            jobs = {}
            for job_name, job in both.items():
                if job_name.startswith(f"mistake {name}:"):
                    tests = self.tests_for(self.rows[name], job)
                    if tests:
                        jobs[job_name] = replace(job, only=tests, compare_all=False)
            if jobs:
                yield name, jobs

    def tests_for(self, row: MistakeRow, job: GradingRequest) -> tuple[str, ...]:
        """The tests of a job on which a mistake is graded afresh: of its exercises, all."""
        quick = self.without(SLOW, job).only or ()
        own = {t for t in quick if t in row.failed or self.tests[t].exercise in row.named}
        others = [test for test in quick if test not in own]
        some = {*self.random.sample(others, min(OTHERS, len(others)))}
        return tuple(test for test in quick if test in own or test in some)


def function_of(mutant: str) -> tuple[str, str]:
    """The file, and the function or class in it, that a mutant of that name changes."""
    file, _, rest = mutant.partition(":")
    return file, rest.partition(":")[0].partition(".")[0]


def shuffled(names: Iterable[str], seed: str) -> list[str]:
    """The names in the order of a seed."""
    ordered = sorted(names)
    random.Random(seed).shuffle(ordered)
    return ordered


def grade_sample(sampler: Sampler, scratch: Path, seconds: float, training: bool) -> Sample:
    """Grade reference, stub, an alternative, mutants, and mistakes until the seconds are over."""
    deadline = time.monotonic() + seconds
    differences = sampler.contradictions()
    built = build(sampler.plan.assignment, scratch, PRACTICE)
    with ParallelGrader(built.autograder, sampler.plan.assignment.short, size=1) as grader:
        right = run(grader, sampler.right_jobs(training))
        for name, reply in right.items():
            differences += right_differences(name, reply.verdicts)
        differences += grade_mutants(sampler, grader)
        mistakes, found = grade_mistakes(sampler, grader, deadline)
    return Sample(tuple(right), mistakes, (*differences, *found))


def grade_mutants(sampler: Sampler, grader: ParallelGrader) -> list[str]:
    """Where a mutant isn't noticed by the test that the ledger names."""
    return [
        f"{name} passes {verdict.test}, but the ledger says that it fails it"
        for name, reply in run(grader, sampler.mutant_jobs()).items()
        for verdict in reply.verdicts
        if verdict.passed
    ]


def grade_mistakes(
    sampler: Sampler, grader: ParallelGrader, deadline: float
) -> tuple[tuple[str, ...], list[str]]:
    """The mistakes graded by a deadline, a few even after it, and how they differ."""
    hints = Hints(committed_file(sampler.plan.assignment, hidden) for hidden in (False, True))
    graded: list[str] = []
    differences: list[str] = []
    for name, jobs in sampler.mistake_jobs():
        if len(graded) >= FEWEST and time.monotonic() > deadline:
            break
        verdicts = [v for reply in run(grader, jobs).values() for v in reply.verdicts]
        shown = diagnosis_of(sampler.plan, hints, verdicts).shown()
        differences += mistake_differences(sampler.rows[name], verdicts, shown)
        graded.append(name)
    return tuple(graded), differences


def run(grader: ParallelGrader, jobs: dict[str, GradingRequest]) -> dict[str, GradingReply]:
    """What each job gives."""
    replies: dict[str, GradingReply] = {}
    grader.run(list(jobs.items()), replies.__setitem__)
    return replies


def right_differences(name: str, verdicts: list[Verdict]) -> list[str]:
    """Where correct code fails, or the stub passes or gets a hint. A ledger never says so."""
    if name == "stub":
        passed = [f"the stub passes {verdict.test}" for verdict in verdicts if verdict.passed]
        return passed + [f"the stub gets a hint at {v.test}" for v in verdicts if v.hint]
    return [
        f"{name} fails {verdict.test}: {verdict.text}"
        for verdict in verdicts
        if not verdict.passed and verdict.ran
    ]


def mistake_differences(
    row: MistakeRow, verdicts: list[Verdict], hints: Mapping[str, str]
) -> list[str]:
    """Where a mistake ends otherwise than the ledger says. hints: what the tests show."""
    found = []
    for verdict in verdicts:
        if verdict.passed == (verdict.test in row.failed):
            ends, said = ("passes", "fails") if verdict.passed else ("fails", "passes")
            found.append(f"{row.name} {ends} {verdict.test}, but the ledger says that it {said} it")
    hinted = [verdict.test for verdict in verdicts if verdict.test in row.hinted]
    # Where rounding decides, one machine's output is not another's: one hint is enough.
    if hinted and not any(row.hint in hints.get(test, "") for test in hinted):
        found.append(f"{row.name} gets its hint at none of {len(hinted)} tests")
    return found
