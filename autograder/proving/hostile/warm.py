"""Grades what lies in a tree like Gradescope's, again and again, in one sandbox that stays.

Run in the source/ of an unpacked autograder zip, as `python warm.py ROOT IN OUT`. A line that comes
in is the path of what was handed in: it does what run_autograder does, and answers with a line.
"""

import gc
import importlib
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, os.getcwd())

from autograder.grading import grade, gradescope
from autograder.grading.sandbox.sandbox import Sandbox
from autograder.grading.submission import Submission, take
from common.assignment import Assignment, load_all


class KeptSandbox:
    """Stands where the judge makes a sandbox, and gives it the one that is there."""

    kept: Sandbox

    def __init__(self, assignment: Assignment) -> None:
        pass

    def __enter__(self) -> Sandbox:
        return self.kept

    def __exit__(self, *exception: object) -> None:
        pass


def main() -> None:
    root, incoming, outgoing = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    (assignment,) = load_all()
    with Sandbox(assignment) as sandbox, os.fdopen(incoming) as jobs:
        importlib.import_module(f"tests.{assignment.name}.oracle")
        KeptSandbox.kept = sandbox
        grade.Sandbox = KeptSandbox  # type: ignore[misc, assignment]
        gc.freeze()  # pytest collects garbage after every run, and PyTorch has much of it
        for line in jobs:
            handed_in = Path(json.loads(line))

            def take_it(
                folder: Path, assignment: Assignment, place: Path = handed_in
            ) -> Submission:
                return take(place, assignment)

            gradescope.take = take_it  # type: ignore[assignment]
            gradescope.grade_tree(root)
            told = {
                "servers": [server.process.pid for server in sandbox.servers],
                "folder": str(sandbox.folder),
                "uid": sandbox.slot.uid if sandbox.slot else None,
            }
            os.write(outgoing, json.dumps(told).encode() + b"\n")


if __name__ == "__main__":
    main()
