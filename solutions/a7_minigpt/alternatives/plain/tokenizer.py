"""Assignment 7, written plainly: characters one by one."""

import json
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
        if text == "":
            raise ValueError("no characters")
        found = []
        for character in sorted(text):
            if not found or found[-1] != character:
                found.append(character)
        return CharTokenizer("".join(found))

    def encode(self, text: str) -> Int[Tensor, " length"]:
        """The id of each character, as an int64 tensor. An empty text gives an empty tensor."""
        ids = dict(zip(self.vocabulary, range(self.size), strict=True))
        out = []
        for character in text:
            if character not in ids:
                raise ValueError("unknown character: " + repr(character))
            out.append(ids[character])
        return torch.LongTensor(out)

    def decode(self, ids: Int[Tensor, " length"] | list[int]) -> str:
        """The text that ids stand for: a tensor of one axis, or a list."""
        text = ""
        for place in map(int, ids):
            if place < 0 or place > self.size - 1:
                raise ValueError(f"no character has the id {place}")
            text += self.vocabulary[place]
        return text

    def save(self, path: str | Path) -> None:
        """Write the vocabulary to a file: JSON, {"vocabulary": "..."}, in UTF-8."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"vocabulary": self.vocabulary}, file, indent=1)

    @classmethod
    def load(cls, path: str | Path) -> "CharTokenizer":
        """The tokenizer that save wrote."""
        with open(path, "rb") as file:
            raw = file.read()
        try:
            return cls(json.loads(raw.decode("utf-8"))["vocabulary"])
        except (UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError, IndexError) as error:
            raise ValueError(f"{path} holds no vocabulary") from error
