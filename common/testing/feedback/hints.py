"""Reads and compares what known mistakes gave in tests: the hint files.

A hint file holds which tests mistakes fail and what they gave there: outputs, never code.
"""

import hashlib
import math
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from common.assignment import Record
from common.errors import Evidence, Failure
from common.student_text import unmarked

HINT_FILES = PUBLIC_HINTS, HIDDEN_HINTS = ("public.hints", "hidden.hints")
KEPT_VALUES = 256
BLOCK = 1 << 20  # entries that are converted at a time
# How far two float results of the same mistake may lie apart, as a part of the largest entry.
CLOSE = {"float64": 1e-6, "float32": 1e-3, "float16": 1e-1}
# What is this small is left over from rounding larger numbers, and differs between machines. What
# is smaller still, such as a rate of 1e-300, is meant.
NOISE = {"float64": 1e-12, "float32": 1e-6, "float16": 1e-3}
DELIBERATELY_SMALL = 1e-30
# Evidence. Plain values are multiples of a twelfth, such as 0, 1, 0.5 and small integers.
COMMON_PARTS, PLAIN = 12, 1e-6
PLAIN_ORDER, MOST_OF_ORDER = 0.25, 6.0
BITS_OF_VALUE, BITS_OF_TEXT = 6.0, 2.0
MOST_BITS = 30.0
MOST_TEXT = 10_000
# In a text, but no whole number. It looks at each digit once, however many a student's text has.
NUMBER = re.compile(r"(?<!\d)-?\d++(\.\d+(e[-+]?\d+)?|e[-+]?\d+)")


class Fingerprint(Record, frozen=True):
    """What a failed check saw, in a bounded number of bytes."""

    dtype: str  # "" where the check saw no array
    shape: tuple[int, ...]
    values: bytes  # the first entries, floats as float32
    total: float  # sums over all entries, so that the rest counts too
    magnitude: float
    weighted: float  # with growing weights, so that the order of the rest counts
    text: str  # a hash of what was said, where the check saw no array
    bits: float = 0.0  # how much it says if another output is the same


class Sighting(Record, frozen=True):
    """How a mistake failed a test."""

    check: int  # 0 where no check failed: an exception
    seen: Fingerprint | None
    bits: float = 0.0  # how much it says that another failure looks the same


class KnownMistake(Record, frozen=True):
    """A mistake, and how each test ended for it: those that aren't named here, it passes."""

    hint: str
    failed: dict[str, Sighting]
    unknown: list[str]  # tests that train or take the time, and such as were not run


class HintFile(Record, frozen=True):
    """The known mistakes that fail public tests, or hidden ones, and the tests that they met."""

    tests: list[str]
    mistakes: dict[str, KnownMistake]


def evidence_of(error: BaseException) -> Evidence | None:
    """What a failed check saw. An exception is no output: the same one has many causes."""
    return error.evidence if isinstance(error, Failure) else None


def fingerprint(evidence: Evidence) -> Fingerprint:
    """A piece of evidence in a bounded number of bytes."""
    value = evidence.value
    if not isinstance(value, np.ndarray):
        text_without_noise = NUMBER.sub(without_noise, unmarked(evidence.text))
        text = hashlib.sha256(text_without_noise.encode("utf-8", "replace")).hexdigest()[:16]
        bits = bits_of_text(unmarked(evidence.text))
        return Fingerprint("", (), b"", 0.0, 0.0, 0.0, text, bits)
    flat = value.ravel()
    head = flat[:KEPT_VALUES]
    with np.errstate(all="ignore"):
        if head.dtype.kind == "f":
            head = head.astype("<f4")  # what is too large for float32 becomes infinite
        total, magnitude, weighted = np.sum(list(map(sums_of, blocks(flat))), axis=0).tolist()
    return Fingerprint(
        str(value.dtype),
        value.shape,
        head.tobytes(),
        total,
        magnitude,
        weighted,
        "",
        bits_of_array(head),
    )


def bits_of_array(values: np.ndarray) -> float:
    """How much it says that two arrays are the same, in bits, estimated by their distinct values.

    Small integers, counts, shares such as 0.5 and booleans come about in many ways.
    """
    if values.size == 0:  # of a wrong shape, which is all that it says
        return BITS_OF_TEXT
    finite = values[np.isfinite(values)].real.astype(np.float64)
    distinct, counts = np.unique(finite, return_counts=True)
    with np.errstate(all="ignore"):
        parts = distinct * COMMON_PARTS
        plain = np.abs(parts - np.round(parts)) <= PLAIN * np.maximum(np.abs(parts), 1)
        size = float(np.log2(1 + np.max(np.abs(distinct[plain]), initial=0.0)))
    entropy = float(-np.sum(counts * np.log2(counts / max(finite.size, 1))))
    of_plain = max(size, min(PLAIN_ORDER * entropy, MOST_OF_ORDER))
    return min(BITS_OF_VALUE * int((~plain).sum()) + of_plain, MOST_BITS)


def bits_of_text(text: str) -> float:
    """How much it says that a check said the same: that it is this check, and the numbers in it."""
    numbers = {number for match in NUMBER.finditer(text[:MOST_TEXT]) if "." in (number := match[0])}
    return min(BITS_OF_TEXT + BITS_OF_VALUE * len(numbers), MOST_BITS)


def blocks(flat: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The entries in pieces that are cheap to convert, each with its weights from 0 to 1."""
    yield flat[:BLOCK], np.linspace(0, 1, flat.size) if flat.size <= BLOCK else weights_of(0, flat)
    for start in range(BLOCK, flat.size, BLOCK):
        yield flat[start : start + BLOCK], weights_of(start, flat)


def weights_of(start: int, flat: np.ndarray) -> np.ndarray:
    """The weights of the block that starts there."""
    return np.arange(start, min(start + BLOCK, flat.size)) / (flat.size - 1)


def sums_of(block: tuple[np.ndarray, np.ndarray]) -> tuple[float, float, float]:
    """The sum of a block's entries, of their sizes, and of the weighted entries."""
    entries, weights = block
    numbers = entries * 1.0
    total, weighted = np.sum(numbers).real, np.sum(numbers * weights).real
    return float(total), float(np.sum(np.abs(numbers))), float(weighted)


def without_noise(number: re.Match[str]) -> str:
    """A number of a text, as far as all machines agree on it."""
    value = float(number[0])
    noise = DELIBERATELY_SMALL < abs(value) < NOISE["float32"]
    return "0" if noise else f"{value:.3g}"


def same_output(first: Fingerprint, second: Fingerprint) -> bool:
    """Whether two checks saw the same, but for float noise."""
    kind = (first.dtype, first.shape, first.text)
    if kind != (second.dtype, second.shape, second.text):
        return False
    if first.dtype not in CLOSE:  # integers, and checks that saw no array
        return (first.values, first.total) == (second.values, second.total)
    close = CLOSE[first.dtype]
    largest = max(first.magnitude, second.magnitude)
    noise = NOISE[first.dtype] if largest > DELIBERATELY_SMALL else 0.0
    left, right = (np.frombuffer(side.values, "<f4").astype(float) for side in (first, second))
    finite = np.isfinite(left)
    if not np.array_equal(left[~finite], right[~np.isfinite(right)], equal_nan=True):
        return False
    if not np.array_equal(finite, np.isfinite(right)):
        return False
    bound = close * float(np.max(np.abs(right[finite]), initial=0.0)) + noise
    sums = max(
        abs(first.total - second.total),
        abs(first.magnitude - second.magnitude),
        abs(first.weighted - second.weighted),
    )
    allowed = close * largest + noise * math.prod(first.shape)
    sums_agree = not np.isfinite(sums) or sums <= allowed
    return bool(np.all(np.abs(left[finite] - right[finite]) <= bound)) and sums_agree


def hint_bytes(content: HintFile) -> bytes:
    """The content of a hint file; the same hints always give the same bytes."""
    return zlib.compress(msgspec.msgpack.encode(content), 9)


def read_hints(file: Path) -> HintFile:
    """The stored hints; none where there is no file, or none that can be read."""
    try:
        return msgspec.msgpack.decode(zlib.decompress(file.read_bytes()), type=HintFile)
    except (OSError, zlib.error, msgspec.DecodeError):  # a hint must never cost a grade
        return HintFile([], {})
