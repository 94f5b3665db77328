"""Tests of what a proof concludes from gradings."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from autograder.authoring.lab_master import MASTER
from autograder.grading.warm.judge_messages import GradingRequest
from autograder.proving import right_versions
from autograder.proving.hints.hint_files import hint_file
from autograder.proving.margins import Margin
from autograder.proving.parallel_grader import ParallelGrader
from autograder.proving.proof_findings import HintRow, Scored
from autograder.proving.proof_jobs import ONE_SALT, ProofPlan, Scope
from autograder.proving.proof_page import proof_page
from autograder.proving.verification import (
    judge_mistake,
    judge_right,
    judge_stub,
    untold_by_training,
)
from autograder.proving.wrong_versions import mutants as mutating
from autograder.proving.wrong_versions.mutants import mutants
from autograder.zip_archive import zip_bytes
from common.errors import CourseError, Evidence
from common.testing.feedback.failure import BROKEN_TEST
from common.testing.feedback.hints import fingerprint
from common.testing.graded_tests import TRAINING, GradedTest
from tests.tooling.grading_fixtures import grade, outcome, write_tests
from tests.tooling.proving.made_up_proofs import (
    A1,
    SHOWN,
    flipped,
    mistake,
    proof,
    replies_of,
    survivors,
    verdict,
)


def test_a_mistake_must_cost_what_it_names_and_nothing_else():
    good = judge_mistake(mistake(), [verdict(passed=False), verdict("test_b", "1.3")], SHOWN)
    assert (good.problems, good.lost, good.public) == ([], {"1.2": 2.0}, ["test_a"])
    assert (good.hidden, good.hinted, good.failed) == ([], ["test_a"], {"test_a"})
    assert judge_mistake(mistake(), [verdict()], SHOWN).problems == [
        "costs nothing in 1.2",
        "no public test catches it, and it isn't marked as hidden",
    ]
    both = [verdict(passed=False), verdict("test_b", "1.3", passed=False)]
    assert judge_mistake(mistake(), both, SHOWN).problems == ["costs points in 1.3"]


def test_a_mistake_may_go_without_a_hint_but_not_with_a_wrong_one():
    caught = [verdict(passed=False), verdict("test_b", passed=False)]
    row = judge_mistake(mistake(), caught, {})
    assert (row.problems, row.hinted) == ([], [])
    row = judge_mistake(mistake(), caught, SHOWN)
    assert (row.problems, row.hinted, row.public) == ([], ["test_a"], ["test_a", "test_b"])
    row = judge_mistake(mistake(), caught, {"test_a": "of another"})
    assert row.problems == ["gets a wrong hint: of another"]


def test_a_hint_that_no_failing_test_could_show_is_a_problem():
    raised = msgspec.structs.replace(verdict(passed=False), seen=None, check=0)
    (problem,) = judge_mistake(mistake(), [raised], {}).problems
    assert problem.startswith("its hint can never be shown")
    assert judge_mistake(mistake(), [raised, verdict("test_b", passed=False)], {}).problems == []


def test_an_accident_is_a_problem_unless_the_mistake_names_it():
    text = "conv2d_forward raised a NameError.\nNameError: name 'w' is not defined"
    caught = [verdict(passed=False), verdict("test_b", passed=False, text=text)]
    problem = "fails with a NameError, which it doesn't name (`raises`)"
    assert judge_mistake(mistake(), caught, SHOWN).problems == [problem]
    assert judge_mistake(mistake(raises="NameError"), caught, SHOWN).problems == []
    (problem,) = judge_mistake(mistake(raises="AttributeError"), caught[:1], SHOWN).problems
    assert problem == "`raises` names AttributeError, which no test reports"


def test_a_mistake_that_only_hidden_tests_catch_must_say_so():
    caught = [verdict(passed=False, hidden=True)]
    assert judge_mistake(mistake(), caught, SHOWN).problems == [
        "no public test catches it, and it isn't marked as hidden"
    ]
    marked = mistake(hidden=True, reason="needs a secret seed")
    row = judge_mistake(marked, caught, SHOWN)
    assert (row.problems, row.public, row.hidden) == ([], [], ["test_a"])
    assert judge_mistake(marked, [verdict(passed=False)], SHOWN).problems == [
        "it is marked as hidden, but a public test catches it"
    ]


@pytest.fixture(scope="module")
def case():
    return ProofPlan(A1, Scope(seeds=3, mutants=False))


@pytest.mark.parametrize("name", ["reference", "alternative shifts"])
@pytest.mark.parametrize("in_lab", [False, True])
@pytest.mark.parametrize("hidden", [False, True])
def test_right_code_must_pass_every_test_under_every_salt(case, name, in_lab, hidden):
    row = judge_right(case, name, replies_of(case, name))
    salts = case.salts_of(name, 3)
    assert (row.problems, row.lowest, row.highest, row.salts) == ([], 100, 100, len(salts))
    chosen = [test for test in case.tests if (test.hidden, test.reads_lab) == (hidden, in_lab)]
    last = chosen[-1]
    flaky = last.name
    replies = replies_of(case, name, lambda test, n: n != salts[-1] or test.name != flaky)
    row = judge_right(case, name, replies)
    assert row.lowest == 100 - last.points
    assert [f"fails {flaky} under salt {salts[-1]}" in problem for problem in row.problems] == [
        True
    ]


def test_a_test_that_did_not_run_is_a_problem(case):
    replies = replies_of(case, "reference")
    replies["reference: hidden 1"].verdicts.pop()
    row = judge_right(case, "reference", replies)
    assert "75 of 76 tests ran under salt 1" in row.problems


def test_the_stub_must_fail_every_test(case):
    verdicts = [verdict(test.name, passed=False) for test in case.tests]
    assert judge_stub(case, verdicts, {}).problems == []
    verdicts[3] = verdict(case.tests[3].name)
    assert judge_stub(case, verdicts, {}).problems == [f"passes {case.tests[3].name}"]
    assert "75 of 76 tests ran" in judge_stub(case, verdicts[:-1], {}).problems[-1]


def test_the_stub_must_get_no_hint(case):
    verdicts = [verdict(test.name, passed=False) for test in case.tests[1:]]
    verdicts.append(verdict("test_a", passed=False))
    assert judge_stub(case, verdicts, SHOWN).problems == ["gets a hint at test_a"]


def test_every_grading_has_a_name_of_its_own_and_the_right_tests(case):
    jobs = case.jobs()
    right = 3 + len(case.alternatives) + 2  # salts of the reference, and of the alternatives
    in_labs = [mistake for mistake in case.mistakes if mistake.file == MASTER]
    # Public and hidden tests under three salts. The solved lab, mistakes of the lab and the stub
    # meet both at once.
    assert len(jobs) == right * 2 + 3 + 1 + 2 * len(case.mistakes) - len(in_labs)
    assert len(in_labs) == 20
    public, hidden = jobs["reference: public 2"], jobs["reference: hidden 2"]
    lab = jobs["reference: lab 2"]
    names = {test.name for test in case.tests}
    assert len(public.only) + len(hidden.only) + len(lab.only) == len(names)
    assert {*public.only, *hidden.only, *lab.only} == names == {*jobs["stub"].only}
    assert all(name.startswith("test_q") for name in lab.only)
    assert lab.salt == hidden.salt == public.salt
    for side in ("public", "hidden", "lab"):
        assert len({jobs[f"reference: {side} {n}"].salt for n in range(3)}) == 3


def test_the_reference_meets_all_salts_and_each_alternative_others(case):
    met = {name: case.salts_of(name, 20) for name in case.right_versions}
    assert met.pop("reference") == [*range(20)]
    assert len(met) == 2 and all(numbers[0] == 0 for numbers in met.values())
    others = [number for numbers in met.values() for number in numbers[1:]]
    assert sorted(others) == [*range(1, 9)] and {*map(len, met.values())} == {5}


def test_under_most_salts_only_quick_hidden_tests_are_graded():
    plan = ProofPlan(A1, Scope(seeds=6, mutants=False))
    hidden = [test for test in plan.tests if test.hidden and not test.reads_lab]
    slow = (replace(hidden[0], tags=("training",)), replace(hidden[1], tags=("timing",)))
    changed = {test.name: test for test in slow}
    plan.tests = [changed.get(test.name, test) for test in plan.tests]
    jobs = plan.jobs()
    assert {test.name for test in hidden} == {*jobs["reference: hidden 4"].only}
    slow = {test.name for test in plan.tests if {"training", "timing"} & {*test.tags}}
    assert changed.keys() < slow
    assert [test.name for test in hidden if test.name not in slow] == [
        *jobs["reference: hidden 5"].only
    ]
    assert not {"reference: public 5", "reference: lab 5"} & {*jobs}
    assert judge_right(plan, "reference", replies_of(plan, "reference")).problems == []


def test_public_tests_that_train_are_graded_under_one_salt_and_count_for_all():
    plan = ProofPlan(A1, Scope(seeds=3, mutants=False))
    plan.tests = [replace(plan.tests[0], tags=("training",)), *plan.tests[1:]]
    trained, jobs = plan.tests[0].name, plan.jobs()
    named = [job for job in jobs if job.startswith("reference:") and trained in jobs[job].only]
    assert named == ["reference: training 0"]
    assert judge_right(plan, "reference", replies_of(plan, "reference")).problems == []
    replies = replies_of(plan, "reference", lambda test, number: test.name != trained)
    row = judge_right(plan, "reference", replies)
    assert [f"fails {trained} under salt 0" in problem for problem in row.problems] == [True]
    assert row.highest == 100 - plan.tests[0].points


@pytest.mark.parametrize("tag", ["training", "timing"])
def test_slow_and_timed_tests_grade_only_the_mistakes_that_name_their_exercise(case, tag):
    fresh = ProofPlan(A1, Scope(seeds=1, mutants=False))
    fresh.tests = [replace(fresh.tests[0], tags=(tag,), exercise="1.1"), *fresh.tests[1:]]
    name = fresh.tests[0].name
    for trained in (False, True):
        other, named = (mistake(exercises=[e], trained=trained) for e in ("1.2", "1.1"))
        assert name not in fresh.tests_for(other, hidden=False)
        assert (name in fresh.tests_for(named, hidden=False)) == (trained or tag == "timing")


def test_each_test_that_trains_must_be_failed_by_a_mistake():
    plan = ProofPlan(A1, Scope(seeds=1, mutants=False))
    first, second = (replace(test, tags=("training",)) for test in plan.tests[:2])
    plan.tests = [first, second, *plan.tests[2:]]
    rows = [flipped({"1.1": 2.0}, [first.name])]
    assert untold_by_training(plan, rows) == [
        f"no mistake fails {second.name}: mark one that does as trained"
    ]
    plan.tests[1] = replace(second, tags=("training", "gpu"))
    assert untold_by_training(plan, rows) == []
    plan.tests[1], plan.scope = second, ONE_SALT
    assert untold_by_training(plan, rows) == []


@pytest.fixture(scope="module")
def found():
    """The mutants of assignment 1, which take a while to make."""
    return mutants(A1)


def test_a_mistake_that_breaks_a_test_itself_is_a_problem():
    broken = [verdict(passed=False, text=f"{BROKEN_TEST}\nTypeError: no")]
    assert judge_mistake(mistake(), broken, SHOWN).problems == ["breaks test_a itself"]


def test_a_part_of_a_proof_does_not_say_that_the_graders_hold():
    assert "The graders hold" in proof_page([proof()])
    few = [Scored("reference", 1, 66, 100.0, 100.0, [])]
    for part in (proof(noticed={}), proof(scored=few)):
        assert "only a part of the proof was run" in proof_page([part])


def test_mutants_are_distinct_lie_in_solutions_and_are_not_the_reference(found):
    assert len(found) > 200
    assert len({mutant.name for mutant in found}) == len(found)
    reference = right_versions.reference(A1)["convolution.py"]
    assert all(mutant.source != reference and mutant.change for mutant in found)
    functions = {name for exercise in A1.exercises for name in exercise.functions}
    assert {mutant.function for mutant in found} == functions


def test_the_same_change_at_two_places_makes_two_mutants(monkeypatch):
    source = b"""def f(x):
    # BEGIN SOLUTION
    x = x + 1
    x = x + 1
    return x
    # END SOLUTION
"""
    monkeypatch.setattr(mutating, "reference", lambda assignment: {"a.py": source})
    found = [mutant for mutant in mutants(A1) if mutant.change == "- x = x + 1\n+ x = x - 1"]
    assert [mutant.line for mutant in found] == [3, 4]
    assert found[1].name == f"{found[0].name}+1"


def test_a_proof_without_problems_holds():
    assert proof().all_problems == []
    assert proof(survivors=survivors(5)).all_problems == []  # 100 of 105 are noticed


def test_too_many_survivors_are_a_problem_unless_they_are_explained():
    assert proof(survivors=survivors(6)).all_problems == ["only 94.3% of the mutants are killed"]
    assert proof(survivors=survivors(60, "the same for every size")).all_problems == []


def test_every_kind_of_problem_is_listed():
    bad = proof(
        problems=["too few mistakes"],
        scored=[Scored("reference", 1, 66, 98.0, 98.0, ["fails test_a"])],
        mistakes=[flipped(lost={}, public=[], problems=["costs nothing in 1.2"])],
        margins=[Margin("test_a", 1e-9, 1e-9, None)],
        hints=[HintRow("mutant x", [["flipped", "other"]], "wrong"), HintRow("y", [], "right")],
    )
    listed = "\n".join(bad.all_problems)
    for part in ("too few mistakes", "reference: fails test_a", "flipped: costs nothing"):
        assert part in listed
    assert "correct code has error 1.0e-09" in listed
    assert "mutant x gets a wrong hint: that of flipped or other" in listed
    assert "only 0.0% of the mistakes get their own hint" in listed
    assert len(bad.all_problems) == 6


def test_the_page_is_self_contained_and_escapes_what_it_shows():
    page = proof_page([proof(survivors=survivors(1))])
    assert "Convolution &lt;b&gt;" in page
    assert "<b>flipped" not in page
    assert 'name="viewport"' in page
    for outside in ("http://", "https://", "<script src", "<link"):
        assert outside not in page


def test_a_fault_of_the_machinery_stops_the_proof_and_is_no_failed_test(tmp_path):
    judge = b"import sys\nprint('out of salt', file=sys.stderr)\n"
    archive = tmp_path / "grader.zip"
    archive.write_bytes(zip_bytes({"autograder/grading/warm/warm_judge.py": judge}))
    with (
        ParallelGrader(archive, "a1", size=1) as grader,
        pytest.raises(CourseError, match=r"mutant x: the judge died twice \(out of salt\)"),
    ):
        grader.run([("mutant x", GradingRequest({}, ""))], lambda name, reply: None)


def test_a_patient_test_compares_all_and_fails_by_the_first_wrong_value(tmp_path):
    public = """
        @weight(1)
        @number("1.1")
        def test_two(student):
            "Two comparisons."
            assert_close(1.0, 2.0, what="first")
            assert_close(1.0, 4.0, what="second")
        """
    tests = write_tests(tmp_path, public)
    for compare_all, errors in ((True, [0.5, 0.75]), (False, [0.5])):
        ended = outcome(grade("", tests=tests, compare_all=compare_all), "test_two")
        assert [compared.error for compared in ended.compared] == errors
        assert ended.explanation.sentence == "first is wrong."


def test_training_has_no_say_in_hints():
    """So that the proof in `make test`, which trains no mistakes, records the same hints."""
    failed = verdict(passed=False)
    trained = msgspec.structs.replace(failed, test="test_learns", training=True)
    other = msgspec.structs.replace(failed, test="test_b")
    tests = [
        GradedTest(name, "1.2", 1, False, "", "visible", tags)
        for name, tags in (("test_a", ()), ("test_b", ()), ("test_learns", (TRAINING,)))
    ]
    both = [mistake(name="a"), mistake(name="b")]
    quick = hint_file(both, {"a": [failed], "b": [other]}, tests, hidden=False)
    whole = hint_file(both, {"a": [failed, trained], "b": [other]}, tests, hidden=False)
    assert quick == whole
    assert [(*known.failed, *known.unknown) for known in whole.mistakes.values()] == [
        ("test_a", "test_learns"),
        ("test_b", "test_learns"),
    ]


def test_what_other_mistakes_give_too_says_less():
    """Unless they look the same in the whole exercise."""
    tests = [GradedTest(f"test_{x}", "1.2", 1, False, "", "visible") for x in "abc"]
    number = fingerprint(Evidence(1, np.array([0.123456]), ""))
    ended = {
        "first": ["test_a"],
        "twin": ["test_a"],
        "third": ["test_a", "test_b"],
    }
    verdicts = {
        name: [msgspec.structs.replace(verdict(test, passed=False), seen=number) for test in failed]
        for name, failed in ended.items()
    }
    found = hint_file([mistake(name=name) for name in ended], verdicts, tests, hidden=False)
    assert found.mistakes["first"].failed["test_a"].bits == 1.0  # one of three gives it too
    assert found.mistakes["third"].failed["test_b"].bits == number.bits
    without = {name: verdicts[name] for name in ("first", "twin")}
    found = hint_file([mistake(name=name) for name in without], without, tests, hidden=False)
    assert found.mistakes["first"].failed["test_a"].bits == number.bits
