"""Tests of how text of others is shown: everything that can't be seen is an escape."""

import json
import sys
import unicodedata

import pytest

from common.visible_text import UNSEEN, visible, visible_json, visible_line


@pytest.mark.parametrize("show", [visible, visible_line, visible_json])
def test_nothing_unseen_is_left_of_any_character(show):
    shown = show("".join(map(chr, range(sys.maxunicode + 1))))
    left = {letter for letter in shown if unicodedata.category(letter) in UNSEEN}
    assert left == (set() if show is visible_line else {"\n", "\t"})


def test_what_can_be_seen_stays_and_the_rest_is_named():
    assert visible("naïve 中文\t😀\n") == "naïve 中文\t😀\n"
    assert visible("\x1b[2J\x07\x9b\u202e\u200b\ud800\r") == (
        r"\x1b[2J\x07\x9b\u202e\u200b\ud800\r"
    )
    assert visible("one\r\ntwo") == "one\ntwo"
    assert visible(visible("\x1b")) == visible("\x1b")
    assert visible_line("a\n\tb") == r"a\n\tb"


def test_json_of_the_same_content_comes_back_unchanged():
    text = "\x7f\x9b\u202e\u200b\U000e0041é"
    shown = visible_json(json.dumps(text, ensure_ascii=False))
    assert json.loads(shown) == text and "é" in shown and "\x7f" not in shown
