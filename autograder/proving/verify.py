"""Verifies an assignment's grader: right code gets everything, wrong code loses what it must."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from autograder.grading.worker import Job, Reply, Verdict
from autograder.packaging.build import DIST, build
from autograder.proving.case import Case, Scope, lab_job
from autograder.proving.margins import margins
from autograder.proving.memory import Memory, grader_fingerprint
from autograder.proving.mistakes import Mistake
from autograder.proving.pool import Pool
from autograder.proving.proof import MistakeRow, Proof, Scored, Survivor, Timing
from autograder.proving.reach import find_reach
from common.assignment import Assignment
from common.failures import BROKEN_TEST

RIGHT = ("reference", "alternative")
SLOWEST = 5
FEWEST_MISTAKES, FEWEST_ALTERNATIVES = 15, 2

Progress = Callable[[int, int], None]


@dataclass
class Gradings:
    """What all gradings gave, by name."""

    grader: str
    replies: dict[str, Reply]
    remembered: int
    seconds: float


def verify(
    assignment: Assignment, scope: Scope, progress: Progress, dist: Path = DIST
) -> tuple[Proof, Gradings]:
    """Grade everything that the proof needs, and say what it shows."""
    case = Case(assignment, scope)
    case.reach = find_reach(assignment, case.salts[0], dist)
    evidence = gather(assignment, case.jobs(), progress, dist)
    return conclude(case, evidence), evidence


def gather(
    assignment: Assignment, jobs: dict[str, Job], progress: Progress, dist: Path = DIST
) -> Gradings:
    """Grade what isn't remembered, in parallel, with the built zip's grader."""
    start = time.monotonic()
    built = build(assignment, dist)
    grader = grader_fingerprint(built.autograder)
    memory = Memory(dist / f"{assignment.short}-memory.bin", grader)
    replies = {name: reply for name, job in jobs.items() if (reply := memory.recall(job))}
    remembered = len(replies)
    progress(remembered, len(jobs))

    def done(name: str, reply: Reply) -> None:
        replies[name] = reply
        # A failure of right code is to be looked into, not remembered.
        if not name.startswith(RIGHT) or all(v.passed or not v.ran for v in reply.verdicts):
            memory.keep(jobs[name], reply)
        progress(len(replies), len(jobs))

    todo = [(name, job) for name, job in jobs.items() if name not in replies]
    try:
        if todo:
            with Pool(built.autograder, assignment.short) as pool:
                pool.run(todo, done)
    finally:
        memory.save()
    return Gradings(grader, replies, remembered, time.monotonic() - start)


def conclude(case: Case, evidence: Gradings) -> Proof:
    """What the gradings show."""
    replies = evidence.replies
    right = verdicts_of(replies, *RIGHT)
    wrong = [
        *(verdicts_of(replies, f"mistake {mistake.name}:") for mistake in case.mistakes),
        *(told_of(replies[f"mutant {mutant.name}"].verdicts) for mutant in case.mutants),
    ]
    scored = [judge_right(case, name, replies) for name in case.right_versions()]
    scored.append(judge_stub(case, verdicts_of(replies, "stub")))
    problems = []
    if len(case.mistakes) < FEWEST_MISTAKES:
        problems.append(f"{len(case.mistakes)} mistakes; at least {FEWEST_MISTAKES} are needed")
    if len(case.alternatives) < FEWEST_ALTERNATIVES:
        problems.append(f"{len(case.alternatives)} alternatives; at least {FEWEST_ALTERNATIVES}")
    survivors = find_survivors(case, replies)
    missed = {survivor.name for survivor in survivors}
    problems += [
        f"{name} is listed as equivalent, but a test notices it"
        for name in case.equivalents
        if case.mutants and name not in missed
    ]
    return Proof(
        assignment=case.assignment.name,
        grader=evidence.grader,
        title=case.assignment.title,
        tests=len(case.tests),
        points=sum(test.points for test in case.tests),
        exercises=[exercise.number for exercise in case.assignment.exercises],
        scored=scored,
        mistakes=[
            judge_mistake(mistake, verdicts_of(replies, f"mistake {mistake.name}:"))
            for mistake in case.mistakes
        ],
        mutants=len(case.mutants),
        survivors=survivors,
        margins=margins(right, wrong),
        timings=timings(replies),
        slowest=slowest_tests(verdicts_of(replies, "reference")),
        problems=problems,
        gradings=len(replies),
        remembered=evidence.remembered,
        seconds=round(evidence.seconds, 1),
        not_run=sum(test.points for test in case.tests if test.needs_gpu),
    )


def verdicts_of(replies: dict[str, Reply], *beginnings: str) -> list[Verdict]:
    """All verdicts of the jobs whose names begin so."""
    return [
        verdict
        for name, reply in replies.items()
        if name.startswith(beginnings)
        for verdict in reply.verdicts
    ]


def told_of(mutant: list[Verdict]) -> list[Verdict]:
    """What a mutant says about tolerances: the test that noticed it, or all if none did."""
    return [verdict for verdict in mutant if not verdict.passed] or mutant


def timings(replies: dict[str, Reply]) -> list[Timing]:
    """How long the gradings of each kind took."""
    seconds: dict[str, list[float]] = {}
    for name, reply in replies.items():
        seconds.setdefault(name.partition(" ")[0].rstrip(":"), []).append(reply.seconds)
    return [timing(kind, taken) for kind, taken in seconds.items()]


def slowest_tests(verdicts: list[Verdict]) -> list[Timing]:
    """The tests that take the reference longest."""
    seconds: dict[str, list[float]] = {}
    for verdict in verdicts:
        seconds.setdefault(verdict.test, []).append(verdict.seconds)
    found = [timing(test, taken) for test, taken in seconds.items()]
    return sorted(found, key=lambda entry: -entry.longest)[:SLOWEST]


def timing(what: str, seconds: list[float]) -> Timing:
    """How long something took that was done so many times."""
    return Timing(what, len(seconds), round(sum(seconds), 3), round(max(seconds), 3))


def points(verdicts: Iterable[Verdict]) -> float:
    """The points that were earned."""
    return sum(verdict.points for verdict in verdicts if verdict.passed)


def judge_right(case: Case, name: str, replies: dict[str, Reply]) -> Scored:
    """Right code must pass every test under every salt, but those that need a GPU."""
    everything = sum(test.points for test in case.tests if not test.needs_gpu)
    on_a_gpu = {test.name for test in case.tests if test.needs_gpu}
    problems: list[str] = []
    scores: list[float] = []
    for number in range(len(case.salts)):
        jobs = (f"{name}: public", f"{name}: hidden {number}", lab_job(number))
        # Without a lab there is no such job. Whatever else may lack, all tests are counted.
        verdicts = [v for job in jobs if job in replies for v in replies[job].verdicts]
        if len(verdicts) != len(case.tests):
            problems.append(f"{len(verdicts)} of {len(case.tests)} tests ran under salt {number}")
        problems += [
            f"fails {verdict.test} under salt {number}: {verdict.text}"
            for verdict in verdicts
            if not verdict.passed and verdict.ran
        ]
        left_out = {verdict.test for verdict in verdicts if not verdict.ran}
        problems += [f"{test} was wrongly left out" for test in sorted(left_out - on_a_gpu)]
        again = replies.get(f"{name}: timing {number}")
        problems += [
            f"fails {verdict.test} when measured again: {verdict.text}"
            for verdict in (again.verdicts if again else [])
            if not verdict.passed and verdict.ran
        ]
        scores.append(points(verdicts))
        if not problems and scores[-1] != everything:
            problems.append(f"gets {scores[-1]:g} of {everything:g} points under salt {number}")
    return Scored(name, len(case.salts), len(case.tests), min(scores), max(scores), problems)


def judge_stub(case: Case, verdicts: list[Verdict]) -> Scored:
    """The stub must fail every test."""
    problems = [f"passes {verdict.test}" for verdict in verdicts if verdict.passed]
    if len(verdicts) != len(case.tests):
        problems.append(f"{len(verdicts)} of {len(case.tests)} tests ran")
    score = points(verdicts)
    return Scored("stub", 1, len(verdicts), score, score, problems)


def judge_mistake(mistake: Mistake, verdicts: list[Verdict]) -> MistakeRow:
    """A mistake must cost what it names, nothing else, and show in a public test."""
    lost: dict[str, float] = {}
    for verdict in verdicts:
        if not verdict.passed:
            lost[verdict.exercise] = lost.get(verdict.exercise, 0) + verdict.points
    public = [v.test for v in verdicts if not v.passed and not v.hidden]
    problems = [f"costs nothing in {number}" for number in mistake.exercises if number not in lost]
    problems += [f"costs points in {number}" for number in lost if number not in mistake.exercises]
    problems += [f"breaks {v.test} itself" for v in verdicts if v.text.startswith(BROKEN_TEST)]
    if not public and not mistake.hidden:
        problems.append("no public test catches it, and it isn't marked as hidden")
    if public and mistake.hidden:
        problems.append("it is marked as hidden, but a public test catches it")
    return MistakeRow(mistake.name, mistake.hint, mistake.exercises, lost, public, problems)


def find_survivors(case: Case, replies: dict[str, Reply]) -> list[Survivor]:
    """The mutants that passed every test, with the reasons of those that are equivalent."""
    noticed = {
        mutant.name
        for mutant in case.mutants
        if not all(verdict.passed for verdict in replies[f"mutant {mutant.name}"].verdicts)
    }
    return [
        Survivor(m.name, m.file, m.line, m.change, case.equivalents.get(m.name, ""))
        for m in case.mutants
        if m.name not in noticed
    ]
