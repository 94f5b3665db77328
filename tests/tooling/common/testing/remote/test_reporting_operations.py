"""What operations report to graded tests, and how the judge checks it: each has its line here."""

import ast
from pathlib import Path

import pytest

from common.assignment import ROOT
from common.testing.graded_tests import HIDDEN_FILE, PUBLIC_FILE
from common.testing.remote.operations import OPERATIONS

# They make, load or start something, and report nothing.
SILENT = {
    *("hold", "call_with_held", "write_into", "load_parameters", "seed_torch"),
    *("step_with_gradients", "gradient_descent", "torch_generator", "scratch_path"),
    *("write_scratch", "product_function"),
}
# The judge compares the values that they return with expected ones.
COMPARED = {
    "call_each": "results of calls",
    "disturbed_calls": "results of calls",
    "timed_call": "results of calls, by the judge's clock, with new inputs in each try",
    "timed_pass": "outputs and gradients, by the judge's clock, with new inputs in each try",
    "timed_vjp": "outputs and gradients, by the judge's clock, with new inputs in each try",
    "vjp": "outputs and gradients",
    "loss_gradients": "a loss and gradients",
    "parameters_of": "parameters",
    "scratch_bytes": "the content of a file, which the judge parses",
}
# The judge sees for itself, whatever is reported.
OBSERVED = {
    "changed_inputs": "inputs lie in shared memory, where the judge compares them",
    "watched_call": "a result; inputs are compared as of changed_inputs, settings can only cost",
    "with_substitute": "the judge makes up what the inner function returns, and counts its calls",
    "allocating_function": "the judge says the sizes while it runs; the kernel counts the memory",
}
# Nothing but the child knows. No test may rest on it alone: see OBSERVATIONS.
UNCHECKED = {
    "fetch": "what became of values that the child holds",
    "warnings_of": "texts of warnings",
    "hooks_of": "how many hooks are on modules",
    "tracked_entries": "which tensors have gradients",
    "devices_of": "where tensors are",
    "stored_gradients": "what is left in .grad of parameters",
    "gradients_left": "what is left in .grad of inputs",
    "vectors_through": "how many vectors a part of a module reads",
    "kind_of_attribute": "the type of an attribute, for a better sentence",
}
UNGRADED = {"peak_memory_of": "bytes that `autograder time` shows"}
# A test that uses one of UNCHECKED must use one of these as well.
OBSERVATIONS = {"assert_close", "assert_equal", "check_speed", "check_unchanged", "resident_peak"}
FOLDERS = sorted(path.parent for path in (ROOT / "tests").glob(f"a*/{PUBLIC_FILE}"))


def test_every_operation_has_its_line():
    groups = (SILENT, COMPARED, OBSERVED, UNCHECKED, UNGRADED)
    lines = [name for group in groups for name in group]
    assert sorted(lines) == sorted(OPERATIONS)


def names_by_function(folder: Path) -> dict[str, set[str]]:
    """For each function of a folder's modules the names in it."""
    found: dict[str, set[str]] = {}
    for file in sorted(folder.glob("*.py")):
        if file.name == "oracle.py":
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
                names |= {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
                found.setdefault(node.name, set()).update(names)
    return found


def used_by(test: str, functions: dict[str, set[str]]) -> set[str]:
    """All names that a test uses, and the functions that it calls."""
    used, waiting = set(), [test]
    while waiting:
        for name in functions.get(waiting.pop(), ()):
            if name not in used:
                used.add(name)
                waiting.append(name)
    return used


def resting_on_the_child_alone(functions: dict[str, set[str]]) -> list[str]:
    """The tests that use a report which nothing checks, and observe nothing."""
    tests = {name: used_by(name, functions) for name in functions if name.startswith("test_")}
    return [name for name, used in tests.items() if used & {*UNCHECKED} and not used & OBSERVATIONS]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_no_graded_test_rests_on_what_only_the_child_knows(folder):
    functions = names_by_function(folder)
    assert (folder / HIDDEN_FILE).exists() and len(functions) > 10
    assert resting_on_the_child_alone(functions) == []
    used = set().union(*functions.values())
    assert not used & {*UNGRADED}


def test_a_test_that_rests_on_the_child_alone_is_found():
    functions = {
        "test_alone": {"check_hooks"},
        "test_beside_values": {"check_hooks", "assert_close"},
        "check_hooks": {"hooks_of", "check"},
    }
    assert resting_on_the_child_alone(functions) == ["test_alone"]
