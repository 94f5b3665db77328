"""Batches with random outcomes that nobody graded, in the form of real ones."""

import json
import random
from pathlib import Path

from autograder.batch.batch_records import (
    Index,
    State,
    Student,
    Submitted,
    write_index,
    write_state,
)
from autograder.classroom.synthetic_students import invent_students
from autograder.grading.results import Outcome, Result, to_gradescope
from autograder.proving.wrong_versions.mistakes import load_mistakes
from common.assignment import ROOT, load_assignment
from common.errors import HINT_PREFIX, Explanation
from common.testing.graded_tests import read_graded_tests
from common.testing.leaderboard import Leaderboard

# What hostile work may print, and have itself called: each must reach the reader as it is.
HOSTILE_TEXT = (
    "</script><script>window.hacked = true</script><img src=x onerror='window.hacked = true'>"
    " {{data}} <!-- ]]> \u2028 &lt; \"quoted\" 'too'"
)
HOSTILE_NAME = "Robert <b onclick=alert(1)>Tables</b>"
DIFFERENT = 400  # results; in a larger batch they come again
FORGED = 10  # hints that hostile work prints
SPECIAL = 4  # submissions that end otherwise: failed, unreadable, waiting, hostile


def write_batch(
    folder: Path, count: int, short: str = "a1", anonymous: bool = False, notes: tuple = ()
) -> Path:
    """A batch of so many submissions, the same each time: the last four are the special ones."""
    rng = random.Random(f"{short}/{count}")
    assignment = load_assignment(short)
    graded_tests = read_graded_tests(ROOT / "tests" / assignment.name)
    mistakes = load_mistakes(assignment)
    groups = [(student,) for student in invent_students(count + 1, rng)]
    groups[0] += groups.pop()
    groups[-1] = (Student(HOSTILE_NAME, "66600666", "tables@example.edu"),)
    ids = [str(210_000_000 + 977 * place) for place in range(count)]
    submissions = tuple(
        Submitted(number, f"submission_{number}", group)
        for number, group in zip(ids, groups, strict=True)
    )
    index = Index(
        assignment.name,
        assignment.title,
        "export",
        "0" * 64,
        "12345678",
        submissions,
        anonymous,
        notes=notes,
    )
    write_index(folder, index)
    whole = sum(test.points for test in graded_tests)
    nothing = Result(assignment, graded_tests, "12345678", finished=True)
    drawn = [
        draw_result(rng, assignment, graded_tests, mistakes) for _ in range(min(count, DIFFERENT))
    ]
    contents = [as_bytes(result) for result in drawn]
    for place, number in enumerate(ids):
        left, seconds = count - place, rng.uniform(2, 9)
        if left == SPECIAL:
            state = State("key", "failed", seconds=31.5, attempts=3, why="The worker was lost.")
            write_state(folder, number, state, None)
        elif left == SPECIAL - 1:
            why = f"{groups[place][0].name}.zip is damaged."
            state = State("key", "unreadable", 0.0, whole, seconds, why=why)
            write_state(folder, number, state, as_bytes(nothing))
        elif left == 1:
            state = State("key", "graded", 0.0, whole, seconds)
            hostile = draw_result(rng, assignment, graded_tests, mistakes, hostile=True)
            write_state(folder, number, state, as_bytes(hostile))
        elif left != 2:  # to that one it never came
            score = drawn[place % len(drawn)].score
            state = State("key", "graded", score, whole, seconds)
            write_state(folder, number, state, contents[place % len(drawn)])
    return folder


def as_bytes(result: Result) -> bytes:
    """A result as it is stored."""
    return json.dumps(to_gradescope(result), indent=1).encode()


def draw_result(rng, assignment, graded_tests, mistakes, hostile=False) -> Result:
    """A result with a known mistake or two, or with little written at all."""
    result = Result(assignment, graded_tests, "12345678", finished=True)
    made = rng.sample(mistakes, rng.choice([0, 1, 1, 2, 3]))
    last = rng.choice([len(assignment.exercises)] * 3 + [*range(len(assignment.exercises))])
    written = {exercise.number for exercise in assignment.exercises[:last]}
    for test in graded_tests:
        mine = [mistake for mistake in made if test.exercise in mistake.exercises]
        if hostile:
            outcome = Outcome(test, False, Explanation(HOSTILE_TEXT), HOSTILE_TEXT)
        elif test.exercise not in written:
            outcome = Outcome(test, False, Explanation("It is not written yet."))
        elif mine and rng.random() < 0.7:
            details = f"At index (0, {rng.randrange(9)}): got {rng.random():.4f}."
            reported = Explanation("The values are wrong.", details, hint=mine[0].hint)
            outcome = Outcome(test, False, reported, f"step {rng.randrange(99)}\n")
        else:
            outcome = Outcome(test, True)
        result.outcomes[test.name] = outcome
    if hostile:  # a hint that student code prints is not one
        first = graded_tests[0]
        printed = "\n".join(
            [*(HINT_PREFIX + mistake.hint for mistake in mistakes[:FORGED]), HOSTILE_TEXT]
        )
        result.outcomes[first.name] = Outcome(first, False, Explanation("Wrong."), printed)
    if assignment.short == "a7" and written:
        result.leaderboard = Leaderboard()
        result.leaderboard.add("validation loss", round(rng.uniform(1.4, 2.2), 3), "asc")
        speed = round(rng.uniform(0.6, 1.3), 2)
        result.leaderboard.add("tokens/s relative to the baseline", speed, "desc")
    return result
