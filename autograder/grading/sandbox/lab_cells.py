"""Runs a submitted lab's cells in a sandboxed child, each with time limits."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from autograder.grading.sandbox.conversation import Conversation
from autograder.grading.sandbox.sandbox import Sandbox
from common.assignment import LabSettings, Limits
from common.errors import ChildFailure, GraderFault
from common.labs.cells import MAX_BYTES
from common.labs.lab_run import LabClock, RunCell

REPLY_BYTES = 16 * MAX_BYTES  # small items take more room in a message than they count for


@contextmanager
def cells_in_a_child(sandbox: Sandbox) -> Iterator[RunCell]:
    """What runs one cell after another, in one child."""
    lab, limits = sandbox.assignment.lab, sandbox.assignment.limits
    if lab is None:
        raise GraderFault(f"{sandbox.assignment.short} has no lab")
    # The kernel's limit, which is that of a process, is the one of all cells.
    limits = msgspec.structs.replace(limits, test_seconds=lab.total_seconds)
    with sandbox.lab_child(limits) as child:
        child.reader.limit = REPLY_BYTES
        yield CellRunner(child, lab, limits).run


class CellRunner:
    """Asks a child to run cells."""

    def __init__(self, child: Conversation, lab: LabSettings, limits: Limits) -> None:
        self.child = child
        self.clock = LabClock(lab, lambda: child.processes.seconds() if child.processes else 0.0)
        self.limits = limits

    def run(self, number: int, source: str) -> Any:
        """Run one cell; a ChildFailure says why it didn't come to its end."""
        with self.clock.cell() as seconds:
            self.child.limit(msgspec.structs.replace(self.limits, test_seconds=seconds))
            try:
                return self.child.ask("cell", number, source)
            except ChildFailure as failure:
                if self.child.timed_out:
                    by_clock = self.child.by_clock
                    raise self.clock.time_limit_failure(seconds, by_clock) from None
                raise ChildFailure(about_a_cell(str(failure))) from None
            except GraderFault:
                raise
            except Exception:  # whatever a child makes up
                raise ChildFailure("Its reply can't be read.") from None


def about_a_cell(sentence: str) -> str:
    """A failure of a child, as said of the cell that it ran."""
    return sentence.replace("Your code's", "Its", 1).replace("Your code", "It", 1)
