"""Tests of hints and relations: words for a known mistake, and none for an unknown one."""

import numpy as np
import pytest
from msgspec.structs import replace

from autograder.proving.hints.hint_files import outdated
from common.check_log import LOG
from common.errors import Evidence, Explanation, Failure
from common.testing.compare import assert_close, check
from common.testing.feedback.failure import StudentCall, mark_as_students
from common.testing.feedback.hints import (
    HintFile,
    KnownMistake,
    Sighting,
    evidence_of,
    fingerprint,
    hint_bytes,
    read_hints,
    same_output,
)
from common.testing.feedback.relations import relation

AXES = ("image", "channel", "row", "column")


def seen(value, text=""):
    return fingerprint(Evidence(3, value, text))


@pytest.fixture
def array():
    return np.random.default_rng(0).normal(size=(2, 3, 4, 5))


def test_the_same_output_is_recognized_and_float_noise_does_not_matter(array):
    noisy = array * (1 + 1e-12)
    assert same_output(seen(array), seen(noisy))


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_what_rounding_leaves_over_is_the_same_however_much_it_is(kind):
    left_over = np.finfo(kind).eps * np.array([2.0, 0.0, -4.0], kind)
    assert same_output(seen(left_over), seen(left_over[::-1]))
    assert same_output(seen(np.zeros(3, kind)), seen(left_over))
    assert not same_output(seen(np.zeros(3, kind)), seen(1e6 * left_over))


def test_numbers_far_below_all_rounding_are_meant():
    assert same_output(seen(np.array([2.5e-300])), seen(np.array([2.5e-300])))
    assert not same_output(seen(np.array([2.5e-300])), seen(np.array([2.75e-300])))
    assert not same_output(seen(None, "a rate of 2.5e-300"), seen(None, "a rate of 2.75e-300"))


@pytest.mark.parametrize("change", ["one value", "last value of many", "shape", "dtype", "nan"])
def test_another_output_is_not_recognized(array, change):
    other = array.copy()
    if change == "one value":
        other[1, 2, 3, 4] += 1e-3
    elif change == "last value of many":  # beyond the values that are kept
        array = np.arange(5000.0)
        other = array.copy()
        other[-1] += 500
    elif change == "shape":
        other = other.reshape(3, 2, 4, 5)
    elif change == "dtype":
        other = other.astype(np.float32)
    else:
        other[0, 0, 0, 0] = np.nan
    assert not same_output(seen(array), seen(other))


@pytest.mark.filterwarnings("error")
def test_numbers_too_large_for_float32_give_no_warning(array):
    assert same_output(seen(1e300 * array), seen(1e300 * array))


def test_integers_must_be_equal():
    assert same_output(seen(np.array([1, 2])), seen(np.array([1, 2])))
    assert not same_output(seen(np.array([1, 2])), seen(np.array([1, 3])))


def test_what_was_said_is_compared_where_there_was_no_array():
    assert same_output(seen(None, "x changes"), seen(None, "x changes"))
    assert not same_output(seen(None, "x changes"), seen(None, "w changes"))
    assert not same_output(seen(None, "x"), seen(np.zeros(1)))


@pytest.mark.parametrize(
    ("here", "there", "alike"),
    [
        ("In one go: [1.9315085232668312, 7]", "In one go: [1.9315085232668399, 7]", True),
        ("a score of -18.4207, not -1", "a score of -18.4206, not -1", True),
        ("off by 4.4e-16", "off by -8.9e-16", True),
        ("off by 1e-16", "off by 0.0", True),
        ("off by 1.5e-3", "off by 1.5e-4", False),
        ("a score of 1.93", "a score of -1.93", False),
        ("a score of 1.93", "a score of 1.92", False),
        ("step 1000 of 1000", "step 1001 of 1000", False),
    ],
)
def test_numbers_that_were_said_count_as_far_as_machines_agree(here, there, alike):
    assert same_output(seen(None, here), seen(None, there)) == alike


def test_millions_of_digits_do_not_hold_up_the_judge():
    digits = 1_000_000 * "9"  # with a pattern that tries each of them anew, this takes hours
    assert not same_output(seen(None, digits), seen(None, f"{digits}.5"))


@pytest.fixture
def content(array):
    """What two mistakes gave in two tests."""
    return HintFile(
        ["test_a", "test_b"],
        {
            name: KnownMistake(
                f"the hint of {name}",
                {test: Sighting(3, seen(factor * array), 9.0) for test in ("test_a", "test_b")},
                [],
            )
            for factor, name in enumerate(("one", "two"), start=1)
        },
    )


def test_hints_are_read_as_they_were_written_and_give_the_same_bytes(content, tmp_path):
    (tmp_path / "public.hints").write_bytes(hint_bytes(content))
    assert read_hints(tmp_path / "public.hints") == content
    assert hint_bytes(content) == hint_bytes(content)


def test_a_damaged_empty_or_missing_hint_file_costs_no_grade(tmp_path):
    (tmp_path / "public.hints").write_bytes(b"damaged")
    (tmp_path / "empty.hints").write_bytes(hint_bytes(HintFile([], {})))
    for name in ("public", "empty", "missing"):
        assert read_hints(tmp_path / f"{name}.hints") == HintFile([], {})


@pytest.mark.parametrize(
    ("value", "little"),
    [
        (np.array(0.5), True),
        (np.array(1 / 3), True),
        (np.array([1, 2, 3]), True),
        (np.array([True, False, False]), True),
        (np.zeros(100), True),
        (np.array(0.731902), False),
        (np.array(1216), False),
        (np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]), False),
        (np.random.default_rng(0).normal(size=4), False),
    ],
)
def test_few_plain_values_say_little(value, little):
    assert (seen(value).bits < 3) == little


def test_a_short_text_says_less_than_one_with_numbers():
    assert seen(None, "x changes").bits < 3 < seen(None, "got 1.9315, expected 2.718").bits


def test_the_size_of_a_fingerprint_is_bounded():
    assert len(seen(np.zeros(10**6)).values) <= 4 * 1024


def test_a_failed_comparison_carries_its_output_and_its_place():
    LOG.clear()
    check(True, "fine")
    assert_close(np.ones(3), np.ones(3))
    before = LOG.checks
    with pytest.raises(Failure) as error:
        assert_close(np.array([1.0, 2.0, 3.0]), np.ones(3))
    evidence = evidence_of(error.value)
    assert evidence.check > before > 1
    assert evidence.value.tolist() == [1, 2, 3]
    assert [entry.tolerance for entry in LOG.compared] == [1e-9, 1e-9]


def test_an_exception_is_no_evidence_for_the_same_one_has_many_causes():
    error = IndexError("too far")
    mark_as_students(error, StudentCall("im2col", ""))
    assert evidence_of(error) is None


@pytest.mark.parametrize("left, right", [(np.nan, np.inf), (np.inf, -np.inf)])
def test_what_is_not_finite_must_be_the_same_too(left, right):
    assert same_output(seen(np.array([1.0, left])), seen(np.array([1.0, left])))
    assert not same_output(seen(np.array([1.0, left])), seen(np.array([1.0, right])))


def test_the_order_of_values_that_are_not_kept_counts():
    array = np.arange(5000.0)
    assert not same_output(seen(array), seen(np.concatenate([array[:1024], array[:1023:-1]])))


def changed(content, name, test, sighting):
    """The file with another sighting of a mistake; without one where it is None."""
    known = content.mistakes[name]
    failed = {**known.failed, test: sighting}
    failed = {test: sighting for test, sighting in failed.items() if sighting}
    return replace(content, mistakes=content.mistakes | {name: replace(known, failed=failed)})


def test_hints_are_current_where_noise_decides_one_of_the_sightings(content):
    elsewhere = Sighting(3, seen(np.zeros(2)))
    assert outdated(content, changed(content, "one", "test_a", elsewhere)) == []


def test_hints_are_out_of_date_without_a_sighting_of_a_test_or_a_mistake(content):
    elsewhere = Sighting(4, seen(np.zeros(2)))
    moved = changed(changed(content, "one", "test_a", elsewhere), "two", "test_a", elsewhere)
    assert outdated(content, moved) == ["test_a"]
    moved = changed(changed(content, "two", "test_a", elsewhere), "two", "test_b", elsewhere)
    assert outdated(content, moved) == ["two"]
    assert outdated(content, changed(content, "one", "test_a", None)) == ["one"]
    other = replace(content.mistakes["one"], hint="another")
    reworded = replace(content, mistakes=content.mistakes | {"one": other})
    assert outdated(content, reworded) == ["the hints themselves"]
    assert outdated(content, replace(content, tests=["test_a"])) == ["the tests"]


def test_right_for_one_only_means_wrong_for_all_others(array):
    wrong = array.copy()
    wrong[:, 2] = 0
    assert "first" not in relation(wrong, array, AXES)


def test_a_hidden_failure_shows_relation_and_hint_but_no_values():
    reported = Explanation("wrong", "got 3.14159", "backwards", "try this", "the hint")
    assert (
        reported.text(hidden=True)
        == "wrong\nbackwards\ntry this\nYour output matches a known mistake: the hint"
    )
    assert "3.14159" in reported.text(hidden=False)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda e: e.swapaxes(2, 3), "except for the order of its axes"),
        (lambda e: -e, "opposite sign"),
        (lambda e: 0.5 * e, "constant factor of 0.5"),
        (lambda e: e + 2, "off by a constant"),
        (lambda e: e[..., ::-1], "reversed along the column axis"),
        (lambda e: e[..., ::-1, ::-1], "reversed along the row and column axes"),
        (
            lambda e: np.concatenate([e[:, :1], 0 * e[:, 1:]], 1),
            "correct for the first channel only",
        ),
        (lambda e: np.pad(e[..., 1:-1, 1:-1], [(0, 0)] * 2 + [(1, 1)] * 2), "except at the border"),
        (lambda e: 0 * e, "all zeros"),
        (lambda e: np.roll(e, 1, 2), "shifted by one along the row axis"),
    ],
)
def test_simple_relations_are_reported(array, make, sentence):
    assert sentence in relation(make(array), array, AXES)


def test_a_factor_that_could_carry_an_input_is_not_reported(array):
    assert relation(0.5 * array, array, None) == "It is off by a constant factor of 0.5."
    assert relation(0.651585 * array, array, None) == "It is off by a constant factor."


def test_no_relation_is_reported_where_none_holds(array):
    other = np.random.default_rng(1).normal(size=array.shape)
    assert relation(other, array, AXES) == ""
    assert relation(np.zeros(4), np.zeros(4), None) == ""
    assert relation(np.ones(1), np.full(1, 2.0), None) == ""
    assert relation(array[:1], array, AXES) == ""


def test_nothing_is_said_of_relations_that_mislead():
    array = np.random.default_rng(3).normal(size=(4, 5))
    assert relation(array * (1 + 1e-8), array, AXES[-2:]) == ""  # "a constant factor of 1"
    border = array.copy()
    border[0] += 1
    assert relation(border, array, ("image", "class")) == ""
    assert "border" in relation(border, array, ("row", "column"))
    last = array + 1.5 * np.arange(4)[::-1, None] ** 2
    assert relation(last, array, None) == ""
    assert relation(last, array, ("image", "class")) == "It is correct for the last image only."
    some = np.random.default_rng(4).normal(size=(2, 3, 4))
    other = some.copy()
    other[0, 1] += 1  # in each sequence another query is wrong
    other[1, 2] *= 2
    assert relation(other, some, ("sequence", "query", "feature")) == ""
    other[:, 1:] += some[:, 1:] ** 2 + 1
    assert "first query only" in relation(other, some, ("sequence", "query", "feature"))


def test_nothing_is_said_that_holds_by_chance_on_few_values(array):
    """Cases that were seen: a forget bias in another block, one right sequence of two."""
    blocks = np.repeat([0.0, 1.0, 0.0, 0.0], 4)
    assert relation(np.repeat([0.0, 0.0, 1.0, 0.0], 4), blocks, ("column",)) == ""
    assert relation(np.array([2.0, 4.0]), np.array([1.0, 2.0]), None) == ""
    assert relation(np.array([1, 2, 0]), np.array([0, 1, 2]), None) == ""
    last = array.copy()
    last[0] += 1 + array[0] ** 2
    assert relation(last, array, ("sequence", "step", "row", "column")) == ""
    partly = np.random.default_rng(1).normal(size=(4, 5, 6))
    wrong = partly.copy()
    wrong[:3, 3:] = 0  # the last sequence has no padding
    assert relation(wrong, partly, ("sequence", "step", "unit")) == ""
