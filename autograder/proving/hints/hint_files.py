"""Builds a hint file from mistakes' verdicts: which tests each one fails, and with what output."""

from collections.abc import Collection, Iterable, Mapping
from math import log2

from msgspec.structs import replace

from autograder.grading.warm.judge_messages import Verdict
from autograder.proving.wrong_versions.mistakes import Mistake
from common.testing.feedback.diagnosis import looks_like
from common.testing.feedback.hints import HintFile, KnownMistake, Sighting
from common.testing.graded_tests import MACHINE_DEPENDENT, GradedTest


def hint_file(
    mistakes: list[Mistake],
    verdicts: Mapping[str, list[Verdict]],
    tests: list[GradedTest],
    hidden: bool,
) -> HintFile:
    """What is known of all mistakes in the public or in the hidden tests.

    Tests that train see how well code learned, and timed ones how busy the machine is: they count
    as unknown. Timed ones are all that there is of mistakes that fail nothing else.
    """
    groups = {test.name: test.group for test in tests}
    known = {
        mistake.name: known_mistake(mistake, verdicts[mistake.name], tests) for mistake in mistakes
    }
    known = with_bits(known, groups)
    chosen = {test.name for test in tests if test.hidden == hidden}
    one_side = {name: limited(mistake, chosen) for name, mistake in known.items()}
    failing = {name: mistake for name, mistake in one_side.items() if mistake.failed}
    return HintFile(sorted(chosen), failing)


def known_mistake(
    mistake: Mistake, verdicts: list[Verdict], tests: list[GradedTest]
) -> KnownMistake:
    """How all tests ended for a mistake."""
    uncertain = {test.name for test in tests if MACHINE_DEPENDENT & {*test.tags}}
    failed = {
        verdict.test: Sighting(verdict.check, verdict.seen)
        for verdict in verdicts
        if verdict.ran and not verdict.passed and not verdict.training
    }
    certain = {test: sighting for test, sighting in failed.items() if test not in uncertain}
    failed = certain or failed
    return KnownMistake(mistake.hint, failed, sorted(uncertain - failed.keys()))


def limited(mistake: KnownMistake, tests: Collection[str]) -> KnownMistake:
    """What is known of a mistake in some tests."""
    failed = {test: sighting for test, sighting in mistake.failed.items() if test in tests}
    return KnownMistake(mistake.hint, failed, [t for t in mistake.unknown if t in tests])


def with_bits(
    known: Mapping[str, KnownMistake], groups: Mapping[str, str]
) -> dict[str, KnownMistake]:
    """The mistakes, each sighting with an estimate of how much says an output that agrees.

    What other mistakes give too says less, unless they look the same in the whole exercise: then
    it is no chance, and both are named.
    """
    by_test: dict[str, dict[str, Sighting]] = {}
    for name, mistake in known.items():
        for test, sighting in mistake.failed.items():
            by_test.setdefault(test, {})[name] = sighting

    def bits(name: str, test: str) -> float:
        sighting, others = known[name].failed[test], by_test[test]
        if sighting.seen is None:
            return 0.0
        same = [
            other
            for other in others
            if other != name
            and alike(sighting, others[other])
            and not twins(known[name], known[other], groups, groups[test])
        ]
        if not same:
            return sighting.seen.bits
        return min(sighting.seen.bits, log2((len(others) + 1) / (len(same) + 1)))

    return {
        name: KnownMistake(
            mistake.hint,
            {
                test: replace(sighting, bits=round(bits(name, test), 1))
                for test, sighting in mistake.failed.items()
            },
            mistake.unknown,
        )
        for name, mistake in known.items()
    }


def twins(first: KnownMistake, second: KnownMistake, groups: Mapping[str, str], group: str) -> bool:
    """Whether two mistakes look the same in all tests of a group."""
    ours, theirs = (
        {test: s for test, s in mistake.failed.items() if groups[test] == group}
        for mistake in (first, second)
    )
    return ours.keys() == theirs.keys() and all(alike(ours[test], theirs[test]) for test in ours)


def alike(first: Sighting, second: Sighting) -> bool:
    """Whether two mistakes failed a test with the same output."""
    return looks_like(first, second.check, second.seen)


def outdated(stored: HintFile, fresh: HintFile) -> list[str]:
    """What of a stored hint file is no longer so: hints, tests and mistakes.

    Where a mistake makes all choices equally good, float noise decides, and that differs between
    machines. Such sightings are not found again elsewhere; a test or a mistake is out of date if
    none of its sightings is.
    """
    found = [] if stored.tests == fresh.tests else ["the tests"]
    if {name: m.hint for name, m in stored.mistakes.items()} != {
        name: m.hint for name, m in fresh.mistakes.items()
    }:
        found.append("the hints themselves")
    both = stored.mistakes.keys() & fresh.mistakes.keys()
    changed = [name for name in both if ends(stored.mistakes[name]) != ends(fresh.mistakes[name])]
    again = {
        (test, name)
        for name in both
        for test, sighting in stored.mistakes[name].failed.items()
        if test in (other := fresh.mistakes[name].failed) and alike(sighting, other[test])
    }
    named = {pair for file in (stored, fresh) for pair in pairs(file)}
    gone = {word for pair in named for word in pair} - {word for pair in again for word in pair}
    return found + sorted({*changed, *gone})


def ends(mistake: KnownMistake) -> tuple[Collection[str], list[str]]:
    """Which tests a mistake fails, and which are unknown."""
    return mistake.failed.keys(), mistake.unknown


def pairs(content: HintFile) -> Iterable[tuple[str, str]]:
    """The tests that mistakes fail, each with the mistake."""
    return [(test, name) for name, mistake in content.mistakes.items() for test in mistake.failed]
