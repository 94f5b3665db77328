"""Judges the hints that wrong versions get: right if they name a mistake in what was changed."""

from collections.abc import Iterable, Mapping

from autograder.grading.warm.judge_messages import GradingReply, GradingRequest, Verdict
from autograder.proving.proof_findings import HintRow
from autograder.proving.proof_jobs import ProofPlan, hint_job, unnamed_job
from autograder.proving.wrong_versions.mistakes import Mistake
from common.testing.feedback.diagnosis import Diagnosis, Ended, Hints, looks_like, needs_of
from common.testing.graded_tests import MACHINE_DEPENDENT

RIGHT, WRONG, NONE = "right", "wrong", "none"


def diagnosis_of(plan: ProofPlan, hints: Hints, verdicts: Iterable[Verdict]) -> Diagnosis:
    """What the tests of a wrong version say. Those that were not run can't notice it, and pass."""
    diagnosis = Diagnosis(hints, needs_of(plan.assignment))
    ended = {verdict.test: verdict for verdict in verdicts if verdict.ran}
    for test in plan.tests:
        verdict = ended.get(test.name)
        if verdict is not None:
            seen = (verdict.passed, verdict.check, verdict.seen)
            diagnosis.add(Ended(test.name, test.group, *seen))
        elif not MACHINE_DEPENDENT & {*test.tags}:
            diagnosis.add(Ended(test.name, test.group, passed=True))
    return diagnosis


def hint_jobs(
    plan: ProofPlan, hints: Hints, replies: Mapping[str, GradingReply]
) -> dict[str, GradingRequest]:
    """Mutants on all of their tests, where the first failure looks like a known mistake's.

    All others get no hint there, and needn't be graded beyond that test.
    """
    return {
        hint_job(mutant.name): plan.mutant_job(mutant, plan.order_for(mutant), to_the_end=True)
        for mutant in plan.mutants
        if any(
            verdict.test in known.failed
            and looks_like(known.failed[verdict.test], verdict.check, verdict.seen)
            for verdict in replies[f"mutant {mutant.name}"].verdicts
            if not verdict.passed
            for known in hints.mistakes.values()
        )
    }


def hint_rows(plan: ProofPlan, hints: Hints, replies: Mapping[str, GradingReply]) -> list[HintRow]:
    """What hint each wrong version gets that is no mistake of the catalog, but for survivors."""
    rows = []
    for mutant in plan.mutants:
        first = replies[f"mutant {mutant.name}"].verdicts
        if all(verdict.passed for verdict in first):
            continue
        whole = replies.get(hint_job(mutant.name))
        changed = (mutant.file, mutant.function)
        named = named_mistakes(plan, hints, whole.verdicts) if whole else []
        rows.append(HintRow(f"mutant {mutant.name}", named, verdict_on(plan, named, changed)))
    for entry in plan.unnamed:
        verdicts = replies[unnamed_job(entry.name)].verdicts
        named = named_mistakes(plan, hints, verdicts)
        result = verdict_on(plan, named, (plan.file_of(entry.file), entry.function))
        rows.append(HintRow(unnamed_job(entry.name), named, result))
    return rows


def named_mistakes(plan: ProofPlan, hints: Hints, verdicts: Iterable[Verdict]) -> list[list[str]]:
    """The mistakes that a submission with these verdicts is told of: one hint may name two."""
    return [*diagnosis_of(plan, hints, verdicts).told().values()]


def verdict_on(plan: ProofPlan, named: list[list[str]], changed: tuple[str, str]) -> str:
    """Whether each hint names a mistake in the changed function, or in what it is a part of."""
    if not named:
        return NONE
    by_name = {mistake.name: mistake for mistake in plan.mistakes}
    right = all(any(holds(plan, by_name[name], changed) for name in names) for names in named)
    return RIGHT if right else WRONG


def holds(plan: ProofPlan, mistake: Mistake, changed: tuple[str, str]) -> bool:
    """Whether a mistake lies in a changed function, or in what that is a part of."""
    file, function = changed
    if plan.file_of(mistake.file) != file:
        return False
    return not mistake.function or f"{function}.".startswith(f"{mistake.function}.")
