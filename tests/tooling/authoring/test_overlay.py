"""Tests of overlays: how the reference and an overlay are composed."""

from textwrap import dedent

import pytest

from autograder.authoring.overlay import compose
from autograder.proving import right_versions
from common.assignment import ROOT, load_all, load_assignment
from common.errors import CourseError

A1 = load_assignment("a1")
A5 = load_assignment("a5")
REFERENCE = '''
"""The reference."""

import math

FIRST, LAST = 1, 2
SCALE = 2


def double(x: float) -> float:
    """Twice."""
    return SCALE * x


# Exercise 2


@staticmethod
def half(x):
    return x / 2


class Layer:
    """A layer."""

    rate = 0.5

    def forward(self, x):
        return self.back(x) * self.rate

    def back(self, x):
        return double(x)


def area(r):
    return math.pi * r * r
'''
NOTHING_ELSE = "\n\ndef area(r):\n    return math.tau * r * r / 2\n"


def composed(overlay):
    return compose(dedent(REFERENCE).encode(), dedent(overlay).encode(), "NAME/layers.py").decode()


def run(overlay):
    """What the composed module defines."""
    module = {}
    exec(composed(overlay), module)
    return module


def test_a_function_replaces_the_reference_s_and_all_else_stays():
    source = composed("def double(x):\n    return x + x\n")
    before, _, after = source.partition("def double(x):\n    return x + x\n")
    assert REFERENCE.startswith(before) and REFERENCE.endswith(after)
    assert before.endswith("SCALE = 2\n\n\n") and after.startswith("\n\n# Exercise 2\n")


def test_a_decorated_function_and_a_constant_are_replaced_whole():
    source = composed("SCALE = 3\nFIRST, LAST = 5, 6\n\n\ndef half(x):\n    return 0.5 * x\n")
    assert "staticmethod" not in source
    assert "# Exercise 2\n\n\ndef half(x):\n    return 0.5 * x\n" in source
    module = {}
    exec(source, module)
    assert (module["double"](1), module["half"](1)) == (3, 0.5)
    assert (module["FIRST"], module["LAST"]) == (5, 6)


def test_a_new_helper_stands_before_what_follows_it_with_its_comment():
    source = composed(
        """
        # Why it is here.
        def square(r):
            return r * r


        def area(r, power=square):
            return math.pi * power(r)


        TAIL = area(1)
        """
    )
    assert "\n\n\n# Why it is here.\ndef square(r):\n    return r * r\n\n\ndef area(" in source
    assert source.index("class Layer") < source.index("# Why") < source.index("TAIL = ")
    exec(source, {})


def test_imports_follow_those_of_the_reference_and_are_there_once():
    source = composed("import math\nfrom functools import partial\nimport re" + NOTHING_ELSE)
    assert "import math\nfrom functools import partial\nimport re\n\nFIRST" in source
    assert source.count("import math") == 1


def test_the_docstring_is_the_overlay_s_where_it_has_one():
    source = composed('"""Another way."""' + NOTHING_ELSE)
    assert source.startswith('\n"""Another way."""\n\nimport')
    assert composed(NOTHING_ELSE).startswith('\n"""The reference."""\n\nimport')


def test_a_class_keeps_the_members_that_the_overlay_does_not_define():
    overlay = '''
        class Base:
            def extra(self):
                return 7


        class Layer(Base):
            """Another layer."""

            def back(self, x):
                return self.third(x) - self.extra()

            def third(self, x):
                return 3 * x
        '''
    module = run(overlay)
    assert module["Layer"]().forward(4) == (12 - 7) * 0.5
    assert module["Layer"].__doc__ == "Another layer."
    assert composed(overlay).count("class Layer") == 1


def test_a_member_may_be_replaced_without_a_docstring():
    module = run("class Layer:\n    rate = 2\n")
    assert module["Layer"]().forward(4) == 16
    assert module["Layer"].__doc__ == "A layer."


@pytest.mark.parametrize(
    ("overlay", "sentence"),
    [
        ("def area(r:", "NAME/layers.py is not valid Python"),
        ("x = '\0'", "NAME/layers.py is not valid Python"),
        ('"""Nothing."""\nimport re\n', "NAME/layers.py defines nothing."),
        ('class Layer:\n    """Nothing."""\n', "NAME/layers.py defines nothing in Layer."),
        ("print(1)", "NAME/layers.py, line 1: neither an import nor a definition."),
        ("SCALE = 2", "SCALE is the same as in the reference: remove it."),
        ("FIRST, LAST = (1, 2)", "(FIRST, LAST) is the same as in the reference: remove it."),
        ("def area(r):\n    # pi\n    return math.pi * r * r", "area is the same"),
        ('def double(x: int):\n    "2 x."\n    return SCALE * x', "double is the same"),
        ("class Layer:\n    rate = 0.5", "Layer.rate is the same"),
        ("class Layer:\n    def back(self, x): return double(x)", "Layer.back is the same"),
    ],
)
def test_a_bad_overlay_is_an_error_that_names_the_file(overlay, sentence):
    with pytest.raises(CourseError, match=r"NAME/layers\.py") as error:
        composed(overlay)
    assert sentence in str(error.value)


def test_an_overlay_that_is_not_utf_8_is_an_error():
    with pytest.raises(CourseError, match=r"NAME/x\.py is not valid Python"):
        compose(b"A = 1", b"# \xff", "NAME/x.py")


@pytest.fixture
def alternative(tmp_path, monkeypatch):
    """The folder of an alternative in a scratch solutions/ folder."""
    for assignment in (A1, A5):
        folder = tmp_path / "solutions" / assignment.name
        folder.mkdir(parents=True)
        for name in assignment.files:
            content = (ROOT / "solutions" / assignment.name / name).read_bytes()
            (folder / name).write_bytes(content)
    monkeypatch.setattr(right_versions, "ROOT", tmp_path)

    def folder_of(assignment):
        folder = tmp_path / "solutions" / assignment.name / "alternatives" / "short"
        folder.mkdir(parents=True)
        return folder

    return folder_of


def test_a_file_that_an_alternative_lacks_is_the_reference_s(alternative):
    (alternative(A5) / "attention.py").write_text("def causal_mask(n):\n    return n\n")
    files = right_versions.alternatives(A5)["short"]
    assert [*files] == [*A5.files]
    before = right_versions.reference(A5)
    assert files["attention_numpy.py"] == before["attention_numpy.py"]
    assert b"def causal_mask(n):\n    return n\n" in files["attention.py"]


def test_a_file_that_the_assignment_lacks_is_an_error(alternative):
    (alternative(A1) / "pooling.py").write_text("A = 1\n")
    with pytest.raises(CourseError, match=r"short/pooling\.py is not a file of the assignment"):
        right_versions.alternatives(A1)


def test_an_alternative_without_a_file_is_an_error(alternative):
    alternative(A1)
    with pytest.raises(CourseError, match=r"alternatives/short has no Python file"):
        right_versions.alternatives(A1)


@pytest.mark.parametrize("assignment", load_all(), ids=lambda entry: entry.short)
def test_every_alternative_says_why_it_is_there(assignment):
    for file in (ROOT / "solutions" / assignment.name / "alternatives").glob("*/*.py"):
        assert file.read_text("utf-8").startswith('"""'), file
