"""Tests of the packages: unique names, small packages, imports in the order of the jobs."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from autograder.packaging.zip_contents import handout
from common.assignment import ROOT, load_all

# A job imports only from jobs before it.
ORDER = ("authoring", "packaging", "grading", "timing", "proving", "release", "batch", "classroom")
ORDER += ("speedrun", "website", "benchmarks", "commands")
# A room of common/ imports only from rooms before it; a module of no room counts as one.
COMMON_ORDER = ("visible_text", "student_text", "errors", "check_log", "exercise_needs")
COMMON_ORDER += ("assignment", "atomic_write", "determinism", "missing_packages")
COMMON_ORDER += ("data", "student_code", "labs", "training", "testing", "submission_zip")
MOST_MODULES = 15
MOST_TEST_LINES = 400
MOST_POSITIONAL = 4


def modules(*folders: str) -> list[Path]:
    """The modules below folders, by their place in the repo. Stand-ins are named as stubs are."""
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    found = [path.relative_to(ROOT) for path in files]
    return [path for path in found if "standins" not in path.parts]


def imported(file: Path) -> set[str]:
    """The modules that a file imports, wherever the import stands."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / file).read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_no_two_modules_share_a_basename():
    names = Counter(path.name for path in modules("autograder", "common"))
    assert [name for name, count in names.items() if count > 1 and name != "__init__.py"] == []


def test_no_package_has_more_than_fifteen_modules():
    sizes = Counter(
        path.parent for path in modules("autograder", "common") if path.name != "__init__.py"
    )
    assert {folder: size for folder, size in sizes.items() if size > MOST_MODULES} == {}


def test_every_module_says_in_its_first_line_what_it_is_for():
    for path in modules("autograder", "common"):
        assert ast.get_docstring(ast.parse((ROOT / path).read_text("utf-8"))), path


def test_common_imports_nothing_of_autograder():
    for path in modules("common"):
        assert not [name for name in imported(path) if name.startswith("autograder")], path


@pytest.mark.parametrize("job", ORDER)
def test_a_job_imports_only_from_jobs_before_it(job):
    later = tuple(f"autograder.{name}." for name in ORDER[ORDER.index(job) + 1 :])
    for path in modules(f"autograder/{job}"):
        assert not [name for name in imported(path) if f"{name}.".startswith(later)], path


@pytest.mark.parametrize("inner", ["", "/kernel", "/wire"])
def test_the_sandbox_imports_nothing_of_what_is_built_on_it(inner):
    own = f"autograder.grading.sandbox{inner.replace('/', '.')}."
    for path in modules(f"autograder/grading/sandbox{inner}"):
        names = {name for name in imported(path) if name.startswith("autograder")}
        assert not [name for name in names if not f"{name}.".startswith(own)], path


@pytest.mark.parametrize("room", COMMON_ORDER)
def test_a_room_of_common_imports_only_from_rooms_before_it(room):
    later = tuple(f"common.{name}." for name in COMMON_ORDER[COMMON_ORDER.index(room) + 1 :])
    for path in modules("common"):
        if path.parts[1].removesuffix(".py") == room:
            assert not [name for name in imported(path) if f"{name}.".startswith(later)], path


def test_every_room_of_common_has_its_place_in_the_order():
    rooms = {path.parts[1].removesuffix(".py") for path in modules("common")}
    assert rooms == {"__init__", *COMMON_ORDER}


def test_modules_of_no_package_import_only_common():
    for path in modules("autograder"):
        if len(path.parts) == 2 and path.name not in ("__init__.py", "__main__.py"):
            assert not [name for name in imported(path) if name.startswith("autograder")], path


def test_every_package_of_the_machinery_has_its_place_in_the_order():
    folders = {path.parts[1] for path in modules("autograder") if len(path.parts) > 2}
    assert folders == {*ORDER}


@pytest.mark.parametrize("assignment", load_all(), ids=lambda entry: entry.short)
def test_a_handout_holds_nothing_of_the_machinery(assignment):
    tops = {name.partition("/")[0] for name in handout(assignment) if "/" in name}
    assert tops == {"assignments", "common", "docs", "tests"}
    rooms = {Path(name).parts[1] for name in handout(assignment) if name.startswith("common/")}
    known = {"data", "labs", "standins", "student_code", "testing", "training"}
    assert {room for room in rooms if not room.endswith(".py")} <= known


def test_no_test_file_is_longer_than_400_lines():
    lengths = {
        path: len((ROOT / path).read_text("utf-8").splitlines()) for path in files_with_tests()
    }
    assert {path: lines for path, lines in lengths.items() if lines > MOST_TEST_LINES} == {}


def test_tests_of_the_machinery_lie_where_what_they_test_lies():
    """Such as tests/tooling/grading/sandbox beside autograder/grading/sandbox."""
    beside = {"house": "tests/tooling/house", "assignments": "assignments", "hostile": "tests"}
    for path in files_with_tests():
        room = path.relative_to("tests/tooling").parent
        places = [Path("autograder") / room, room, Path(beside.get(room.name, "nowhere"))]
        assert room == Path(".") or any((ROOT / place).is_dir() for place in places), path


def files_with_tests() -> list[Path]:
    """The files with tests of the machinery."""
    return [path for path in modules("tests/tooling") if path.name.startswith("test_")]


@pytest.mark.parametrize("folder", ["common/testing", *(f"tests/{one.name}" for one in load_all())])
def test_helpers_of_graded_tests_take_at_most_four_arguments_by_position(folder):
    """But for oracles, whose functions have PyTorch's parameters, and what starts with `_`."""
    helpers = {
        f"{path}: {node.name}": [arg.arg for arg in (*node.args.posonlyargs, *node.args.args)]
        for path in [*modules(folder), Path("common/check_log.py"), Path("common/errors.py")]
        if path.name != "oracle.py"
        for node in ast.walk(ast.parse((ROOT / path).read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and not node.name.startswith(("_", "test_", "pytest_"))
    }
    most = MOST_POSITIONAL
    assert {name for name, given in helpers.items() if len({*given} - {"self"}) > most} == set()
