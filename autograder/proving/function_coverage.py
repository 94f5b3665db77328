"""Records which functions of the reference each test runs, to skip irrelevant gradings.

Run as `python -m autograder.proving.function_coverage aN SALT`.

A wrong version differs from the reference in one function. A test that never runs that function
ends as it does with the reference, so it need not be run again. The tests call the reference in
their own process (the direct face), where coverage.py notes its lines, a context for each test.
"""

import ast
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from coverage import Coverage

from autograder.authoring.reference_artifacts import reference_artifacts
from autograder.authoring.syntax_hash import python_hash
from autograder.packaging.graded_test_hash import test_hashes
from autograder.packaging.grading_code_hash import grading_code_hash
from autograder.proving.right_versions import reference
from autograder.semester import DIST
from autograder.zip_archive import write_if_changed
from common.assignment import ROOT, Assignment, load_assignment
from common.determinism import SAME_ARITHMETIC
from common.errors import CourseError
from common.testing.fixtures import decorator_value, run_graded_tests
from common.testing.graded_tests import HIDDEN_FILE, PUBLIC_FILE, TRAINING, read_graded_tests


class FunctionCoverage:
    """The functions that each test runs, as "file.py: Class.function". Not every test is known."""

    def __init__(self, functions: Mapping[str, Iterable[str]]) -> None:
        self.functions = {test: set(names) for test, names in functions.items()}
        self.all = set[str]().union(*self.functions.values())

    def may_notice(self, test: str, file: str, function: str) -> bool:
        """Whether a test could end otherwise if that function is changed.

        Where nothing is known of the test or of the function, it could.
        """
        changed = f"{file}: {function}"
        if test not in self.functions or not runs(self.all, changed):
            return True
        return runs(self.functions[test], changed)


def runs(names: Iterable[str], changed: str) -> bool:
    """Whether the changed function, or one of the changed class, is among those that were run."""
    return any(name == changed or name.startswith(f"{changed}.") for name in names)


class Watcher:
    """The pytest plugin that gives each test a coverage context of its own."""

    def __init__(self, coverage: Coverage, labs: Collection[str]) -> None:
        self.coverage = coverage
        self.labs = labs
        self.ran: set[str] = set()
        self.failed: set[str] = set()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Training runs nearly everything, and takes long. A lab takes long, and runs nothing."""
        items[:] = [
            item
            for item in items
            if TRAINING not in decorator_value(item, "__tags__", ()) and item.name not in self.labs
        ]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.ran.add(item.name)
        self.coverage.switch_context(item.name)
        try:
            return (yield)
        finally:
            self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:  # it didn't come to its end, so not all is known
            self.failed.add(report.nodeid.rpartition("::")[2])


def watch(assignment: Assignment, salt: str) -> dict[str, list[str]]:
    """Run the tests on the reference, in this process."""
    folder = ROOT / "tests" / assignment.name
    labs = {test.name for test in read_graded_tests(folder) if test.reads_lab}
    solution = ROOT / "solutions" / assignment.name
    coverage = Coverage(data_file=None, config_file=False, include=[f"{solution}/*"])
    coverage.set_option("run:core", "ctrace")  # the default of later Pythons knows no contexts
    watcher = Watcher(coverage, labs)
    files = [folder / PUBLIC_FILE, folder / HIDDEN_FILE]
    options = ("--impl=solutions", "--prerequisites=standin", f"--salt={salt}")
    with coverage.collect():
        run_graded_tests(files, watcher, *options)
    functions: dict[str, set[str]] = {test: set() for test in watcher.ran - watcher.failed}
    for file in map(Path, coverage.get_data().measured_files()):
        function_of = functions_by_line(ast.parse(file.read_bytes()))
        for line, tests in coverage.get_data().contexts_by_lineno(str(file)).items():
            for test in functions.keys() & tests:
                functions[test].add(f"{file.name}: {function_of.get(line, '<module>')}")
    return {test: sorted(functions[test]) for test in sorted(functions)}


def functions_by_line(scope: ast.Module | ast.ClassDef, prefix: str = "") -> dict[int, str]:
    """The function around each line, "Class.function", or the class where no function is.

    A signature is run where the function is defined, so it is no part of the function.
    """
    found: dict[int, str] = {}
    for node in scope.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            lines = range(node.body[0].lineno, (node.end_lineno or 0) + 1)
            found |= dict.fromkeys(lines, prefix + node.name)
            if isinstance(node, ast.ClassDef):
                found |= functions_by_line(node, f"{prefix}{node.name}.")
    return found


def find_function_coverage(
    assignment: Assignment, salt: str, dist: Path = DIST
) -> FunctionCoverage:
    """What the tests run of the reference; watched again only if something has changed."""
    files = [python_hash(content) for content in reference(assignment).values()]
    tests = sorted(test_hashes(assignment).items())
    decides = (grading_code_hash(assignment), tests, files, salt)
    version = hashlib.sha256(repr(decides).encode()).hexdigest()
    file = dist / f"{assignment.short}-coverage.json"
    with suppress(FileNotFoundError, ValueError, KeyError, TypeError):
        kept = json.loads(file.read_text("utf-8"))
        if kept["version"] == version:
            return FunctionCoverage(kept["functions"])
    reference_artifacts(assignment)  # for the tests that read them
    functions = watch_in_subprocess(assignment, salt)
    write_if_changed(file, json.dumps({"version": version, "functions": functions}).encode())
    return FunctionCoverage(functions)


def watch_in_subprocess(assignment: Assignment, salt: str) -> dict[str, list[str]]:
    """Watch in a process of its own: tests change what they import."""
    command = [sys.executable, "-m", "autograder.proving.function_coverage", assignment.name, salt]
    environment = {**os.environ, **SAME_ARITHMETIC}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CourseError(f"The tests of {assignment.short} can't be watched: {done.stderr[-500:]}")
    found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    print(json.dumps(watch(load_assignment(sys.argv[1]), sys.argv[2])))
