"""Checks what no function of the course may do, for the cases of a test (check_promises).

A function changes none of its inputs; what it returned is the caller's to write into; it remembers
nothing between calls; and it leaves the process as it was. Results are compared here. What only the
process of student code knows can fail a test; no points rest on it alone.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from common.check_log import check
from common.errors import MALFORMED, ChildFailure
from common.student_code.values import Handle, is_kept
from common.student_text import plain
from common.testing.battery.battery_case import DIFFERS, DRAWS, MEMORY, VIEWS, Case
from common.testing.battery.result_differences import array_of, differences
from common.testing.compare import unpack
from common.testing.remote.operations import changed_inputs
from common.testing.remote.visible_state import INPUT_WORDS, PROCESS_WORDS, RANDOM

COPY = "Work on a copy: x.copy() in NumPy, x.clone() in PyTorch."
NEW = "Create a new array or tensor in every call, and keep none of them after it."


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
