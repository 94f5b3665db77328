"""Tests of fuzzed submissions: each can be made again, is valid Python, and all parts are used."""

import ast
import json

from autograder.proving.hostile import odd_behavior
from autograder.proving.hostile.fuzzed_submissions import (
    MOMENTS,
    SEED,
    FuzzedSubmission,
)
from common.assignment import LAB_FILE, ROOT
from tests.tooling.scratch_copies import python

FEW = [FuzzedSubmission(SEED, number) for number in range(1, 101)]


def test_seed_and_number_make_the_same_submission_again():
    for one in FEW[:8]:
        again = FuzzedSubmission(one.seed, one.number)
        assert one.files({}) == again.files({})
        assert FuzzedSubmission(one.seed + 1, one.number).files({}) != one.files({})


def test_every_file_is_valid_and_ends_with_the_right_code():
    labs = 0
    for one in FEW:
        honest = dict.fromkeys(one.assignment.files, "RIGHT = 1")
        for name, text in one.files(honest).items():
            if name == LAB_FILE:
                labs += 1
                text = "\n".join(cell["source"] for cell in json.loads(text)["cells"])
            else:
                assert text.endswith("RIGHT = 1")
            ast.parse(text)
    assert labs > 0


def test_nothing_odd_is_written_for_what_is_right():
    for one in FEW:
        defined = {
            node.name
            for name, text in one.files({}).items()
            if name != LAB_FILE
            for node in ast.parse(text).body
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        assert defined & one.right_functions == set()
        assert one.earned_tests and one.honest_parts()


def test_every_moment_value_and_deed_is_used():
    many = [FuzzedSubmission(SEED, number) for number in range(1, 1001)]
    assert {one.moment for one in many} == {*MOMENTS}
    everything = "".join(text for one in many[:600] for text in one.files({}).values())
    tables = ("PLAIN_VALUES", "ARRAY_VALUES", "TENSOR_VALUES", "EXCEPTIONS", "ENDS", "DEEDS")
    for entry in (entry for table in tables for entry in getattr(odd_behavior, table)):
        assert entry.partition("#")[0] in everything, entry


def test_the_command_grades_as_many_as_it_is_asked_to():
    ran = python("-m", "autograder", "chaos-submissions", "--count", "1", cwd=ROOT)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    *_, summary = ran.stdout.splitlines()
    assert summary.startswith("1 fuzzed submissions in ")
    assert summary.endswith(f"seed {SEED}: every result held.")
