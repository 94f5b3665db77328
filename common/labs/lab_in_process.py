"""Runs a lab in the current process, for a student's own pytest run."""

import time
from typing import Any

from common.assignment import Assignment, LabSettings, wall_limit
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
        self.clock = LabClock(limits, time.process_time)

    def run(self, number: int, source: str) -> Any:
        """Run one cell, and say that it took too long where it does."""
        with self.clock.cell() as seconds:
            try:
                with time_limit(wall_limit(seconds), computing=seconds):
                    return self.cells.run(number, source)
            except TookTooLong as error:
                raise self.clock.time_limit_failure(seconds, error.by_clock) from None
