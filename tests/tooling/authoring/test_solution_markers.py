"""Tests of the markers: what a stub keeps, what it drops, and which sources are refused."""

import ast
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.authoring.generated_files import check_functions, stub_of
from autograder.authoring.solution_markers import find_blocks, make_stub, solution_lines
from common.assignment import ROOT, load_all, load_assignment
from common.errors import CourseError

SOURCE = '''"""A module."""

LIMIT = 3  # a comment that stays


def double(x):
    """Twice x: '# BEGIN SOLUTION' in a string is no marker."""
    checked = int(x)
    # BEGIN SOLUTION
    # why: a sum is clearer
    twice = checked + checked

    return twice
    # END SOLUTION


class Net:
    """A class."""

    def forward(self, x):
        # BEGIN SOLUTION
        return self.weight * x
        # END SOLUTION

    def given(self):
        return LIMIT
'''

STUB = '''"""A module."""

LIMIT = 3  # a comment that stays


def double(x):
    """Twice x: '# BEGIN SOLUTION' in a string is no marker."""
    checked = int(x)
    raise NotImplementedError("double: later")


class Net:
    """A class."""

    def forward(self, x):
        raise NotImplementedError("Net.forward: later")

    def given(self):
        return LIMIT
'''


def later(function):
    return "later"


def test_a_stub_keeps_everything_but_the_blocks_to_the_letter():
    assert make_stub(SOURCE, "net.py", later) == STUB


def test_blocks_name_their_function_and_its_class():
    blocks = find_blocks(SOURCE, "net.py")
    assert [(block.first, block.last, block.function) for block in blocks] == [
        (9, 14, "double"),
        (21, 23, "Net.forward"),
    ]


def test_lines_of_the_solution_are_those_that_stand_in_blocks_only():
    again = SOURCE + "\n\ndef again(twice):\n    return twice\n"
    assert solution_lines(again, "net.py") == {
        "twice = checked + checked",
        "return self.weight * x",
    }


REFUSED = {
    "end without begin": ("def f():\n    pass\n    # END SOLUTION\n", 3),
    "begin without end": ("def f():\n    # BEGIN SOLUTION\n    return 1\n", 2),
    "nested": (
        "def f():\n    # BEGIN SOLUTION\n    a = 1\n    # BEGIN SOLUTION\n    return a\n"
        "    # END SOLUTION\n    # END SOLUTION\n",
        4,
    ),
    "empty": ("def f():\n    # BEGIN SOLUTION\n    # END SOLUTION\n    return 1\n", 2),
    "comments only": (
        "def f():\n    # BEGIN SOLUTION\n    # think\n\n    # END SOLUTION\n    return 1\n",
        2,
    ),
    "outside a function": ("# BEGIN SOLUTION\nx = 1\n# END SOLUTION\n", 1),
    "in a class but in no method": (
        "class A:\n    # BEGIN SOLUTION\n    x = 1\n    # END SOLUTION\n",
        2,
    ),
    "over two functions": (
        "def f():\n    # BEGIN SOLUTION\n    return 1\n\n\ndef g():\n    return 2\n"
        "    # END SOLUTION\n",
        2,
    ),
    "around a function": ("# BEGIN SOLUTION\ndef f():\n    return 1\n# END SOLUTION\n", 1),
    "less indented than its code": (
        'def f():\n    """Doc."""\n# BEGIN SOLUTION\n    return 1\n# END SOLUTION\n',
        3,
    ),
    "more indented than its code": (
        "def f():\n        # BEGIN SOLUTION\n    return 1\n        # END SOLUTION\n",
        2,
    ),
    "not Python": ("def f(:\n    return 1\n", 1),
}


@pytest.mark.parametrize(("source", "line"), REFUSED.values(), ids=REFUSED)
def test_an_error_names_file_and_line(source, line):
    with pytest.raises(CourseError, match=rf"^folder/net\.py, line {line}: ['\w]"):
        make_stub(source, "folder/net.py", later)


NEAR_MISSES = (
    "#BEGIN SOLUTION",
    "# begin solution",
    "# BEGIN SOLUTION ",
    "# BEGIN SOLUTIONS",
    "# BEGIN  SOLUTION",
    "# BEGIN_SOLUTION",
    "# BEGIN-SOLUTION",
    "# BEGINSOLUTION",
    "# BEGIN THE SOLUTION",
    "# BEGIN SOLUTION: the loops",
    "## BEGIN SOLUTION",
    "# --- BEGIN SOLUTION ---",
    "# SOLUTION BEGIN",
    "x = 1  # BEGIN SOLUTION",
)


@pytest.mark.parametrize("end", [False, True], ids=["begin", "end"])
@pytest.mark.parametrize("marker", NEAR_MISSES)
def test_a_marker_that_is_nearly_right_is_an_error_of_its_line(marker, end):
    if end:
        marker = re.sub("begin", "END", marker, flags=re.IGNORECASE)
        source = f"def f():\n    # BEGIN SOLUTION\n    y = 1\n    {marker}\n    return y\n"
    else:
        source = f"def f():\n    y = 1\n\n    {marker}\n    return y\n    # END SOLUTION\n"
    with pytest.raises(CourseError, match=r"^net\.py, line 4: a marker is a line of its own"):
        make_stub(source, "net.py", later)


@pytest.mark.parametrize("comment", ["# The solution begins at the end.", "# end of the loop"])
def test_prose_is_no_marker(comment):
    source = f"def f():\n    {comment}\n    return 1\n"
    assert make_stub(source, "net.py", later) == source


@pytest.mark.parametrize("tail", ["\n", "    # the end\n", "\n\n    # the end\n\n"])
def test_blank_lines_and_comments_may_close_a_block(tail):
    source = f"def f():\n    # BEGIN SOLUTION\n    return 1\n{tail}    # END SOLUTION\n\n\nx = 1\n"
    stub = make_stub(source, "net.py", later)
    assert stub == 'def f():\n    raise NotImplementedError("f: later")\n\n\nx = 1\n'


def test_a_block_may_lie_deep_inside_a_function():
    source = (
        "def f(x):\n    for i in x:\n        if i:\n            # BEGIN SOLUTION\n"
        "            return i\n            # END SOLUTION\n    return x\n"
    )
    assert "            raise NotImplementedError" in make_stub(source, "net.py", later)


def test_a_stub_that_would_not_parse_is_refused():
    source = (
        "def f(x):\n    # BEGIN SOLUTION\n    if x:\n        y = 1\n    # END SOLUTION\n"
        "    else:\n        y = 2\n"
    )
    with pytest.raises(CourseError, match=r"^net\.py: without its solutions .* line 3 of the stub"):
        make_stub(source, "net.py", later)


# Everything that str.splitlines takes for the end of a line, and Python does not.
ODD_ENDS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
TEXT = st.text(st.sampled_from("ab #'\t" + ODD_ENDS), max_size=8)


@st.composite
def sources(draw):
    """A module of functions, some with a block, and the stub that must come out of it."""
    source, stub = [], []
    for index in range(draw(st.integers(1, 4))):
        head = [f"def f{index}(x):", f'    """{draw(TEXT)}"""'.replace("\\", "")]
        head += [f"    # given {draw(TEXT)}".rstrip()] if draw(st.booleans()) else []
        source += head
        stub += head
        if draw(st.booleans()):
            body = [
                f"    secret{index}{line} = {line!r}" for line in range(draw(st.integers(1, 3)))
            ]
            body.insert(draw(st.integers(0, len(body))), f"    # why {draw(TEXT)}".rstrip())
            source += ["    # BEGIN SOLUTION", *body, "    # END SOLUTION"]
            stub.append(f'    raise NotImplementedError("f{index}: later")')
        tail = ["    return x", ""]
        source += tail
        stub += tail
    return "\n".join(source), "\n".join(stub)


@given(sources())
def test_any_module_loses_its_blocks_and_nothing_else(pair):
    source, expected = pair
    stub = make_stub(source, "net.py", later)
    assert stub == expected
    ast.parse(stub)
    assert "secret" not in stub


@pytest.mark.parametrize("assignment", load_all(), ids=lambda entry: entry.name)
def test_the_stubs_of_the_course_hold_no_line_of_a_solution(assignment):
    for name in assignment.files:
        source = (ROOT / "solutions" / assignment.name / name).read_text("utf-8")
        stub = (ROOT / "assignments" / assignment.name / name).read_text("utf-8")
        secret = solution_lines(source, name)
        assert secret
        assert not secret & {line.strip() for line in stub.splitlines()}
        ast.parse(stub)


def test_a_function_of_no_exercise_is_named(tmp_path):
    solution = tmp_path / "convolution.py"
    solution.write_text("def other():\n    # BEGIN SOLUTION\n    return 1\n    # END SOLUTION\n")
    with pytest.raises(CourseError, match=r"convolution\.py: other belongs to no exercise"):
        stub_of(solution, load_assignment("a1"))


def test_a_missing_solution_is_named(tmp_path):
    with pytest.raises(CourseError, match=r"convolution\.py is missing"):
        stub_of(tmp_path / "convolution.py", load_assignment("a1"))


def test_a_function_whose_solution_is_not_marked_is_named(tmp_path):
    assignment = load_assignment("a1")
    source = (ROOT / "solutions" / assignment.name / "convolution.py").read_text("utf-8")
    solution = tmp_path / "convolution.py"
    solution.write_text(source)
    check_functions(assignment, [solution])
    head, _, rest = source.partition("def linear_parameters")
    rest = rest.replace("    # BEGIN SOLUTION\n", "").replace("    # END SOLUTION\n", "")
    solution.write_text(f"{head}def linear_parameters{rest}")
    with pytest.raises(CourseError, match=r"linear_parameters of exercise 1\.7 has no solution"):
        check_functions(assignment, [solution])
