"""Decides which hint is shown: matches a wrong output with recorded known mistakes.

A hint file holds what mistakes gave at each check of each test: outputs, never code.
"""

import hashlib
import math
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from common.assignment import Record
from common.errors import Evidence, Explanation, Failure
from common.student_text import unmarked

HINT_FILES = PUBLIC_HINTS, HIDDEN_HINTS = ("public.hints", "hidden.hints")
KEPT_VALUES = 1024
BLOCK = 1 << 20  # entries that are converted at a time
# How far two float results of the same mistake may lie apart, as a part of the largest entry.
CLOSE = {"float64": 1e-6, "float32": 1e-3, "float16": 1e-1}
# What is this small is left over from rounding larger numbers, and differs between machines. What
# is smaller still, such as a rate of 1e-300, is meant.
NOISE = {"float64": 1e-12, "float32": 1e-6, "float16": 1e-3}
DELIBERATELY_SMALL = 1e-30
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


class Sighting(Record, frozen=True):
    """A mistake at a check of a test."""

    test: str
    check: int
    mistake: str
    seen: Fingerprint


class HintFile(Record, frozen=True):
    """All sightings, and the hint of each mistake, the most specific mistake first."""

    hints: dict[str, str]
    sightings: list[Sighting]


def evidence_of(error: BaseException) -> Evidence | None:
    """What a failed check saw. An exception is no output: the same one has many causes."""
    return error.evidence if isinstance(error, Failure) else None


def fingerprint(evidence: Evidence) -> Fingerprint:
    """A piece of evidence in a bounded number of bytes."""
    value = evidence.value
    if not isinstance(value, np.ndarray):
        text_without_noise = NUMBER.sub(without_noise, unmarked(evidence.text))
        text = hashlib.sha256(text_without_noise.encode("utf-8", "replace")).hexdigest()[:16]
        return Fingerprint("", (), b"", 0.0, 0.0, 0.0, text)
    flat = value.ravel()
    head = flat[:KEPT_VALUES]
    with np.errstate(all="ignore"):
        if head.dtype.kind == "f":
            head = head.astype("<f4")  # what is too large for float32 becomes infinite
        total, magnitude, weighted = np.sum(list(map(sums_of, blocks(flat))), axis=0).tolist()
    return Fingerprint(
        str(value.dtype), value.shape, head.tobytes(), total, magnitude, weighted, ""
    )


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
        return HintFile({}, [])


class Hints:
    """Answers which mistake a failed check of a test shows."""

    def __init__(self, files: Iterable[Path | HintFile]) -> None:
        self.hints: dict[str, str] = {}
        self.sightings: dict[tuple[str, int], list[Sighting]] = {}
        for file in files:
            content = file if isinstance(file, HintFile) else read_hints(file)
            self.hints |= content.hints
            for sighting in content.sightings:
                self.sightings.setdefault((sighting.test, sighting.check), []).append(sighting)
        self.rank = {mistake: index for index, mistake in enumerate(self.hints)}

    def find(self, test: str, evidence: Evidence | None) -> str:
        """The hint for a failed check, the most specific where several mistakes look the same."""
        if not evidence or (test, evidence.check) not in self.sightings:
            return ""
        return self.look_up(test, evidence.check, fingerprint(evidence))

    def look_up(self, test: str, check: int, seen: Fingerprint) -> str:
        """The hint for what a check saw."""
        known = self.sightings.get((test, check), [])
        matching = [entry.mistake for entry in known if same_output(seen, entry.seen)]
        return self.hints[min(matching, key=self.rank.__getitem__)] if matching else ""


HINTS_BY_FOLDER: dict[Path, Hints] = {}


def hints_beside(folder: Path) -> Hints:
    """The hints in the folder of an assignment's tests, read once."""
    if folder not in HINTS_BY_FOLDER:
        HINTS_BY_FOLDER[folder] = Hints(folder / name for name in HINT_FILES)
    return HINTS_BY_FOLDER[folder]


def add_hint(
    explanation: Explanation, error: BaseException, hints: Hints, test: str
) -> Explanation:
    """The explanation, with the hint of the mistake that it shows, if it is a known one."""
    hint = hints.find(test, evidence_of(error))
    return replace(explanation, hint=hint) if hint else explanation
