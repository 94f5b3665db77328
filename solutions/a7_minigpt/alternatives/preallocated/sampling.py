"""Assignment 7 on whole arrays: a cache with room for a whole context from the start."""

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
    if not (temperature >= 0 and (top_k is None or top_k >= 1)):
        raise ValueError("a temperature below 0, or a top_k below 1")
    if not (top_p is None or 0 < top_p <= 1):
        raise ValueError("top_p must lie in (0, 1]")
    if temperature == 0:
        return torch.zeros_like(logits).index_fill(0, logits.argmax(), 1)
    p = torch.softmax((logits - logits.max()) / temperature, dim=0)
    if top_k is not None:
        best = p.topk(min(top_k, len(p))).indices
        p = torch.zeros_like(p).index_copy(0, best, p[best])
        p /= p.sum()
    if top_p is not None:
        order = p.argsort(descending=True)
        count = int((p[order].cumsum(0) < top_p).sum()) + 1
        p = p.index_fill(0, order[count:], 0)
        p /= p.sum()
    return p


def next_window(window: list[int], token: int, context: int) -> list[int]:
    """The tokens that the model looks at once another one is there."""
    room = context // 2 if len(window) == context else context
    return [*window[max(len(window) - room, 0) :], token]


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
    device, context = model.token_embedding.weight.device, model.config.context
    tokens = prompt.new_empty(len(prompt) + length)
    tokens[: len(prompt)] = prompt
    window = first_window(prompt, context)
    with Evaluation(model):
        for place in range(len(prompt), len(tokens)):
            logits = model(torch.tensor([window], device=device))[0][0, -1]
            token = draw(next_probabilities(logits, temperature, top_k, top_p), generator)
            tokens[place] = token
            window = next_window(window, token, context)
    return tokens


# Exercise 7.8


class KVCache:
    """The keys and values of the tokens that a model has read so far, for each of its layers."""

    def __init__(self, config: GPTConfig) -> None:
        self.config = config
        self.buffers: list[Tensor | None] = [None] * config.layers
        self.filled = [0] * config.layers

    @property
    def length(self) -> int:
        """How many tokens the last layer holds keys and values of."""
        return self.filled[-1]

    def extend(
        self, layer: int, k: Float[Tensor, "n heads t size"], v: Float[Tensor, "n heads t size"]
    ) -> tuple[Float[Tensor, "n heads all size"], Float[Tensor, "n heads all size"]]:
        """Append the keys and values of t further tokens to a layer; return all that it holds."""
        begin, end = self.filled[layer], self.filled[layer] + k.shape[2]
        if end > self.config.context:
            raise ValueError(f"{end} tokens don't fit into a context of {self.config.context}")
        if self.buffers[layer] is None:
            n, heads, _, size = k.shape
            self.buffers[layer] = k.new_empty(2, n, heads, self.config.context, size)
        buffer = self.buffers[layer]
        buffer[0, :, :, begin:end], buffer[1, :, :, begin:end] = k, v
        self.filled[layer] = end
        return buffer[0, :, :, :end], buffer[1, :, :, :end]


def forward_cached(
    model: GPT, tokens: Int[Tensor, "n t"], cache: KVCache
) -> Float[Tensor, "n t vocabulary"]:
    """The scores after each of t further tokens, which follow those that the cache holds."""
    x = model.embed(tokens, cache.length)
    for layer, block in enumerate(model.blocks):
        attention = block.attention
        q, k, v = attention.project(block.norm1(x))
        x = attention.attend(q, *cache.extend(layer, k, v)) + x
        x = block.mlp(block.norm2(x)) + x
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
    device, context = model.token_embedding.weight.device, model.config.context
    tokens = prompt.new_empty(len(prompt) + length)
    tokens[: len(prompt)] = prompt
    window, cache = first_window(prompt, context), KVCache(model.config)
    fresh = window
    with Evaluation(model):
        for place in range(len(prompt), len(tokens)):
            logits = forward_cached(model, torch.tensor([fresh], device=device), cache)[0, -1]
            token = draw(next_probabilities(logits, temperature, top_k, top_p), generator)
            tokens[place] = token
            if len(window) == context:
                cache = KVCache(model.config)
            window = next_window(window, token, context)
            fresh = window[cache.length :]
    return tokens
