"""Tests of which hints are shown: those of mistakes that explain all that was seen."""

import numpy as np
import pytest

from common.errors import Evidence
from common.testing.feedback.diagnosis import Diagnosis, Ended, Hints
from common.testing.feedback.hints import HintFile, KnownMistake, Sighting, fingerprint

ARRAY = np.random.default_rng(0).normal(size=(3, 4))
TESTS = ["test_a", "test_b", "test_c", "test_d", "test_slow"]
GROUPS = dict(zip(TESTS, ["1.2", "1.2", "1.2", "1.1", "1.2"], strict=True))


def seen(value, text=""):
    return fingerprint(Evidence(3, value, text))


def mistake(hint, unknown=("test_slow",), **failed):
    """A mistake that gave these values in tests: failing in test_a with ARRAY is a=ARRAY."""
    sightings = {}
    for test, value in failed.items():
        found = None if value is None else seen(value)
        sightings[f"test_{test}"] = Sighting(3 if found else 0, found, found.bits if found else 0)
    return KnownMistake(hint, sightings, [*unknown])


def shown(known, left_out=(), needs=None, **ended):
    """The hints of a submission whose tests gave these values; "passed" for those that passed."""
    hints = Hints([HintFile(TESTS, {m.hint: m for m in known})])
    diagnosis = Diagnosis(hints, needs or {"1.2": ["1.1"]})
    for name, value in ended.items():
        test = f"test_{name}"
        if isinstance(value, str):
            diagnosis.add(Ended(test, GROUPS[test], passed=True))
        elif value is None:
            diagnosis.add(Ended(test, GROUPS[test], passed=False))
        else:
            diagnosis.add(Ended(test, GROUPS[test], False, 3, seen(value)))
    return diagnosis.shown(left_out)


def test_a_mistake_that_explains_everything_is_named_at_the_tests_that_it_fails():
    known = [mistake("flipped", a=ARRAY, b=2 * ARRAY)]
    found = shown(known, a=ARRAY, b=2 * ARRAY, c="passed", d="passed")
    assert found == {"test_a": "flipped", "test_b": "flipped"}


@pytest.mark.parametrize(
    "ended",
    [
        {"a": ARRAY, "b": "passed"},  # a test passes that the mistake fails
        {"a": ARRAY, "b": 2 * ARRAY, "c": ARRAY},  # another one fails
        {"a": ARRAY, "b": 3 * ARRAY},  # another output
        {"a": ARRAY, "b": None},  # an exception where there was an output
        {"a": 3 * ARRAY, "b": 2 * ARRAY},
    ],
)
def test_a_mistake_that_does_not_explain_everything_is_not_named(ended):
    assert shown([mistake("flipped", a=ARRAY, b=2 * ARRAY)], **ended) == {}


def test_only_tests_that_ran_count():
    assert shown([mistake("flipped", a=ARRAY, b=2 * ARRAY)], a=ARRAY) == {"test_a": "flipped"}


def test_tests_that_depend_on_the_machine_say_nothing():
    known = [mistake("flipped", a=ARRAY)]
    for slow in (ARRAY, "passed", None):
        assert shown(known, a=ARRAY, slow=slow) == {"test_a": "flipped"}


def test_an_output_that_says_little_is_not_enough_alone():
    half = np.array(0.5)
    assert shown([mistake("halved", a=half)], a=half, b="passed", c="passed") == {}
    assert shown([mistake("raises", a=None)], a=None, b="passed", c="passed") == {}
    known = [mistake("halved", a=half, b=ARRAY)]
    assert shown(known, a=half, b=ARRAY) == {"test_a": "halved", "test_b": "halved"}


def test_of_two_mistakes_that_look_the_same_both_are_named_and_of_three_none():
    first, second, third = (mistake(name, a=ARRAY) for name in ("first", "second", "third"))
    assert shown([first, second], a=ARRAY) == {"test_a": "one of these two. first Or: second"}
    assert shown([first, second, third], a=ARRAY) == {}
    more = mistake("second", a=ARRAY, b=ARRAY)
    assert shown([first, more], a=ARRAY, b="passed") == {"test_a": "first"}


def test_a_failure_that_a_needed_exercise_causes_gets_no_hint_of_its_own():
    own = mistake("of 1.2", a=ARRAY)
    assert shown([own], a=ARRAY, d=ARRAY) == {}
    assert shown([own], a=ARRAY, d=ARRAY, needs={"1.2": []}) == {"test_a": "of 1.2"}
    both = mistake("of 1.1", a=ARRAY, d=2 * ARRAY)
    everything = {"test_a": "of 1.1", "test_d": "of 1.1"}
    assert shown([own, both], a=ARRAY, d=2 * ARRAY) == everything
    assert shown([own, both], a=ARRAY, d="passed") == {"test_a": "of 1.2"}


def test_exercises_that_are_not_complete_are_left_out():
    assert shown([mistake("flipped", a=ARRAY)], left_out={"1.2"}, a=ARRAY) == {}


def test_tests_that_a_hint_file_does_not_know_say_nothing():
    hints = Hints([HintFile(["test_a"], {"x": mistake("x", a=ARRAY)})])
    diagnosis = Diagnosis(hints, {})
    diagnosis.add(Ended("test_a", "1.2", False, 3, seen(ARRAY)))
    diagnosis.add(Ended("test_new", "1.2", False, 3, seen(ARRAY)))
    assert diagnosis.shown() == {"test_a": "x"}


def test_what_a_test_gave_last_counts():
    diagnosis = Diagnosis(Hints([HintFile(TESTS, {"x": mistake("x", a=ARRAY)})]), {})
    diagnosis.add(Ended("test_a", "1.2", False, 3, seen(ARRAY)))
    diagnosis.add(Ended("test_a", "1.2", True))
    assert diagnosis.shown() == {}


def test_public_and_hidden_files_make_one_mistake():
    files = [
        HintFile(["test_a"], {"x": mistake("x", a=ARRAY)}),
        HintFile(["test_b"], {"x": mistake("x", b=2 * ARRAY)}),
    ]
    hints = Hints(files)
    assert [*hints.mistakes["x"].failed] == ["test_a", "test_b"]
