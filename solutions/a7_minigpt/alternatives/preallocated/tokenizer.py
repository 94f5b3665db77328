"""Whole arrays: a sorted table of code points is searched at once."""

import numpy as np


def code_points(text: str) -> np.ndarray:
    """The Unicode code points of a text's characters."""
    return np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)


class CharTokenizer:
    @classmethod
    def from_text(cls, text: str) -> "CharTokenizer":
        """The tokenizer of a text's characters. Raises ValueError for an empty text."""
        if len(text) == 0:
            raise ValueError("the text is empty")
        points = np.unique(code_points(text))
        return cls("".join(map(chr, points.tolist())))

    def encode(self, text: str) -> Tensor:
        """The id of each character, as an int64 tensor. An empty text gives an empty tensor."""
        known, points = code_points(self.characters), code_points(text)
        ids = np.searchsorted(known, points)
        wrong = known[np.minimum(ids, self.vocab_size - 1)] != points
        if wrong.any():
            unknown = chr(int(points[wrong.argmax()]))
            raise ValueError(f"{unknown!r}: this character has no id")
        return torch.from_numpy(ids.astype(np.int64))

    def decode(self, ids: Tensor | list[int]) -> str:
        """The text that ids stand for: a tensor of one axis, or a list."""
        ids = torch.as_tensor(ids, dtype=torch.int64)
        if bool(((ids < 0) | (ids >= self.vocab_size)).any()):
            raise ValueError(f"ids must be between 0 and {self.vocab_size - 1}")
        return code_points(self.characters)[ids.numpy(force=True)].tobytes().decode("utf-32-le")
