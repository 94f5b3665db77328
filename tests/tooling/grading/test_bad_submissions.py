"""Tests of bad submissions: each gets a complete result and a clear sentence in limited time."""

import json
import re
import time
from textwrap import dedent

import pytest

from autograder.grading.results import to_gradescope
from autograder.grading.submission import Submission
from common.errors import GraderFault
from tests.tooling.grading_fixtures import assignment, grade, outcome, submission, write_tests

# One function for each way to go wrong: what it does, and a piece of the sentence about it.
BEYOND = (
    *("process died", "raised a MemoryError"),
    *("used more than the 0.5 seconds of processor time", "took longer than 10 seconds"),
)
DEEDS = {
    "nothing": ("return", "nothing is None."),
    "text": ("return 'text'", "must be a NumPy array, got a string"),
    "nan": ("return x * np.nan", "contains NaN where finite values are expected"),
    "infinity": ("return x / np.zeros_like(x)", "contains infinity"),
    "shape": ("return 2 * x[:-1]", "has the wrong size along axis 0"),
    "dtype": ("return np.float32(2) * x.astype('f4')", "must have dtype float64"),
    "subclass": ("return np.asmatrix(2 * x)", "got another type of object"),
    "hang": ("while True: pass", "used more than the 0.5 seconds of processor time"),
    "sleep": ("import time; time.sleep(60)", "took longer than 10 seconds"),
    "abort": ("os.abort()", "process died"),
    "segfault": ("import ctypes; ctypes.string_at(0)", "process died"),
    "leave": ("os._exit(0)", "process died"),
    "exits": ("sys.exit(0)", "exited the program (SystemExit)"),
    "interrupt": ("raise KeyboardInterrupt", "exited the program (KeyboardInterrupt)"),
    "recursion": ("return recursion(x)", "raised a RecursionError"),
    "deep_recursion": ("sys.setrecursionlimit(10**9); return deep_recursion(x)", BEYOND),
    "memory": ("return np.ones(10**9)", "raised a MemoryError"),
    "memory_bit_by_bit": ("kept = []\n    while True: kept.append(bytes(10**7))", "MemoryError"),
    "flood": ("print('x' * 10**8)", "printed more than 1 MB"),
    "flood_of_errors": ("sys.stderr.write('x' * 10**8)", "printed more than 1 MB"),
    "a_byte_too_much": ("print('x' * 2**20)", "printed more than 1 MB"),
    "large": ("return np.zeros(24 * 2**20)", "raised a MemoryError"),
    "deep": ("for _ in range(50): x = [x]\n    return x", "The return value can't be read"),
    "closing": ("os.closerange(0, 256); return x", "process died"),
    "garbage": ("spoil(b'\\x01' + bytes(7) + b'\\x05')", "a malformed reply to the grader"),
    "giant": ("spoil(b'\\xff' * 16)", "more data than the grader reads"),
    "noise": ("spoil(os.urandom(64))", ("malformed reply", "more data than the grader reads")),
    "twice": ("spoil(b'\\x01' + bytes(7) + b'\\x05'); return 2 * x", "malformed reply"),
    "mute_error": ("raise Mute", "mute_error raised a ValueError"),
    "long_error": ("raise ValueError('x' * 10**6)", "long_error raised a ValueError"),
}
# Odd, but right all the same.
FINE = {
    "forks": "if os.fork() == 0: time.sleep(60); os._exit(0)",
    "detaches": "if os.fork() == 0: os.setsid(); os.fork() == 0 and os._exit(0); time.sleep(60)",
    "threads": "threading.Thread(target=time.sleep, args=(60,)).start()",
    "silences": "os.close(1); os.close(2)",
    "prints": "print('a line')",
    "catches": "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
}
HEAD = """
import os, signal, sys, threading, time
import numpy as np

class Mute(ValueError):
    def __str__(self):
        raise RuntimeError

def spoil(data):
    for descriptor in range(3, 128):
        try:
            os.write(descriptor, data)
        except OSError:
            pass

def healthy(n):
    return n + 1
"""
TEST = """
@weight(2)
@number("{number}")
def test_{name}_{kind}(student, rng):
    \"\"\"{name} doubles.\"\"\"
    x = rng.uniform(1, 2, size=(4, 3))
    assert_close(student.{name}(x), 2 * x, what="{name}")
"""
HEALTHY = """
@weight(1)
@number("1.7")
def test_healthy_{after}_{kind}(student):
    \"\"\"healthy adds one.\"\"\"
    assert_equal(student.healthy(3), 4, what="the sum")
"""


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """One submission that does all of it, and the seconds that grading it took."""
    source, public, hidden = HEAD, "", ""
    for name, deed in [*((name, deed) for name, (deed, _) in DEEDS.items()), *FINE.items()]:
        ending = "" if name in DEEDS else "\n    return 2 * x"
        source += f"\ndef {name}(x):\n    {deed}{ending}\n"
        public += TEST.format(name=name, kind="shown", number="1.2")
        public += HEALTHY.format(after=name, kind="shown")
    for name in ("nan", "abort", "flood", "mute_error", "prints"):
        hidden += TEST.format(name=name, kind="unshown", number="1.2")
    hidden += HEALTHY.format(after="all", kind="unshown")
    tests = write_tests(tmp_path_factory.mktemp("deeds"), public, hidden)
    chosen = assignment(test_seconds=0.5, memory_mb=256, wall_seconds=10)
    start = time.monotonic()
    result = grade(source.encode(), chosen, tests=tests)
    return result, time.monotonic() - start


@pytest.mark.parametrize("name", DEEDS)
def test_each_bad_deed_fails_its_test_with_a_sentence(graded, name):
    ended = outcome(graded[0], f"test_{name}_shown")
    pieces = DEEDS[name][1]
    sentence = ended.explanation.sentence
    assert any(piece in sentence for piece in ([pieces] if isinstance(pieces, str) else pieces))
    assert "\n" not in sentence and sentence.endswith(".") and len(sentence) < 160
    assert "bug in the course" not in sentence
    assert not ended.passed and ended.score == 0


@pytest.mark.parametrize("name", FINE)
def test_what_is_odd_but_right_passes(graded, name):
    assert outcome(graded[0], f"test_{name}_shown").passed


def test_the_test_after_each_deed_is_graded_as_if_nothing_had_happened(graded):
    healthy = [item for item in graded[0].all_outcomes if "healthy" in item.test.name]
    assert len(healthy) == len(DEEDS) + len(FINE) + 1
    assert all(item.passed for item in healthy)


def test_the_result_of_all_deeds_is_complete_and_in_time(graded):
    result, seconds = graded
    assert len(result.outcomes) == 2 * (len(DEEDS) + len(FINE)) + 6
    assert result.finished and not result.notes
    assert result.maximum == 3 * (len(DEEDS) + len(FINE)) + 11
    assert result.score == len(DEEDS) + 3 * len(FINE) + 1 + 2  # one of the five hidden is right
    assert seconds < 40  # 7 of them take their second, and everything has to be started


FIRST_AND_SECOND = """
    @weight(3)
    @number("1.1")
    def test_first{kind}(student):
        \"\"\"first adds one.\"\"\"
        assert_equal(student.first(3), 4, what="the sum")


    @weight(2)
    @number("1.7")
    def test_second{kind}(student):
        \"\"\"second adds two.\"\"\"
        assert_equal(student.second(3), 5, what="the sum")
    """


@pytest.fixture(scope="module")
def tests(tmp_path_factory):
    """Two exercises, each with a public and a hidden test."""
    folder = tmp_path_factory.mktemp("two")
    public, hidden = (FIRST_AND_SECOND.format(kind=kind) for kind in ("", "_hidden"))
    return write_tests(folder, public, hidden)


GOOD = "def first(n):\n    return n + 1\n\n\ndef second(n):\n    return n + 2\n"
WHOLE_FILE = {
    "missing": (Submission(), "convolution.py is missing."),
    "empty": (b"", "convolution.py doesn't define first."),
    "syntax error": (b"x = 1\n\ndef first(:\n", "convolution.py is not valid Python."),
    "syntax error in a long line": (
        b"x = '" + b"a" * 20_000 + b"' 3\n",
        "convolution.py is not valid Python.",
    ),
    "NUL bytes": (GOOD.encode() + b"\0", "convolution.py is not valid Python."),
    "latin-1": (b"word = 'caf\xe9'\n" + GOOD.encode(), "convolution.py is not valid Python."),
    "import of nothing": (
        b"import nothing_at_all",
        "convolution.py can't be imported: it raises ModuleNotFoundError.",
    ),
    "error at import": (
        b"raise ValueError('x' * 10**5)",
        "convolution.py can't be imported: it raises ValueError.",
    ),
    "exit at import": (
        b"import sys; sys.exit(0)",
        "Your code exited the program (SystemExit) instead of returning.",
    ),
    "crash at import": (
        b"import os; os._exit(0)",
        "Your code's process died: a crash, out of memory, or a call to exit().",
    ),
    "hang at import": (
        b"while True: pass",
        "Your code used more than the 0.3 seconds of processor time that a test may take.",
    ),
}


@pytest.mark.parametrize("case", WHOLE_FILE)
def test_a_file_that_cannot_be_used_fails_all_tests_with_a_sentence(case, tests, tmp_path):
    source, sentence = WHOLE_FILE[case]
    out = tmp_path / "results.json"
    limits = assignment(test_seconds=0.3, wall_seconds=30) if "hang" in case else assignment()
    result = grade(source, limits, out=out, tests=tests)
    second = sentence.replace("define first", "define second")
    assert [item.explanation.sentence for item in result.all_outcomes] == [sentence, second] * 2
    assert (result.score, result.maximum, result.finished) == (0, 10, True)
    assert json.loads(out.read_text()) == to_gradescope(result)
    if case == "syntax error":
        assert "Line 3: " in outcome(result, "test_first").text()
        assert "Line 3" not in outcome(result, "test_first_hidden").text()


@pytest.mark.parametrize(
    "source",
    [
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.replace("\n", "\r\n").encode(),
        b"# -*- coding: latin-1 -*-\nword = 'caf\xe9'\n" + GOOD.encode(),
    ],
    ids=["BOM", "CRLF", "latin-1 that says so"],
)
def test_ways_to_write_a_file_that_python_takes_get_full_marks(source, tests):
    assert grade(source, tests=tests).score == 10


def test_a_renamed_function_costs_its_own_exercise_only(tests):
    taken = submission(GOOD.replace("first", "frist"))
    taken.notes.append("A note.")
    result = grade(taken, tests=tests)
    assert "A note." in to_gradescope(result)["output"]
    first = outcome(result, "test_first")
    assert first.explanation.sentence == "convolution.py doesn't define first."
    assert "Did you mean frist?" in first.text()
    assert "frist" not in outcome(result, "test_first_hidden").text()
    assert result.score == 4


COMPUTE = "import time; [None for _ in iter(lambda: time.process_time() > 1.2, True)]"


def test_once_the_total_time_is_used_up_the_rest_is_not_run(tests):
    source = GOOD.replace("return n + 1", f"print('early'); {COMPUTE}")
    limits = assignment(test_seconds=5, total_seconds=0.5)
    result = grade(source, limits, tests=tests)
    late = outcome(result, "test_second")
    assert late.explanation.sentence == (
        "Not run: the tests before this one used up the 0.5 seconds of processor time that "
        "they may take. Most of it went to 'first'."
    )
    assert "early" in outcome(result, "test_first").text()
    assert "early" not in late.text()
    assert (result.score, len(result.outcomes), result.maximum) == (0, 4, 10)


def test_a_test_file_that_cannot_be_read_is_a_fault_and_no_verdict(tmp_path):
    public = dedent(FIRST_AND_SECOND.format(kind="")) + "\nimport nothing_at_all\n"
    with pytest.raises(GraderFault, match="pytest could not run the tests: interrupted"):
        grade(GOOD, tests=write_tests(tmp_path, public))


def test_code_that_sleeps_uses_up_the_total_by_the_clock(tests):
    source = GOOD.replace("return n + 2", "import time; time.sleep(1.3)")
    limits = assignment(test_seconds=5, total_seconds=3)
    result = grade(source, limits, tests=tests)
    assert [item.passed for item in result.all_outcomes] == [True, False, True, False]
    assert "Not run" not in outcome(result, "test_second_hidden").explanation.sentence
    limits = assignment(test_seconds=5, total_seconds=0.3)
    result = grade(source, limits, tests=tests)
    assert outcome(result, "test_second_hidden").explanation.sentence == (
        "Not run: the tests before this one used up the 1.2 seconds that they may take. "
        "Most of it went to 'second'."
    )


def test_public_training_leaves_time_to_the_hidden_tests_after_it(tmp_path):
    public, hidden = (FIRST_AND_SECOND.format(kind=kind) for kind in ("", "_hidden"))
    public = public.replace("def test_second", "def test_x").replace(
        '@number("1.7")', '@number("1.7")\n    @tags("training")'
    )
    source = GOOD.replace("return n + 1", f"{COMPUTE}\n    return n + 1")
    result = grade(source, assignment(total_seconds=2), tests=write_tests(tmp_path, public, hidden))
    assert outcome(result, "test_x").explanation.sentence.startswith(
        "Not run: the tests before this one used up the 1 seconds of processor time"
    )
    assert outcome(result, "test_first_hidden").passed


def test_what_hidden_tests_used_of_the_total_names_none_of_them(tmp_path):
    hidden = FIRST_AND_SECOND.format(kind="_hidden")
    source = GOOD.replace("return n + 1", COMPUTE)
    result = grade(source, assignment(total_seconds=0.5), tests=write_tests(tmp_path, "", hidden))
    late = outcome(result, "test_second_hidden").explanation.sentence
    assert late.endswith("Most of it went to 'hidden tests'.")


def test_what_a_test_computed_before_its_time_was_over_is_shown_of_public_ones(tests):
    """Of a hidden test it could carry inputs: code may choose how long it computes."""
    source = GOOD.replace("return n + 1", "import time; time.sleep(60)")
    result = grade(source, assignment(test_seconds=0.5), tests=tests)
    shown, unshown = (outcome(result, f"test_first{kind}") for kind in ("", "_hidden"))
    sentence = "Your code took longer than 2 seconds."
    assert shown.explanation.sentence == unshown.explanation.sentence == sentence
    assert re.search(r"It computed for 0\.[0-4] of them, and waited for the rest.", shown.text())
    assert "computed" not in unshown.text()
    assert outcome(result, "test_second").passed


def test_processor_time_can_be_bounded_apart_from_the_clock(tmp_path):
    """So that a proof on a busy machine stops endless loops, and nothing that merely waits."""
    source, public = HEAD, ""
    for name, deed in (("loops", "while True: pass"), ("waits", "__import__('time').sleep(3)")):
        source += f"\ndef {name}(x):\n    {deed}\n    return 2 * x\n"
        public += TEST.format(name=name, kind="shown", number="1.2")
    chosen = assignment(test_seconds=0.5, wall_seconds=50)
    result = grade(source.encode(), chosen, tests=write_tests(tmp_path, public, ""))
    assert outcome(result, "test_waits_shown").passed
    loops = outcome(result, "test_loops_shown").explanation.sentence
    assert loops.startswith("Your code used more than the 0.5 seconds of processor time")
