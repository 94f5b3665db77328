"""What a warm judge needs, whichever the engine: memory, arguments, and time to answer."""

from collections.abc import Iterable
from pathlib import Path

from common.assignment import Assignment

JUDGE_MB = 700  # a judge with PyTorch, its fork, and their fork server
SPARE_SECONDS = 300  # for a judge's own work, beyond what student code may take


def arguments_of(
    assignment: Assignment, gpus: float, private: Iterable[Path] = ()
) -> tuple[str, ...]:
    """What a warm judge is started with.

    private: where all submissions and results lie. Whether student code gets there is tried.
    """
    places = [str(path.resolve()) for path in private]
    return (assignment.short, *(("gpu",) if gpus else ()), *places)


def silence_of(assignment: Assignment) -> float:
    """The seconds after which a judge that has not answered counts as dead."""
    lab = assignment.lab.total_seconds if assignment.lab else 0.0
    return 2 * (assignment.limits.total_seconds + lab) + SPARE_SECONDS
