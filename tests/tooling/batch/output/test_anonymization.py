"""Tests of how names are hidden in texts."""

import pytest

from autograder.batch.batch_records import Entry, Student
from autograder.batch.output.anonymization import HIDDEN_NAME, anonymized

ADA = Student("Ada Lovelace", "18151852", "alovelace@example.edu")
MAX = Student("Max Li", "7", "max@example.edu")


def hidden(text, *students, identifier="417"):
    entry = Entry(identifier, "submission 1", students, "graded", 1.0, 1.0, 1.0, 1, "")
    return anonymized(text, entry)


@pytest.mark.parametrize(
    "name",
    (
        *("Ada Lovelace", "ada lovelace", "ada_lovelace", "AdaLovelace", "Lovelace, Ada"),
        *("LOVELACE_ADA", "ada.lovelace", "18151852", "alovelace@example.edu", "ALOVELACE"),
        *("Lovelace", "lovelace"),
    ),
)
def test_whoever_it_is_is_hidden(name):
    said = f"by {name}: see hw1_{name}.py"
    assert hidden(said, ADA) == f"by {HIDDEN_NAME}: see hw1_{HIDDEN_NAME}.py"


def test_words_that_hold_a_name_or_are_like_one_stay():
    words = "max_pool2d, adaptive, Limit: 7 points of 4170"
    assert hidden(words, ADA, MAX) == words
    assert hidden("Yours, Ada (417)", ADA) == f"Yours, {HIDDEN_NAME} ({HIDDEN_NAME})"


def test_both_of_a_group_are_hidden():
    assert hidden("Ada and Max Li", ADA, MAX) == f"{HIDDEN_NAME} and {HIDDEN_NAME}"


def test_names_of_files_that_were_handed_in_are_hidden_whatever_they_are():
    said = "convolution.py is missing. Found: lovelace-final.py, notes.txt.\nNext line."
    assert hidden(said, ADA) == f"convolution.py is missing. Found: {HIDDEN_NAME}\nNext line."
