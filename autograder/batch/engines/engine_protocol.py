"""The interface that both batch engines implement."""

from collections.abc import Callable
from typing import Protocol

from autograder.batch.work_queue import Work


class Engine(Protocol):
    """What grades the submissions of a batch."""

    def run(self, work: Work, tick: Callable[[], None]) -> None:
        """Grade until nothing is left; `tick` is called now and then."""

    def close(self) -> None:
        """End all that was started."""
