"""Decides which hints a submission gets: those of mistakes that explain what its tests showed."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from common.assignment import Assignment
from common.testing.feedback.hints import (
    HINT_FILES,
    Fingerprint,
    HintFile,
    KnownMistake,
    Sighting,
    read_hints,
    same_output,
)

# How much must agree before a mistake is named, and what each test counts that ends as expected.
ENOUGH_BITS = 3.0
BITS_OF_END = 0.5
MOST_NAMED = 2  # where mistakes look the same
ONE_OF_TWO = "one of these two. "


@dataclass(frozen=True)
class Ended:
    """How a test ended: it passed, or this is what its failing check saw."""

    test: str
    group: str  # the exercise, or in labs the question
    passed: bool
    check: int = 0
    seen: Fingerprint | None = None


class Hints:
    """The known mistakes of some hint files: of public tests, hidden ones, or both."""

    def __init__(self, files: Iterable[Path | HintFile]) -> None:
        self.tests: set[str] = set()
        self.mistakes: dict[str, KnownMistake] = {}
        for file in files:
            content = file if isinstance(file, HintFile) else read_hints(file)
            self.tests.update(content.tests)
            for name, known in content.mistakes.items():
                other = self.mistakes.get(name, known)
                failed, unknown = other.failed | known.failed, [*other.unknown, *known.unknown]
                self.mistakes[name] = KnownMistake(known.hint, failed, unknown)


HINTS_BY_FOLDER: dict[Path, Hints] = {}


def hints_beside(folder: Path) -> Hints:
    """The hints in the folder of an assignment's tests, read once."""
    if folder not in HINTS_BY_FOLDER:
        HINTS_BY_FOLDER[folder] = Hints(folder / name for name in HINT_FILES)
    return HINTS_BY_FOLDER[folder]


class Diagnosis:
    """What the tests that have ended so far say about known mistakes.

    A mistake is named in an exercise if it explains all that was seen in it, and in the failing
    exercises that it needs: each test ends as it does for the mistake, outputs agree wherever both
    are known, and what agrees is too much to be chance. No test passes that the mistake fails.
    """

    def __init__(self, hints: Hints, needs: Mapping[str, Collection[str]]) -> None:
        self.hints = hints
        self.needs = needs
        self.ended: dict[str, Ended] = {}
        self.agreeing: dict[str, dict[str, float]] = {}  # by test: mistakes, and how much it says
        self.impossible: dict[str, set[str]] = {}  # by test that passes: mistakes that fail it

    def add(self, ended: Ended) -> None:
        """Note how a test ended, instead of what was known of it before."""
        known = self.hints.mistakes
        self.ended[ended.test] = ended
        failing = {name for name, mistake in known.items() if ended.test in mistake.failed}
        self.impossible[ended.test] = failing if ended.passed else set()
        self.agreeing[ended.test] = {
            name: bits
            for name, mistake in known.items()
            if (bits := agreement(mistake, ended)) is not None
        }

    def shown(self, left_out: Collection[str] = ()) -> dict[str, str]:
        """The hint at each failed test that has one, but for groups that are left out."""
        found: dict[str, str] = {}
        for group, names in self.told().items():
            if group not in left_out:
                known = [self.hints.mistakes[name] for name in names]
                hint = " Or: ".join(dict.fromkeys(mistake.hint for mistake in known))
                prefix = ONE_OF_TWO if len({mistake.hint for mistake in known}) > 1 else ""
                explained = {test for mistake in known for test in mistake.failed}
                tests = [e.test for e in self.ended.values() if e.group == group and not e.passed]
                found |= {test: prefix + hint for test in tests if test in explained}
        return found

    def told(self) -> dict[str, list[str]]:
        """The mistakes that are named, by group: none where more than two hints would fit."""
        impossible = set[str]().union(*self.impossible.values())
        failed = dict.fromkeys(ended.group for ended in self.ended.values() if not ended.passed)
        named = {group: self.named(group, impossible) for group in failed}
        return {
            group: names
            for group, names in named.items()
            if 0 < len({self.hints.mistakes[name].hint for name in names}) <= MOST_NAMED
        }

    def named(self, group: str, impossible: Collection[str]) -> list[str]:
        """The mistakes that explain a group of tests."""
        around = self.needed(group)
        failing = {e.group for e in self.ended.values() if not e.passed and e.group in around}
        tests = [
            e for e in self.ended.values() if e.group in failing and e.test in self.hints.tests
        ]
        own = {e.test for e in tests if e.group == group}
        if not own:
            return []
        return [
            name
            for name, mistake in self.hints.mistakes.items()
            if name not in impossible
            and not own.isdisjoint(mistake.failed)
            and self.evidence(name, [e.test for e in tests], own) >= ENOUGH_BITS
        ]

    def needed(self, group: str) -> set[str]:
        """A group and all that it needs."""
        found, waiting = set[str](), [group]
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting += self.needs.get(one, ())
        return found

    def evidence(self, name: str, tests: Iterable[str], own: Collection[str]) -> float:
        """How much says that it is this mistake, in bits; below 0 where a test differs."""
        unknown = self.hints.mistakes[name].unknown
        known = [test for test in tests if test not in unknown]
        if any(name not in self.agreeing[test] for test in known):
            return -1.0
        ends = [test for test in known if test in own]
        outputs = sum(self.agreeing[test][name] for test in known if not self.ended[test].passed)
        return outputs + BITS_OF_END * (len(ends) - 1) if outputs else 0.0


def agreement(mistake: KnownMistake, ended: Ended) -> float | None:
    """How much it says that a test ended as it does for a mistake; None where it doesn't."""
    sighting = mistake.failed.get(ended.test)
    if ended.passed or sighting is None:
        return 0.0 if ended.passed and sighting is None else None
    return sighting.bits if looks_like(sighting, ended.check, ended.seen) else None


def looks_like(sighting: Sighting, check: int, seen: Fingerprint | None) -> bool:
    """Whether a test failed at the same check and with the same output."""
    if sighting.seen is None or seen is None:
        return sighting.seen is seen and sighting.check == check
    return sighting.check == check and same_output(seen, sighting.seen)


def needs_of(assignment: Assignment) -> dict[str, list[str]]:
    """The exercises that each exercise needs."""
    return {exercise.number: [*exercise.needs] for exercise in assignment.exercises}
