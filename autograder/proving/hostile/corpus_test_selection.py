"""Selects the tests that hostile submissions are graded on, to save time."""

import ast
import re

from autograder.proving.hostile.hostile_corpus import read_corpus
from common.assignment import ROOT, Assignment
from common.testing.graded_tests import TIMING, read_graded_tests


def kept_tests(assignment: Assignment) -> set[str]:
    """One public test of each function, one hidden test of each exercise, and all with a clock.

    A test that an entry of the corpus names is kept too.
    """
    graded_tests = read_graded_tests(ROOT / "tests" / assignment.name)
    kept = {test.name for test in graded_tests if TIMING in test.tags}
    kept |= {part for entry in read_corpus() for part in entry.earns if part.startswith("test_")}
    for exercise in assignment.exercises:
        tests = [test for test in graded_tests if test.exercise == exercise.number]
        kept.add(next(test.name for test in tests if test.hidden))
        for function in exercise.functions:
            named = [test.name for test in tests if f"test_{words(function)}_" in test.name]
            kept |= set(named[:1])
    return kept


def words(name: str) -> str:
    """A class's name as a test's name spells it: multi_head_attention."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def keep_only(source: str, kept: set[str]) -> str:
    """A file of tests without those that aren't named."""
    tree = ast.parse(source)
    tree.body = [
        node
        for node in tree.body
        if not (isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))
        or node.name in kept
    ]
    return ast.unparse(tree) + "\n"
