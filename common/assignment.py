"""Parses assignment.toml with a schema: files, exercises, limits, forbidden calls."""

import re
import tomllib
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from common.errors import CourseError
from common.exercise_needs import check_needs, libraries_of

ROOT = Path(__file__).resolve().parents[1]
STANDINS = Path(__file__).resolve().parent / "standins"
LAB_STANDINS = Path(__file__).resolve().parent / "labs" / "standins"

# A limit of seconds is one of processor time: on a busy machine code takes longer, and does no more
# work. By the clock it may take so many times as long, which ends code that merely waits.
WALL_FACTOR = 4
GRADESCOPE_SECONDS = 40 * 60  # the longest that Gradescope lets a grading take, by the clock
OWN_SECONDS = 3 * 60  # of these, for our own work


def wall_limit(seconds: float) -> float:
    """What code may take by the clock that may use so many seconds of processor time."""
    return WALL_FACTOR * seconds


Name = Annotated[str, Meta(min_length=1)]
FileName = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*\.py$")]
# A plain name without a path, and no Python: that is what `files` is for.
ArtifactName = Annotated[str, Meta(pattern=r"^(?!.*\.py$)[A-Za-z0-9_][A-Za-z0-9_.-]*$")]
OperatorName = Annotated[str, Meta(pattern=r"^[a-z_]+::\w+$")]
ExerciseNumber = Annotated[str, Meta(pattern=r"^[0-9]+\.[0-9]+$")]
QuestionName = Annotated[str, Meta(pattern=r"^q[1-9][0-9]?$")]


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The base of everything read from a TOML or JSON file: exact types, no unknown keys."""


class Limits(Record, frozen=True):
    """What student code may use: for each test, and for all tests together.

    Seconds are of processor time, of all its processes together.
    """

    test_seconds: Annotated[float, Meta(gt=0)]
    total_seconds: Annotated[float, Meta(gt=0)]
    memory_mb: Annotated[int, Meta(gt=0)]
    # Of each test, by the clock; None: WALL_FACTOR times test_seconds.
    wall_seconds: Annotated[float, Meta(gt=0)] | None = None
    gpu: bool = False  # whether it may reach the machine's GPUs

    @property
    def test_wall_seconds(self) -> float:
        """What a test may take by the clock."""
        return self.wall_seconds or wall_limit(self.test_seconds)

    @property
    def total_wall_seconds(self) -> float:
        """What all tests may take by the clock, but for the last that is begun in time."""
        return wall_limit(self.total_seconds)


class Forbidden(Record, frozen=True):
    """A module or a function that the named exercises may not use, and what to do instead."""

    call: Name
    exercises: list[ExerciseNumber]
    instead: Name
    # PyTorch's, such as aten::layer_norm, which do that work: refused by whatever name.
    operators: list[OperatorName] = []


class Exercise(Record, frozen=True):
    """One row of the exercise table, but for its points, which stand on the tests."""

    number: ExerciseNumber
    functions: list[Name]
    minutes: Annotated[int, Meta(gt=0)]
    # The earlier exercises that it builds on, each with what stand-ins replace if that is wrong: no
    # function with an interface that is private to the student, and none that does this exercise.
    needs: dict[ExerciseNumber, list[Name]] = {}
    questions: list[QuestionName] = []  # of the lab

    @property
    def about(self) -> str:
        """What is to be done: functions to write, questions of the lab to answer, or training."""
        asked = f"lab: {', '.join(self.questions)}" if self.questions else "the trained model"
        return ", ".join(self.functions) or asked


class Artifact(Record, frozen=True):
    """A file that students may submit with their code, such as trained weights."""

    file: ArtifactName
    megabytes: Annotated[float, Meta(gt=0)]  # a larger one isn't taken
    command: str = ""  # what students run to make it

    @property
    def limit(self) -> int:
        """The most bytes that it may have."""
        return int(self.megabytes * 1024 * 1024)


class LabSettings(Record, frozen=True):
    """What the cells of the lab's notebook may use: each of them, and all together.

    Seconds are of processor time; by the clock, cells may take WALL_FACTOR times as long.

    data: what they load from common/data. When labs are graded, it is in memory already: a child
    of the sandbox has no cache and would prepare it again.
    """

    cell_seconds: Annotated[float, Meta(gt=0)]
    total_seconds: Annotated[float, Meta(gt=0)]
    data: list[Literal["mnist", "numbers", "shakespeare"]] = []


LAB_FILE = "lab.ipynb"
LAB = Artifact(LAB_FILE, megabytes=10)
CLEAR_OUTPUTS = "Clear its outputs and save it again."  # what to do with a lab that is too large


class AssignmentFile(Record, frozen=True):
    """The whole of `assignment.toml`."""

    title: Name
    files: Annotated[list[FileName], Meta(min_length=1)]
    limits: Limits
    exercises: Annotated[list[Exercise], Meta(min_length=1)]
    libraries: list[Name] = []
    prerequisites: list[Name] = []
    forbidden: list[Forbidden] = []
    data: bool = False  # whether its tests or experiments read what common/data offers
    artifacts: list[Artifact] = []
    given: list[FileName] = []  # modules that the handout includes, and that are not submitted
    lab: LabSettings | None = None  # whether there is a lab: a notebook with questions


class Assignment(Record, frozen=True):
    """An assignment: its folder's name, and what its file says."""

    name: str  # "a1_convolution"
    title: str
    files: tuple[str, ...]
    limits: Limits
    exercises: tuple[Exercise, ...]
    libraries: tuple[str, ...]
    prerequisites: tuple[str, ...]
    forbidden: tuple[Forbidden, ...]
    data: bool
    artifacts: tuple[Artifact, ...] = ()
    given: tuple[str, ...] = ()
    lab: LabSettings | None = None

    @property
    def short(self) -> str:
        """The name that people type: "a1"."""
        return self.name.partition("_")[0]

    @property
    def standins(self) -> tuple[str, ...]:
        """The modules that stand in for those of earlier assignments.

        A wrong answer to an earlier assignment must cost nothing here.
        """
        return tuple(
            f"common.standins.{name}.{file.stem}"
            for name in self.prerequisites
            for file in sorted((STANDINS / name).glob("*.py"))
        )

    @property
    def standins_run_apart(self) -> bool:
        """Whether stand-ins need a process of their own: they are written on PyTorch.

        Where students may not use it, it must not be in the memory of their code.
        """
        return bool(self.prerequisites) and "torch" not in self.libraries

    @property
    def lab_standins(self) -> tuple[str, ...]:
        """The modules on which the lab is graded, instead of the student's own code.

        A wrong answer to an exercise must cost nothing in the lab.
        """
        own = sorted(self.own_standins.glob("*.py"))
        return (*self.standins, *(f"common.labs.standins.{self.name}.{file.stem}" for file in own))

    @property
    def own_standins(self) -> Path:
        """The folder of the stand-ins for the student's own functions."""
        return LAB_STANDINS / self.name

    @property
    def replaces_functions(self) -> bool:
        """Whether stand-ins replace functions that are wrong where other exercises need them."""
        return any(names for exercise in self.exercises for names in exercise.needs.values())

    @property
    def own_standin_libraries(self) -> list[str]:
        """What those import that replace functions when an exercise is graded."""
        return libraries_of(self.own_standins, self.exercises)

    @property
    def wall_seconds(self) -> float:
        """The longest that all student code may take, by the clock."""
        lab = wall_limit(self.lab.total_seconds) if self.lab else 0.0
        return self.limits.total_wall_seconds + self.limits.test_wall_seconds + lab

    @property
    def preloaded(self) -> tuple[str, ...]:
        """The modules that grading loads once for all tests.

        PyTorch's first optimizer imports torch._dynamo: a second and a half for each test that
        trains, if it weren't there already.
        """
        return (*self.libraries, *(("torch._dynamo",) if "torch" in self.libraries else ()))

    @property
    def stores_answers(self) -> bool:
        """Whether public tests read stored answers: with PyTorch at hand they ask it themselves."""
        return "torch" not in self.libraries

    @property
    def modules(self) -> tuple[str, ...]:
        """The submitted modules' names: ("convolution",)."""
        return tuple(file.removesuffix(".py") for file in self.files)

    def artifact(self, file: str) -> Artifact:
        """The artifact of that name."""
        return next(artifact for artifact in self.artifacts if artifact.file == file)

    def exercise(self, number: str) -> Exercise:
        """The exercise of that number."""
        return next(exercise for exercise in self.exercises if exercise.number == number)

    def forbidden_in(self, exercise: str) -> tuple[Forbidden, ...]:
        """What that exercise may not use."""
        return tuple(entry for entry in self.forbidden if exercise in entry.exercises)


def read_assignment(file: Path) -> Assignment:
    """Read one `assignment.toml`; an error names the file and the key."""
    try:
        content = msgspec.convert(tomllib.loads(file.read_text("utf-8")), AssignmentFile)
    except FileNotFoundError:
        raise CourseError(f"{file} is missing.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CourseError(f"{file} is not valid TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise CourseError(f"{file}: {error}") from None
    check_exercise_numbers(file, content)
    check_operators(file, content)
    artifacts = [artifact.file for artifact in content.artifacts]
    for name in artifacts:
        if artifacts.count(name) > 1:
            raise CourseError(f"{file}: artifacts lists {name} more than once.")
    for name in content.prerequisites:
        if not (STANDINS / name).is_dir():
            raise CourseError(f"{file}: prerequisites names {name}, which has no stand-in.")
    assignment = Assignment(
        name=file.parent.name,
        title=content.title,
        files=tuple(content.files),
        limits=content.limits,
        exercises=tuple(content.exercises),
        libraries=tuple(content.libraries),
        prerequisites=tuple(content.prerequisites),
        forbidden=tuple(content.forbidden),
        data=content.data,
        artifacts=(*content.artifacts, *((LAB,) if content.lab else ())),
        given=tuple(content.given),
        lab=content.lab,
    )
    check_needs(file, assignment.exercises, assignment.own_standins)
    if assignment.wall_seconds > GRADESCOPE_SECONDS - OWN_SECONDS:
        raise CourseError(
            f"{file}: limits let code that sleeps take {assignment.wall_seconds:g} seconds by the "
            f"clock. Gradescope allows {GRADESCOPE_SECONDS}, of which the grader itself needs "
            f"{OWN_SECONDS}. Lower limits.total_seconds."
        )
    return assignment


def check_exercise_numbers(file: Path, content: AssignmentFile) -> None:
    """Exercise numbers are unique, and every mention of one means an exercise that exists."""
    numbers = [exercise.number for exercise in content.exercises]
    for number in numbers:
        if numbers.count(number) > 1:
            raise CourseError(f"{file}: exercises lists {number} more than once.")
    mentions = [
        (f"forbidden.exercises of {entry.call}", number)
        for entry in content.forbidden
        for number in entry.exercises
    ]
    for key, number in mentions:
        if number not in numbers:
            raise CourseError(f"{file}: {key} names {number}, which is not an exercise.")


def check_operators(file: Path, content: AssignmentFile) -> None:
    """An exercise forbids an operator once: the refusal has one reason."""
    seen: set[tuple[str, str]] = set()
    for entry in content.forbidden:
        for operator in entry.operators:
            for number in entry.exercises:
                if (operator, number) in seen:
                    raise CourseError(
                        f"{file}: forbidden.operators of {entry.call} lists {operator}, which "
                        f"exercise {number} forbids already."
                    )
                seen.add((operator, number))


def assignment_files(root: Path = ROOT) -> list[Path]:
    """Every `assignment.toml` under root, in the order of the course: a10 comes after a9."""
    files = (root / "assignments").glob("*/assignment.toml")
    return sorted(files, key=lambda file: course_order(file.parent.name))


def course_order(name: str) -> tuple[int, str]:
    """The number of an assignment by its folder's name; what has none comes first."""
    number = re.match(r"a(\d+)_", name)
    return int(number[1]) if number else 0, name


def load_assignment(name: str, root: Path = ROOT) -> Assignment:
    """The assignment that a person means by "a1" or "a1_convolution"."""
    files = assignment_files(root)
    for file in files:
        if name in (file.parent.name, file.parent.name.partition("_")[0]):
            return read_assignment(file)
    known = ", ".join(file.parent.name.partition("_")[0] for file in files) or "none"
    raise CourseError(f"No assignment is named '{name}'. Available: {known}.")


def load_all(root: Path = ROOT) -> list[Assignment]:
    """All assignments, in the order of the course."""
    return [read_assignment(file) for file in assignment_files(root)]


def up_to(assignment: Assignment) -> list[Assignment]:
    """The course up to an assignment, and including it."""
    last = course_order(assignment.name)
    return [one for one in load_all() if course_order(one.name) <= last]
