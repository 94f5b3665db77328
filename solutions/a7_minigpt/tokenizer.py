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
        # BEGIN SOLUTION
        if not text:
            raise ValueError("the text is empty: a tokenizer needs at least one character")
        return cls("".join(sorted(set(text))))
        # END SOLUTION

    def encode(self, text: str) -> Int[Tensor, " length"]:
        """The id of each character, as an int64 tensor. An empty text gives an empty tensor.

        Raises ValueError for an unknown character. The message shows it as repr does, so that a
        line break is readable too: '\\n'.
        """
        # BEGIN SOLUTION
        ids = {character: index for index, character in enumerate(self.characters)}
        try:
            return torch.tensor([ids[character] for character in text], dtype=torch.int64)
        except KeyError as error:
            raise ValueError(f"{error.args[0]!r} is not in the vocabulary") from None
        # END SOLUTION

    def decode(self, ids: Int[Tensor, " length"] | list[int]) -> str:
        """The text that ids stand for: a tensor with one axis, or a list.

        Raises ValueError for an id outside 0 ... vocab_size - 1. (Python would accept -1.)
        """
        # BEGIN SOLUTION
        ids = ids.tolist() if isinstance(ids, Tensor) else ids
        if any(not 0 <= index < self.vocab_size for index in ids):
            raise ValueError(f"ids must be between 0 and {self.vocab_size - 1}")
        return "".join(self.characters[index] for index in ids)
        # END SOLUTION

    def save(self, path: str | Path) -> None:
        """Write the characters to a file: JSON, {"characters": "..."}, in UTF-8."""
        # BEGIN SOLUTION
        content = json.dumps({"characters": self.characters}, ensure_ascii=False)
        Path(path).write_text(content, encoding="utf-8")
        # END SOLUTION

    @classmethod
    def load(cls, path: str | Path) -> "CharTokenizer":
        """The tokenizer that save wrote.

        Raises ValueError if the file is not JSON, or not an object with "characters" that
        CharTokenizer accepts. For a missing file it raises FileNotFoundError, as open does.
        """
        # BEGIN SOLUTION
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:  # from JSON or from UTF-8
            raise ValueError(f"{path} is not a saved tokenizer: {error}") from None
        if not isinstance(content, dict) or "characters" not in content:
            raise ValueError(f"{path} is not a saved tokenizer: it has no characters")
        return cls(content["characters"])
        # END SOLUTION
