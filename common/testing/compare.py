"""Compares results with expected values within a tolerance (assert_close), and explains why not."""

import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from common.check_log import LOG, Compared, check
from common.errors import Evidence, Failure
from common.student_code.values import as_float, as_numpy, is_tensor, kind_of
from common.student_text import StudentBytes, StudentText
from common.testing.feedback.relations import relation

MOST_SHOWN = 1000  # parts of a wrong value
# Axes that count from 1, as everywhere in the course. All others count from 0.
COUNTED_FROM_ONE = ("epoch", "training step")
# The largest error allowed, as a part of the largest expected entry.
TOLERANCES = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2}


def unpack(result: Any, count: int, what: str) -> Sequence[Any]:
    """The items of a result that must be a tuple of that length."""
    __tracebackhide__ = True  # a debugger should stop in the test, not in here
    check(result is not None, f"{what} returned None.", help="Is the return statement missing?")
    check(
        isinstance(result, tuple | list),
        f"{what} must return a tuple of {count} values, got {kind_of(result)}.",
    )
    check(
        len(result) == count,
        f"{what} must return {count} values, but it returned "
        f"{'more' if len(result) > count else 'fewer'}.",
        f"It returned {len(result)}.",
    )
    return result


def assert_equal(actual: Any, expected: Any, what: str) -> None:
    """For numbers, strings and tuples of them: the same type, and equal."""
    __tracebackhide__ = True  # a debugger should stop in the test, not in here
    check(actual is not None, f"{what} is None.", help="Is the return statement missing?")
    actual = to_python(actual)
    if isinstance(expected, tuple) and isinstance(actual, list):
        actual = tuple(actual)
    check(
        type_of(actual) is type(expected),  # so a bool is not an int here
        f"{what} must be {kind_of(expected)}, got {kind_of(actual)}.",
    )
    check(
        equal(actual, expected),
        f"{what} is wrong.",
        f"got {in_short(actual)}, expected {expected!r}",
    )


def in_short(value: Any) -> str:
    """A value as `repr` shows it, if that isn't long."""
    try:
        return repr(value) if parts_of(value) <= MOST_SHOWN else reprlib.repr(value)
    except ValueError:  # an integer of more digits than Python prints
        return "a number of very many digits"


def parts_of(value: Any) -> int:
    """How many parts a value has, counted until they are too many to show."""
    if not isinstance(value, tuple | list | dict):
        return 1
    count = len(value)
    for item in value.values() if isinstance(value, dict) else value:
        if count > MOST_SHOWN:
            break
        count += parts_of(item)
    return count


def type_of(value: Any) -> type:
    """The type of a value; a string of student code is a string, and its bytes are bytes."""
    return {StudentText: str, StudentBytes: bytes}.get(type(value), type(value))


def to_python(value: Any) -> Any:
    """Python's own numbers and containers, for NumPy's and for those of student code."""
    if isinstance(value, np.integer):
        return int(value)
    for kind in (tuple, list):
        if isinstance(value, kind):
            return kind(to_python(item) for item in value)
    if isinstance(value, dict):
        return {key: to_python(item) for key, item in value.items()}
    return value


def equal(actual: Any, expected: Any) -> bool:
    """Whether two things are equal. An array where a number should be is not."""
    try:
        return bool(actual == expected)
    except ValueError:
        return False


def assert_close(
    actual: Any,
    expected: Any,
    what: str = "out",
    axes: Sequence[str] | None = None,
    *,
    tolerance: float | None = None,
) -> None:
    """Compare an array or a number with what is expected.

    In the order in which a student would ask: is it there, has it the right type, the right shape
    and the right dtype, is it finite, and are its values right? Nothing broadcasts.
    The error is the largest difference divided by the largest expected entry.
    """
    __tracebackhide__ = True  # a debugger should stop in the test, not in here
    check(actual is not None, f"{what} is None.", help="Is the return statement missing?")
    if not isinstance(expected, np.ndarray) and not is_tensor(expected):
        actual, expected = as_array(actual, expected, what)
    if is_tensor(expected):
        check(
            is_tensor(actual),
            f"{what} must be a PyTorch tensor, got {kind_of(actual)}.",
        )
        try:
            actual, expected = as_numpy(actual), as_numpy(expected)
        except TypeError:  # a dtype that NumPy doesn't have
            check(False, f"{what} must have dtype {expected.dtype}, got {actual.dtype}.")
    check(
        type(actual) is np.ndarray,
        f"{what} must be a NumPy array, got {kind_of(actual)}.",
    )
    check_shape(actual, expected, what, axes)
    check(
        actual.dtype == expected.dtype,
        f"{what} must have dtype {expected.dtype}, got {actual.dtype}.",
        help="The docstring and the conventions at the top of the file specify the dtype.",
        value=actual,
    )
    check_finite(actual, expected, what)
    check_values(actual, expected, what, axes, tolerance=tolerance)


def as_array(actual: Any, expected: Any, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Two plain numbers as arrays, so that one comparison serves both."""
    __tracebackhide__ = True  # a debugger should stop in the test, not in here
    check(
        isinstance(actual, int | float | np.number) and not isinstance(actual, bool),
        f"{what} must be a number, got {kind_of(actual)}.",
    )
    return np.asarray(as_float(actual)), np.asarray(float(expected))


def check_shape(
    actual: np.ndarray, expected: np.ndarray, what: str, axes: Sequence[str] | None
) -> None:
    """Fail when the shapes differ, and name the axes that do."""
    __tracebackhide__ = True  # a debugger should stop in the test, not in here
    shapes = f"got shape {actual.shape}, expected {expected.shape}"
    check(
        actual.ndim == expected.ndim,
        f"{what} has too {'many' if actual.ndim > expected.ndim else 'few'} axes: "
        f"it must have {expected.ndim}" + (f" ({', '.join(axes)})." if axes else "."),
        shapes,
        value=actual,
    )
    wrong = [
        axes[axis] if axes else f"axis {axis}"
        for axis in range(expected.ndim)
        if actual.shape[axis] != expected.shape[axis]
    ]
    sentence = f"{what} has the wrong size along {' and '.join(wrong)}."
    if wrong:
        sentence += f" {relation(actual, expected, axes)}".rstrip()
    check(not wrong, sentence, shapes, value=actual)


def check_finite(actual: np.ndarray, expected: np.ndarray, what: str) -> None:
    """Fail when there is a NaN or an infinity where a number is expected."""
    __tracebackhide__ = True  # a debugger should stop in the test, not in here
    if actual.dtype.kind not in "fc":
        return
    bad = ~np.isfinite(actual) & np.isfinite(expected)
    nans = int((np.isnan(actual) & bad).sum())
    infinities = int(bad.sum()) - nans
    found = {"NaN": nans, "infinity": infinities}
    kinds = [kind for kind, count in found.items() if count]
    counts = " and ".join(f"{found[kind]} {kind}" for kind in kinds)
    check(
        not kinds,
        f"{what} contains {' and '.join(kinds)} where finite values are expected.",
        f"{counts} among {actual.size} values." if actual.size > 1 else "",
        value=actual,
    )


def check_values(
    actual: np.ndarray,
    expected: np.ndarray,
    what: str,
    axes: Sequence[str] | None,
    *,
    tolerance: float | None,
) -> None:
    """Fail when the largest error is above the tolerance, and say where it is."""
    __tracebackhide__ = True  # a debugger should stop in the test, not in here
    if tolerance is None:
        tolerance = TOLERANCES.get(str(expected.dtype), 0.0)
    if expected.size == 0:
        return
    exact = expected.dtype.kind not in "fc"
    # Wide enough that a difference of unsigned or small integers can't wrap around.
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore"):
        difference = np.asarray(np.abs(np.subtract(actual, expected, dtype=wide)))
    difference[actual == expected] = 0  # infinities that agree
    if exact:  # integers beyond 2**53 may differ by less than a float can represent
        difference[(actual != expected) & (difference == 0)] = 1
    scale = 1.0 if exact else float(np.max(np.abs(expected[np.isfinite(expected)]), initial=0.0))
    worst = np.unravel_index(int(np.argmax(difference)), difference.shape)
    error = float(difference[worst]) / (scale or 1.0)
    LOG.checks += 1
    LOG.compared.append(Compared(error, tolerance))
    if error <= tolerance:
        return
    wrong = int((difference > tolerance * (scale or 1.0)).sum())
    sentence, where = f"{what} is wrong.", ""
    if expected.ndim:
        wrong_share = share_in_words(wrong, expected.size)
        sentence = f"{what} has the right shape, but {wrong_share} are wrong."
        where = (
            f"{wrong} of {expected.size} values are wrong. "
            f"The largest error is at {index_in_words(worst, axes)}: "
        )
    got, wanted = in_digits_that_differ(actual[worst], expected[worst])
    failure = Failure(
        sentence,
        f"{where}got {got}, expected {wanted} "
        f"({'relative' if scale and not exact else 'absolute'} error {error:.1e}, "
        f"tolerance {tolerance:.2g}).",
        relation=relation(actual, expected, axes),
        evidence=Evidence(LOG.checks, actual, ""),
    )
    if not LOG.continue_after_failure:
        raise failure
    LOG.failures.append(failure)


def in_digits_that_differ(first: Any, second: Any) -> tuple[str, str]:
    """Two numbers in six digits each, or in as many as it takes to distinguish them."""
    for digits in (6, 9, 12, 17):
        pair = f"{first:.{digits}g}", f"{second:.{digits}g}"
        if pair[0] != pair[1]:
            return pair
    return str(first), str(second)  # integers that floats can't distinguish


def share_in_words(part: int, whole: int) -> str:
    """How many of the values, in words that don't reveal the count."""
    if part == whole:
        return "all of its values"
    percent = 100 * part / whole
    return f"{'most' if percent > 60 else 'about half' if percent > 40 else 'some'} of its values"


def index_in_words(index: Sequence[Any], axes: Sequence[str] | None) -> str:
    """An index in words: "image 0, channel 2, row 1, column 1"; [0, 2, 1, 1] without names."""
    if axes is None:
        return str([int(at) for at in index])
    return ", ".join(
        f"{name} {int(at) + (name in COUNTED_FROM_ONE)}"
        for name, at in zip(axes, index, strict=True)
    )
