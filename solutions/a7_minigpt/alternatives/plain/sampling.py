"""Assignment 7, written plainly: loops over tokens, and a dictionary for a cache."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assignments.a7_minigpt.model import GPT, GPTConfig


class Evaluation:
    """Given: a model in evaluation mode without gradients, inside a with block."""

    def __init__(self, model: GPT) -> None:
        self.model = model
        self.no_grad = torch.no_grad()

    def __enter__(self) -> None:
        self.was_training = self.model.training
        self.model.eval()
        self.no_grad.__enter__()

    def __exit__(self, *error: object) -> None:
        self.no_grad.__exit__(*error)
        self.model.train(self.was_training)


def check_prompt(prompt: Int[Tensor, " t"], length: int) -> None:
    """Given: raise ValueError unless the prompt is ids, at least one, and length is 0 or more."""
    if not isinstance(prompt, Tensor) or prompt.dtype != torch.int64 or prompt.ndim != 1:
        raise ValueError("a prompt is a tensor of int64 with one axis")
    if len(prompt) == 0:
        raise ValueError("the prompt is empty: a model needs something to go on from")
    if length < 0:
        raise ValueError(f"length must be at least 0, got {length}")


# Exercise 7.7


def next_probabilities(
    logits: Float[Tensor, " vocabulary"],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Float[Tensor, " vocabulary"]:
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


def first_window(prompt: Int[Tensor, " t"], context: int) -> list[int]:
    """Given: the window after a prompt, as if its tokens had come one after another."""
    window: list[int] = []
    for token in prompt.tolist():
        window = next_window(window, token, context)
    return window


def draw(p: Float[Tensor, " vocabulary"], generator: torch.Generator | None) -> int:
    """Given: one token, drawn with these probabilities."""
    return int(torch.multinomial(p.cpu(), 1, generator=generator))


def generate(
    model: GPT,
    prompt: Int[Tensor, " t"],
    length: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Int[Tensor, " t+length"]:
    """The prompt, and length more tokens, each drawn after those before it."""
    check_prompt(prompt, length)
    tokens = prompt.tolist()
    window = first_window(prompt, model.config.context)
    with Evaluation(model):
        while len(tokens) < len(prompt) + length:
            device = next(model.parameters()).device
            logits = model(torch.tensor(window, device=device)[None])[0]
            p = next_probabilities(logits[0, len(window) - 1], temperature, top_k, top_p)
            token = draw(p, generator)
            tokens.append(token)
            window = next_window(window, token, model.config.context)
    return torch.tensor(tokens, dtype=torch.int64, device=prompt.device)


# Exercise 7.8


class KVCache:
    """The keys and values of the tokens that a model has read so far, for each of its layers."""

    def __init__(self, config: GPTConfig) -> None:
        self.config = config
        self.kept: dict[int, tuple[Tensor, Tensor]] = {}

    @property
    def length(self) -> int:
        """How many tokens the last layer holds keys and values of."""
        last = self.config.layers - 1
        return self.kept[last][0].size(2) if last in self.kept else 0

    def extend(
        self, layer: int, k: Float[Tensor, "n heads t size"], v: Float[Tensor, "n heads t size"]
    ) -> tuple[Float[Tensor, "n heads all size"], Float[Tensor, "n heads all size"]]:
        """Append the keys and values of t further tokens to a layer; return all that it holds."""
        if layer in self.kept:
            old_k, old_v = self.kept[layer]
            k, v = torch.cat((old_k, k), dim=2), torch.cat((old_v, v), dim=2)
        if k.size(2) > self.config.context:
            raise ValueError("the cache is full")
        self.kept[layer] = k, v
        return k, v


def forward_cached(
    model: GPT, tokens: Int[Tensor, "n t"], cache: KVCache
) -> Float[Tensor, "n t vocabulary"]:
    """The scores after each of t further tokens, which follow those that the cache holds."""
    x = model.embed(tokens, start=cache.length)
    for layer in range(model.config.layers):
        block = model.blocks[layer]
        q, k, v = block.attention.project(block.norm1(x))
        all_k, all_v = cache.extend(layer, k, v)
        x = x + block.attention.attend(q, all_k, all_v)
        x = x + block.mlp(block.norm2(x))
    return model.scores(x)


def generate_cached(
    model: GPT,
    prompt: Int[Tensor, " t"],
    length: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Int[Tensor, " t+length"]:
    """What generate gives for the same generator, but each token goes through the model once."""
    check_prompt(prompt, length)
    tokens = prompt.tolist()
    window = unread = first_window(prompt, model.config.context)
    cache = KVCache(model.config)
    with Evaluation(model):
        while len(tokens) < len(prompt) + length:
            device = next(model.parameters()).device
            logits = forward_cached(model, torch.tensor(unread, device=device)[None], cache)
            p = next_probabilities(logits[0, -1], temperature, top_k, top_p)
            token = draw(p, generator)
            tokens.append(token)
            longer = next_window(window, token, model.config.context)
            unread = [token]
            if longer[:-1] != window or len(longer) <= len(window):
                unread, cache = longer, KVCache(model.config)
            window = longer
    return torch.tensor(tokens, dtype=torch.int64, device=prompt.device)
