"""The pytest plugin: fixtures (student, rng, oracle, lab); order and points of a student's run."""

import hashlib
import importlib
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _pytest.runner import runtestprotocol

from common.assignment import LAB_FILE, ROOT, Assignment, load_assignment
from common.check_log import LOG
from common.errors import HINT_PREFIX, Failure
from common.exercise_needs import Needed, needed_of
from common.labs.lab_run import Lab
from common.missing_packages import missing_sentence
from common.student_code.values import Handle
from common.testing import cuda
from common.testing.artifacts import (
    missing_artifact,
    own_artifact_folder,
    read_artifact,
    reference_artifact,
)
from common.testing.direct_face import DirectFace
from common.testing.feedback.diagnosis import Diagnosis, Ended, hints_beside, needs_of
from common.testing.feedback.failure import explain
from common.testing.feedback.hints import evidence_of, fingerprint
from common.testing.graded_tests import (
    GPU,
    HIDDEN_FILE,
    MARKS,
    PRACTICE_SALT,
    PUBLIC_FILE,
    Pace,
    format_points,
    name_as_sentence,
    pace_of,
    question_of,
)
from common.testing.leaderboard import Leaderboard
from common.testing.points_summary import EarnedPoints, write_points
from common.testing.stored_answers import RecordingOracle, StoredOracle
from common.testing.student_face import StudentFace
from common.testing.waiting_line import end_waiting, waiting_for
from common.training.training_progress import hidden_progress

ANSWERS_FILE = "answers.npz"
PUBLIC_SALT = "public"
# What may be used up of the time of all tests when a public test that trains begins, or one is run
# once more: the hidden ones follow, and those that are quick must not be left without any.
SHARE_BEFORE_HIDDEN = 0.5
HIDDEN_TESTS = "hidden tests"
NO_GPU = "not run here: no GPU"

# How a run may be steered from outside: the grader sets all but RECORDING and POINTS.
FACE: pytest.StashKey[Callable[[Assignment], StudentFace]] = pytest.StashKey()
SALT: pytest.StashKey[str] = pytest.StashKey()
RECORDING: pytest.StashKey[dict[str, RecordingOracle]] = pytest.StashKey()
ARTIFACTS: pytest.StashKey[Callable[[Assignment, str], bytes | None]] = pytest.StashKey()
LEADERBOARD: pytest.StashKey[Leaderboard] = pytest.StashKey()
ASSIGNMENTS: pytest.StashKey[dict[str, Assignment]] = pytest.StashKey()
POINTS: pytest.StashKey[dict[str, EarnedPoints]] = pytest.StashKey()
DIAGNOSES: pytest.StashKey[dict[Path, Diagnosis]] = pytest.StashKey()
FAILED: pytest.StashKey[list[pytest.TestReport]] = pytest.StashKey()
# A grader explains failures in words of its own, and asks oracles, not their stored answers.
GRADING: pytest.StashKey[bool] = pytest.StashKey()
# What stand-ins replace in the run of a test that is on: nothing in a first one.
NEEDED: pytest.StashKey[tuple[Needed, ...]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conv2gpt")
    group.addoption(
        "--impl",
        default="assignments",
        choices=("assignments", "solutions"),
        help="which code to test: yours (assignments, the default) or the reference (solutions)",
    )
    group.addoption(
        "--prerequisites",
        default="own",
        choices=("own", "standin"),
        help="earlier assignments that your code imports: your own (the default), or correct "
        "stand-ins, as in grading",
    )
    group.addoption("--salt", default=PRACTICE_SALT, help="seed of the tests' random inputs")


def pytest_configure(config: pytest.Config) -> None:
    for mark, about in MARKS.items():
        config.addinivalue_line("markers", f"{mark}: {about}")
    config.stash.setdefault(SALT, config.getoption("--salt"))
    config.stash.setdefault(POINTS, {})
    config.stash.setdefault(LEADERBOARD, Leaderboard())
    config.stash.setdefault(DIAGNOSES, {})
    config.stash.setdefault(FAILED, [])
    faces: dict[str, DirectFace] = {}

    def direct_face(assignment: Assignment) -> DirectFace:
        if assignment.name not in faces:
            source = ROOT / config.getoption("--impl")
            with_standins = config.getoption("--prerequisites") == "standin"
            own = () if with_standins else assignment.prerequisites
            packages = {
                name: source / name for name in (assignment.name, *own) if (source / name).is_dir()
            }
            standins = assignment.standins if with_standins else ()
            faces[assignment.name] = DirectFace(assignment, packages, standins)
        return faces[assignment.name]

    def artifact_on_disk(assignment: Assignment, file: str) -> bytes | None:
        artifact = assignment.artifact(file)
        reference = config.getoption("--impl") == "solutions"
        own = own_artifact_folder(assignment) / file
        path = reference_artifact(assignment, file) if reference else own
        content = read_artifact(path, artifact.limit)
        if content is None and reference:
            raise missing_artifact(artifact, reference=True)
        return content

    config.stash.setdefault(FACE, direct_face)
    config.stash.setdefault(ARTIFACTS, artifact_on_disk)


def run_graded_tests(files: Iterable[Path], plugin: object, *options: str) -> pytest.ExitCode:
    """Run graded tests in this process and in silence; the given plugin hears how each ended."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    # Nothing of this machine's pytest settings may change what is graded.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
        os.environ.pop(name, None)
    fixed = ["-p", "no:terminal", "-p", "no:cacheprovider", "-p", "common.testing.fixtures"]
    # Without these two, nothing of pytest stands between a test's end and the end of its child.
    fixed += ["-p", "no:logging", "--capture=no"]
    fixed += ["--noconftest", "--import-mode=importlib", "-c", os.devnull, f"--rootdir={ROOT}"]
    return pytest.ExitCode(pytest.main([*fixed, *options, *map(str, files)], plugins=[plugin]))


def is_graded(item: pytest.Item) -> bool:
    """Whether a test counts for points."""
    return item.path.name in (PUBLIC_FILE, HIDDEN_FILE)


def decorator_value(item: pytest.Item, attribute: str, default: Any) -> Any:
    """What a gradescope-utils decorator set on a test's function."""
    return getattr(getattr(item, "function", None), attribute, default)


@pytest.fixture
def assignment(request: pytest.FixtureRequest) -> Assignment:
    """The assignment that a test belongs to: its folder says which."""
    known = request.config.stash.setdefault(ASSIGNMENTS, {})
    name = request.path.parent.name
    if name not in known:
        known[name] = load_assignment(name)
    return known[name]


@pytest.fixture
def student(request: pytest.FixtureRequest, assignment: Assignment) -> Iterator[Handle]:
    """The code under test."""
    face = request.config.stash[FACE](assignment)
    # What hidden tests take may tell of their inputs: none is named.
    name = HIDDEN_TESTS if request.path.name == HIDDEN_FILE else name_as_sentence(request.node.name)
    needed = request.config.stash.get(NEEDED, ())
    long = pace(request.node) is Pace.TRAINING or needed
    share = SHARE_BEFORE_HIDDEN if long and request.path.name == PUBLIC_FILE else 1.0
    exercise = decorator_value(request.node, "__number__", "")
    with face.open(exercise, name, share, needed=needed) as code:
        yield code


@pytest.fixture
def artifact(request: pytest.FixtureRequest, assignment: Assignment) -> Callable[[str], bytes]:
    """The content of a submitted file that is not Python, by its name."""

    def read(file: str) -> bytes:
        content = request.config.stash[ARTIFACTS](assignment, file)
        if content is None:
            raise missing_artifact(assignment.artifact(file))
        return content

    return read


@pytest.fixture
def lab(
    request: pytest.FixtureRequest, assignment: Assignment, artifact: Callable[[str], bytes]
) -> Lab:
    """The submitted lab, run: lab.answer("q1_kernel") is what it answers."""
    face = request.config.stash[FACE](assignment)
    try:
        content = artifact(LAB_FILE)
        if content in face.labs:
            return face.labs[content]
        with waiting_for(request.config, f"lab: running {LAB_FILE}", assignment.short):
            return face.lab(content)
    except Failure as failure:
        return Lab(failure=failure)  # so that the test fails in its own time


@pytest.fixture
def leaderboard(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Puts a figure on the leaderboard: leaderboard("validation loss", 1.52, order="asc")."""
    return request.config.stash[LEADERBOARD].add


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers, drawn from the term's salt, or from what is known to all."""
    salt = PUBLIC_SALT if has_public_inputs(request) else request.config.stash[SALT]
    name = f"{salt}/{request.path.parent.name}/{request.node.name}"
    return np.random.default_rng(list(hashlib.sha256(name.encode()).digest()))


def has_public_inputs(request: pytest.FixtureRequest) -> bool:
    """Whether a test has the inputs that handouts know: a public one, without a secret salt."""
    public = request.path.name == PUBLIC_FILE
    return public and request.config.stash[SALT] == PRACTICE_SALT


@pytest.fixture
def oracle(request: pytest.FixtureRequest, assignment: Assignment) -> Any:
    """Where expected values come from: PyTorch, or for students what PyTorch answered once.

    Answers are stored for public tests of assignments in NumPy, so that a student's own `pytest`
    needn't wait for PyTorch there. Grading asks PyTorch.
    """
    folder = request.path.parent
    recording = request.config.stash.get(RECORDING, None)
    asked_live = recording is not None or request.config.stash.get(GRADING, False)
    if assignment.stores_answers and has_public_inputs(request) and not asked_live:
        return stored_oracle(folder)
    if not (folder / "oracle.py").is_file():
        raise Failure(
            "A handout has stored answers for its own inputs only.",
            help="Run `pytest` without --salt.",
        )
    module = importlib.import_module(f"tests.{folder.name}.oracle")
    if recording is None:
        return module
    return recording.setdefault(folder.name, RecordingOracle(module))


STORED_ORACLES: dict[Path, StoredOracle] = {}


def stored_oracle(folder: Path) -> StoredOracle:
    """The stored answers of an assignment, read once."""
    if folder not in STORED_ORACLES:
        STORED_ORACLES[folder] = StoredOracle(folder / ANSWERS_FILE)
    return STORED_ORACLES[folder]


def pace(item: pytest.Item) -> Pace:
    """How long a test may take, by its tags and fixtures."""
    if not is_graded(item):
        return Pace.QUICK
    return pace_of(decorator_value(item, "__tags__", ()), getattr(item, "fixturenames", ()))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Say in words that a package is missing which tests import, as PyTorch in a new handout."""
    report = yield
    error = report.call.excinfo.value if report.failed and report.call.excinfo else None
    cause = error.__cause__ if error else None
    if collector.path.name == PUBLIC_FILE and isinstance(cause, ModuleNotFoundError):
        report.longrepr = missing_sentence(str(cause.name))
    return report


@pytest.hookimpl(tryfirst=True)  # a judge puts its tests into an order of its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run what is quick first, then the labs, and what trains last."""
    items.sort(key=pace)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Count checks from the start of each test; leave out what this machine can't run."""
    LOG.clear()
    if is_graded(item) and GPU in decorator_value(item, "__tags__", ()) and not cuda.available():
        pytest.skip(NO_GPU)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Keep the progress of trainings out of what pytest captures, and shows if a test fails."""
    if not is_graded(item) or item.config.getoption("capture") == "no":
        return (yield)
    with hidden_progress():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Show progress while a test trains."""
    if pace(item) is not Pace.TRAINING:
        return (yield)
    exercise = decorator_value(item, "__number__", "")
    with waiting_for(
        item.config, f"training: {name_as_sentence(item.name)}", f"exercise {exercise}"
    ):
        return (yield)


def pytest_enter_pdb(config: pytest.Config) -> None:
    """Leave the terminal to the debugger."""
    end_waiting(config)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Let a test that continues after wrong values fail at its end, by the first of them."""
    try:
        return (yield)
    finally:
        if LOG.failures:
            raise LOG.failures[0]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let `-m` choose by tags, and skip pytest's traceback, which takes half of a run.

    `failure_text` replaces it.
    """
    if is_graded(item):
        for tag in MARKS.keys() & set(decorator_value(item, "__tags__", ())):
            item.add_marker(tag)
    if is_graded(item) and item.config.getoption("tbstyle", "auto") == "auto":
        vars(item)["repr_failure"] = lambda excinfo, style=None: failure_text(item, excinfo.value)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say in words why a graded test failed, and count its points."""
    report = yield
    if not is_graded(item) or is_second_run(item):
        return report
    points_so_far = item.config.stash[POINTS].setdefault(item.path.parent.name, EarnedPoints())
    points = decorator_value(item, "__weight__", 0)
    if call.when == "setup":
        points_so_far.add_asked(item.name, points, item.path.name == HIDDEN_FILE)
    if call.excinfo is not None and str(call.excinfo.value) == NO_GPU:
        points_so_far.not_run_without_gpu += points
        return report
    error = call.excinfo.value if call.excinfo is not None else None
    if error is not None and item.config.getoption("tbstyle", "auto") == "auto":
        report.longrepr = failure_text(item, error)
    if (call.when == "call" or error is not None) and not item.config.stash.get(GRADING, False):
        diagnose(item, report, error)
    if call.when == "call" or (call.when == "setup" and not report.passed):
        passed = report.passed and call.when == "call"
        points_so_far.add(decorator_value(item, "__number__", ""), points, passed)
        if not passed:
            points_so_far.failed.append(item.name)
    return report


def passes_with(item: pytest.Item, needed: Iterable[Needed]) -> bool:
    """Whether a test passes when it is run once more with these replaced; no one is told."""
    item.config.stash[NEEDED] = tuple(needed)
    try:
        with hidden_progress():
            reports = runtestprotocol(item, log=False, nextitem=None)
    finally:
        item.config.stash[NEEDED] = ()
    return all(report.passed for report in reports)


def is_second_run(item: pytest.Item) -> bool:
    """Whether the run of a test that is on is its second."""
    return bool(item.config.stash.get(NEEDED, ()))


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Run failed tests once more, as a grader does, with stand-ins for what is wrong elsewhere."""
    result = yield
    if not session.config.stash.get(GRADING, False) and not session.config.getoption("usepdb"):
        for name, points_so_far in session.config.stash[POINTS].items():
            run_once_more(session.items, load_assignment(name), points_so_far)
    return result


def run_once_more(
    items: list[pytest.Item], assignment: Assignment, points_so_far: EarnedPoints
) -> None:
    """Run the failed tests of an assignment once more, where they need what failed, too."""
    failed = [
        item
        for item in items
        if item.path.parent.name == assignment.name and item.name in points_so_far.failed
    ]
    place = {exercise.number: index for index, exercise in enumerate(assignment.exercises)}
    failed.sort(key=lambda item: place.get(decorator_value(item, "__number__", ""), 0))
    for item in failed:
        number = decorator_value(item, "__number__", "")
        needed = needed_of(assignment.exercises, number, points_so_far.failed_exercises)
        if needed and passes_with(item, needed):
            points = decorator_value(item, "__weight__", 0)
            points_so_far.carry(item.name, number, points, needed)
            item.config.stash[DIAGNOSES][item.path.parent].add(Ended(item.name, number, True))


def failure_text(item: pytest.Item, error: BaseException) -> str:
    """The text of a failure in a student's own run; none where a grader finds its own."""
    if item.config.stash.get(GRADING, False):
        return ""
    title = (decorator_value(item, "__doc__", "") or "").partition("\n")[0]
    points = format_points(decorator_value(item, "__weight__", 0))
    unit = "point" if points == "1" else "points"
    head = f"Exercise {decorator_value(item, '__number__', '')}, {points} {unit}. {title}"
    return f"{head}\n\n{explain(error).text(hidden=False)}\n"


def diagnose(item: pytest.Item, report: pytest.TestReport, error: BaseException | None) -> None:
    """Let a test's end count for hints, in a student's own run."""
    folder = item.path.parent
    diagnoses = item.config.stash[DIAGNOSES]
    if folder not in diagnoses:
        diagnoses[folder] = Diagnosis(hints_beside(folder), needs_of(load_assignment(folder.name)))
    evidence = evidence_of(error) if error is not None else None
    check, seen = (evidence.check, fingerprint(evidence)) if evidence else (0, None)
    in_lab = "lab" in getattr(item, "fixturenames", ())
    group = question_of(item.name) if in_lab else decorator_value(item, "__number__", "")
    diagnoses[folder].add(Ended(item.name, group, report.passed, check, seen))
    if error is not None:
        item.config.stash[FAILED].append(report)


@pytest.hookimpl(tryfirst=True)  # before the failures are printed
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Add hints to what is said of failed tests: all that ran decide them together."""
    shown = {
        (folder.name, test): hint
        for folder, diagnosis in session.config.stash[DIAGNOSES].items()
        for test, hint in diagnosis.shown().items()
    }
    for report in session.config.stash[FAILED]:
        *path, test = report.nodeid.split("::")
        hint = shown.get((Path(path[0]).parent.name, test))
        if hint and isinstance(report.longrepr, str):
            report.longrepr += f"\n{HINT_PREFIX}{hint}\n"


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Points by exercise, and how many are decided by hidden tests."""
    for name, points_so_far in config.stash[POINTS].items():
        assignment = load_assignment(name)
        write_points(terminalreporter, assignment, points_so_far)
        for lab in config.stash[FACE](assignment).labs.values():
            for note in lab.notes():
                terminalreporter.write_line(f"  {note}")
        own = config.getoption("prerequisites") == "own" and config.getoption("impl") != "solutions"
        there = [name for name in assignment.prerequisites if has_assignment_folder(name)]
        if own and there and points_so_far.earned != points_so_far.shown:
            terminalreporter.write_line(
                f"  The tests used your own {' and '.join(there)}; "
                "--prerequisites=standin uses correct stand-ins instead."
            )
    lines = config.stash[LEADERBOARD].lines
    if lines:
        terminalreporter.section("leaderboard")
        for line in lines:
            terminalreporter.write_line(f"  {line}")


def has_assignment_folder(name: str) -> bool:
    """Whether a student has the folder of an assignment."""
    return (ROOT / "assignments" / name).is_dir()
