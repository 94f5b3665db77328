"""The battery: what no function of the course may do, checked once for every function and method.

A function changes none of its inputs; what it returned is the caller's to write into; it remembers
nothing between calls; and it leaves the process as it was. A Case says with what it is called.
Results are compared here. What only the process of student code knows can fail a test; no points
rest on it alone.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from common.check_log import check
from common.errors import MALFORMED, ChildFailure
from common.student_code.values import Handle, as_numpy, is_container, is_kept, is_tensor
from common.student_text import plain
from common.testing.compare import TOLERANCES, unpack
from common.testing.remote.operations import changed_inputs
from common.testing.remote.visible_state import INPUT_WORDS, PROCESS_WORDS, RANDOM

COPY = "Work on a copy: x.copy() in NumPy, x.clone() in PyTorch."
NEW = "Create a new array or tensor in every call, and keep none of them after it."
# What a case may be exempt from, besides changes of single inputs.
VIEWS, MEMORY, DRAWS, DIFFERS = "views", "memory", "draws", "differs"
EXEMPTIONS = (VIEWS, MEMORY, DRAWS, DIFFERS)

Draw = Callable[[Any, np.random.Generator], Iterable[Any]]


@dataclass(frozen=True)
class Case:
    """With what the battery calls a function or a method.

    function: as tests write it after `student.`: "conv2d_forward", or "layers.LSTM.forward".
    inputs: the names of its arguments, for messages: "x w b".
    draw: draw(student, rng) returns new arguments of always the same shapes.
    owner: owner(student, rng) makes a new object with the method; a module is called itself, in
        training and in evaluation mode.
    settings: further arguments, by keyword.
    returns: so many items of a returned tuple are the caller's, and what follows, a cache, is not;
        None for all of it.
    exempt: reasons, by what the case may do: "views" (return a view of an input), "memory"
        (return something else in the next call), "draws" (use global random states), "differs"
        (return the same for other inputs), or the name of an input that it may change.
    """

    function: str
    inputs: str
    draw: Draw
    owner: Callable[[Any, np.random.Generator], Any] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    returns: int | None = None
    exempt: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, reason in self.exempt.items():
            if what not in (*EXEMPTIONS, *self.names) or not reason:
                raise ValueError(f"battery case {self.function}: no exemption is called {what!r}")

    @property
    def names(self) -> list[str]:
        """The names of the arguments."""
        return self.inputs.split()

    @property
    def changing(self) -> list[int]:
        """The places of the arguments that it may change."""
        return [place for place, name in enumerate(self.names) if name in self.exempt]

    @property
    def name(self) -> str:
        """What messages call it: "softmax", or "LSTM.forward"."""
        return ".".join(self.function.split(".")[-2 if self.owner else -1 :])

    def callables(self, student: Any, rng: np.random.Generator) -> Iterator[Any]:
        """The function; or the method of new objects, a module in both modes."""
        if self.owner is None:
            yield reduce(getattr, self.function.split("."), student)
            return
        method = self.function.rpartition(".")[2]
        if method != "forward":
            yield getattr(self.owner(student, rng), method)
            return
        for mode in ("train", "eval"):
            module = self.owner(student, rng)
            getattr(module, mode)()
            yield module


def check_promises(student: Any, rng: np.random.Generator, cases: Iterable[Case]) -> None:
    """Every function of the cases keeps what all functions of the course promise."""
    for case in cases:
        for function in case.callables(student, rng):
            check_calls(student, rng, case, function)


def check_calls(student: Any, rng: np.random.Generator, case: Case, function: Any) -> None:
    """Call one function several times, and look at what that does to everything else."""
    first = tuple(case.draw(student, rng))
    result = part_of(case, watched_result(case, function, first))
    second = tuple(case.draw(student, rng))
    if MEMORY not in case.exempt:
        other = part_of(case, function(*second, **case.settings))
        again = part_of(case, function(*first, **case.settings))
        check_repeated(case, result, other, again)
        check_disturbed(case, function, (first, second), (result, other))
    changed = changed_inputs(function, *first, **case.settings)
    if not case.changing:
        check(not changed, f"{case.name} changes an input.", ", ".join(map(str, changed)), COPY)


def watched_result(case: Case, function: Any, args: tuple[Any, ...]) -> Any:
    """The result of a first call, which changes neither inputs nor its object nor the process."""
    watched = [place for place, value in enumerate(args) if is_callers(value, modules=True)]
    details = (function, args, dict(case.settings), watched)
    report = asked(function, "watched_call", details, process=list, inputs=dict, values=dict)
    changed = {place: words(kinds, INPUT_WORDS) for place, kinds in report["inputs"].items()}
    wrong = [place for place in changed if place in watched and place not in case.changing]
    place = min(wrong, default=None)
    what = "" if place is None else f"{changed[place][0]} its input {name_at(case, place)}"
    check(
        place is None,
        f"{case.name} changes {what}.",
        help=COPY,
        value=array_of(report["values"].get(place)),
    )
    own = words(report.get("owner"), INPUT_WORDS)
    check(not own, f"{case.name} changes {' and '.join(own)} its own module.")
    settings = [plain(name) for name in report["process"]]
    allowed_settings = RANDOM if DRAWS in case.exempt else ()
    settings = [name for name in settings if name not in allowed_settings]
    check(
        not settings,
        f"{case.name} changes {' and '.join(words(settings, PROCESS_WORDS))}.",
        help=advice(settings),
    )
    return report.get("result")


def check_repeated(case: Case, first: Any, other: Any, again: Any) -> None:
    """After a call with other inputs, the same inputs give the same as before."""
    check(first is not None, f"{case.name} returned None.", help="Is the return statement missing?")
    if DIFFERS not in case.exempt:
        check(
            bool(differences(first, other)),
            f"{case.name} returns the same for different inputs.",
            value=array_of(first),
        )
    check_same(
        again,
        first,
        f"{case.name} remembers something: between two calls with the same inputs there was one "
        "with other inputs, and the results differ.",
        "Compute the result from the arguments alone: no global variables, no stored arrays.",
    )


def check_disturbed(
    case: Case, function: Any, calls: tuple[tuple[Any, ...], ...], results: tuple[Any, Any]
) -> None:
    """What the caller writes into results and inputs changes what it should, and nothing else."""
    first, second = calls
    written = [
        place
        for place, value in enumerate(first)
        if place not in case.changing and is_callers(value, modules=False)
    ]
    settings = dict(case.settings)
    details = (function, [first, second], settings, case.returns, written, case.changing)
    report = asked(function, "disturbed_calls", details, views=list)
    earlier = f"A call of {case.name} changes what an earlier call returned."
    check_same(report.get("after"), results[0], earlier, NEW)
    views = [place for place in report["views"] if place in written]
    what = name_at(case, views[0]) if views else ""
    check(
        not views or VIEWS in case.exempt,
        f"Writing into what {case.name} returned changes its input {what}: it is a view of it.",
        help="Return a copy: .copy() in NumPy, .clone() in PyTorch.",
    )
    writing = f"Writing into what {case.name} returned changes what it returns later."
    check_same(report.get("again"), results[0], writing, NEW)
    stale = (
        f"{case.name} doesn't notice that the caller has changed an input in place between two "
        "calls: the result is not that of the new values."
    )
    check_same(report.get("changed"), results[1], stale, "Never recognize an input by its id.")


def check_same(actual: Any, expected: Any, sentence: str, help: str) -> None:
    """Two results of the same inputs agree."""
    wrong = differences(actual, expected)
    check(not wrong, sentence, help=help, value=array_of(wrong[0]) if wrong else None)


def is_callers(value: Any, *, modules: bool) -> bool:
    """Whether an argument is the caller's to look at. A cache is the function's own."""
    return modules if isinstance(value, Handle) else not is_kept(value)


def asked(function: Any, operation: str, details: tuple[Any, ...], **kinds: type) -> Any:
    """What an operation reports: a dict whose values have these types."""
    report = function._face.operate(operation, function._label, details, {})
    right = isinstance(report, dict) and all(
        isinstance(report.get(name), kind) for name, kind in kinds.items()
    )
    if not right:
        raise ChildFailure(MALFORMED)
    return report


def words(names: Any, known: Mapping[str, str]) -> list[str]:
    """The words for names that the process of student code reports: only those of ours."""
    names = [plain(name) for name in names] if isinstance(names, list) else [None]
    if any(name not in known for name in names):
        raise ChildFailure(MALFORMED)
    return [known[name] for name in names]


def advice(settings: list[str]) -> str:
    """What to try where a function has changed the process."""
    if not settings:
        return ""
    if settings[0] in RANDOM:
        return "Draw from the generator that you are given; if you get none, nothing is random."
    if settings[0] == "np.seterr":
        return "Use `with np.errstate(...)`, which puts it back."
    if settings[0] == "grad mode":
        return "Use `with torch.no_grad():`, which puts it back."
    return "It holds for everything else in this process. Leave it alone, or put it back."


def name_at(case: Case, place: int) -> str:
    """What messages call the argument at that place."""
    return case.names[place] if place < len(case.names) else f"{place + 1}"


def part_of(case: Case, result: Any) -> Any:
    """The part of a result that is the caller's."""
    if case.returns is None:
        return result
    items = unpack(result, case.returns + 1, case.name)
    return items[: case.returns]


def array_of(value: Any) -> np.ndarray | None:
    """An array as evidence, by which a known mistake is recognized."""
    if is_container(value) or is_kept(value):
        items = value.values() if isinstance(value, dict) else value
        return next((array for array in map(array_of, items) if array is not None), None)
    if is_tensor(value):
        return as_numpy(value)
    return value if isinstance(value, np.ndarray) else None


def differences(actual: Any, expected: Any) -> list[Any]:
    """The parts of a result that aren't as expected. Objects that stay with the student count not.

    Float results agree up to rounding.
    """
    if isinstance(actual, Handle) and isinstance(expected, Handle):
        return []
    if isinstance(actual, dict) and isinstance(expected, dict):
        if list(actual) != list(expected):
            return [actual]
        actual, expected = tuple(actual.values()), tuple(expected.values())
    if isinstance(actual, tuple | list) and isinstance(expected, tuple | list):
        if len(actual) != len(expected):
            return [actual]
        pairs = zip(actual, expected, strict=True)
        return [wrong for pair in pairs for wrong in differences(*pair)]
    if is_tensor(actual) and is_tensor(expected):
        same = actual.dtype == expected.dtype and agree(as_numpy(actual), as_numpy(expected))
    elif isinstance(actual, np.ndarray) and isinstance(expected, np.ndarray):
        same = actual.dtype == expected.dtype and agree(actual, expected)
    elif isinstance(actual, float) and isinstance(expected, float):
        same = agree(np.asarray(actual), np.asarray(expected))
    else:
        same = type(actual) is type(expected) and bool(np.all(actual == expected))
    return [] if same else [actual]


def agree(actual: np.ndarray, expected: np.ndarray) -> bool:
    """Whether two arrays of one dtype are equal; floats up to rounding."""
    if actual.shape != expected.shape:
        return False
    if actual.dtype.kind not in "fc":
        return np.array_equal(actual, expected)
    finite = expected[np.isfinite(expected)]
    scale = float(np.max(np.abs(finite), initial=0.0))
    allowed = TOLERANCES.get(str(expected.dtype), 0.0) * scale
    return bool(np.allclose(actual, expected, rtol=0, atol=allowed, equal_nan=True))
