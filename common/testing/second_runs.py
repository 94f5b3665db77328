"""Runs a failed test once more, with stand-ins for functions of earlier exercises."""

from collections.abc import Iterable

import pytest
from _pytest.runner import runtestprotocol

from common.exercise_needs import Needed
from common.training.training_progress import hidden_progress

# What is replaced in the run that is on: nothing in a first one.
NEEDED: pytest.StashKey[tuple[Needed, ...]] = pytest.StashKey()


def passes_with(item: pytest.Item, needed: Iterable[Needed]) -> bool:
    """Whether a test passes with these replaced. It is reported to no one."""
    item.config.stash[NEEDED] = tuple(needed)
    try:
        with hidden_progress():
            reports = runtestprotocol(item, log=False, nextitem=None)
    finally:
        item.config.stash[NEEDED] = ()
    return all(report.passed for report in reports)


def is_second_run(item: pytest.Item) -> bool:
    """Whether the run of a test that is on is its second."""
    return bool(item.config.stash.get(NEEDED, ()))
