"""Chooses by the commit which of many cases `make test` tries; CONV2GPT_COMPLETE=1 tries all.

Each commit tries other ones, and the same commit the same ones. Whatever is left out is counted:
a run ends by saying what was a sample, and of how many.
"""

import functools
import os
import random
import subprocess
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from common.assignment import ROOT

VARIABLE = "CONV2GPT_COMPLETE"
NO_COMMIT = "unknown"  # a checkout without git: one sample, and always the same

Case = TypeVar("Case")
# How many of how many, by what they are.
TAKEN: dict[str, tuple[int, int]] = {}


def is_complete() -> bool:
    """Whether everything is to be tried."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


@functools.cache
def commit() -> str:
    """The commit of this checkout."""
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    try:
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return NO_COMMIT
    return finished.stdout.strip() if finished.returncode == 0 else NO_COMMIT


def sample(
    what: str,
    cases: Sequence[Case],
    count: int,
    kind: Callable[[Case], Hashable] = lambda case: None,
) -> list[Case]:
    """So many of the cases in their order, one of each kind at least."""
    if is_complete():
        return list(cases)
    order = list(range(len(cases)))
    random.Random(f"{commit()}/{what}").shuffle(order)
    of_its_kind: dict[Hashable, int] = {}
    for place in order:
        of_its_kind.setdefault(kind(cases[place]), place)
    first = set(of_its_kind.values())
    others = [place for place in order if place not in first]
    chosen = sorted([*first, *others[: max(0, count - len(first))]])
    if len(chosen) < len(cases):
        TAKEN[what] = len(chosen), len(cases)
    return [cases[place] for place in chosen]


def summary(taken: dict[str, tuple[int, int]]) -> str:
    """What a run says about its samples; nothing if it had none."""
    if not taken:
        return ""
    parts = [f"{few:,} of {whole:,} {what}" for what, (few, whole) in sorted(taken.items())]
    return f"Sampled by commit {commit()[:7]}: {', '.join(parts)}; {VARIABLE}=1 runs all."
