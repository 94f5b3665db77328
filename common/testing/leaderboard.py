"""Leaderboard entries that graded tests report: name, value, sort order."""

import math
from dataclasses import dataclass

ORDERS = ("asc", "desc")  # Gradescope's words: the smallest first, or the largest


@dataclass(frozen=True)
class Entry:
    """One figure of a submission. It is shown to everyone, so a test rounds it."""

    name: str
    value: float
    order: str


class Leaderboard:
    """The entries of one submission, in the order in which their names first came."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}

    def add(self, name: str, value: float, order: str = "asc") -> None:
        """Enter a figure; it replaces an earlier one of that name.

        Infinity and NaN are left out: JSON can't represent them.
        """
        if order not in ORDERS:
            raise ValueError(f"order must be one of {', '.join(ORDERS)}, got {order}")
        if math.isfinite(value):
            self.entries[name] = Entry(name, float(value), order)

    @property
    def lines(self) -> list[str]:
        """The entries for a terminal."""
        return [f"{entry.name}: {entry.value:g}" for entry in self.entries.values()]
