"""Assignment 6, exercise 6.7: greedy decoding, beam search and attention maps.

The conventions at the top of layers.py hold here too.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from assignments.a6_transformer.transformer import (
    BEGIN,
    END,
    PADDING,
    Transformer,
    check_ids,
    check_padding,
    make_masks,
    trim,
)
from common.training.evaluation_mode import evaluating


def next_log_probabilities(
    model: Transformer,
    prefix: Int[Tensor, "n t"],
    memory: Float[Tensor, "n s d_model"],
    source: Int[Tensor, "n s"],
) -> Float[Tensor, "n v"]:
    """The log-softmax of the logits after the last column of prefix.

    No sequence goes on with PADDING or BEGIN: afterwards, these two get -inf. The others keep their
    log-probabilities; they are not made to sum to 1 again.
    memory: what the encoder made of source, with the mask of make_masks.
    """
    raise NotImplementedError("next_log_probabilities: exercise 6.7 is yours to write")


def check_length(model: Transformer, max_length: int) -> None:
    """Given: raise ValueError unless a model can write max_length tokens.

    The last of them is chosen after max_length places: BEGIN, and one less than max_length tokens.
    So a model with learned places can write as many tokens as it has places.
    """
    places = model.config.max_length
    if max_length < 1:
        raise ValueError(f"max_length is {max_length}, and must be at least 1")
    if model.config.positions == "learned" and max_length > places:
        raise ValueError(f"max_length is {max_length}, but only {places} places are learned")


def words_of(ids: list[int]) -> list[int]:
    """Given: a sequence up to its END, without BEGIN, END and padding."""
    end = ids.index(END) if END in ids else len(ids)
    return [token for token in ids[:end] if token not in (PADDING, BEGIN)]


def exact_match(decoded: list[list[int]], target: Int[Tensor, "n t"]) -> float:
    """Given: the share of sequences that are right from the first token to the last.

    Raises ValueError if there are none, or not as many of them as targets.
    """
    check_ids(target)
    if len(decoded) != len(target):
        raise ValueError(f"there are {len(decoded)} sequences and {len(target)} targets")
    right = [words == words_of(row) for words, row in zip(decoded, target.tolist(), strict=True)]
    return sum(right) / len(right)


def greedy_decode(
    model: Transformer, source: Int[Tensor, "n s"], max_length: int = 32
) -> list[list[int]]:
    """Translate: from BEGIN on, always take the likeliest next token (the lowest id on a tie).

    A sequence ends with END, or when it has max_length tokens.
    Returns a list of ids for each source, without BEGIN, END and padding. How a source is decoded
    doesn't depend on the others. Works in evaluation mode and leaves the model as it was
    (evaluating).
    Raises ValueError, before anything is written, if max_length is below 1, or above
    model.config.max_length where places are learned (check_length).
    """
    check_padding(source)
    check_length(model, max_length)
    raise NotImplementedError("greedy_decode: exercise 6.7 is yours to write")


def beam_search(
    model: Transformer, source: Int[Tensor, "1 s"], max_length: int, width: int, alpha: float
) -> list[int]:
    """Translate one source by following several hypotheses at once.

    A hypothesis is a sequence of ids from BEGIN on, and its log-probability is the sum of those of
    its tokens, END included (next_log_probabilities). At first there is one: BEGIN alone.
    Each step goes from every live hypothesis to all that have one more token, and of these keeps
    the `width` with the highest log-probability. Those that end with END are set aside as finished,
    the others are live. The search stops when none is live, or after max_length steps; it may stop
    earlier where that changes no answer.

    The answer is the hypothesis with the highest log-probability / length**alpha, among all that
    are finished and those that are still live at the end. Its length is the number of its tokens,
    END included, BEGIN not. On a tie either may win.

    So width 1 is greedy_decode, and a width that holds everything finds the best of all sequences.
    Returns the ids of the answer, without BEGIN and END. beam_decode calls this, in evaluation
    mode, and has checked the numbers; source has no padding. Tests use beam_decode only.
    """
    raise NotImplementedError("beam_search: exercise 6.7 is yours to write")


def beam_decode(
    model: Transformer,
    source: Int[Tensor, "n s"],
    max_length: int = 32,
    width: int = 4,
    alpha: float = 0.6,
) -> list[list[int]]:
    """Given: what beam_search finds for each source, as greedy_decode returns it.

    Leaves the model as it was.
    Raises ValueError as greedy_decode does, and if width is below 1, or alpha is below 0 or not
    finite.
    """
    check_padding(source)
    check_length(model, max_length)
    if width < 1 or not 0 <= alpha < math.inf:
        raise ValueError(f"no search with width {width} and alpha {alpha}")
    with evaluating(model):
        return [beam_search(model, trim(row[None]), max_length, width, alpha) for row in source]


def attention_maps(
    model: Transformer, source: Int[Tensor, "n s"], target: Int[Tensor, "n t"]
) -> dict[str, Float[Tensor, "layers n heads t_q t_k"]]:
    """Who looks at whom, in every layer and head, when the model reads source and target.

    target: decoder inputs, which begin with BEGIN.
    Returns, without gradients, the attention weights of

        "encoder" (encoder_layers, n, heads, s, s)    the self-attention of the encoder
        "decoder" (decoder_layers, n, heads, t, t)    the self-attention of the decoder
        "cross"   (decoder_layers, n, heads, t, s)    the decoder's attention to the encoder

    The first layer comes first. Works in evaluation mode and leaves the model as it was. A forward
    hook on a module sees what it returns (register_forward_hook); remove it when you are done.
    """
    raise NotImplementedError("attention_maps: exercise 6.7 is yours to write")
