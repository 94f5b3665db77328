"""Assignment 7, exercise 7.1: characters to ids and back.

A tokenizer turns text into the ids that a model reads, and ids into text. Here every character is a
token. Its id is its place in the vocabulary.
"""

import json
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor


class CharTokenizer:
    """Knows the characters of a text, and gives each an id.

    tokenizer.vocabulary: all known characters as one string, each once, sorted by code points.
    The id of a character is its place in that string, so ids go from 0 to tokenizer.size - 1.
    """

    def __init__(self, vocabulary: str) -> None:
        """Given: keep the vocabulary. Raises ValueError unless it is a sorted string, each once."""
        if not isinstance(vocabulary, str) or not vocabulary:
            raise ValueError("a vocabulary is a string of at least one character")
        if list(vocabulary) != sorted(set(vocabulary)):
            raise ValueError("a vocabulary has each character once, sorted by code points")
        self.vocabulary = vocabulary

    @property
    def size(self) -> int:
        """Given: how many ids there are."""
        return len(self.vocabulary)

    @classmethod
    def from_text(cls, text: str) -> "CharTokenizer":
        """The tokenizer that knows a text's characters. Raises ValueError for an empty text."""
        # BEGIN SOLUTION
        if not text:
            raise ValueError("an empty text has no characters to learn")
        return cls("".join(sorted(set(text))))
        # END SOLUTION

    def encode(self, text: str) -> Int[Tensor, " length"]:
        """The id of each character, as an int64 tensor. An empty text gives an empty tensor.

        Raises ValueError for a character that is not in the vocabulary; the message shows that
        character as repr does, so that a line break can be read too: '\\n'.
        """
        # BEGIN SOLUTION
        ids = {character: place for place, character in enumerate(self.vocabulary)}
        try:
            return torch.tensor([ids[character] for character in text], dtype=torch.int64)
        except KeyError as error:
            raise ValueError(f"{error.args[0]!r} is not in the vocabulary") from None
        # END SOLUTION

    def decode(self, ids: Int[Tensor, " length"] | list[int]) -> str:
        """The text that ids stand for: a tensor of one axis, or a list.

        Raises ValueError for an id that is not from 0 to size - 1. (Python itself would take -1.)
        """
        # BEGIN SOLUTION
        places = ids.tolist() if isinstance(ids, Tensor) else ids
        if any(not 0 <= place < self.size for place in places):
            raise ValueError(f"ids lie between 0 and {self.size - 1}")
        return "".join(self.vocabulary[place] for place in places)
        # END SOLUTION

    def save(self, path: str | Path) -> None:
        """Write the vocabulary to a file: JSON, {"vocabulary": "..."}, in UTF-8."""
        # BEGIN SOLUTION
        content = json.dumps({"vocabulary": self.vocabulary}, ensure_ascii=False)
        Path(path).write_text(content, encoding="utf-8")
        # END SOLUTION

    @classmethod
    def load(cls, path: str | Path) -> "CharTokenizer":
        """The tokenizer that save wrote.

        Raises ValueError if the file is not JSON, or not an object with a "vocabulary" that
        CharTokenizer takes. A file that isn't there is a FileNotFoundError, as open raises it.
        """
        # BEGIN SOLUTION
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:  # of JSON and of UTF-8
            raise ValueError(f"{path} is not a saved tokenizer: {error}") from None
        if not isinstance(content, dict) or "vocabulary" not in content:
            raise ValueError(f"{path} is not a saved tokenizer: it has no vocabulary")
        return cls(content["vocabulary"])
        # END SOLUTION
