"""Runs an assignment's proof, and judges what its gradings show (`make verify`)."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from autograder.grading.warm.judge_messages import GradingReply, GradingRequest, Verdict
from autograder.proving.function_coverage import find_function_coverage
from autograder.proving.hint_findings import diagnosis_of, hint_jobs, hint_rows
from autograder.proving.hints.hint_recorder import current_hints, fresh_hints
from autograder.proving.job_runner import RIGHT, JobResults, Progress, run_jobs
from autograder.proving.margins import margins
from autograder.proving.proof_findings import (
    SALTS,
    Effort,
    MistakeRow,
    Proof,
    Scored,
    Survivor,
    Timing,
)
from autograder.proving.proof_fingerprint import fresh_fingerprint
from autograder.proving.proof_jobs import ProofPlan, Scope
from autograder.proving.wrong_versions.mistakes import Mistake
from autograder.semester import DIST
from common.assignment import Assignment
from common.testing.feedback.diagnosis import Hints
from common.testing.feedback.failure import BROKEN_TEST
from common.testing.graded_tests import PRACTICE_SALT, TRAINING

SLOWEST = 5
# For each exercise with functions to write; an assignment with many needs no more than 15.
MISTAKES_PER_EXERCISE, FEWEST_MISTAKES = 5, 15
FEWEST_ALTERNATIVES = 2
RAISED = re.compile(r" raised an? (\w+)\.$")
ACCIDENTS = {"NameError", "UnboundLocalError", "AttributeError", "ImportError", "SyntaxError"}


def verify(
    assignment: Assignment, scope: Scope, progress: Progress, dist: Path = DIST
) -> tuple[Proof, JobResults]:
    """Grade everything that the proof needs, and say what it shows."""
    sources = fresh_fingerprint(assignment)  # before anything of it is read
    plan = ProofPlan(assignment, scope)
    plan.coverage = find_function_coverage(assignment, plan.salts[0], dist)
    whole = scope.mutants and scope.training and scope.seeds >= SALTS

    def follow_up(replies: dict[str, GradingReply]) -> dict[str, GradingRequest]:
        hints = hints_of(plan, JobResults(sources, replies, 0, 0.0))
        return hint_jobs(plan, hints, replies)

    evidence = run_jobs(
        assignment,
        plan.jobs(),
        sources,
        progress,
        dist=dist,
        drop_unused=whole,
        follow_up=follow_up,
    )
    return conclude(plan, evidence), evidence


def conclude(plan: ProofPlan, evidence: JobResults) -> Proof:
    """What the gradings show."""
    replies = evidence.replies
    hints = hints_of(plan, evidence)
    wrong = [
        *(evidence.verdicts(f"mistake {mistake.name}:") for mistake in plan.mistakes),
        *(
            verdicts_for_margins(replies[f"mutant {mutant.name}"].verdicts)
            for mutant in plan.mutants
        ),
    ]
    scored = [judge_right(plan, name, replies) for name in plan.right_versions]
    of_stub = evidence.verdicts("stub")
    scored.append(judge_stub(plan, of_stub, diagnosis_of(plan, hints, of_stub).shown()))
    rows = hint_rows(plan, hints, replies)
    problems = []
    fewest = fewest_mistakes(plan.assignment)
    if len(plan.mistakes) < fewest:
        problems.append(f"{len(plan.mistakes)} mistakes; at least {fewest} are needed")
    if len(plan.alternatives) < FEWEST_ALTERNATIVES:
        problems.append(f"{len(plan.alternatives)} alternatives; at least {FEWEST_ALTERNATIVES}")
    survivors = find_survivors(plan, replies)
    missed = {survivor.name for survivor in survivors}
    problems += [
        f"{name} is listed as equivalent, but a test notices it"
        for name in plan.equivalents
        if plan.mutants and name not in missed
    ]
    mistakes = [
        judge_mistake(mistake, verdicts, diagnosis_of(plan, hints, verdicts).shown())
        for mistake in plan.mistakes
        for verdicts in [evidence.verdicts(f"mistake {mistake.name}:")]
    ]
    problems += untold_by_training(plan, mistakes)
    return Proof(
        assignment=plan.assignment.name,
        title=plan.assignment.title,
        tests=len(plan.tests),
        points=sum(test.points for test in plan.tests),
        exercises=[exercise.number for exercise in plan.assignment.exercises],
        scored=scored,
        mistakes=mistakes,
        noticed=noticed_by(plan, replies),
        survivors=survivors,
        margins=margins(evidence.verdicts(*RIGHT), wrong),
        problems=problems,
        hints=[row for row in rows if row.named],
        without_hint=sum(not row.named for row in rows),
        not_run=sum(test.points for test in plan.tests if test.needs_gpu),
        effort=Effort(
            gradings=len(replies),
            remembered=evidence.remembered,
            seconds=round(evidence.seconds, 1),
            timings=timings(replies),
            slowest=slowest_tests(evidence.verdicts("reference")),
        ),
    )


def fewest_mistakes(assignment: Assignment) -> int:
    """How many mistakes an assignment must list: few suffice where there are few exercises."""
    written = sum(bool(exercise.functions) for exercise in assignment.exercises)
    return min(FEWEST_MISTAKES, MISTAKES_PER_EXERCISE * written)


def hints_of(plan: ProofPlan, evidence: JobResults) -> Hints:
    """The hints that students get: committed ones, and under a secret salt fresh ones."""
    find = current_hints if plan.scope.salt == PRACTICE_SALT else fresh_hints
    return Hints(find(plan.assignment, evidence, hidden) for hidden in (False, True))


def verdicts_for_margins(mutant: list[Verdict]) -> list[Verdict]:
    """What a mutant says about tolerances: the test that noticed it, or all if none did."""
    return [verdict for verdict in mutant if not verdict.passed] or mutant


def timings(replies: dict[str, GradingReply]) -> list[Timing]:
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
    """How long repeated work took."""
    return Timing(what, len(seconds), round(sum(seconds), 3), round(max(seconds), 3))


def points(verdicts: Iterable[Verdict]) -> float:
    """The points that were earned."""
    return sum(verdict.points for verdict in verdicts if verdict.passed)


def judge_right(plan: ProofPlan, name: str, replies: dict[str, GradingReply]) -> Scored:
    """Right code must pass every test under its salts, but those that need a GPU.

    A score under a salt counts the tests that are not graded under it as under the first.
    """
    everything = sum(test.points for test in plan.tests if not test.needs_gpu)
    on_a_gpu = {test.name for test in plan.tests if test.needs_gpu}
    problems: list[str] = []
    scores: list[float] = []
    first: dict[str, Verdict] = {}
    salts = plan.salts_of(name, len(plan.salts))
    for number in salts:
        jobs = plan.right_tests(name, number)
        everywhere = [test.name for test in plan.tests]
        due = [test for tests in jobs.values() for test in tests] if first else everywhere
        verdicts = [v for job in jobs if job in replies for v in replies[job].verdicts]
        if sorted(due) != sorted(verdict.test for verdict in verdicts):
            problems.append(f"{len(verdicts)} of {len(due)} tests ran under salt {number}")
        problems += [
            f"fails {verdict.test} under salt {number}: {verdict.text}"
            for verdict in verdicts
            if not verdict.passed and verdict.ran
        ]
        left_out = {verdict.test for verdict in verdicts if not verdict.ran}
        problems += [f"{test} was wrongly left out" for test in sorted(left_out - on_a_gpu)]
        first = first or {verdict.test: verdict for verdict in verdicts}
        scores.append(points((first | {verdict.test: verdict for verdict in verdicts}).values()))
        if not problems and scores[-1] != everything:
            problems.append(f"gets {scores[-1]:g} of {everything:g} points under salt {number}")
    return Scored(name, len(salts), len(plan.tests), min(scores), max(scores), problems)


def judge_stub(plan: ProofPlan, verdicts: list[Verdict], hints: Mapping[str, str]) -> Scored:
    """The stub must fail every test, and get no hint: it has made no mistake yet."""
    problems = [f"passes {verdict.test}" for verdict in verdicts if verdict.passed]
    problems += [f"gets a hint at {test}" for test in hints]
    if len(verdicts) != len(plan.tests):
        problems.append(f"{len(verdicts)} of {len(plan.tests)} tests ran")
    score = points(verdicts)
    return Scored("stub", 1, len(verdicts), score, score, problems)


def judge_mistake(
    mistake: Mistake, verdicts: list[Verdict], hints: Mapping[str, str]
) -> MistakeRow:
    """A mistake must cost what it names and nothing else, and show in a public test.

    hints: what is shown at the tests. That may be none, where little is seen of a mistake, but it
    must not be another mistake's, and there must be outputs by which it could be recognized.
    """
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
    hidden = [v.test for v in verdicts if not v.passed and v.hidden]
    hinted = [test for test, hint in hints.items() if mistake.hint in hint]
    others = {hint for hint in hints.values() if mistake.hint not in hint}
    problems += [f"gets a wrong hint: {hint}" for hint in sorted(others)]
    problems += unrecognizable(mistake, [verdict for verdict in verdicts if not verdict.passed])
    return MistakeRow(
        name=mistake.name,
        hint=mistake.hint,
        named=mistake.exercises,
        lost=lost,
        public=public,
        hidden=hidden,
        hinted=hinted,
        problems=problems,
    )


def untold_by_training(plan: ProofPlan, mistakes: list[MistakeRow]) -> list[str]:
    """The tests that train and don't tell right from wrong, as far as is known."""
    failed = set[str]().union(*(row.failed for row in mistakes))
    return [
        f"no mistake fails {test.name}: mark one that does as trained"
        for test in plan.tests
        if plan.scope.training and TRAINING in test.tags and not test.needs_gpu
        if test.name not in failed
    ]


def unrecognizable(mistake: Mistake, failed: list[Verdict]) -> list[str]:
    """Why a mistake's failures aren't those of the mistake, or can't show its hint.

    An exception that it doesn't name would be its own only by accident, as after a renaming.
    """
    if not failed:
        return []
    first_lines = [verdict.text.partition("\n")[0] for verdict in failed]
    raised = {found[1] for line in first_lines if (found := RAISED.search(line))}
    accidents = sorted(raised & ACCIDENTS - {mistake.raises})
    problems = [f"fails with a {kind}, which it doesn't name (`raises`)" for kind in accidents]
    if mistake.raises and mistake.raises not in raised:
        problems.append(f"`raises` names {mistake.raises}, which no test reports")
    if all(verdict.seen is None for verdict in failed):
        problems.append(
            "its hint can never be shown: all of its tests end in exceptions or plain assertions"
        )
    return problems


def noticed_by(plan: ProofPlan, replies: Mapping[str, GradingReply]) -> dict[str, str]:
    """The first test that noticed each mutant; those that none noticed are left out."""
    failed = {
        mutant.name: [v.test for v in replies[f"mutant {mutant.name}"].verdicts if not v.passed]
        for mutant in plan.mutants
    }
    return {name: tests[0] for name, tests in failed.items() if tests}


def find_survivors(plan: ProofPlan, replies: Mapping[str, GradingReply]) -> list[Survivor]:
    """The mutants that passed every test, with the reasons of those that are equivalent."""
    noticed = noticed_by(plan, replies)
    return [
        Survivor(m.name, m.file, m.line, m.change, plan.equivalents.get(m.name, ""))
        for m in plan.mutants
        if m.name not in noticed
    ]
