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
    # BEGIN SOLUTION
    source_mask, target_mask = make_masks(source, prefix)
    logits = model.decode(prefix, memory, target_mask, source_mask)[:, -1]  # (n, v)
    log_p = F.log_softmax(logits, dim=-1)
    return log_p.index_fill(1, torch.tensor([PADDING, BEGIN]), -math.inf)
    # END SOLUTION


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
    # BEGIN SOLUTION
    with evaluating(model):
        memory = model.encode(source, make_masks(source, source)[0])  # (n, s, d_model)
        ids = torch.full((len(source), 1), BEGIN)
        ended = torch.zeros(len(source), dtype=torch.bool)
        while not ended.all() and ids.shape[1] <= max_length:
            token = next_log_probabilities(model, ids, memory, source).argmax(dim=-1)  # (n,)
            token = token.masked_fill(ended, PADDING)
            ended = ended | (token == END)
            ids = torch.cat([ids, token[:, None]], dim=1)
    return [words_of(row) for row in ids.tolist()]
    # END SOLUTION


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
    # BEGIN SOLUTION
    memory = model.encode(source)  # (1, s, d_model)
    live = torch.tensor([[BEGIN]])  # (hypotheses, tokens)
    scores = torch.zeros(1, dtype=torch.float64)
    ended = []  # (what the answer is chosen by, its ids)
    for length in range(1, max_length + 1):
        count = len(live)
        log_p = next_log_probabilities(
            model, live, memory.expand(count, -1, -1), source.expand(count, -1)
        )  # (count, v)
        totals = (scores[:, None] + log_p).flatten()  # (count * v,)
        best = totals.argsort(descending=True)[:width]
        best = best[totals[best] > -math.inf]  # a wide beam reaches PADDING and BEGIN
        parents, tokens = best // log_p.shape[1], best % log_p.shape[1]
        longer = torch.cat([live[parents], tokens[:, None]], dim=1)

        done = (tokens == END) | (length == max_length)
        ranks = totals[best[done]] / length**alpha
        ended += zip(ranks.tolist(), longer[done].tolist(), strict=True)
        live, scores = longer[~done], totals[best[~done]]
        # Log-probabilities only fall: stop when no live hypothesis can win any more.
        if len(live) == 0 or (ended and scores.max() / max_length**alpha < max(ended)[0]):
            break
    return words_of(max(ended)[1])
    # END SOLUTION


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
    # BEGIN SOLUTION
    attentions = {
        "encoder": [layer.self_attention for layer in model.encoder.layers],
        "decoder": [layer.self_attention for layer in model.decoder.layers],
        "cross": [layer.cross_attention for layer in model.decoder.layers],
    }
    weights: dict[nn.Module, Tensor] = {}

    def keep_weights(module: nn.Module, inputs: tuple, outputs: tuple) -> None:
        weights[module] = outputs[1]

    every = [module for modules in attentions.values() for module in modules]
    hooks = [module.register_forward_hook(keep_weights) for module in every]
    try:
        with evaluating(model):
            model(source, target)
    finally:
        for hook in hooks:
            hook.remove()
    return {
        name: torch.stack([weights[module] for module in modules])
        for name, modules in attentions.items()
    }
    # END SOLUTION
