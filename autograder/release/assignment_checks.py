"""Checks points, oracle and stored answers of an assignment's tests before `make` builds."""

import hashlib
import subprocess
import sys
from collections.abc import Iterator

from autograder.authoring.answer_recorder import answers_file, check_oracle
from common.assignment import ROOT, Assignment
from common.errors import CourseError
from common.testing.graded_tests import (
    GradedTest,
    format_points,
    points_by_exercise,
    read_graded_tests,
)

POINTS = 100
LEAST_PUBLIC, MOST_PUBLIC = 55, 65


def check_tests(assignment: Assignment) -> None:
    """The tests are worth what they must, and have an oracle; an error says all that is wrong."""
    check_oracle(assignment)
    graded_tests = read_graded_tests(ROOT / "tests" / assignment.name)
    problems = [*problems_of_points(graded_tests), *problems_of_exercises(assignment, graded_tests)]
    if problems:
        where = f"tests/{assignment.name}"
        raise CourseError("\n".join(f"{where}: {problem}" for problem in problems))


def problems_of_points(graded_tests: list[GradedTest]) -> Iterator[str]:
    """What is wrong with the points of all tests together."""
    points = sum(test.points for test in graded_tests)
    public = sum(test.points for test in graded_tests if not test.hidden)
    if points != POINTS:
        yield f"the points sum to {format_points(points)}, not to {POINTS}."
    elif not LEAST_PUBLIC <= public <= MOST_PUBLIC:
        yield (
            f"{format_points(public)} of {POINTS} points are public, but it must be "
            f"{LEAST_PUBLIC} to {MOST_PUBLIC}."
        )


def problems_of_exercises(assignment: Assignment, graded_tests: list[GradedTest]) -> Iterator[str]:
    """Which exercises lack public or hidden tests."""
    for hidden, kind in ((False, "public"), (True, "hidden")):
        tested = points_by_exercise(graded_tests, hidden=hidden)
        for exercise in assignment.exercises:
            if exercise.number not in tested:
                yield f"exercise {exercise.number} has no {kind} test."


def check_answers(assignment: Assignment) -> None:
    """The stored answers are those that the oracle gives; in a process of its own, with PyTorch."""
    command = [sys.executable, "-m", "autograder", "answers", assignment.short, "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CourseError(done.stderr.strip())


def answers_state(assignment: Assignment) -> str:
    """A hash of all that decides what the stored answers must be, and of them; "" without any."""
    if not assignment.stores_answers:
        return ""
    digest = hashlib.sha256((ROOT / "requirements.txt").read_bytes())
    code = sorted((ROOT / "tests" / assignment.name).glob("*.py"))
    code += [ROOT / "solutions" / assignment.name / name for name in assignment.files]
    for file in [*code, answers_file(assignment)]:
        digest.update(f"{file.name} {file.is_file()}\n".encode())
        digest.update(file.read_bytes() if file.is_file() else b"")
    return digest.hexdigest()
