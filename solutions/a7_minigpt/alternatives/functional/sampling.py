"""Assignment 7 by functions: one loop for both, which asks another function for the scores."""

import math
from collections import deque
from collections.abc import Callable

import torch
import torch.nn.functional as F
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
    if not temperature >= 0:
        raise ValueError(f"temperature {temperature}")
    if (top_k or 1) < 1 or top_k == 0:
        raise ValueError(f"top_k {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p {top_p}")
    if temperature == 0:
        top_k, temperature = 1, 1.0
    logits, order = (logits / temperature).sort(descending=True)
    logits[top_k or len(logits) :] = -math.inf
    p = logits.softmax(dim=0)
    if top_p is not None:
        sums = F.pad(p.cumsum(0)[:-1], (1, 0))
        p = logits.masked_fill(sums >= top_p, -math.inf).softmax(dim=0)
    return p[order.argsort()]


def next_window(window: list[int], token: int, context: int) -> list[int]:
    """The tokens that the model looks at once another one is there."""
    kept = deque(window, maxlen=context // 2 if len(window) == context else context)
    return [*kept, token]


def first_window(prompt: Int[Tensor, " t"], context: int) -> list[int]:
    """Given: the window after a prompt, as if its tokens had come one after another."""
    window: list[int] = []
    for token in prompt.tolist():
        window = next_window(window, token, context)
    return window


def draw(p: Float[Tensor, " vocabulary"], generator: torch.Generator | None) -> int:
    """Given: one token, drawn with these probabilities."""
    return int(torch.multinomial(p.cpu(), 1, generator=generator))


def written_on(
    model: GPT,
    prompt: Tensor,
    length: int,
    settings: tuple,
    generator: torch.Generator | None,
    scores: Callable[[list[int], torch.device], Tensor],
) -> Tensor:
    """The prompt and length more tokens, by the scores that a function gives for a window."""
    device, context = next(model.parameters()).device, model.config.context
    window, added = first_window(prompt, context), []
    with Evaluation(model):
        for _ in range(length):
            added.append(draw(next_probabilities(scores(window, device), *settings), generator))
            window = next_window(window, added[-1], context)
    return torch.cat([prompt, prompt.new_tensor(added)])


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

    def scores(window: list[int], device: torch.device) -> Tensor:
        return model(torch.tensor([window], device=device))[0][0, -1]

    settings = temperature, top_k, top_p
    return written_on(model, prompt, length, settings, generator, scores)


# Exercise 7.8


class KVCache:
    """The keys and values of the tokens that a model has read so far, for each of its layers."""

    def __init__(self, config: GPTConfig) -> None:
        self.config = config
        self.pieces: list[list[tuple[Tensor, Tensor]]] = [[] for _ in range(config.layers)]

    @property
    def length(self) -> int:
        """How many tokens the last layer holds keys and values of."""
        return sum(k.shape[2] for k, _ in self.pieces[-1])

    def extend(
        self, layer: int, k: Float[Tensor, "n heads t size"], v: Float[Tensor, "n heads t size"]
    ) -> tuple[Float[Tensor, "n heads all size"], Float[Tensor, "n heads all size"]]:
        """Append the keys and values of t further tokens to a layer; return all that it holds."""
        pieces = [*self.pieces[layer], (k, v)]
        if sum(k.shape[2] for k, _ in pieces) > self.config.context:
            raise ValueError("there is no room for so many tokens")
        k, v = (torch.cat(parts, dim=2) for parts in zip(*pieces, strict=True))
        self.pieces[layer] = [(k, v)]
        return k, v


def forward_cached(
    model: GPT, tokens: Int[Tensor, "n t"], cache: KVCache
) -> Float[Tensor, "n t vocabulary"]:
    """The scores after each of t further tokens, which follow those that the cache holds."""
    x = model.embed(tokens, cache.length)
    for layer, block in enumerate(model.blocks):
        q, k, v = block.attention.project(block.norm1(x))
        keys, values = cache.extend(layer, k, v)
        x = x + block.attention.attend(q, keys, values)
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
    cache, read = KVCache(model.config), []

    def scores(window: list[int], device: torch.device) -> Tensor:
        nonlocal cache, read
        if window[: len(read)] != read or len(window) == len(read):
            cache, read = KVCache(model.config), []
        unread = torch.tensor([window[len(read) :]], device=device)
        read = window
        return forward_cached(model, unread, cache)[0, -1]

    settings = temperature, top_k, top_p
    return written_on(model, prompt, length, settings, generator, scores)
