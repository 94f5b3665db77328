"""Splits a text into training and validation, as characters and as ids."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int64
from numpy.typing import ArrayLike

SEPARATOR = "\0"  # occurs in no text


@dataclass(frozen=True)
class Text:
    """Both parts, and the ids of their characters: a character's index in the vocabulary."""

    train: str
    validation: str

    @cached_property
    def vocabulary(self) -> str:
        """Every character that occurs, sorted, once."""
        return "".join(sorted(set(self.train) | set(self.validation)))

    def encode(self, text: str) -> Int64[np.ndarray, "length"]:
        """The id of each character."""
        known = code_points(self.vocabulary)
        id_of = np.full(int(known.max()) + 2, -1, dtype=np.int64)  # the last is for all others
        id_of[known] = np.arange(len(known))
        ids = id_of[np.minimum(code_points(text), len(id_of) - 1)]
        if (ids < 0).any():
            raise ValueError(f"{text[int(ids.argmin())]!r} is not in the vocabulary")
        return ids

    def decode(self, numbers: ArrayLike) -> str:
        """The text of these ids."""
        places = np.asarray(numbers, dtype=np.int64)  # (length,)
        if places.size and not 0 <= places.min() <= places.max() < len(self.vocabulary):
            raise ValueError(f"ids must be between 0 and {len(self.vocabulary) - 1}")
        return code_points(self.vocabulary)[places].tobytes().decode("utf-32-le")

    def to_bytes(self) -> bytes:
        """Both parts in one file."""
        return f"{self.train}{SEPARATOR}{self.validation}".encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> "Text":
        """What to_bytes wrote."""
        train, _, validation = content.decode().partition(SEPARATOR)
        return cls(train, validation)


def code_points(text: str) -> np.ndarray:
    """Each character as the number that Unicode gives it."""
    return np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
