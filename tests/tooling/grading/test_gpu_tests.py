"""Tests of tests that need a GPU: without one they are reported as not run, never as passed."""

import io
from dataclasses import replace

import msgspec
import pytest
from rich.console import Console

from autograder.commands.proving_commands import facts
from autograder.commands.release_command import table
from autograder.grading.sandbox.fork_client import ForkServerClient
from autograder.grading.terminal import print_result
from autograder.grading.warm import warm_judge
from autograder.packaging.rehearsal import Rehearsal
from autograder.packaging.zip_build import build
from autograder.proving.proof_jobs import ProofPlan, Scope
from autograder.proving.verification import judge_right, judge_stub
from autograder.release import zip_check
from autograder.release.up_to_date import Row
from autograder.semester import PRACTICE
from common.assignment import ROOT
from common.errors import CourseError
from common.testing import cuda
from common.testing.graded_tests import read_graded_tests
from tests.tooling.grading.test_results import read_checked
from tests.tooling.grading_fixtures import grade, outcome, write_tests
from tests.tooling.proving.made_up_proofs import A1, mistake, proof, replies_of, verdict
from tests.tooling.scratch_copies import copy_repo, python

ON_A_GPU = '''
@weight(2)
@number("1.1")
def test_trial_one(student):
    """one is 1."""
    assert_equal(student.one(), 1, what="one")


@weight(3)
@number("1.2")
@tags("gpu")
def test_trial_fast(student):
    """one is 1 on a GPU too."""
    assert_equal(student.one(), 1, what="one")
'''
ONE = "def one():\n    return 1\n"
SENTENCE = (
    "Not run here: no GPU. A TA runs it on a machine with a GPU: "
    "`python -m autograder grade a1 SUBMISSION --gpu`."
)


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("there", [False, True])
def test_without_being_asked_the_judge_does_not_run_them(tmp_path, monkeypatch, direct, there):
    monkeypatch.setattr(cuda, "available", lambda: there)
    out = tmp_path / "results.json"
    result = grade(ONE, out=out, direct=direct, tests=write_tests(tmp_path, ON_A_GPU))
    one, fast = read_checked(out)["tests"]
    assert (one["status"], one["score"], one["extra_data"]["ran"]) == ("passed", 2, True)
    assert (fast["status"], fast["score"], fast["max_score"]) == ("failed", 0, 3)
    assert fast["extra_data"] == {"test": "test_trial_fast", "ran": False}
    assert fast["output"].endswith(SENTENCE)
    assert (result.score, result.maximum, result.not_run, result.finished) == (2, 5, 3, True)
    console = Console(file=io.StringIO(), width=200)
    print_result(result, console)
    assert "Tests worth 3 of them were not run: no GPU." in console.file.getvalue()


def test_nothing_but_such_a_test_is_a_result_too(tmp_path):
    only = "\n\n@weight(3)" + ON_A_GPU.partition("@weight(3)")[2]
    result = grade(ONE, tests=write_tests(tmp_path, only))
    assert not outcome(result, "test_trial_fast").ran and result.finished


def test_with_a_gpu_they_run_and_the_child_may_reach_it(tmp_path, monkeypatch):
    plans = []
    ask = ForkServerClient.ask

    def listen(self, request, descriptors=()):
        plans.append(request.get("plan"))
        return ask(self, request, descriptors)

    monkeypatch.setattr(ForkServerClient, "ask", listen)
    monkeypatch.setattr(cuda, "available", lambda: True)
    tests = write_tests(tmp_path, ON_A_GPU)
    for gpu in (True, False):
        plans.clear()
        result = grade(ONE, tests=tests, gpu=gpu)
        assert outcome(result, "test_trial_fast").passed is gpu
        assert {plan.limits.gpu for plan in plans if plan} == {gpu}


def test_asking_for_a_gpu_where_there_is_none_is_one_sentence(tmp_path):
    arguments = ("grade", "a1", "assignments/a1_convolution", "--gpu")
    result = python("-m", "autograder", *arguments, cwd=ROOT, env={"CUDA_VISIBLE_DEVICES": ""})
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "--gpu: PyTorch finds no usable GPU on this machine.\n"


def test_in_a_students_pytest_they_are_not_run_and_their_points_are_named(tmp_path):
    root = copy_repo(tmp_path / "repo")
    head = (
        "\n\nfrom gradescope_utils.autograder_utils.decorators import tags  # noqa: E402\n"
        "from common.testing.compare import assert_equal  # noqa: E402\n\n"
    )
    added = head + ON_A_GPU.partition("@weight(3)")[0].replace("student.one()", "1")
    added += "@weight(3)" + ON_A_GPU.partition("@weight(3)")[2].replace("student.one()", "1")
    file = root / "tests" / "a1_convolution" / "test_public.py"
    file.write_text(file.read_text("utf-8") + added, "utf-8")
    hidden = root / "tests" / "a1_convolution" / "test_hidden.py"
    hidden.write_text(hidden.read_text("utf-8") + added.replace("test_", "test_hidden_"), "utf-8")
    chosen = ("-m", "pytest", "-k", "test_trial or test_hidden_trial_fast")
    for options in ((), ("-rs",), ("--tb=long",)):
        result = python(*chosen, *options, cwd=root, env={"CUDA_VISIBLE_DEVICES": ""})
        assert "1 passed, 1 skipped" in result.stdout, result.stdout
        assert "2 of 2 points in this run. Hidden tests decide 44 more." in result.stdout
        assert "3 points need a GPU, and this machine has none." in result.stdout
    files = ("tests/a1_convolution/test_public.py", "tests/a1_convolution/test_hidden.py")
    both = python(*chosen, *files, cwd=root, env={"CUDA_VISIBLE_DEVICES": ""}).stdout
    assert "1 passed, 2 skipped" in both, both
    assert "2 of 2 points in this run. Hidden tests decide 41 more." in both
    assert "6 points need a GPU" in both


GRADED_TESTS = read_graded_tests(ROOT / "tests" / A1.name)
FIRST = GRADED_TESTS[0]
GPU_ROSTER = [replace(FIRST, tags=("gpu",)), *GRADED_TESTS[1:]]
REST = 100 - FIRST.points


def rehearsal(side, ran=True, lost=()):
    """What a zip says of the reference or of the stub, in which the first test ran or didn't."""
    passed = {test.name for test in GRADED_TESTS if side == "solutions"} - {*lost}
    tests = [
        {
            "name": test.label,
            "score": test.points if test.name in passed and (ran or test != FIRST) else 0,
            "max_score": test.points,
            "output": "the reason",
            "extra_data": {"test": test.name, "ran": ran or test != FIRST},
        }
        for test in GRADED_TESTS
    ]
    return Rehearsal({"tests": tests, "extra_data": {"finished": True}, "output": ""}, "")


def test_a_release_needs_every_point_of_the_tests_that_run_here(monkeypatch, tmp_path):
    built = build(A1, tmp_path, PRACTICE)

    def checked(**changes):
        def rehearse(archive, submission, *options):
            return rehearsal(submission.parent.name, **changes)

        monkeypatch.setattr(zip_check, "rehearse", rehearse)
        check = zip_check.ZipCheck(A1, built, GPU_ROSTER, True)
        return check.run("state", lambda *said: None)

    with pytest.raises(CourseError, match=f"skipped the wrong tests: {FIRST.name}"):
        checked()  # the reference got points for a test that needs a GPU
    found = checked(ran=False)
    assert (found.reference, found.stub, found.not_run) == (REST, 0, {"no GPU": FIRST.points})
    row = Row(A1, len(GRADED_TESTS), 100, built, found, False, ())
    console = Console(file=io.StringIO(), width=200)
    console.print(table([row]))
    assert f"{FIRST.points:g} no GPU" in console.file.getvalue()
    with pytest.raises(CourseError, match=f"must get {REST:g} of 100 points") as error:
        checked(ran=False, lost=[GRADED_TESTS[-1].name])
    assert str(error.value).count("the reason") == 1


def test_the_proof_asks_no_verdict_of_them(tmp_path):
    case = ProofPlan(A1, Scope(seeds=3, mutants=False))
    case.tests = [replace(case.tests[0], tags=("gpu",)), *case.tests[1:]]
    first = case.tests[0].name
    replies = replies_of(case, "reference", lambda test, number: test.name != first)
    for reply in replies.values():
        reply.verdicts[:] = [
            msgspec.structs.replace(entry, ran=entry.test != first) for entry in reply.verdicts
        ]
    row = judge_right(case, "reference", replies)
    assert (row.problems, row.lowest, row.tests) == ([], REST, len(GRADED_TESTS))
    # A test that could have been run must not be left out, nor may one be lost.
    public = replies["reference: public 0"].verdicts
    public[1] = msgspec.structs.replace(public[1], ran=False, passed=False)
    problems = judge_right(case, "reference", replies).problems
    assert f"{case.tests[1].name} was wrongly left out" in problems
    public.pop(0)
    problems = judge_right(case, "reference", replies).problems
    assert f"{len(GRADED_TESTS) - 1} of {len(GRADED_TESTS)} tests ran under salt 0" in problems
    stub = [verdict(test.name, passed=False) for test in case.tests]
    assert judge_stub(case, stub, {}).problems == []
    assert first not in case.tests_for(mistake(exercises=["1.1"]), hidden=False)


def test_the_table_of_the_proof_says_how_many_points_were_not_run():
    scored = proof().scored[0]
    rows = [scored, *(msgspec.structs.replace(scored, name=n) for n in ("alternative a", "stub"))]
    rows = [msgspec.structs.replace(row, lowest=96.0) for row in rows]
    shown = facts(proof(not_run=4.0, scored=rows))
    assert shown["reference, lowest score"] == "96 of 100; 4 not run: no GPU"
    assert shown["alternatives with all points"] == "1 of 1"


def test_a_worker_tells_what_it_did_not_run(tmp_path):
    result = grade(ONE, direct=True, tests=write_tests(tmp_path, ON_A_GPU))
    verdicts = [warm_judge.verdict(outcome) for outcome in result.all_outcomes]
    assert [entry.ran for entry in verdicts] == [True, False]
