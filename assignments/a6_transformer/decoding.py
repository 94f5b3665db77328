"""Assignment 6, exercise 6.7: greedy decoding, beam search and attention maps.

The conventions at the top of layers.py hold here too.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from assignments.a6_transformer.transformer import (
    BOS,
    EOS,
    PAD,
    Transformer,
    check_ids,
    check_padding,
    make_masks,
    trim,
)
from common.training.evaluation_mode import evaluating


def check_length(model: Transformer, max_length: int) -> None:
    """Given: raise ValueError unless a model can generate max_length tokens.

    The last of them is predicted from max_length positions: BOS and max_length - 1 tokens. So a
    model with learned positions can generate as many tokens as it has positions.
    """
    if max_length < 1:
        raise ValueError(f"max_length must be at least 1, got {max_length}")
    positions = model.config.max_length
    if model.config.positions == "learned" and max_length > positions:
        raise ValueError(
            f"max_length must be at most {positions}, the learned positions, got {max_length}"
        )


def strip_special_tokens(ids: list[int]) -> list[int]:
    """Given: a sequence up to its EOS, without PAD, BOS and EOS."""
    end = ids.index(EOS) if EOS in ids else len(ids)
    return [token for token in ids[:end] if token not in (PAD, BOS)]


def exact_match(decoded: list[list[int]], target: Int[Tensor, "n t"]) -> float:
    """Given: the fraction of sequences that are right from the first token to the last.

    Raises ValueError if there are none, or not as many of them as targets.
    """
    check_ids(target)
    if len(decoded) != len(target):
        raise ValueError(
            f"there must be one sequence per target, got {len(decoded)} for {len(target)}"
        )
    expected = [strip_special_tokens(row) for row in target.tolist()]
    right = [ids == wanted for ids, wanted in zip(decoded, expected, strict=True)]
    return sum(right) / len(right)


def next_log_probabilities(
    model: Transformer,
    prefix: Int[Tensor, "n t"],
    memory: Float[Tensor, "n s d_model"],
    source: Int[Tensor, "n s"],
) -> Float[Tensor, "n v"]:
    """The log-softmax of the logits after the last column of prefix, in the mode of the model.

    prefix, memory and source have the same n. For a row of prefix that ends with PAD, the result
    means nothing. No sequence continues with PAD or BOS: after the log-softmax, these two get -inf.
    The others keep their log-probabilities; they are not renormalized to sum to 1.
    memory: what model.encode gave for source, with the source_mask of make_masks.
    """
    raise NotImplementedError("next_log_probabilities: exercise 6.7 is yours to write")


def greedy_decode(
    model: Transformer, source: Int[Tensor, "n s"], max_length: int = 32
) -> list[list[int]]:
    """Translate: from BOS on, always take the most likely next token (the lowest id on a tie).

    A sequence ends with EOS, or when it has max_length tokens, EOS included.
    Returns a list of ids for each source, without PAD, BOS and EOS. How a source is decoded doesn't
    depend on the others in the batch. Works in evaluation mode without gradients, and leaves the
    model in the mode in which it was (`with evaluating(model):`, which knows one mode for the whole
    model).
    Raises ValueError, before it decodes anything, if max_length is below 1, or above
    model.config.max_length where positions are learned (check_length). A source with more columns
    than learned positions raises it too; whether columns of padding alone count is up to you.
    """
    check_padding(source)
    check_length(model, max_length)
    raise NotImplementedError("greedy_decode: exercise 6.7 is yours to write")


def beam_search(
    model: Transformer,
    source: Int[Tensor, "1 s"],
    max_length: int,
    beam_width: int,
    length_penalty: float,
) -> list[int]:
    """Translate one source by following several hypotheses at once.

    A hypothesis is a sequence of ids that starts with BOS, and its log-probability is the sum of
    those of its tokens, EOS included (next_log_probabilities). At first there is one: BOS alone.
    Each step extends every live hypothesis by every token but PAD and BOS, and of these keeps the
    beam_width with the highest log-probability, or all if they are fewer. Those that end with EOS
    are set aside as finished, the others are live. The search stops when none is live, or after
    max_length steps; it may stop earlier where that changes no result.

    The result is the hypothesis with the highest log-probability / length**length_penalty, among
    all that are finished and those that are still live at the end. Its length is the number of its
    tokens, EOS included, BOS not. On a tie, here or within a step, either may win. A length_penalty
    of hundreds may overflow.

    So beam_width 1 is greedy_decode but for ties, and a beam that holds everything finds the best
    of all sequences of at most max_length tokens.
    Returns the ids of the result, without BOS and EOS. beam_decode calls this, in evaluation
    mode, after it has checked the arguments; source has no padding. Tests use beam_decode only.
    """
    raise NotImplementedError("beam_search: exercise 6.7 is yours to write")


def beam_decode(
    model: Transformer,
    source: Int[Tensor, "n s"],
    max_length: int = 32,
    beam_width: int = 4,
    length_penalty: float = 0.6,
) -> list[list[int]]:
    """Given: beam_search for each source, with results like those of greedy_decode.

    Leaves the model in its mode. Raises ValueError as greedy_decode does, and if beam_width is
    below 1, or length_penalty is below 0 or not finite.
    """
    check_padding(source)
    check_length(model, max_length)
    if beam_width < 1:
        raise ValueError(f"beam_width must be at least 1, got {beam_width}")
    if not 0 <= length_penalty < math.inf:
        raise ValueError(f"length_penalty must be finite and at least 0, got {length_penalty}")
    with evaluating(model):
        return [
            beam_search(model, trim(row[None]), max_length, beam_width, length_penalty)
            for row in source
        ]


def attention_maps(
    model: Transformer, source: Int[Tensor, "n s"], target: Int[Tensor, "n t"]
) -> dict[str, Float[Tensor, "layers n heads t_q t_k"]]:
    """The attention weights of every layer and head when the model reads source and target.

    target: decoder inputs, which start with BOS.
    Returns, without gradients, the attention weights of

        "encoder" (encoder layers, n, heads, s, s)    the self-attention of the encoder
        "decoder" (decoder layers, n, heads, t, t)    the self-attention of the decoder
        "cross"   (decoder layers, n, heads, t, s)    the cross-attention to the encoder's output

    The first layer comes first. Works in evaluation mode and restores the mode as greedy_decode
    does. A forward hook on a module sees what it returns (register_forward_hook); remove the hook
    when done.
    """
    raise NotImplementedError("attention_maps: exercise 6.7 is yours to write")
