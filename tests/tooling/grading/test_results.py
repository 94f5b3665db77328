"""Tests of results.json: Gradescope's format, always complete, no hidden inputs."""

import json
import os
import subprocess
import sys

import jsonschema
import pytest

from autograder.grading import results
from autograder.grading.results import Outcome, Result, clean, to_gradescope, write_results
from autograder.proving.process_table import children_of, descendants_of, process_table
from common.assignment import ROOT
from common.atomic_write import write_temporary
from common.errors import Explanation
from common.testing.graded_tests import GradedTest, read_graded_tests
from tests.tooling.grading_fixtures import (
    SEMESTER,
    assignment,
    grade,
    outcome,
    write_tests,
)
from tests.tooling.wait_until import wait_until

FORMATS = {"enum": ["text", "html", "simple_format", "md", "ansi"]}
VISIBILITIES = {"enum": ["hidden", "after_due_date", "after_published", "visible"]}
POINTS = {"type": "number", "minimum": 0, "maximum": 1000}
# Gradescope's specification, stricter: what we never write is not allowed.
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["tests", "output", "execution_time", "visibility", "stdout_visibility"],
    "properties": {
        "execution_time": {"type": "number", "minimum": 0, "maximum": 3600},
        "output": {"type": "string", "maxLength": 8000},
        "output_format": FORMATS,
        "test_output_format": FORMATS,
        "test_name_format": FORMATS,
        "visibility": VISIBILITIES,
        "stdout_visibility": VISIBILITIES,
        "extra_data": {"type": "object"},
        "leaderboard": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["name", "value", "order"],
                "properties": {
                    "name": {"type": "string", "minLength": 1, "maxLength": 200},
                    "value": {"type": "number"},
                    "order": {"enum": ["asc", "desc"]},
                },
            },
        },
        "tests": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["name", "number", "score", "max_score", "status", "output"],
                "properties": {
                    "name": {"type": "string", "minLength": 1, "maxLength": 200},
                    "number": {"type": "string", "pattern": r"^\d+\.\d+$"},
                    "score": POINTS,
                    "max_score": POINTS,
                    "status": {"enum": ["passed", "failed"]},
                    "output": {"type": "string", "maxLength": 8000},
                    "output_format": FORMATS,
                    "name_format": FORMATS,
                    "visibility": VISIBILITIES,
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "extra_data": {"type": "object"},
                },
            },
        },
    },
}


THREE = """
@weight(2)
@number("1.1")
def test_one(student):
    \"\"\"one is 1.\"\"\"
    assert_equal(student.one(), 1, what="one")


@weight(3)
@number("1.2")
def test_two(student):
    \"\"\"two is 2.\"\"\"
    assert_equal(student.two(), 2, what="two")


@weight(4)
@number("1.3")
def test_three(student):
    \"\"\"three is 3.\"\"\"
    assert_equal(student.three(), 3, what="three")
"""


def refuse(word):
    raise AssertionError(f"{word} is not JSON")


def read_checked(file):
    """results.json, if it is to the schema and its scores are within their maxima."""
    return check_content(json.loads(file.read_text("utf-8"), parse_constant=refuse))


def check_content(content):
    """The content of a results.json, checked."""
    jsonschema.Draft202012Validator(SCHEMA).validate(content)
    for test in content["tests"]:
        assert test["score"] in (0, test["max_score"])
        assert (test["status"] == "passed") == (test["score"] == test["max_score"])
    return content


def test_a_result_is_never_written_through_a_link(tmp_path):
    """Student code that could write beside the result could else choose what is overwritten."""
    (tmp_path / "precious").write_text("kept")
    beside = write_temporary(tmp_path / "results.json", b"")
    beside.unlink()
    beside.symlink_to(tmp_path / "precious")
    result = Result(assignment(), read_graded_tests(ROOT / "tests/a1_convolution"), "salt")
    write_results(result, tmp_path / "results.json")
    assert (tmp_path / "precious").read_text() == "kept"
    assert json.loads((tmp_path / "results.json").read_bytes())["tests"]
    assert not beside.is_symlink()


def test_a_real_result_is_complete_from_its_first_moment_to_its_last(tmp_path):
    """Every state of the file on the way is a whole result."""
    out, seen = tmp_path / "results.json", []
    source = "def one(): return 1\ndef two(): raise ValueError\ndef three(): return 3\n"
    tests = write_tests(tmp_path, THREE)
    grade(source, out=out, tests=tests, on_test=lambda ended: seen.append(read_checked(out)))
    last = read_checked(out)
    for content in (*seen, last):
        assert [test["max_score"] for test in content["tests"]] == [2, 3, 4]
    for content, scores, not_run in zip(
        (*seen, last), ([2, 0, 0], [2, 0, 0], [2, 0, 4], [2, 0, 4]), (2, 1, 0, 0), strict=True
    ):
        assert [test["score"] for test in content["tests"]] == scores
        assert sum("Not run" in test["output"] for test in content["tests"]) == not_run
        assert ("Grading did not finish." in content["output"]) == (content is not last)
        assert content["extra_data"]["finished"] == (content is last)
    for defense in ("tests and metadata can't be read: ", "no network: ", "nothing outlives"):
        assert defense in last["output"]
    assert last["extra_data"]["salt"] == SEMESTER.fingerprint
    assert SEMESTER.salt not in out.read_text()
    assert sorted(os.listdir(tmp_path)) == ["results.json", "tests"]


KILLED = """
import sys
from pathlib import Path
from tests.tooling.grading_fixtures import grade
grade(sys.argv[1], tests=Path(sys.argv[2]), out=Path(sys.argv[3]))
"""


def test_a_judge_that_is_killed_leaves_a_whole_result_and_no_process(tmp_path):
    """Killed while the second of three tests runs, the first one's points are there."""
    tests, out = write_tests(tmp_path, THREE), tmp_path / "results.json"
    source = "import time\ndef one(): return 1\ndef two(): time.sleep(60)\ndef three(): return 3\n"
    command = [sys.executable, "-c", KILLED, source, str(tests), str(out)]
    judge = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    wait_until(lambda: out.is_file() and read_checked(out)["tests"][0]["status"] == "passed", 30)
    # Besides the fork servers there is the child of the second test.
    wait_until(lambda: any(map(children_of, children_of(judge.pid))), 30)
    family = descendants_of(judge.pid, process_table())
    judge.kill()
    judge.wait()
    content = read_checked(out)
    assert [test["score"] for test in content["tests"]] == [2, 0, 0]
    assert [test["max_score"] for test in content["tests"]] == [2, 3, 4]
    assert "Grading did not finish." in content["output"]
    assert content["tests"][2]["output"].endswith("the grader stopped before this test.")
    wait_until(lambda: not [pid for pid in family if os.path.exists(f"/proc/{pid}")], 30)


def test_the_file_is_replaced_and_never_rewritten_in_place(tmp_path):
    out = tmp_path / "results.json"
    result = Result(assignment(), read_graded_tests(ROOT / "tests/a1_convolution"), "salt")
    write_results(result, out)
    with out.open() as old:
        before = os.fstat(old.fileno()).st_ino
        result.finished = True
        write_results(result, out)
        assert "did not finish" in old.read()
    assert out.stat().st_ino != before and "did not finish" not in out.read_text()


def test_outputs_are_cut_and_odd_characters_cross():
    test = GradedTest("test_x", "1.1", 2.0, False, "A title.", "visible")
    text = "\ud800\0\x1b[31m" + "x" * 100_000
    ended = Outcome(test, False, Explanation("It is wrong.", text), printed=text)
    result = Result(assignment(), [test], "salt", {"test_x": ended}, notes=[text] * 3)
    content = to_gradescope(result)
    assert len(content["output"]) <= results.OUTPUT_LIMIT
    assert len(content["tests"][0]["output"]) <= results.OUTPUT_LIMIT
    json.dumps(content, allow_nan=False).encode("ascii")


def test_text_for_results_has_no_control_characters_or_half_characters():
    assert clean("a\0b\x1b[31m\ud800\n\tc") == "a\\x00b\\x1b[31m\\ud800\n\tc"


SECRET = """
@weight(1)
@number("1.1")
def test_{deed}_{kind}(student, rng):
    \"\"\"{deed} gives 1.\"\"\"
    secret = rng.integers(10**8, 10**9, size=2)
    result = student.{deed}(secret)
    assert_equal(unpack(result, 2, "{deed}")[0], int(secret[0]) + 1, what="the first")
"""
LEAKS = {
    "raises": "raise ValueError(repr(x))",
    "raises_a_class_of_its_own": "raise type('E' + digits(x), (ValueError,), {})(repr(x))",
    "raises_a_builtin_of_its_own": (
        "raise type('E' + digits(x), (ValueError,), {'__module__': 'builtins'})(repr(x))"
    ),
    "names_its_function": (
        "exec(compile(f'def f{digits(x)}(): raise KeyError({x[0]})', f'{digits(x)}.py', 'exec'));"
        "locals()['f' + digits(x)]()"
    ),
    "prints": "print(x); return [x[0], 0]",
    "prints_errors": "print(x, file=sys.stderr); sys.exit(str(x))",
    "exits": "raise type('E' + digits(x), (SystemExit,), {})(digits(x))",
    "uses_our_failure": "raise errors.Failure(digits(x), digits(x), digits(x))",
    "uses_our_refusal": "raise errors.ForbiddenCall(digits(x))",
    "uses_our_child_failure": "raise errors.ChildFailure(digits(x))",
    "is_not_written": "raise NotImplementedError(digits(x))",
    "asserts": "assert False, digits(x)",
    "returns_too_many": "return tuple(x) * 2",
    "returns_the_input": "return tuple(x)",
    "returns_another_kind": "return type('E' + digits(x), (), {})()",
    "imports": "importlib.import_module('m' + digits(x))",
    "deletes_itself": (
        "del sys.modules[__name__]; globals()['__spec__'].loader.path = digits(x) + '.py';"
        "raise SyntaxError(digits(x), (digits(x), int(digits(x)[:9]), 1, digits(x)))"
    ),
    "writes_to_the_channel": (
        "[forge(x, status) for status in ('failure', 'forbidden', 'raised')][0]"
    ),
}
LEAKING = """
import importlib, os, socket, struct, sys
from msgspec import msgpack
from common import errors

def digits(x):
    return "".join(map(str, x))

def forge(x, status):
    count = {"failure": 3, "forbidden": 1, "raised": 3}[status]
    message = msgpack.encode([0, None, [2, status] + [digits(x)] * count])
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, struct.pack("<Q", len(message)) + message)
        except OSError:
            pass
"""


@pytest.fixture(scope="module")
def leaked(tmp_path_factory):
    """A submission that tries to put its inputs on the page, and what the page says."""
    source, public, hidden = LEAKING, "", ""
    for deed, code in LEAKS.items():
        source += f"\ndef {deed}(x):\n    {code}\n"
        public += SECRET.format(deed=deed, kind="shown")
        hidden += SECRET.format(deed=deed, kind="hidden")
    folder = tmp_path_factory.mktemp("leaks")
    tests, out = write_tests(folder, public, hidden), folder / "results.json"
    return grade(source, out=out, tests=tests), read_checked(out)


@pytest.mark.parametrize("deed", LEAKS)
def test_a_hidden_test_never_shows_what_the_code_has_seen(leaked, deed):
    """No run of three digits: inputs, results and expected values all have nine."""
    result, content = leaked
    ended = outcome(result, f"test_{deed}_hidden")
    assert not ended.passed
    (test,) = (t for t in content["tests"] if t["extra_data"]["test"] == f"test_{deed}_hidden")
    text = json.dumps({key: value for key, value in test.items() if key != "extra_data"})
    digits = "".join(c if c.isdigit() else " " for c in text).split()
    assert max(map(len, digits)) < 3, test["output"]
    assert test["visibility"] == "after_published"


@pytest.mark.parametrize("deed", ["raises", "prints", "uses_our_failure", "returns_the_input"])
def test_a_public_test_does_show_it(leaked, deed):
    """So that the test above would see a leak."""
    text = outcome(leaked[0], f"test_{deed}_shown").text()
    digits = "".join(c if c.isdigit() else " " for c in text).split()
    assert max(map(len, digits)) >= 9


def test_the_time_that_students_see_is_that_of_public_tests():
    tests = read_graded_tests(ROOT / "tests" / "a1_convolution")
    outcomes = {
        test.name: Outcome(test, False, seconds=100.0 if test.hidden else 0.5) for test in tests
    }
    result = Result(assignment(), tests, "salt", outcomes, seconds=12_345.0)
    public = sum(not test.hidden for test in tests)
    assert to_gradescope(result)["execution_time"] == round(0.5 * public)
