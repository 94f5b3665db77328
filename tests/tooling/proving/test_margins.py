"""Tests of the distances that a tolerance must keep from correct and wrong code."""

import pytest

from autograder.proving.margins import Margin, margins
from tests.tooling.proving.made_up_proofs import verdict


@pytest.mark.parametrize(
    ("noise", "nearest", "problem"),
    [
        (1e-12, 1e-3, ""),
        (2e-10, 1e-3, "correct code has error 2.0e-10"),
        (1e-12, 5e-9, "a mistake has error 5.0e-09"),
        (1e-12, None, "no mistake exceeds"),
    ],
)
def test_a_tolerance_must_keep_its_distance_on_both_sides(noise, nearest, problem):
    assert problem in Margin("test_a", 1e-9, noise, nearest).problem
    assert bool(problem) == bool(Margin("test_a", 1e-9, noise, nearest).problem)


def test_margins_take_the_largest_noise_and_the_nearest_mistake():
    right = [verdict(compared=((1e-15, 1e-9), (3e-15, 1e-9))), verdict(compared=((2e-7, 1e-4),))]
    wrong = [
        verdict(passed=False, compared=((0.0, 1e-9), (0.5, 1e-9))),
        verdict(passed=False, compared=((0.2, 1e-9),)),
        verdict(passed=False, compared=((float("inf"), 1e-9),)),
        verdict(passed=True, compared=((1e-15, 1e-9),)),
        verdict(passed=True, compared=((5e-12, 1e-9),)),  # float noise of wrong code
    ]
    assert margins(right, [[version] for version in wrong]) == [
        Margin("test_a", 1e-9, 3e-15, 0.2),
        Margin("test_a", 1e-4, 2e-7, 0.2),
    ]


def test_a_coarse_comparison_behind_a_fine_one_is_judged_by_what_the_fine_one_caught():
    right = [verdict(compared=((1e-15, 1e-9), (2e-7, 1e-4)))]
    little = [verdict(passed=False, compared=((5e-4, 1e-9),))]
    assert [margin.nearest for margin in margins(right, [little])] == [5e-4, None]
    plainly = [verdict(passed=False, compared=((2e-3, 1e-9),))]
    assert [margin.nearest for margin in margins(right, [little, plainly])] == [5e-4, 2e-3]


def test_a_mistake_that_a_tolerance_swallows_is_a_problem():
    swallowed = verdict(passed=True, compared=((5e-10, 1e-9),))
    right = [verdict(compared=((1e-15, 1e-9),))]
    (margin,) = margins(right, [[swallowed]])
    assert margin.nearest == 5e-10
    assert "a mistake has error 5.0e-10" in margin.problem


def test_a_mistake_needs_one_comparison_in_each_exercise_that_catches_it_plainly():
    right = [verdict(compared=((1e-15, 1e-9),))]
    little, plain = ((4e-9, 1e-9),), ((0.5, 1e-9),)
    near = verdict(passed=False, compared=little)
    assert margins(right, [[near]])[0].nearest == 4e-9
    same_test = verdict(passed=False, compared=(*little, *plain))
    assert margins(right, [[same_test]])[0].nearest == 0.5
    same_exercise = verdict(test="test_b", passed=False, compared=plain)
    assert margins(right, [[near, same_exercise]])[0].nearest is None
    by_words = verdict(test="test_b", passed=False, compared=())
    assert margins(right, [[near, by_words]])[0].nearest is None
    elsewhere = verdict(test="test_b", exercise="1.9", passed=False, compared=plain)
    assert margins(right, [[near, elsewhere]])[0].nearest == 4e-9


def test_what_passed_on_stand_ins_alone_counts_as_caught():
    right = [verdict(compared=((1e-15, 1e-9),))]
    near = verdict(passed=True, text="with yours: wrong", compared=((4e-9, 1e-9),))
    plain = verdict(test="test_b", passed=True, text="so, too", compared=((0.5, 1e-9),))
    elsewhere = verdict(test="test_c", exercise="1.9", passed=False, compared=((0.5, 1e-9),))
    assert margins(right, [[near, plain, elsewhere]])[0].nearest is None


@pytest.mark.parametrize(("error", "nearest"), [(5e-11, None), (5e-10, 5e-10)])
def test_an_exercise_that_a_mistake_costs_nothing_must_be_far_from_noticing_it(error, nearest):
    right = [verdict(compared=((1e-15, 1e-9),))]
    here = verdict(passed=True, compared=((error, 1e-9),))
    elsewhere = verdict(test="test_b", exercise="1.9", passed=False, compared=((0.5, 1e-9),))
    assert margins(right, [[here, elsewhere]])[0].nearest == nearest


def test_an_exact_comparison_needs_no_margin():
    assert Margin("test_a", 0.0, 0.0, None).problem == ""
