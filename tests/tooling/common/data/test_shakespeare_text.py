"""Tests of the Shakespeare texts: split, characters, and sources of tiny Shakespeare."""

import http.client
import re
import urllib.request
from io import BytesIO

import numpy as np
import pytest

from common.data import Text, load_shakespeare, shakespeare
from common.data.cache import digest
from common.errors import CourseError


@pytest.fixture(scope="module")
def plays(warm):
    """The plays, loaded once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONV2GPT_CACHE", str(warm))
        return load_shakespeare()


def test_a_tenth_of_the_plays_is_held_out_and_no_play_is_in_both_parts(plays):
    assert not set(shakespeare.TRAIN) & set(shakespeare.VALIDATION)
    assert len(shakespeare.TRAIN + shakespeare.VALIDATION) == 37
    assert 0.08 < len(plays.validation) / len(plays.train + plays.validation) < 0.12
    assert "\nHAMLET:\n" in plays.train
    assert "\nHAMLET:\n" not in plays.validation
    assert "\nMACBETH:\n" in plays.validation
    assert "\nMACBETH:\n" not in plays.train


def test_the_vocabulary_is_sorted_plain_and_known_from_training(plays):
    assert list(plays.vocabulary) == sorted(set(plays.train + plays.validation))
    assert set(plays.validation) <= set(plays.train)
    assert re.fullmatch(r"[\n !\"'(),.:;?A-Za-z0-9-]+", plays.vocabulary)


def test_characters_become_numbers_and_back(plays):
    numbers = plays.encode(plays.validation)
    assert numbers.dtype == np.int64
    assert plays.decode(numbers) == plays.validation
    assert plays.decode(numbers[:5].tolist()) == plays.validation[:5]
    assert plays.encode("").shape == (0,)
    assert plays.decode([]) == ""
    assert [plays.vocabulary[n] for n in plays.encode("To be")] == list("To be")


def test_what_is_not_in_the_vocabulary_is_an_error(plays):
    for strange in ("abc\N{EURO SIGN}", "a~", "\0"):
        with pytest.raises(ValueError, match=re.escape(repr(strange[-1]))):
            plays.encode(strange)
    for number in (-1, len(plays.vocabulary)):
        with pytest.raises(ValueError, match="between 0 and"):
            plays.decode([0, number])


def test_a_text_survives_its_file():
    text = Text("abc\n", "d\n")
    assert Text.from_bytes(text.to_bytes()) == text


def test_no_apparatus_is_left_in_the_plays(plays):
    whole = plays.train + plays.validation
    for word in ("Gutenberg", r"\be-?text", "copyright", "public domain"):
        assert not re.search(word, whole, re.I), word
    assert not re.search(r"William Shakespeare|dramatis personae|persons represented", whole, re.I)
    assert not re.search(r"^(ACT|SCENE) [IVX0-9]|THE END|^SONG", whole, re.M)
    assert not re.search(r"[][{}@_*/&]", whole)
    assert not re.search(r"\b(Exit|Exeunt|Re-enter)\b", whole)
    assert not re.search(r"^ | $|  |\n\n\n|\t|\r", whole, re.M)


def test_every_paragraph_of_the_plays_is_a_speech_under_a_name(plays):
    for part in (plays.train, plays.validation):
        assert part.endswith("\n")
        for paragraph in part.strip("\n").split("\n\n"):
            name, *lines = paragraph.split("\n")
            assert re.fullmatch(r"[A-Z][A-Z' -]+:", name), name
            assert len(lines) > 0, name


def test_names_are_whole_and_nobody_is_lost(plays):
    names = set(re.findall(r"^([A-Z' -]+):$", plays.train, re.M))
    assert names >= {
        "HAMLET",
        "FIRST CLOWN",
        "ROSENCRANTZ AND GUILDENSTERN",
        "FALSTAFF",
        "MRS FORD",
    }
    assert not names & {"HAM", "FAL", "GLOU", "SONG", "EXEUNT", "III", "DUMB SHOW"}
    # Speeches that a first look at the texts would have lost.
    for line in ("Take, O, take those lips away,", "To sing a song that old was sung,"):
        assert f":\n{line}\n" in plays.train


def test_there_is_no_third_shakespeare():
    with pytest.raises(CourseError, match="Available: plays, tiny"):
        load_shakespeare("sonnets")


# Tiny Shakespeare: a made-up text stands for it, so that no test needs the net.


@pytest.fixture
def small(cold, monkeypatch):
    """Bytes that count as tiny Shakespeare, and that no place has yet."""
    content = b"First Citizen:\nSpeak, speak.\n" * 10
    monkeypatch.setattr(shakespeare, "TINY_SHA256", digest(content))
    answer_downloads(monkeypatch, OSError("no net"))
    return content


def answer_downloads(monkeypatch, answer):
    """Let downloads get these bytes, or this error; the addresses that are asked for."""
    asked = []

    def urlopen(url, timeout):
        asked.append(url)
        if isinstance(answer, Exception):
            raise answer
        return BytesIO(answer)

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    return asked


def test_tiny_shakespeare_comes_from_the_folder_that_is_named(small, tmp_path, monkeypatch):
    (tmp_path / "tinyshakespeare.txt").write_bytes(small)
    monkeypatch.setenv("CONV2GPT_DATA", str(tmp_path))
    text = load_shakespeare("tiny")
    assert (text.train + text.validation).encode() == small
    assert len(text.train) == int(0.9 * len(small))
    (tmp_path / "tinyshakespeare.txt").write_bytes(small + b"!")
    with pytest.raises(CourseError, match=r"tinyshakespeare\.txt has the wrong SHA-256"):
        load_shakespeare("tiny")


def test_tiny_shakespeare_is_downloaded_once(small, cold, monkeypatch):
    asked = answer_downloads(monkeypatch, small)
    assert load_shakespeare("tiny") == load_shakespeare("tiny")
    assert asked == [shakespeare.TINY_URL]
    (cold / "tinyshakespeare.txt").write_bytes(b"damaged")
    load_shakespeare("tiny")
    assert len(asked) == 2
    assert (cold / "tinyshakespeare.txt").read_bytes() == small


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (OSError("no net"), "no net"),
        (http.client.IncompleteRead(b""), "IncompleteRead.+"),
        (TimeoutError(), "TimeoutError"),
        (b"something else", "the downloaded file has the wrong SHA-256"),
    ],
)
def test_a_download_that_fails_says_how_to_get_it(small, cold, monkeypatch, answer, why):
    answer_downloads(monkeypatch, answer)
    sentence = rf"can't be downloaded \({why}\). Save http.*CONV2GPT_DATA"
    with pytest.raises(CourseError, match=sentence):
        load_shakespeare("tiny")
    assert not cold.exists()
