"""Tests of the list of equivalent mutants: keyed by function and code, not by layout."""

import pytest

from autograder.proving.wrong_versions import equivalents
from autograder.proving.wrong_versions import mutants as mutating
from autograder.proving.wrong_versions.mutants import mutants
from common.assignment import load_assignment
from common.errors import CourseError

A1 = load_assignment("a1")

SOURCE = """def f(x):
    # BEGIN SOLUTION
    x = x + max(0, 3)
    x = abs(x)
    x = x + max(0, 3)
    return [x, -1]
    # END SOLUTION
"""
LISTED = """
[[equivalent]]
function = "f"
change = '''
- return [x, -1]
+ return [x, +1]'''
reason = "because"

[[equivalent]]
function = "f"
occurrence = 2
change = '''
- x = x + max(0, 3)
+ x = x - max(0, 3)'''
reason = "it is the second"
"""
ENTRY = """
[[equivalent]]
function = "f"
change = '''
- {}
+ {}'''
reason = "so"
"""


@pytest.fixture
def equivalent(tmp_path, monkeypatch):
    """The mutants that a list calls equivalent in a source, by line, with the reasons."""
    file = tmp_path / "solutions" / A1.name / "equivalent.toml"
    file.parent.mkdir(parents=True)
    monkeypatch.setattr(equivalents, "ROOT", tmp_path)

    def read(source, text=LISTED):
        file.write_text(text)
        for module in (mutating, equivalents):
            monkeypatch.setattr(module, "reference", lambda _: {"convolution.py": source.encode()})
        found = mutants(A1)
        reasons = equivalents.read_equivalents(A1, found)
        return {m.line: (m.change, reasons[m.name]) for m in found if m.name in reasons}

    return read


def test_equivalent_mutants_are_named_by_function_and_change(equivalent):
    assert equivalent(SOURCE) == {
        5: ("- x = x + max(0, 3)\n+ x = x - max(0, 3)", "it is the second"),
        6: ("- return [x, -1]\n+ return [x, +1]", "because"),
    }


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("    x = abs(x)", "    # return [x, -1]\n    x = abs(x)  # positive", [6, 7]),
        ("x = x + max(0, 3)", "x = x + max(\n        0,\n        3,\n    )", [8, 12]),
        ("x = x + max(0, 3)", "x = (\n        x\n        + max(0, 3)\n    )", [10, 12]),
        ("return [x, -1]", "return [\n        x,  # all\n        -1,\n    ]", [5, 8]),
        ("x = abs(x)", "y = abs(x) * 7", [5, 6]),
    ],
    ids=["comment", "line breaks", "wrapped line", "comment inside", "other code"],
)
def test_layout_and_other_code_break_no_equivalent_mutant(equivalent, old, new, lines):
    found = equivalent(SOURCE.replace(old, new))
    assert sorted(found) == lines
    assert [found[line][1] for line in lines] == ["it is the second", "because"]


def test_a_mutant_keeps_its_name_in_another_layout(monkeypatch):
    names = []
    for value in ("[x, -1]", "[\n        x,  # all\n        -1,\n    ]"):
        source = SOURCE.replace("[x, -1]", value).encode()
        monkeypatch.setattr(mutating, "reference", lambda _, source=source: {"a.py": source})
        names.append({mutant.name for mutant in mutants(A1)})
    assert names[0] == names[1]


def test_equivalent_mutants_that_are_gone_are_named_all_at_once(equivalent):
    text = LISTED + ENTRY.format("abs(x)", "abs(x, x)") + ENTRY.format("x = x +", "x = x -")
    with pytest.raises(CourseError) as error:
        equivalent(SOURCE.replace("[x, -1]", "[x, -2]"), text)
    where = f"solutions/{A1.name}/equivalent.toml, f"
    assert str(error.value).splitlines() == [
        f"{where}, `return [x, -1]` to `return [x, +1]`: the code to replace must occur once in f, "
        "but occurs 0 times (convolution.py); nearest: `return [x, -2]`",
        f"{where}, `abs(x)` to `abs(x, x)`: it is no longer a mutant of the reference.",
        f"{where}, `x = x +` to `x = x -`: the code to replace must occur once in f, "
        "but occurs 2 times (convolution.py); nearest: `x = abs(x)`",
    ]


def test_without_mutants_only_the_code_is_looked_for(monkeypatch, equivalent):
    monkeypatch.setattr(
        "tests.tooling.proving.wrong_versions.test_equivalents.mutants", lambda _: []
    )
    assert equivalent(SOURCE, LISTED + ENTRY.format("abs(x)", "abs(x, x)")) == {}
    with pytest.raises(CourseError, match=r"nearest: `abs\(x\)`"):
        equivalent(SOURCE, LISTED + ENTRY.format("abs(y)", "abs(x)"))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("occurrence = 2", "occurrence = 3", "must occur 3 times or more in f, but occurs 2 times"),
        ("occurrence = 2", "mutant = 'f:1234'", "unknown field `mutant`"),
        ("+ return", "return", "matching regex"),
        ("reason", "file = 'other.py'\nreason", "`file` must name one of convolution.py"),
    ],
)
def test_a_bad_list_of_equivalent_mutants_is_an_error(equivalent, old, new, sentence):
    with pytest.raises(CourseError, match=r"equivalent\.toml") as error:
        equivalent(SOURCE, LISTED.replace(old, new))
    assert sentence in str(error.value)
