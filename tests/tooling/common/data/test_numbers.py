"""Tests of the number words: splits, tokens, ids, padding, and a wrong num2words package."""

import numpy as np
import pytest

from common.assignment import ROOT
from common.data import Vocabulary, load_numbers, numbers
from common.data.cache import digest
from common.data.numbers import detokenize, pad, tokenize
from common.data.packages import NUM2WORDS, DataPackage
from common.errors import CourseError
from tests.tooling.scratch_copies import python


@pytest.fixture(scope="module")
def data(warm):
    """The pairs, loaded once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONV2GPT_CACHE", str(warm))
        return load_numbers()


@pytest.fixture(params=["train", "validation", "test"])
def part(data, request):
    """Each part in turn."""
    return getattr(data, request.param)


# The split


def test_the_parts_have_their_sizes_and_share_no_number(data):
    parts = (data.train, data.validation, data.test)
    assert [len(part) for part in parts] == [8000, 1000, 1000]
    assert len({number for part in parts for number in part.numbers}) == 10_000


def test_every_number_up_to_1000_is_somewhere_and_none_is_out_of_range(data):
    every = {n for part in (data.train, data.validation, data.test) for n in part.numbers}
    assert every >= set(range(1, 1001))
    assert min(every) == 1
    assert max(every) < 1_000_000


def test_each_part_and_each_slice_holds_short_and_long_numbers(part):
    for chosen in (part.numbers, part.numbers[:500]):
        for first, last, count in numbers.GROUPS:
            share = np.mean([first <= number <= last for number in chosen])
            assert abs(share - count / 10_000) < 0.05


def test_every_token_occurs_in_training(data):
    assert {token for tokens in data.train.source for token in tokens} == set(
        data.source_vocabulary.tokens[3:]
    )
    assert {token for tokens in data.train.target for token in tokens} == set(
        data.target_vocabulary.tokens[3:]
    )


def test_lengths_vary_from_one_to_about_a_dozen(part):
    for side in (part.source, part.target):
        lengths = [len(tokens) for tokens in side]
        assert min(lengths) == 1
        assert 12 <= max(lengths) <= 13


# Words and tokens


@pytest.mark.parametrize(
    ("number", "english", "french"),
    [
        (97, "ninety-seven", "quatre-vingt-dix-sept"),
        (71, "seventy-one", "soixante et onze"),
        (80, "eighty", "quatre-vingts"),
        (200, "two hundred", "deux cents"),
        (201, "two hundred and one", "deux cent un"),
    ],
)
def test_a_number_has_its_words_in_both_languages(data, number, english, french):
    for part in (data.train, data.validation, data.test):
        if number in part.numbers:
            index = part.numbers.index(number)
            assert detokenize(part.source[index]) == english
            assert detokenize(part.target[index]) == french


def test_a_hyphen_stays_with_its_word_and_a_comma_is_a_token():
    assert tokenize("ninety-seven") == ["ninety", "-seven"]
    assert tokenize("one thousand, one hundred") == ["one", "thousand", ",", "one", "hundred"]


def test_joining_tokens_gives_back_the_spelling(data, warm):
    [file] = warm.iterdir()
    assert digest(file.read_bytes()) == numbers.WORDS_SHA256
    rows = [line.split("\t") for line in file.read_text("utf-8").splitlines()]
    assert [int(number) for number, _, _ in rows[:8000]] == data.train.numbers
    for _, *spellings in rows:
        for spelling in spellings:
            assert detokenize(tokenize(spelling)) == spelling


# Ids


def test_special_ids_come_first_and_words_are_sorted():
    vocabulary = Vocabulary(["two", "one", "two"])
    assert vocabulary.tokens == ("<pad>", "<bos>", "<eos>", "one", "two")
    assert len(vocabulary) == 5
    assert (numbers.PAD, numbers.BOS, numbers.EOS) == (0, 1, 2)


def test_ids_become_tokens_again(part):
    for tokens, ids in zip(part.source[:100], part.source_ids[:100], strict=True):
        assert ids.dtype == np.int64
        assert len(ids) == len(tokens)
        assert part.source_vocabulary.decode(ids) == tokens
    for tokens, ids in zip(part.target[:100], part.target_ids[:100], strict=True):
        assert (ids[0], ids[-1], len(ids)) == (1, 2, len(tokens) + 2)
        assert part.target_vocabulary.decode(ids) == tokens


def test_decoding_stops_at_the_end_and_leaves_padding_out():
    vocabulary = Vocabulary(["one", "two"])
    assert vocabulary.decode([1, 4, 3, 2, 3, 0, 0]) == ["two", "one"]
    assert vocabulary.decode([4, 0, 3]) == ["two", "one"]
    assert vocabulary.decode([]) == []
    assert vocabulary.encode([]).dtype == np.int64


def test_what_is_not_in_the_vocabulary_is_an_error():
    vocabulary = Vocabulary(["one"])
    with pytest.raises(ValueError, match="'two' is not in the vocabulary"):
        vocabulary.encode(["one", "two"])
    for wrong in (-1, 4):
        with pytest.raises(ValueError, match="range from 0 to 3"):
            vocabulary.decode([3, wrong])


def test_padding_comes_after_the_sequences():
    ids, lengths = pad([[5, 6, 7], [], np.array([8])])
    assert ids.tolist() == [[5, 6, 7], [0, 0, 0], [8, 0, 0]]
    assert lengths.tolist() == [3, 0, 1]
    assert ids.dtype == lengths.dtype == np.int64
    ids, lengths = pad([])
    assert (ids.shape, lengths.shape) == ((0, 0), (0,))


# The package


def test_the_package_needs_no_other(cold):
    """It is installed with --no-deps, so its dependencies are missing."""
    environment = {"CONV2GPT_CACHE": str(cold), "PYTHONPATH": str(NUM2WORDS.folder().parent)}
    program = (
        "import sys; sys.modules['docopt'] = None; from common.data import load_numbers; "
        "print(len(load_numbers().train))"
    )
    result = python("-c", program, cwd=ROOT, env=environment)
    assert (result.stdout, result.stderr) == ("8000\n", "")


def test_once_made_the_words_need_no_package(data, monkeypatch):
    monkeypatch.setattr(numbers, "NUM2WORDS", DataPackage("num2words", "no_such_module", "0.5.14"))
    again = load_numbers()
    for name in ("train", "validation", "test"):
        assert getattr(again, name).numbers == getattr(data, name).numbers
        assert getattr(again, name).target == getattr(data, name).target


def package(tmp_path, monkeypatch, name, source):
    """A package that replaces num2words."""
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(numbers, "NUM2WORDS", DataPackage("num2words", name, "0.5.14"))


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("other_wording", "def num2words(number, lang):\n    return f'{lang} {number}'\n"),
        ("broken_package", "import no_module_of_this_name\n"),
    ],
)
def test_other_words_are_noticed_and_not_kept(tmp_path, cold, monkeypatch, name, source):
    package(tmp_path, monkeypatch, name, source)
    with pytest.raises(CourseError, match=r"--force-reinstall num2words==0\.5\.14`"):
        load_numbers()
    assert not cold.exists()
