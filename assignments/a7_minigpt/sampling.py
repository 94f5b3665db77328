"""Assignment 7, exercises 7.7 and 7.8: text from a model, token by token, then with a KV cache.

Conventions
    - Prompts and results are int64 tensors with one axis. A prompt has at least one id.
    - Mode: generate and generate_cached run the model in evaluation mode and without gradients
      (with the given context manager evaluating), and leave it in its previous mode.
      forward_cached uses the mode that the model is in.
    - Random numbers come from the generator; None means PyTorch's own.
    - Errors: ValueError, where a docstring says so. Other bad input is up to you.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assignments.a7_minigpt.model import GPT, GPTConfig
from common.training.evaluation_mode import evaluating


def check_prompt(prompt: Int[Tensor, " t"], length: int) -> None:
    """Given: raise ValueError unless the prompt is ids, at least one, and length is 0 or more."""
    if not isinstance(prompt, Tensor) or prompt.dtype != torch.int64 or prompt.ndim != 1:
        raise ValueError("the prompt must be an int64 tensor with one axis")
    if len(prompt) == 0:
        raise ValueError("the prompt is empty: it needs at least one id to continue from")
    if length < 0:
        raise ValueError(f"length must be at least 0, got {length}")


# Exercise 7.7


def next_probabilities(
    logits: Float[Tensor, " vocab_size"],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Float[Tensor, " vocab_size"]:
    """The probabilities from which the next token is drawn, in the logits' dtype. Their sum is 1.

    In this order:
    1. The softmax of logits / temperature. At temperature 0 the most likely token gets 1 and the
       others get 0.
    2. top_k: only the k most likely tokens remain; the others get 0. None, or a k above vocab_size,
       keeps all. The remaining probabilities are rescaled to a sum of 1.
    3. top_p (nucleus sampling): of these, the most likely tokens remain, just enough of them for a
       sum of at least top_p. So the one that reaches top_p is the last to remain. None keeps all.
       The remaining probabilities are rescaled to a sum of 1.
    Ties may be broken in any way, and rounding may decide where a sum is about equal to top_p.
    Raises ValueError for a temperature below 0, a top_k below 1, a top_p outside (0, 1].
    """
    raise NotImplementedError("next_probabilities: exercise 7.7 is yours to write")


def next_window(window: list[int], token: int, context_length: int) -> list[int]:
    """The tokens that the model attends to after one more token has come.

    A window has at most context_length tokens. If it is full, all but its newest
    context_length // 2 tokens are dropped (for a context_length of 1, all). Then the token is
    appended. Returns a new list.

    Dropping one token at a time would shift all others to new positions at every step. Dropping
    half does so once in a while, which is what makes a cache possible in 7.8.
    """
    raise NotImplementedError("next_window: exercise 7.7 is yours to write")


def first_window(prompt: Int[Tensor, " t"], context_length: int) -> list[int]:
    """Given: the window after a prompt, as if its tokens had come one after another."""
    window: list[int] = []
    for token in prompt.tolist():
        window = next_window(window, token, context_length)
    return window


def draw(p: Float[Tensor, " vocab_size"], generator: torch.Generator | None) -> int:
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
    """The prompt, and length more tokens, each drawn after those before it.

    For each new token the model reads the whole window (first_window of the prompt, then
    next_window). The logits at the window's last position are those of the next token:
    next_probabilities turns them into probabilities, and draw draws the token. At temperature 0 it
    is the most likely one.
    Returns a tensor on the prompt's device. A length of 0 returns a copy of the prompt.
    Raises ValueError for what check_prompt rejects. If length is at least 1, also for settings that
    next_probabilities rejects, and for ids out of range that are still in the prompt's window.
    """
    check_prompt(prompt, length)
    raise NotImplementedError("generate: exercise 7.7 is yours to write")


# Exercise 7.8


class KVCache:
    """The keys and values of the tokens that a model has read so far, for each of its layers.

    cache.length: how many tokens that are. A new cache is empty.
    """

    def __init__(self, config: GPTConfig) -> None:
        self.config = config
        raise NotImplementedError("KVCache.__init__: exercise 7.8 is yours to write")

    @property
    def length(self) -> int:
        """The number of tokens in the last layer, the one that forward_cached extends last."""
        raise NotImplementedError("KVCache.length: exercise 7.8 is yours to write")

    def extend(
        self,
        layer: int,
        k: Float[Tensor, "n num_heads t d_head"],
        v: Float[Tensor, "n num_heads t d_head"],
    ) -> tuple[Float[Tensor, "n num_heads all d_head"], Float[Tensor, "n num_heads all d_head"]]:
        """Append the keys and values of t more tokens to a layer; return all that it holds.

        Tensors returned earlier don't change. Raises ValueError if the layer would hold more than
        config.context_length tokens.
        """
        raise NotImplementedError("KVCache.extend: exercise 7.8 is yours to write")


def forward_cached(
    model: GPT, tokens: Int[Tensor, "n t"], cache: KVCache
) -> Float[Tensor, "n t vocab_size"]:
    """The logits after each of t more tokens, which follow those that the cache holds.

    They are what model gives for all tokens so far, at the last t positions; but only the new
    tokens go through the layers. Their positions start at cache.length. Afterwards the cache holds
    them too. The work of a Block is done here step by step: attention.project gives the new
    queries, keys and values, the cache gives all keys and values, and attention.attend does the
    rest. Where dropout acts here in training mode is up to you.
    Raises ValueError, as model.embed does, for more tokens than the context has room for.
    """
    raise NotImplementedError("forward_cached: exercise 7.8 is yours to write")


def generate_cached(
    model: GPT,
    prompt: Int[Tensor, " t"],
    length: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Int[Tensor, " t+length"]:
    """What generate gives for the same generator, but each token goes through the model once.

    Only when the window is full and its oldest half is dropped, all positions change: then the
    cache is rebuilt from the whole window. Raises what generate raises.
    """
    check_prompt(prompt, length)
    raise NotImplementedError("generate_cached: exercise 7.8 is yours to write")
