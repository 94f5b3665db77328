"""Loads 10,000 number words in English and French, for translation, with tokenizer.

Tokens are words. A token that follows a hyphen keeps it, and a comma is a token of its own: "two
thousand, one hundred and six" has seven tokens, "ninety-seven" has two, ninety and -seven. So
detokenize restores the exact spelling.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int64
from numpy.typing import ArrayLike

from common.data.cache import cached, digest
from common.data.packages import NUM2WORDS

WORDS_SHA256 = "42e50f8957b7e718f68e4e3164de2d51a1f6429d888cae4f5ee248c05bdd51f4"
# Every number from 1 to 1000, and this many of each length above: the first, the last, how many.
GROUPS = ((1, 1000, 1000), (1001, 9999, 2000), (10_000, 99_999, 3000), (100_000, 999_999, 4000))
TRAIN, VALIDATION, TEST = 8000, 1000, 1000

PAD, BOS, EOS = 0, 1, 2
SPECIAL = ("<pad>", "<bos>", "<eos>")


class Vocabulary:
    """Tokens and their ids: 0 is PAD, 1 is BOS (begin), 2 is EOS (end); words come after."""

    def __init__(self, words: Iterable[str]) -> None:
        """The words are sorted, without duplicates."""
        self.tokens = (*SPECIAL, *sorted(set(words)))
        self._ids = {token: index for index, token in enumerate(self.tokens)}

    def __len__(self) -> int:
        """The number of tokens, including the three special ones."""
        return len(self.tokens)

    def encode(self, tokens: Iterable[str]) -> Int64[np.ndarray, "length"]:
        """The id of each token; nothing is added."""
        tokens = list(tokens)
        for token in tokens:
            if token not in self._ids:
                raise ValueError(f"{token!r} is not in the vocabulary")
        return np.array([self._ids[token] for token in tokens], dtype=np.int64)

    def decode(self, ids: ArrayLike) -> list[str]:
        """The words up to the first EOS, without PAD and BOS."""
        array = np.asarray(ids, dtype=np.int64)  # (length,)
        if array.size and not 0 <= array.min() <= array.max() < len(self):
            raise ValueError(
                f"ids must be in the range from 0 to {len(self) - 1}, "
                f"got {array.min()} to {array.max()}"
            )
        row = array.tolist()
        end = row.index(EOS) if EOS in row else len(row)
        return [self.tokens[token] for token in row[:end] if token >= len(SPECIAL)]


@dataclass(frozen=True)
class Pairs:
    """Numbers in words: source[k] and target[k] are the tokens of numbers[k]."""

    numbers: list[int]
    source: list[list[str]]  # English
    target: list[list[str]]  # French
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary

    def __len__(self) -> int:
        """The number of pairs."""
        return len(self.numbers)

    @cached_property
    def source_ids(self) -> list[Int64[np.ndarray, "length"]]:
        """The ids of each source: only its tokens."""
        return [self.source_vocabulary.encode(tokens) for tokens in self.source]

    @cached_property
    def target_ids(self) -> list[Int64[np.ndarray, "length"]]:
        """The ids of each target: BOS, its tokens, EOS."""
        bos, eos = SPECIAL[BOS], SPECIAL[EOS]
        return [self.target_vocabulary.encode([bos, *tokens, eos]) for tokens in self.target]


@dataclass(frozen=True)
class Numbers:
    """Three splits that share no number. Every token occurs in the training split."""

    train: Pairs
    validation: Pairs
    test: Pairs

    @property
    def source_vocabulary(self) -> Vocabulary:
        """The English tokens."""
        return self.train.source_vocabulary

    @property
    def target_vocabulary(self) -> Vocabulary:
        """The French tokens."""
        return self.train.target_vocabulary


def load_numbers() -> Numbers:
    """The pairs in three fixed splits of 8,000, 1,000 and 1,000, each in random order."""
    lines = cached("numbers", WORDS_SHA256, number_words).decode().splitlines()
    rows = [line.split("\t") for line in lines]
    numbers = [int(number) for number, _, _ in rows]
    source = [tokenize(english) for _, english, _ in rows]
    target = [tokenize(french) for _, _, french in rows]
    source_vocabulary = Vocabulary(token for tokens in source for token in tokens)
    target_vocabulary = Vocabulary(token for tokens in target for token in tokens)

    def part(first: int, count: int) -> Pairs:
        rows = slice(first, first + count)
        return Pairs(
            numbers[rows], source[rows], target[rows], source_vocabulary, target_vocabulary
        )

    return Numbers(part(0, TRAIN), part(TRAIN, VALIDATION), part(TRAIN + VALIDATION, TEST))


def tokenize(words: str) -> list[str]:
    """The tokens of a number in words."""
    return words.replace("-", " -").replace(",", " ,").split()


def detokenize(tokens: Sequence[str]) -> str:
    """The inverse of tokenize: the number in words."""
    return " ".join(tokens).replace(" -", "-").replace(" ,", ",")


def pad(
    sequences: Sequence[ArrayLike],
) -> tuple[Int64[np.ndarray, "n t"], Int64[np.ndarray, "n"]]:
    """Sequences of ids as rows, with padding after them, and their lengths.

    The number of columns is the length of the longest sequence.
    """
    rows = [np.asarray(sequence, dtype=np.int64) for sequence in sequences]
    lengths = np.array([len(row) for row in rows], dtype=np.int64)  # (n,)
    ids = np.full((len(rows), int(lengths.max(initial=0))), PAD, dtype=np.int64)  # (n, t)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = row
    return ids, lengths


def number_words() -> bytes:
    """The chosen numbers in the order of the splits: one line per number, with both spellings."""
    num2words = NUM2WORDS.load().num2words
    lines = [
        f"{number}\t{num2words(number, lang='en')}\t{num2words(number, lang='fr')}\n"
        for number in in_random_order(
            [number for group in GROUPS for number in draw_numbers(*group)]
        )
    ]
    content = "".join(lines).encode()
    if digest(content) != WORDS_SHA256:
        raise NUM2WORDS.damaged()
    return content


def draw_numbers(first: int, last: int, count: int) -> list[int]:
    """`count` different numbers from first to last, the same each time."""
    if count == last - first + 1:
        return list(range(first, last + 1))
    chosen: dict[int, None] = {}  # a set that keeps its order
    draw = 0
    while len(chosen) < count:
        chosen[first + hash_number(f"{first} {draw}") % (last - first + 1)] = None
        draw += 1
    return list(chosen)


def in_random_order(numbers: Iterable[int]) -> list[int]:
    """The numbers in an order that looks random, the same each time."""
    return sorted(numbers, key=lambda number: hash_number(f"{number}"))


def hash_number(text: str) -> int:
    """A number that looks random. Unlike a generator's, no new version of a library changes it."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
