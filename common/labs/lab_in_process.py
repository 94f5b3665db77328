"""Runs a lab in the current process, for a student's own pytest run."""

from typing import Any

from common.assignment import Assignment, LabSettings
from common.determinism import seed_all
from common.errors import Failure
from common.labs.cells import Cells
from common.labs.lab_run import Lab, LabClock, run_lab
from common.labs.time_limit import TookTooLong, time_limit
from common.student_code.forbidden_calls import Guard
from common.student_code.loader import load_standins, mount


def run_lab_in_process(content: bytes, assignment: Assignment) -> Lab:
    """Run a lab here, on the stand-ins that it is graded on."""
    if assignment.lab is None:
        raise Failure(f"{assignment.short} has no lab.")
    mount({})
    load_standins(assignment.lab_standins, Guard(()))
    seed_all()
    with Cells(interruptible=True) as cells:
        return run_lab(content, assignment, LimitedCells(cells, assignment.lab).run)


class LimitedCells:
    """Runs cells within the limits of grading."""

    def __init__(self, cells: Cells, limits: LabSettings) -> None:
        self.cells = cells
        self.clock = LabClock(limits)

    def run(self, number: int, source: str) -> Any:
        """Run one cell, and say that it took too long where it does."""
        with self.clock.cell() as seconds:
            try:
                with time_limit(seconds):
                    return self.cells.run(number, source)
            except TookTooLong:
                raise self.clock.time_limit_failure(seconds) from None
