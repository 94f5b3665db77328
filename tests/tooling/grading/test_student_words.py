"""No string that student code makes is in the result of a hidden test, wherever it was put.

The tests here are as careless as they can be: each puts into its sentence what it was given.
"""

import pytest

from autograder.grading.results import to_gradescope
from autograder.grading.submission import Submission
from common.assignment import LAB_FILE
from tests.tooling.grading_fixtures import FILE, grade, write_tests
from tests.tooling.made_up_notebooks import notebook

CANARY = "canary"
CODE = f"""
import tempfile, warnings
import numpy as np

class {CANARY}_class:
    {CANARY} = 1
    def __repr__(self):
        return "{CANARY}"

class {CANARY}_error(ValueError):
    pass

def value(): return "{CANARY}"
def data(): return b"{CANARY}"
def nested_data(): return [({{b"{CANARY}": [b"{CANARY}"]}},)]
def keys(): return {{"{CANARY}": 1, ("a", "{CANARY}"): 2}}
def nested(): return [("{CANARY}", {{"a": ["{CANARY}"]}})]
def instance(): return {CANARY}_class()
def name_of_class(): return type(instance()).__name__
def fields(): return np.zeros(2, [("{CANARY}", float)])
def text_array(): return np.array(["{CANARY}"])
def dtype(): return fields().dtype.descr
def raises(): raise {CANARY}_error("{CANARY}")
def raises_key(): raise KeyError("{CANARY}")
def raises_import(): import {CANARY}_module
def unwritten(): raise NotImplementedError("{CANARY}: exercise 1.1 is yours to write")
def leaves(): raise SystemExit("{CANARY}")
def warns(): warnings.warn("{CANARY}")
def changes({CANARY}): {CANARY}[:] = 7
def prints(): print("{CANARY}"); return "{CANARY}"
def moves_files(): tempfile.mkdtemp = lambda prefix: "/{CANARY}"
def {CANARY}(): pass
"""
SENTENCES = {
    "value": "{student.value()}",
    "repr": "{student.value()!r}",
    "method": "{student.value().strip('x').upper().lower()}",
    "parts": "{', '.join(map(str, student.value().split('x')))}",
    "data": "{student.data()}",
    "data_repr": "{student.data()!r:>40} {student.data()[1:]}",
    "data_decoded": "{student.data().decode()[1:]} {student.data()[:9].decode('ascii')}",
    "nested_data": "{student.nested_data()}",
    "key": "{[*student.keys()][0]}",
    "keys": "{student.keys()}",
    "nested": "{student.nested()!s:>100}",
    "class_name": "{student.name_of_class()}",
    "dtype": "{student.dtype()}",
    "message": "{message(student.raises)}",
    "key_message": "{message(student.raises_key)!r}",
    "import_message": "{message(student.raises_import)}",
    "warning": "{warnings_of(student.warns)}",
    "parameter": "{changed_inputs(student.changes, np.zeros(2))[0]}",
    "printed": "{student.prints()}",
    "path": "{student.moves_files()} {scratch_path(student, 'file')}",
    "failure": "{failure(student)}",
}
CALLS = {
    "raises": "student.raises()",
    "unwritten": "student.unwritten()",
    "unchanged": "check_unchanged('changes', student.changes, np.zeros(2))",
    "equal": "assert_equal(student.value(), 'other', 'value')",
    "joined": "', '.join(student.keys())",
    "file": "student.moves_files(); scratch_bytes(student, scratch_path(student, 'f'), 9)",
    "cell": "lab.answer('q2_b')",
    "sentence": "raise Failure(student.value(), help=student.value())",
}
# What no sentence can hold, since it stays with the student's code or says too little.
OTHERS = {
    "assertion": "assert student.value() == 'other'",
    "instance": "check(False, f'{student.instance()} {student.canary()}')",
    "fields": "assert_close(student.fields(), np.zeros(2))",
    "text_array": "assert_close(student.text_array(), np.zeros(1))",
    "leaves": "student.leaves()",
    "nearest": "student.canery()",
}
HEAD = """
from common.check_log import check
from common.errors import Failure
from common.testing.checks import check_unchanged
from common.testing.remote.operations import changed_inputs, warnings_of
from common.testing.remote.scratch_files import scratch_bytes, scratch_path

def message(function):
    try:
        function()
    except Exception as error:
        return error

def failure(student):
    try:
        assert_equal(student.value(), "other", "value")
    except Failure as error:
        return error
"""


def careless_tests(kind):
    """The same careless tests, of one kind."""
    bodies = {name: f'check(False, f"{text}")' for name, text in SENTENCES.items()}
    return HEAD + "".join(
        f"""
@weight(1)
@number("1.1")
def test_{kind}_{name}(student, lab):
    '''Careless.'''
    {body}
"""
        for name, body in (bodies | CALLS | OTHERS).items()
    )


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """What the result says of each test."""
    cell = f"# {CANARY}\nraise ValueError('{CANARY}')"
    files = {FILE: CODE.encode(), LAB_FILE: notebook("q1_a = 1", cell)}
    tests = write_tests(
        tmp_path_factory.mktemp("tree"), careless_tests("public"), careless_tests("hidden")
    )
    content = to_gradescope(grade(Submission(files), tests=tests))
    return {test["extra_data"]["test"]: test["output"] for test in content["tests"]}


@pytest.mark.parametrize("name", [*SENTENCES, *CALLS, *OTHERS])
def test_a_hidden_test_shows_no_string_of_student_code(texts, name):
    why = texts[f"test_hidden_{name}"].partition("\n\n")[2]
    assert why and CANARY not in why.replace(f"student.{CANARY}", ""), why
    assert all(ord(letter) < 0xF0000 for letter in texts[f"test_hidden_{name}"])


@pytest.mark.parametrize("name", [*SENTENCES, *CALLS])
def test_a_public_test_shows_it(texts, name):
    text = texts[f"test_public_{name}"].partition("\n\n")[2]
    # Nothing of a text that was joined, and no name of an input that no stub has.
    assert CANARY in text or name in ("joined", "parameter", "unchanged")
    assert all(ord(letter) < 0xF0000 for letter in text)
