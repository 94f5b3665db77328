"""Tests of the static search for imports: it misses no module that a grading imports."""

import json

import pytest

from autograder.authoring import course_imports
from autograder.authoring.course_imports import import_closure, imports_of, module_file
from autograder.authoring.syntax_hash import python_hash
from autograder.packaging.grading_code_hash import ROOTS, imported_modules
from common.assignment import ROOT, load_all
from tests.tooling.sampling import sample
from tests.tooling.scratch_copies import python

REALLY = """
import builtins, importlib, inspect, json, sys

plain, used = builtins.__import__, {}


def noting(name, globals=None, locals=None, fromlist=(), level=0):
    module = plain(name, globals, locals, fromlist, level)
    names = used.setdefault((globals or {}).get("__name__", ""), set())
    names.add(name)
    for item in fromlist or ():
        value = getattr(module, item, None)
        where = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", "")
        names.add(str(where))
    return module


builtins.__import__ = noting
waiting, found = json.loads(sys.argv[1]), set()
for name in waiting:
    importlib.import_module(name)
while waiting:
    name = waiting.pop()
    if name.partition(".")[0] not in ("autograder", "common", "tests", "solutions"):
        continue
    if name and name not in found:
        found.add(name)
        waiting.append(name.rpartition(".")[0])
        # A package may hand on more names than anybody asks it for.
        if not hasattr(sys.modules.get(name), "__path__"):
            waiting += used.get(name, ())
print(json.dumps([name for name in found if name.startswith(("autograder", "common"))]))
"""


def really_imported(*modules):
    """What a new process imports of the course for these modules, and asks for."""
    result = python("-c", REALLY, json.dumps(modules), cwd=ROOT)
    assert result.returncode == 0, result.stderr
    return {*json.loads(result.stdout)}


def has_code(module):
    """Whether there is anything in a module: a package may be a folder alone."""
    file = module_file(module)
    return file.is_file() and python_hash(file.read_bytes()) != python_hash(b"")


@pytest.mark.parametrize(
    "assignment",
    sample("imports of gradings", load_all(), 2),
    ids=lambda entry: entry.short,
)
def test_all_that_a_grading_imports_is_found(assignment):
    tests = [f"tests.{assignment.name}.{name}" for name in ("test_public", "test_hidden", "oracle")]
    reference = [f"solutions.{assignment.name}.{name[:-3]}" for name in assignment.files]
    loaded = really_imported(*ROOTS, *tests, *reference, *assignment.standins)
    assert len(loaded) > 30
    found = imported_modules(assignment)
    assert [name for name in loaded - found if has_code(name)] == []
    # What no grading needs is not among them: a change of it must not cost a proof.
    others = ("autograder.proving", "autograder.batch", "autograder.commands")
    assert not [name for name in found if name.startswith(others)]


@pytest.fixture
def course(tmp_path, monkeypatch):
    """Writes files of a course of its own."""
    monkeypatch.setattr(course_imports, "ROOT", tmp_path)

    def write(**files):
        for module, text in files.items():
            file = tmp_path.joinpath(*module.split("__")).with_suffix(".py")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            (file.parent / "__init__.py").touch()
        return tmp_path

    return write


def test_imports_are_followed_wherever_they_stand(course):
    course(
        common__first="import common.second\n",
        common__second="def late():\n    from common import third\n",
        common__third="from common.fourth import name as other\n",
        common__fourth='import importlib\nimportlib.import_module("common.fifth")\n',
        common__fifth="import numpy\n",
        common__other="import common.first\n",
    )
    names = ("first", "second", "third", "fourth", "fifth")
    assert import_closure(["common.first"]) == {"common", *(f"common.{name}" for name in names)}


def test_a_circle_of_imports_ends(course):
    course(common__a="import common.b\n", common__b="import common.a\n")
    assert import_closure(["common.a"]) == {"common", "common.a", "common.b"}


def test_of_a_package_that_hands_on_names_only_what_is_asked_for_counts(course):
    root = course(common__shop__apples="", common__shop__pears="", common__user="")
    (root / "common" / "shop" / "__init__.py").write_text(
        "from common.shop.apples import apple\nfrom common.shop.pears import pear as fruit\n"
    )
    (root / "common" / "user.py").write_text("from common.shop import fruit\n")
    found = import_closure(["common.user"])
    assert "common.shop.pears" in found and "common.shop.apples" not in found


def test_what_students_write_is_the_references(course):
    root = course(solutions__a1__model="import common.text\n", common__text="")
    (root / "assignments" / "a1").mkdir(parents=True)
    assert module_file("assignments.a1.model") == root / "solutions" / "a1" / "model.py"
    assert "common.text" in import_closure(["assignments.a1.model"])


def test_other_packages_and_plain_words_are_no_modules_of_the_course(course):
    root = course(common__a='import numpy.linalg\nword = "common"\nodd = "common..a"\n')
    assert {*imports_of(root / "common" / "a.py")} <= {"common"}
