"""Describes how a wrong array relates to the correct one: transposed, scaled, shifted."""

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations

import numpy as np

MAX_AXES = 4
CLOSE = 1e-6
# What is said must be more than chance: as many different values must be where it predicts them.
# Of "for the first only", the others must be wrong nearly everywhere, and be two or more.
FEWEST_VALUES = 5
FEWEST_ALONG_AXIS = 3
NEARLY_ALL = 0.9


def relation(actual: np.ndarray, expected: np.ndarray, axes: Sequence[str] | None) -> str:
    """The first simple relation that holds, as a sentence; "" where none does.

    Nothing is said of an expected array that is too plain for a relation to mean anything.
    """
    if actual.size != expected.size:  # however large it is, nothing is converted
        return ""
    if expected.dtype.kind not in "iuf" or actual.dtype.kind not in "iuf" or expected.size < 2:
        return ""
    right = expected.astype(np.float64, copy=False)
    wrong = actual.astype(np.float64, copy=False)
    scale = float(np.max(np.abs(right)))
    if not scale or not np.isfinite(scale) or np.ptp(right) <= CLOSE * scale:
        return ""
    names = list(axes) if axes else [f"axis {axis}" for axis in range(right.ndim)]
    same = comparison_at_scale(scale)
    searches: list[Search] = [transposed]
    if same(wrong, right):
        return ""  # off by very little: any relation would hold
    if wrong.shape == right.shape:
        searches += SAME_SHAPE
        if axes:  # "right for the last axis 0 only" would help no one
            searches.append(partly_right)
    for search in searches:
        for sentence in search(wrong, right, names, same):
            return sentence
    return ""


Same = Callable[[np.ndarray, np.ndarray], bool]
Search = Callable[[np.ndarray, np.ndarray, list[str], Same], Iterator[str]]


def is_telling(values: np.ndarray) -> bool:
    """Whether values could not agree with others by chance: so many different ones are among them.

    Zeros don't count: they come about in many ways.
    """
    return len(np.unique(values[values != 0])) >= FEWEST_VALUES


def predicts(predicted: np.ndarray, right: np.ndarray) -> bool:
    """Whether what a relation predicts differs from the correct values in a telling way."""
    return is_telling(predicted[predicted != right])


def comparison_at_scale(scale: float) -> Same:
    """A comparison of arrays to a part of the largest expected entry."""

    def same(first: np.ndarray, second: np.ndarray) -> bool:
        if first.shape != second.shape:
            return False
        with np.errstate(invalid="ignore"):
            return bool(np.all(np.abs(first - second) <= CLOSE * scale))

    return same


def transposed(wrong: np.ndarray, right: np.ndarray, names: list[str], same: Same) -> Iterator[str]:
    """Equal, but for the order of the axes."""
    if wrong.ndim != right.ndim or not 2 <= right.ndim <= MAX_AXES:
        return
    for order in list(permutations(range(right.ndim)))[1:]:
        turned = right.transpose(order)
        by_chance = turned.shape == right.shape and not predicts(turned, right)
        if same(wrong, turned) and is_telling(right) and not by_chance:
            moved = [names[axis] for index, axis in enumerate(order) if index != axis]
            yield f"It is correct except for the order of its axes ({', '.join(moved)})."


def scaled(wrong: np.ndarray, right: np.ndarray, names: list[str], same: Same) -> Iterator[str]:
    """Off by a constant factor, or with the opposite sign."""
    with np.errstate(all="ignore"):  # the squares of very small or large values
        factor = float(np.sum(wrong * right) / np.sum(right * right))
    if not is_telling(right):
        return
    if same(wrong, -right):
        yield "It has the opposite sign everywhere."
    elif factor and np.isfinite(factor) and same(wrong, factor * right):
        yield f"It is off by a constant factor{plain_factor(factor)}."


def plain_factor(factor: float) -> str:
    """The factor, if it is a plain one: any other could carry a number out of a hidden test."""
    for numerator in range(1, 10):
        for denominator in range(1, 10):
            if abs(factor - numerator / denominator) <= CLOSE * abs(factor):
                return f" of {factor:.3g}"
    return ""


def shifted(wrong: np.ndarray, right: np.ndarray, names: list[str], same: Same) -> Iterator[str]:
    """Off by a constant that is added."""
    difference = wrong - right
    if is_telling(right) and same(difference, np.full_like(difference, difference.flat[0])):
        yield "It is off by a constant."


def flipped(wrong: np.ndarray, right: np.ndarray, names: list[str], same: Same) -> Iterator[str]:
    """Equal, but read backwards along one axis or two."""
    for axis in range(right.ndim):
        turned = np.flip(right, axis)
        if right.shape[axis] > 1 and predicts(turned, right) and same(wrong, turned):
            yield f"It is correct, but reversed along the {names[axis]} axis."
    if right.ndim >= 2 and same(wrong, turned := np.flip(right, (-2, -1))):
        if not predicts(turned, right):
            return
        yield f"It is correct, but reversed along the {names[-2]} and {names[-1]} axes."


def partly_right(
    wrong: np.ndarray, right: np.ndarray, names: list[str], same: Same
) -> Iterator[str]:
    """Right except on the border, or for the first or the last along one axis only."""
    inner = (..., slice(1, -1), slice(1, -1))
    image = names[-2:] == ["row", "column"]
    inside = right[inner] if image and min(right.shape[-2:]) > 2 else right[:0]
    if is_telling(inside) and same(wrong[inner], inside):
        yield "It is correct except at the border."
    for axis in range(right.ndim):
        if right.shape[axis] < FEWEST_ALONG_AXIS:
            continue
        for position, word in ((0, "first"), (right.shape[axis] - 1, "last")):
            if right_only_at(position, axis, wrong, right, same=same):
                yield f"It is correct for the {word} {names[axis]} only."


def right_only_at(
    position: int, axis: int, wrong: np.ndarray, right: np.ndarray, *, same: Same
) -> bool:
    """Right at one position along an axis, and wrong at all others in every row of the first axis.

    If some rows are right elsewhere too, the position is not what matters.
    """
    expected_there = right.take(position, axis)
    if not is_telling(expected_there) or not same(wrong.take(position, axis), expected_there):
        return False
    scale = float(np.max(np.abs(right)))
    off = np.delete(np.abs(wrong - right) > CLOSE * scale, position, axis)
    if np.mean(off) < NEARLY_ALL:
        return False
    rows = zip(wrong, right, strict=True) if axis else [(wrong, right)]
    along = max(axis - 1, 0)
    others = [n for n in range(right.shape[axis]) if n != position]
    return not any(same(w.take(n, along), r.take(n, along)) for w, r in rows for n in others)


def zeros(wrong: np.ndarray, right: np.ndarray, names: list[str], same: Same) -> Iterator[str]:
    """Nothing but zeros."""
    if not np.any(wrong):
        yield "It is all zeros."


def moved_by_one(
    wrong: np.ndarray, right: np.ndarray, names: list[str], same: Same
) -> Iterator[str]:
    """Moved by one along an axis."""
    for axis in range(right.ndim):
        size = right.shape[axis]
        if size < FEWEST_ALONG_AXIS:
            continue
        behind, ahead = np.arange(size - 1), np.arange(1, size)
        for here, there in ((ahead, behind), (behind, ahead)):
            moved, stayed = right.take(there, axis), right.take(here, axis)
            if predicts(moved, stayed) and same(wrong.take(here, axis), moved):
                yield f"It is correct, but shifted by one along the {names[axis]} axis."


SAME_SHAPE = (zeros, scaled, shifted, flipped, moved_by_one)
