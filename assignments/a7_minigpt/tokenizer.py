"""Assignment 7, exercise 7.1: characters to ids and back.

A tokenizer turns text into the ids that a model reads, and ids back into text. Here every character
is a token, and its id is its index in a sorted string of all known characters.
"""

import json
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor


class CharTokenizer:
    """Maps each known character to an id.

    tokenizer.characters: all known characters in one string, each once, sorted by code point.
    The id of a character is its index in that string, so ids run from 0 to vocab_size - 1.
    """

    def __init__(self, characters: str) -> None:
        """Given: store the characters. Raises ValueError unless they are sorted and distinct."""
        if not isinstance(characters, str) or not characters:
            raise ValueError(f"characters must be a string that isn't empty, got {characters!r}")
        if list(characters) != sorted(set(characters)):
            raise ValueError("characters must be distinct and sorted by code point")
        self.characters = characters

    @property
    def vocab_size(self) -> int:
        """Given: how many ids there are."""
        return len(self.characters)

    @classmethod
    def from_text(cls, text: str) -> "CharTokenizer":
        """The tokenizer of a text's characters. Raises ValueError for an empty text."""
        raise NotImplementedError("CharTokenizer.from_text: exercise 7.1 is yours to write")

    def encode(self, text: str) -> Int[Tensor, " length"]:
        """The id of each character, as an int64 tensor. An empty text gives an empty tensor.

        Raises ValueError for an unknown character. The message shows it as repr does, so that a
        line break is readable too: '\\n'.
        """
        raise NotImplementedError("CharTokenizer.encode: exercise 7.1 is yours to write")

    def decode(self, ids: Int[Tensor, " length"] | list[int]) -> str:
        """The text that ids stand for: a tensor with one axis, or a list.

        Raises ValueError for an id outside 0 ... vocab_size - 1. (Python would accept -1.)
        """
        raise NotImplementedError("CharTokenizer.decode: exercise 7.1 is yours to write")

    def save(self, path: str | Path) -> None:
        """Write the characters to a file: JSON, {"characters": "..."}, in UTF-8."""
        raise NotImplementedError("CharTokenizer.save: exercise 7.1 is yours to write")

    @classmethod
    def load(cls, path: str | Path) -> "CharTokenizer":
        """The tokenizer that save wrote.

        Raises ValueError if the file is not JSON, or not an object with "characters" that
        CharTokenizer accepts. For a missing file it raises FileNotFoundError, as open does.
        """
        raise NotImplementedError("CharTokenizer.load: exercise 7.1 is yours to write")
