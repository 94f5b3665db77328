"""Formulas written out: loops over Python's own numbers, and a dictionary for a cache."""

import math


def next_probabilities(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    """The probabilities from which the next token is drawn. Their sum is 1."""
    if temperature < 0 or math.isnan(temperature):
        raise ValueError("temperature must be at least 0")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k must be at least 1")
    if top_p is not None and (top_p <= 0 or top_p > 1):
        raise ValueError("top_p must be in (0, 1]")
    values = logits.tolist()
    tokens = sorted(range(len(values)), key=lambda token: -values[token])
    highest = values[tokens[0]]
    out = [0.0] * len(values)
    if temperature == 0:
        out[tokens[0]] = 1.0
        return torch.tensor(out, dtype=logits.dtype, device=logits.device)
    for token in tokens[:top_k]:
        out[token] = math.exp((values[token] - highest) / temperature)
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


def next_window(window: list[int], token: int, context_length: int) -> list[int]:
    """The tokens that the model attends to after one more token has come."""
    kept = list(window)
    if len(kept) >= context_length:
        while len(kept) > context_length // 2:
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
        last = self.config.num_layers - 1
        return self.kept[last][0].size(2) if last in self.kept else 0

    def extend(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Append the keys and values of t more tokens to a layer; return all that it holds."""
        if layer in self.kept:
            old_k, old_v = self.kept[layer]
            k, v = torch.cat((old_k, k), dim=2), torch.cat((old_v, v), dim=2)
        if k.size(2) > self.config.context_length:
            raise ValueError("the cache is full")
        self.kept[layer] = k, v
        return k, v
