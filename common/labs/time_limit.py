"""Interrupts code of the current process after a time limit."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TookTooLong(BaseException):
    """Raised within what took too long; no `except Exception` there stops it."""

    by_clock = True


class ComputedTooLong(TookTooLong):
    """Raised within what used too much processor time."""

    by_clock = False


@contextmanager
def time_limit(seconds: float, computing: float = 0.0) -> Iterator[None]:
    """Raise TookTooLong in the block after this many seconds, where the system supports it.

    computing: the seconds of processor time after which to raise ComputedTooLong; 0 for no limit.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or not hasattr(signal, "setitimer"):  # as on Windows
        yield
        return

    with timer(signal.ITIMER_REAL, signal.SIGALRM, seconds, TookTooLong):
        if not computing:
            yield
            return
        with timer(signal.ITIMER_PROF, signal.SIGPROF, computing, ComputedTooLong):
            yield


@contextmanager
def timer(kind: int, number: int, seconds: float, error: type[TookTooLong]) -> Iterator[None]:
    """Raise the error in the block once that timer of the system has run out."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise error

    previous_handler = signal.signal(number, interrupt)
    signal.setitimer(kind, seconds)
    try:
        yield
    finally:
        signal.setitimer(kind, 0)
        signal.signal(number, previous_handler)
