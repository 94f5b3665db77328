"""Formulas by hand: loops over tokens in Python's own numbers, and a dictionary for a cache."""

import math


def next_probabilities(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    """How likely each token is to be drawn as the next one. The sum is 1."""
    if temperature < 0 or math.isnan(temperature):
        raise ValueError("the temperature is below 0")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k is below 1")
    if top_p is not None and (top_p <= 0 or top_p > 1):
        raise ValueError("top_p is outside (0, 1]")
    scores = logits.tolist()
    tokens = sorted(range(len(scores)), key=lambda token: -scores[token])
    highest = scores[tokens[0]]
    out = [0.0] * len(scores)
    if temperature == 0:
        out[tokens[0]] = 1.0
        return torch.tensor(out, dtype=logits.dtype, device=logits.device)
    for token in tokens[:top_k]:
        out[token] = math.exp((scores[token] - highest) / temperature)
    whole = sum(out)
    out = [p / whole for p in out]
    if top_p is not None:
        reached = 0.0
        for token in tokens:
            if reached >= top_p:
                out[token] = 0.0
            reached += out[token]
        out = [p / sum(out) for p in out]
    return torch.tensor(out, dtype=logits.dtype, device=logits.device)


def next_window(window: list[int], token: int, context: int) -> list[int]:
    """The tokens that the model looks at once another one is there."""
    kept = list(window)
    if len(kept) >= context:
        while len(kept) > context // 2:
            kept.pop(0)
    kept.append(token)
    return kept


class KVCache:
    def __init__(self, config: GPTConfig) -> None:
        self.config = config
        self.kept: dict[int, tuple[Tensor, Tensor]] = {}

    @property
    def length(self) -> int:
        """How many tokens the last layer holds keys and values of."""
        last = self.config.layers - 1
        return self.kept[last][0].size(2) if last in self.kept else 0

    def extend(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Append the keys and values of t further tokens to a layer; return all that it holds."""
        if layer in self.kept:
            old_k, old_v = self.kept[layer]
            k, v = torch.cat((old_k, k), dim=2), torch.cat((old_v, v), dim=2)
        if k.size(2) > self.config.context:
            raise ValueError("the cache is full")
        self.kept[layer] = k, v
        return k, v
