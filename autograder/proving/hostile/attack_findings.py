"""Judges what hostile submissions got and left, and what they cost the judge: rows of the proof."""

from collections.abc import Callable, Sequence
from concurrent.futures import as_completed

from autograder.proving.faults.result_checks import complete_result
from autograder.proving.hostile.corpus_gradings import CorpusGradings, Outcome
from autograder.proving.hostile.fuzzed_submissions import FuzzedSubmission
from autograder.proving.hostile.gradescope_tree import LIMITS, Graded, honest_exercises
from autograder.proving.hostile.hostile_corpus import SUCCESS_TEXT, HostileSubmission
from common.assignment import Assignment, Record, wall_limit
from common.testing.feedback.failure import BROKEN_TEST
from common.visible_text import visible

# The judge's peak memory, libraries included: PyTorch, which answers live.
NUMPY_PEAK_MB, TORCH_PEAK_MB = 600, 1200
# Code that sleeps in every test is ended by the clock, once the time of all tests is used up.
LONGEST_SECONDS = wall_limit(LIMITS["total_seconds"]) + 30
RESULT_BYTES = 500_000
SHOWN = 300


class AttackRow(Record, frozen=True):
    """What became of one hostile submission."""

    name: str
    seconds: float
    peak_mb: float | None  # of the judge; None where another process graded
    bar_mb: float
    problems: list[str]


def grade_attacks(
    attacks: Sequence[HostileSubmission], note: Callable[[AttackRow], None]
) -> list[AttackRow]:
    """Grade hostile submissions; their rows, each noted when it is known."""
    rows = []
    with CorpusGradings(attacks) as gradings:
        expected = {gradings.outcomes[attack.name]: attack for attack in attacks}
        for outcome in as_completed(expected):
            rows.append(judge_attack(expected[outcome], outcome.result()))
            note(rows[-1])
    return sorted(rows, key=lambda row: row.name)


def judge_attack(attack: HostileSubmission, outcome: Outcome) -> AttackRow:
    """The row of a hostile submission. A problem is whatever it gained, broke or left behind."""
    graded, bar = outcome.graded, peak_bar(attack.assignment)
    found = [*result_problems(attack, outcome), *costs(graded, bar), *leftovers(graded)]
    found += [f"it shows a secret: {place}" for place in outcome.secrets_shown]
    found += problems_after(attack, outcome)
    return AttackRow(attack.name, round(graded.seconds, 2), graded.peak_mb, bar, found)


def peak_bar(assignment: Assignment) -> float:
    """How many MB the judge of an assignment may take."""
    return TORCH_PEAK_MB if "torch" in assignment.libraries else NUMPY_PEAK_MB


def result_problems(attack: HostileSubmission, outcome: Outcome) -> list[str]:
    """What is wrong with the result: points, tests or words."""
    graded, tests = outcome.graded, outcome.tree.graded_tests
    text = graded.results.decode()
    found = []
    if SUCCESS_TEXT in text:
        place = text.find(SUCCESS_TEXT)
        found.append(f"it says: {text[place : place + SHOWN]}")
    if BROKEN_TEST in text:
        found.append("it breaks a test, which the result calls a bug in the course")
    try:
        content = complete_result(text)
    except ValueError as error:
        return [*found, f"the result is incomplete: {error}"]
    earned = attack.earned_tests & {test.name for test in tests}
    found += [f"it passes {name} without earning it" for name in sorted(graded.passed - earned)]
    if loses_no_points(attack):
        found += [f"it loses {name}, which it earned" for name in sorted(earned - graded.passed)]
    shown = [content["output"], *(test["output"] for test in content["tests"]), graded.printed]
    found += [f"it shows what can't be seen: {said!r}" for said in shown if visible(said) != said]
    listed = [(test["extra_data"]["test"], test["max_score"]) for test in content["tests"]]
    if listed != [(test.name, test.points) for test in tests]:
        found.append("the result lists other tests or points")
    if not content["extra_data"]["finished"]:
        found.append(f"grading did not finish: {content['output'][:SHOWN]}")
    if len(graded.results) >= RESULT_BYTES:
        found.append(f"the result has {len(graded.results):,} bytes")
    return found


def loses_no_points(attack: HostileSubmission) -> bool:
    """Whether it must get what it earned: all do but those that spoil their own right code."""
    return not isinstance(attack, FuzzedSubmission) or attack.is_harmless_to_itself


def costs(graded: Graded, bar: float) -> list[str]:
    """What took too much of the judge."""
    found = []
    if graded.seconds >= LONGEST_SECONDS:
        found.append(f"grading it took {graded.seconds:.0f} s")
    if graded.peak_mb is not None and graded.peak_mb >= bar:
        found.append(f"the judge's peak memory was {graded.peak_mb:.0f} MB, above {bar:g} MB")
    return found


def leftovers(graded: Graded) -> list[str]:
    """What was left when the grading was over."""
    return [
        *(f"changed: {path}" for path in graded.changes),
        *(f"left behind: {path}" for path in graded.leftover_files),
        *(f"still running: {process}" for process in graded.survivors),
    ]


def problems_after(attack: HostileSubmission, outcome: Outcome) -> list[str]:
    """How the next grading, of honest code in the same slot, differs from the one before."""
    after, tree = outcome.after, outcome.tree
    found = [f"after it, {problem}" for problem in leftovers(after)]
    if after.uid != outcome.graded.uid and not attack.cold:
        found.append("after it, another user graded")
    if after.timeless != tree.honest.timeless:
        found.append("after it, an honest submission got another result")
    honest = honest_exercises(attack.assignment)
    if after.passed != {test.name for test in tree.graded_tests if test.exercise in honest}:
        found.append("after it, an honest submission got other points")
    return found
