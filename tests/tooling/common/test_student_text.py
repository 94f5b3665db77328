"""Tests that text of student code is recognized wherever it is printed, however it is cut."""

import re

import numpy as np
import pytest

from common.errors import Explanation, Failure
from common.student_text import (
    PRINTED,
    WITHHELD,
    StudentBytes,
    StudentText,
    contains_pattern,
    is_marked,
    plain,
    read_json,
    unmarked,
    withheld,
)

CANARY = "canary 7.25 é 😀"
TEXT = StudentText(CANARY)
DATA = StudentBytes(CANARY.encode())
PRINTS = {
    "str": str(TEXT),
    "repr": repr(TEXT),
    "f-string": f"{TEXT}",
    "f-string with repr": f"{TEXT!r}",
    "f-string with ascii": f"{TEXT!a}",
    "repr of what was printed": repr(f"{TEXT}"),
    "repr twice": repr(repr(f"{TEXT}")),
    "width": f"{TEXT:>40}",
    "percent": "%s and %r" % (TEXT, TEXT),  # noqa: UP031
    "format": "{}".format(TEXT),  # noqa: UP032
    "list": str([TEXT]),
    "dict": f"{ {TEXT: 1} }",
    "exception": str(ValueError(TEXT)),
    "key error": str(KeyError(TEXT)),
    "method": f"{TEXT.upper().lower()}",
    "slice": f"{TEXT[:9]}",
    "part of what was printed": str(TEXT)[2:9],
    "split": ", ".join(map(str, TEXT.split())),
    "array": str(np.asarray(TEXT)),
    "failure": str(Failure(f"It is {TEXT}.")),
    "replaced": f"{TEXT}".replace("a", "b"),
    "letter": f"{TEXT[0]}",
    "bytes": f"{DATA}",
    "repr of bytes": f"{DATA!r:>40} {[DATA]}",
    "percent of bytes": "%s and %r" % (DATA, DATA),  # noqa: UP031
    "part of bytes": f"{DATA[3:]}",
    "decoded bytes": f"{DATA.decode()}",
    "hex digits": f"{DATA.hex()}",
    "exception of bytes": str(ValueError(DATA)),
}


@pytest.mark.parametrize("printed", PRINTS.values(), ids=PRINTS)
def test_a_hidden_result_shows_no_letter_of_it(printed):
    assert is_marked(printed) and "can" not in printed and "7.25" not in printed
    for part in ("sentence", "help", "relation", "hint"):
        explanation = Explanation(**{"sentence": "Wrong."} | {part: f"It is {printed}."})
        hidden = explanation.text(hidden=True)
        assert WITHHELD in hidden and not is_marked(hidden)
        assert not is_marked(explanation.text(hidden=False))


@pytest.mark.parametrize(
    "use",
    [
        lambda: ", ".join([TEXT]),
        lambda: "It is " + TEXT,
        lambda: TEXT + "!",
        lambda: re.search("canary", TEXT),
        lambda: "".join(TEXT),
        lambda: TEXT.encode(),
        lambda: float(TEXT),
    ],
)
def test_what_would_make_a_string_of_it_fails(use):
    with pytest.raises((TypeError, AttributeError)):
        use()


def test_a_public_result_shows_it_as_it_was():
    explanation = Explanation("Wrong.", f"got {TEXT} and {TEXT!r}")
    assert explanation.text(hidden=False) == f"Wrong.\ngot {CANARY} and {CANARY!r}"
    assert unmarked(str(StudentText("\ud800"))) == "\ufffd"
    assert unmarked(PRINTS["repr of what was printed"]) == f"{CANARY!r}"
    assert len(str(StudentText("x" * 10**6))) == PRINTED


def test_bytes_are_read_as_bytes():
    assert CANARY.encode() == DATA and DATA[0] == ord("c") and type(DATA[:2]) is StudentBytes
    assert isinstance(DATA, bytes) and DATA.decode() == CANARY and {DATA: 1}[CANARY.encode()] == 1
    assert int.from_bytes(DATA[:1], "little") == ord("c") and bytes(DATA) == CANARY.encode()


def test_json_of_student_code_holds_its_text():
    content = b'{"a canary": ["a canary", 1.5, null, {"b": true}]}'
    found, ours = read_json(StudentBytes(content)), read_json(content)
    assert found == ours == {"a canary": ["a canary", 1.5, None, {"b": True}]}
    assert "canary" not in str(found) and "canary" in str(ours)
    for broken in (b"", b"\xff", b"[1", b"[" * 10**5):
        with pytest.raises(ValueError, match=r".+"):
            read_json(StudentBytes(broken))


def test_our_own_words_stay_as_they_are():
    for text in ("", "out is wrong.", "é 😀 \\U0001f600 \\n", "a\nb"):
        assert (withheld(text), unmarked(text)) == (text, text)


def test_tests_compare_it_with_strings_of_their_own():
    assert TEXT == CANARY and CANARY == TEXT and TEXT != "other" and StudentText(CANARY) == TEXT
    assert isinstance(TEXT, str) and type(TEXT) is StudentText and plain(TEXT) == CANARY
    assert {TEXT: 1}[CANARY] == 1 and {TEXT} == {CANARY} and "canary" in TEXT and TEXT in [CANARY]
    assert sorted([StudentText("b"), "a", StudentText("c")]) == ["a", "b", "c"]
    assert TEXT.startswith("can") and TEXT.split()[0] == "canary" and len(TEXT) == len(CANARY)
    assert contains_pattern(TEXT, r"y \d") and contains_pattern(ValueError(TEXT), "^canary")
