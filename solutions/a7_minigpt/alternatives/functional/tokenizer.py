"""Assignment 7 by functions: Python's own translation tables do the work."""

import json
from collections import Counter
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor


class CharTokenizer:
    """Knows the characters of a text, and gives each an id."""

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
        if not text:
            raise ValueError("there is no text")
        return cls("".join(sorted(Counter(text))))

    def encode(self, text: str) -> Int[Tensor, " length"]:
        """The id of each character, as an int64 tensor. An empty text gives an empty tensor."""
        ids = {character: place for place, character in enumerate(self.vocabulary)}
        for character in set(text) - ids.keys():
            raise ValueError(f"not in the vocabulary: {character!r}")
        return torch.tensor(list(map(ids.__getitem__, text)), dtype=torch.long)

    def decode(self, ids: Int[Tensor, " length"] | list[int]) -> str:
        """The text that ids stand for: a tensor of one axis, or a list."""
        characters = dict(enumerate(self.vocabulary))
        try:
            return "".join(characters[int(place)] for place in ids)
        except KeyError as error:
            raise ValueError(f"there is no id {error}") from None

    def save(self, path: str | Path) -> None:
        """Write the vocabulary to a file: JSON, {"vocabulary": "..."}, in UTF-8."""
        with Path(path).open("w", encoding="utf-8") as file:
            json.dump(vars(self), file, ensure_ascii=False, sort_keys=True)

    @classmethod
    def load(cls, path: str | Path) -> "CharTokenizer":
        """The tokenizer that save wrote."""
        try:
            content = json.loads(Path(path).read_text("utf-8"))
            return cls(**content)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} can't be read as a tokenizer: {error}") from error
