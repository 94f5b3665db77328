"""`check`, the basic assertion of graded tests, and a log of what the running test compared."""

from dataclasses import dataclass, field
from typing import Any

from common.errors import Evidence, Failure


@dataclass(frozen=True)
class Compared:
    """One comparison of values: how far off, and how far it may be."""

    error: float
    tolerance: float


@dataclass
class Log:
    """The checks of one test so far."""

    checks: int = 0
    compared: list[Compared] = field(default_factory=list)
    continue_after_failure: bool = False  # after a wrong value, so that the others are compared
    failures: list[Exception] = field(default_factory=list)  # of a test that continues after them

    def clear(self) -> None:
        """Start again, for the next test."""
        self.checks = 0
        self.compared.clear()
        self.failures.clear()


LOG = Log()  # tests run one after the other; the plugin clears it before each


def check(
    condition: bool, sentence: str, details: str = "", help: str = "", *, value: Any = None
) -> None:
    """Fail with that sentence unless the condition holds.

    The sentence is shown for hidden tests too, so it must not hold inputs or expected values;
    details are shown for public tests only. `value` is the student's array, where there is one.
    """
    __tracebackhide__ = True  # a debugger should stop in the test, not in here
    LOG.checks += 1
    if not condition:
        evidence = Evidence(LOG.checks, value, f"{sentence} {details}")
        raise Failure(sentence, details, help, evidence=evidence)
