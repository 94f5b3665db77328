"""Builds a hint file from mistakes' verdicts, dropping what several mistakes share."""

from collections.abc import Collection, Mapping

from autograder.grading.warm.judge_messages import Verdict
from autograder.proving.wrong_versions.mistakes import Mistake
from common.testing.feedback.hints import Fingerprint, HintFile, Sighting, same_output


def hint_file(
    mistakes: list[Mistake],
    verdicts: Mapping[str, list[Verdict]],
    hidden: bool,
    timed: Collection[str] = (),
) -> HintFile:
    """The sightings of all mistakes in the public or in the hidden tests.

    Where two mistakes look the same at a check, the sighting says nothing about which one it is,
    and is left out, unless it is all that there is of a mistake. The fewer tests a mistake fails,
    the more specific it is, and the earlier it stands. Training tests see how well code learned,
    which many mistakes change alike. Timed tests, which are named, count only for mistakes that
    fail nothing else: on a busy machine, now this one and now that one is slow.
    """
    failed = {mistake.name: failures(verdicts[mistake.name], hidden, timed) for mistake in mistakes}
    ranked = sorted(mistakes, key=lambda mistake: (len(failed[mistake.name]), mistake.name))
    sightings = [
        Sighting(verdict.test, verdict.check, mistake.name, verdict.seen)
        for mistake in ranked
        for verdict in failed[mistake.name]
        if verdict.seen is not None
    ]
    sightings = without_ambiguous(sightings)
    seen = {sighting.mistake for sighting in sightings}
    hints = {mistake.name: mistake.hint for mistake in ranked if mistake.name in seen}
    return HintFile(hints, sightings)


def failures(verdicts: list[Verdict], hidden: bool, timed: Collection[str]) -> list[Verdict]:
    """The public or the hidden tests that a mistake fails, as far as they identify it."""
    failed = [verdict for verdict in verdicts if not verdict.passed and not verdict.training]
    plain = [verdict for verdict in failed if verdict.test not in timed]
    return [verdict for verdict in plain or failed if verdict.hidden == hidden]


def without_ambiguous(sightings: list[Sighting]) -> list[Sighting]:
    """The sightings that distinguish one mistake from all others, or are a mistake's only ones."""
    places: dict[tuple[str, int], list[Sighting]] = {}
    for sighting in sightings:
        places.setdefault((sighting.test, sighting.check), []).append(sighting)
    distinct = [
        sighting
        for sighting in sightings
        if not any(
            other.mistake != sighting.mistake and same_output(other.seen, sighting.seen)
            for other in places[sighting.test, sighting.check]
        )
    ]
    known = {sighting.mistake for sighting in distinct}
    return [
        sighting for sighting in sightings if sighting in distinct or sighting.mistake not in known
    ]


def outdated(stored: HintFile, fresh: HintFile) -> list[str]:
    """What of a stored hint file is no longer so: hints, tests and mistakes.

    Where a mistake makes all choices equally good, float noise decides, and that differs between
    machines. Such sightings are not found again elsewhere; a test or a mistake is out of date if
    none of its sightings is.
    """
    old, new = places(stored), places(fresh)
    again = [key for key in old.keys() & new.keys() if same_output(old[key], new[key])]
    found = [] if stored.hints == fresh.hints else ["the hints themselves"]
    known = {name for test, _, mistake in again for name in (test, mistake)}
    named = {name for test, _, mistake in old.keys() | new.keys() for name in (test, mistake)}
    return found + sorted(named - known)


def places(content: HintFile) -> dict[tuple[str, int, str], Fingerprint]:
    """What was seen, by test, check and mistake."""
    return {(entry.test, entry.check, entry.mistake): entry.seen for entry in content.sightings}
