"""Reads an assignment's graded tests, points, tags and order without running them."""

import ast
import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import msgspec

from common.errors import CourseError

PUBLIC_FILE = "test_public.py"
HIDDEN_FILE = "test_hidden.py"
HIDDEN_POINTS_FILE = "hidden_points.json"
TRAINING, TIMING = "training", "timing"  # tags of tests that take long, or depend on a clock
GPU = "gpu"  # the tag of tests that need one
MARKS = {  # the tags that `pytest -m` knows
    TRAINING: "trains a model, and takes long",
    TIMING: "measures how fast code is",
    GPU: "needs a GPU",
}
MACHINE_DEPENDENT = frozenset(MARKS)  # how these end says less about the code
PRACTICE_SALT = "practice"  # public: what inputs are drawn from without a secret


class Pace(IntEnum):
    """How long tests may take: they are run in this order."""

    QUICK = 0
    LAB = 1
    TRAINING = 2


def pace_of(tags: Iterable[str], fixtures: Iterable[str]) -> Pace:
    """How long a test with these tags and fixtures may take."""
    if TRAINING in tags:
        return Pace.TRAINING
    return Pace.LAB if "lab" in fixtures else Pace.QUICK


def name_as_sentence(name: str) -> str:
    """A test's name as a sentence: "conv2d forward matches pytorch"."""
    return name.removeprefix("test_").replace("_", " ")


def question_of(name: str) -> str:
    """The question that a test of a lab is about."""
    return name.split("_")[1]


@dataclass(frozen=True)
class GradedTest:
    """One test function, and what its decorators say."""

    name: str  # "test_conv2d_forward_matches_pytorch"
    exercise: str  # "1.2"
    points: float
    hidden: bool
    title: str  # the first line of its docstring
    visibility: str
    tags: tuple[str, ...] = ()
    reads_artifacts: bool = False  # whether it takes the fixture `artifact` or `lab`
    reads_lab: bool = False  # whether it takes the fixture `lab`

    @property
    def question(self) -> str:
        """The question of the lab that it is about: q2 for test_q2_the_number_is_right."""
        return question_of(self.name) if self.reads_lab else ""

    @property
    def group(self) -> str:
        """What hints are decided for together: its exercise, or its question of the lab."""
        return self.question or self.exercise

    @property
    def needs_gpu(self) -> bool:
        """Whether it can be run on a machine with a GPU only."""
        return GPU in self.tags

    @property
    def label(self) -> str:
        """The name as a sentence."""
        return name_as_sentence(self.name)

    @property
    def pace(self) -> Pace:
        """How long it may take."""
        return pace_of(self.tags, ("lab",) if self.reads_lab else ())


def read_graded_tests(folder: Path) -> list[GradedTest]:
    """Every graded test in an assignment's folder of tests: the public ones first."""
    tests = [
        test
        for name in (PUBLIC_FILE, HIDDEN_FILE)
        if (folder / name).is_file()
        for test in read_tests(folder / name)
    ]
    names = [test.name for test in tests]
    for name in names:
        if names.count(name) > 1:
            raise CourseError(f"{folder}: {name} is defined more than once.")
    if not tests:
        raise CourseError(f"{folder} contains no graded tests.")
    return tests


def read_tests(file: Path) -> list[GradedTest]:
    """The graded tests of one file, in its order."""
    try:
        tree = ast.parse(file.read_text("utf-8"), filename=str(file))
    except SyntaxError as error:
        raise CourseError(f"{file}, line {error.lineno}: not valid Python: {error.msg}") from None
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [
        read_test(file, node)
        for node in tree.body
        if isinstance(node, definitions) and node.name.lower().startswith("test")
    ]


def read_test(file: Path, function: ast.stmt) -> GradedTest:
    """One test function's decorators and docstring."""
    if not isinstance(function, ast.FunctionDef):
        raise CourseError(
            f"{file}, line {function.lineno}: a graded test must be a plain function."
        )
    where = f"{file}, line {function.lineno}, {function.name}"
    decorators: dict[str, Any] = {}
    for decorator in function.decorator_list:
        if not isinstance(decorator, ast.Call) or not isinstance(decorator.func, ast.Name):
            raise CourseError(f"{where}: only gradescope-utils decorators are allowed here.")
        kind = decorator.func.id
        try:
            values = [ast.literal_eval(argument) for argument in decorator.args]
            decorators[kind] = values if kind == "tags" else values[0]
        except (ValueError, IndexError):
            raise CourseError(f"{where}: @{kind} needs a literal value.") from None
    for required in ("weight", "number"):
        if required not in decorators:
            raise CourseError(f"{where}: @{required} is missing.")
    if not isinstance(decorators["weight"], int | float) or not 0 < decorators["weight"] < math.inf:
        raise CourseError(f"{where}: @weight must be a positive number of points.")
    if not isinstance(decorators["number"], str):
        raise CourseError(f'{where}: @number must be a string, such as "1.2".')
    title = (ast.get_docstring(function) or "").partition("\n")[0]
    if not title:
        raise CourseError(f"{where}: the docstring, which is the test's title, is missing.")
    hidden = file.name == HIDDEN_FILE
    fixtures = {argument.arg for argument in function.args.args}
    return GradedTest(
        name=function.name,
        exercise=decorators["number"],
        points=float(decorators["weight"]),
        hidden=hidden,
        title=title,
        visibility=decorators.get("visibility", "after_published" if hidden else "visible"),
        tags=tuple(decorators.get("tags", ())),
        reads_artifacts=not fixtures.isdisjoint(("artifact", "lab")),
        reads_lab="lab" in fixtures,
    )


def points_by_exercise(tests: list[GradedTest], hidden: bool) -> dict[str, float]:
    """The points of the public or of the hidden tests, for each exercise that has any."""
    points: dict[str, float] = {}
    for test in tests:
        if test.hidden == hidden:
            points[test.exercise] = points.get(test.exercise, 0) + test.points
    return points


def read_hidden_points(folder: Path) -> dict[str, float]:
    """The points of the hidden tests: from the tests, or from what the handout says of them."""
    if (folder / HIDDEN_FILE).is_file():
        return points_by_exercise(read_tests(folder / HIDDEN_FILE), hidden=True)
    file = folder / HIDDEN_POINTS_FILE
    if not file.is_file():
        return {}
    return msgspec.json.decode(file.read_bytes(), type=dict[str, float])


def format_points(points: float) -> str:
    """3.0 as "3", 2.5 as "2.5"."""
    return f"{points:g}"
