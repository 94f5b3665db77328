"""Assignment 7 on whole arrays: a sorted table of code points is searched at once."""

import json
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor


def code_points(text: str) -> np.ndarray:
    """The numbers of a text's characters in Unicode."""
    return np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)


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
        if len(text) == 0:
            raise ValueError("the text is empty")
        points = np.unique(code_points(text))
        return cls("".join(map(chr, points.tolist())))

    def encode(self, text: str) -> Int[Tensor, " length"]:
        """The id of each character, as an int64 tensor. An empty text gives an empty tensor."""
        known, points = code_points(self.vocabulary), code_points(text)
        places = np.searchsorted(known, points)
        wrong = known[np.minimum(places, self.size - 1)] != points
        if wrong.any():
            unknown = chr(int(points[wrong.argmax()]))
            raise ValueError(f"{unknown!r}: this character has no id")
        return torch.from_numpy(places.astype(np.int64))

    def decode(self, ids: Int[Tensor, " length"] | list[int]) -> str:
        """The text that ids stand for: a tensor of one axis, or a list."""
        places = torch.as_tensor(ids, dtype=torch.int64)
        if bool(((places < 0) | (places >= self.size)).any()):
            raise ValueError(f"ids from 0 to {self.size - 1} only")
        return code_points(self.vocabulary)[places.numpy(force=True)].tobytes().decode("utf-32-le")

    def save(self, path: str | Path) -> None:
        """Write the vocabulary to a file: JSON, {"vocabulary": "..."}, in UTF-8."""
        Path(path).write_bytes(json.dumps({"vocabulary": self.vocabulary}).encode())

    @classmethod
    def load(cls, path: str | Path) -> "CharTokenizer":
        """The tokenizer that save wrote."""
        content = Path(path).read_bytes()
        try:
            match json.loads(content.decode("utf-8")):
                case {"vocabulary": str(vocabulary)}:
                    return cls(vocabulary)
        except UnicodeDecodeError:
            pass
        raise ValueError(f"{path} is no tokenizer")
