"""Grades hostile submissions in parallel, and an honest one after each."""

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass

from autograder.proving.hostile.gradescope_tree import Graded, GradescopeTree
from autograder.proving.hostile.hostile_corpus import LEAK, HostileSubmission
from common.assignment import load_assignment
from common.errors import GraderFault

NO_LAB = "lab.ipynb is missing"
MAX_WAITING = 6  # at most this many gradings before an honest one is checked


@dataclass(frozen=True)
class Outcome:
    """What became of an entry, and of an honest submission after it in the same slot."""

    graded: Graded
    after: Graded
    tree: GradescopeTree

    @property
    def secrets_shown(self) -> list[str]:
        """Where secrets came from that are in the result or in what was printed."""
        graded = self.graded
        text = graded.results.decode() + graded.printed
        shown = [place for place, canary in self.tree.canaries.items() if canary in text]
        labs = {test.name for test in self.tree.graded_tests if test.reads_lab}
        for test in graded.content["tests"]:
            # A lab may say what it likes in public tests. Without one, another test has said it.
            foreign = test["extra_data"]["test"] in labs and NO_LAB in test["output"]
            hidden = test["visibility"] != "visible" or foreign
            if hidden and LEAK in test["output"]:
                shown.append(f"inputs of hidden tests in {test['extra_data']['test']}")
        return shown


class CorpusGradings:
    """Entries under way; the outcome of each as it comes. Leaving the block ends the rest."""

    def __init__(self, entries: Sequence[HostileSubmission]) -> None:
        self.outcomes: dict[str, Future[Outcome]] = {entry.name: Future() for entry in entries}
        self.stopped = False
        self.threads: list[threading.Thread] = []
        # Python before 3.11.8 may fail where two threads make syntax trees at once ("AST
        # constructor recursion depth mismatch"): all trees are made before a thread starts.
        self.parts = {entry.name: entry.honest_parts() for entry in entries}
        with ExitStack() as opened:
            trees = [
                opened.enter_context(GradescopeTree(load_assignment(short)))
                for short in sorted({entry.assignment.short for entry in entries})
            ]
            opened.pop_all()  # from here on, each thread closes its own
        for tree in trees:
            tree.beside = [other for other in trees if other is not tree]
            chosen = [entry for entry in entries if entry.assignment == tree.assignment]
            self.threads.append(threading.Thread(target=self.run, args=(tree, chosen)))
            self.threads[-1].start()

    def run(self, tree: GradescopeTree, entries: list[HostileSubmission]) -> None:
        """Grade one after the other, and an honest one after each that could leave something."""
        waiting: list[tuple[HostileSubmission, Graded]] = []
        try:
            with tree:
                for entry in entries:
                    if self.stopped:
                        return
                    waiting.append((entry, tree.grade(entry, self.parts[entry.name])))
                    if entry.leaves or len(waiting) >= MAX_WAITING or entry is entries[-1]:
                        after = tree.grade_honest()
                        for done, graded in waiting:
                            self.outcomes[done.name].set_result(Outcome(graded, after, tree))
                        waiting.clear()
        except BaseException as error:
            fault = GraderFault(f"{entry.name}, or one just before it, was not graded: {error}")
            for entry in entries:
                if not self.outcomes[entry.name].done():
                    self.outcomes[entry.name].set_exception(fault)

    def __enter__(self) -> "CorpusGradings":
        return self

    def __exit__(self, *exception: object) -> None:
        self.stopped = True
        for thread in self.threads:
            thread.join()
