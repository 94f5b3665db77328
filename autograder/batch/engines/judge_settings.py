"""The memory, options and timeout of a batch's warm judges, for both engines."""

from collections.abc import Iterable
from pathlib import Path

from autograder.grading.warm.judge_messages import JudgeOptions
from common.assignment import Assignment

JUDGE_MB = 700  # a judge with PyTorch, its fork, and their fork server
SPARE_SECONDS = 600  # for a judge's own work, beyond what student code may take


def judge_options(
    assignment: Assignment, gpus: float, private: Iterable[Path] = ()
) -> JudgeOptions:
    """What a warm judge of a class is started with.

    private: where all submissions and results lie. Whether student code gets there is tried.
    """
    paths = tuple(str(path.resolve()) for path in private)
    return JudgeOptions(assignment.short, forks=True, gpu=bool(gpus), private=paths)


def reply_timeout(assignment: Assignment) -> float:
    """The seconds after which a judge that has not answered counts as dead."""
    return assignment.wall_seconds + SPARE_SECONDS
