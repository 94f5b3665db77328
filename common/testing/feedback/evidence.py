"""Records what the running test's checks saw: errors for margins, values for hints."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Compared:
    """One comparison of values: how far off, and how far it may be."""

    error: float
    tolerance: float


@dataclass(frozen=True)
class Evidence:
    """What a failed check saw, by which a known mistake can be recognised."""

    check: int  # which check of the test, counted from 1
    value: Any  # the student's array; None where the check saw none
    text: str  # what the check said


@dataclass
class Log:
    """The checks of one test so far."""

    checks: int = 0
    compared: list[Compared] = field(default_factory=list)
    patient: bool = False  # whether a test goes on after a wrong value, to compare the others too
    wrong: list[Exception] = field(default_factory=list)  # what a patient test has to say at last

    def clear(self) -> None:
        """Start again, for the next test."""
        self.checks = 0
        self.compared.clear()
        self.wrong.clear()


LOG = Log()  # tests run one after the other; the plugin clears it before each
