"""Tests of the hash of code: it changes with what the code does, and with nothing else."""

import pytest

from autograder.authoring.syntax_hash import python_hash

CODE = '''"""A module."""

import math


class Shape:
    """Has an area."""

    sides = 4

    def area(self, a, b=2):
        """Its area."""
        # Not of a circle.
        return math.prod([a, b])  # by hand


@staticmethod
def late(x: int) -> str:
    return f"{x:>3} 'is'" + """two
lines"""
'''


def changed(old, new):
    assert CODE.count(old) == 1
    return CODE.replace(old, new).encode()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""A module."""', '"""Another module, in more words."""'),
        ('"""A module."""\n', ""),
        ('    """Has an area."""\n', ""),
        (
            '        """Its area."""\n',
            "        r'''Its area.\n\n        More.'''\n",
        ),
        ("        # Not of a circle.\n", ""),
        ("  # by hand", ""),
        ("import math\n\n\n", "import math\n"),
        ("math.prod([a, b])", "math.prod([\n            a,\n            b,\n        ])"),
        ("[a, b]", "([a, (b)])"),
        ("    sides = 4", "    sides = 0x4"),
        ("a, b=2)", "a, b = 2,)"),
    ],
)
def test_comments_docstrings_and_formatting_change_nothing(old, new):
    assert python_hash(changed(old, new)) == python_hash(CODE.encode())


def test_line_endings_change_nothing():
    simple = b"import math\n\n\ndef f(x):\n    return x\n"
    assert python_hash(simple.replace(b"\n", b"\r\n")) == python_hash(simple)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sides = 4", "sides = 5"),
        ("sides = 4", "sides = 4.0"),
        ("sides = 4", 'sides = "4"'),
        ("b=2", "b=3"),
        ("[a, b]", "[b, a]"),
        ("[a, b]", "(a, b)"),
        ("import math\n", "import cmath as math\n"),
        ("@staticmethod\n", ""),
        ("x: int", "x: float"),  # an annotation can be read at run time
        ("class Shape", "class Form"),
        ("two\nlines", "two\n lines"),  # a string that is no docstring
        ("'is'", "'was'"),
        (":>3", ":>4"),
    ],
)
def test_whatever_can_change_a_run_changes_the_hash(old, new):
    assert python_hash(changed(old, new)) != python_hash(CODE.encode())


def test_the_order_of_statements_counts():
    assert python_hash(b"a = 1\nb = 2\n") != python_hash(b"b = 2\na = 1\n")
    assert python_hash(b"a = 1\n") != python_hash(b"a = 1\na = 1\n")


def test_a_string_alone_in_a_body_is_no_docstring_behind_other_code():
    assert python_hash(b'x = 1\n"said"\n') != python_hash(b"x = 1\n")


@pytest.mark.parametrize("source", [b"def f(:\n", b"\xff\xfe", b"x = 1\0"])
def test_what_is_not_python_is_hashed_by_its_bytes(source):
    assert python_hash(source) == python_hash(source)
    assert python_hash(source) != python_hash(source + b"\n")
    assert python_hash(source) != python_hash(b"")


@pytest.mark.parametrize(
    "code",
    [
        "x = 1\n\x0c\ny = 2\nz = 3\n",
        'x = "\u2028"\nz = 3\n',
        'x = "a\x0cb"\nz = 3\n',
        'x = 1; y = """\na"""\nz = 3\n',
        "x = 1; z = 3\n",
    ],
)
def test_no_statement_is_missed_where_lines_are_odd(code):
    hashes = {python_hash(code.replace("3", value).encode()) for value in ("3", "4", "(3)")}
    assert len(hashes) == 2
