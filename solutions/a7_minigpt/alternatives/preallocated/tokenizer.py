"""Whole arrays: a sorted table of code points is searched at once."""

import numpy as np


def code_points(text: str) -> np.ndarray:
    """The numbers of a text's characters in Unicode."""
    return np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)


class CharTokenizer:
    @classmethod
    def from_text(cls, text: str) -> "CharTokenizer":
        """The tokenizer that knows a text's characters. Raises ValueError for an empty text."""
        if len(text) == 0:
            raise ValueError("the text is empty")
        points = np.unique(code_points(text))
        return cls("".join(map(chr, points.tolist())))

    def encode(self, text: str) -> Tensor:
        """The id of each character, as an int64 tensor. An empty text gives an empty tensor."""
        known, points = code_points(self.vocabulary), code_points(text)
        places = np.searchsorted(known, points)
        wrong = known[np.minimum(places, self.size - 1)] != points
        if wrong.any():
            unknown = chr(int(points[wrong.argmax()]))
            raise ValueError(f"{unknown!r}: this character has no id")
        return torch.from_numpy(places.astype(np.int64))

    def decode(self, ids: Tensor | list[int]) -> str:
        """The text that ids stand for: a tensor of one axis, or a list."""
        places = torch.as_tensor(ids, dtype=torch.int64)
        if bool(((places < 0) | (places >= self.size)).any()):
            raise ValueError(f"ids from 0 to {self.size - 1} only")
        return code_points(self.vocabulary)[places.numpy(force=True)].tobytes().decode("utf-32-le")
