"""How the tests check where dropout acts: on parts that give the same number everywhere.

Each drops a number by itself, and divides what it keeps by 1 - p. So the numbers that come out tell
which dropouts they went through, whatever random numbers are drawn.
"""

import math

import torch

from common.testing.dropout import check_levels, check_tensor
from tests.a6_transformer.cases import compare, draw_vectors, silent_block
from tests.a6_transformer.model_cases import silent_model

WHERE = {
    "self_attention": "what the self-attention gives",
    "cross_attention": "what the attention to memory gives",
    "feed_forward": "the hidden features and what the feed-forward gives",
}
PARTS_OF = {
    "EncoderLayer": ("self_attention", "feed_forward"),
    "DecoderLayer": ("self_attention", "cross_attention", "feed_forward"),
}
D = 20  # features of layers and models


def loud_feed_forward(rng, d):
    """A FeedForward whose hidden features are all 1, and come out plus a random bias."""
    ones, eye = torch.ones(d, dtype=torch.float64), torch.eye(d, dtype=torch.float64)
    block = silent_block("FeedForward", d_model=d, d_ff=d)
    values = {"linear1__bias": ones, "linear2__weight": eye, "linear2__bias": draw_vectors(rng, d)}
    return block.changed(**values)


def check_hidden_features(out, x, block, p):
    """Dropout acted between relu and linear2."""
    check_tensor(out, x.shape)
    bias = block.parameters["linear2.bias"]
    check_levels(out, [(bias, p), (bias + 1 / (1 - p), 1 - p)], "the hidden features")


def draw_layer(rng, kind, part, norm, *, p, shape):
    """A layer of which one part gives a constant, its inputs, and the levels to expect."""
    block = silent_block(kind, d_model=D, num_heads=2, d_ff=D, norm=norm)
    before = norm == "pre"
    constant = torch.from_numpy(rng.uniform(0.4, 1, size=D)) if before else torch.ones(D)
    block, levels = loud_part(block, part, constant.double(), before, p=p)
    x = draw_vectors(rng, *shape, D) if before else torch.zeros(*shape, D).double()
    memory = (draw_vectors(rng, shape[0], 3, D),) if kind == "DecoderLayer" else ()
    return block, (x, *memory), levels


def check_layer(out, oracle, case, part):
    """Dropout acted on what one part of a layer gives, before it is added to x."""
    block, (x, *_), levels = case
    check_tensor(out, x.shape)
    if block.settings["norm"] == "pre":
        check_levels(out - x, levels, WHERE[part])
    else:
        norms = len(PARTS_OF[block.kind]) - PARTS_OF[block.kind].index(part)
        check_pattern(oracle, out, levels, norms, what=WHERE[part])


def loud_part(block, part, constant, with_bias, *, p):
    """One part gives the constant everywhere; and the levels that dropout makes of it."""
    zero, eye = torch.zeros_like(constant), torch.eye(len(constant), dtype=torch.float64)
    if part != "feed_forward":
        # The values are the same at all places, so their mean is too, whatever the weights are.
        values = {f"{part}__value__bias": constant, f"{part}__out__weight": eye}
        return block.changed(**values), [(zero, p), (constant / (1 - p), 1 - p)]
    bias = constant if with_bias else zero
    block = block.changed(
        feed_forward__linear1__bias=zero + 1,
        feed_forward__linear2__weight=eye,
        feed_forward__linear2__bias=bias,
    )
    whole = (bias + 1 / (1 - p)) / (1 - p)
    if with_bias:
        levels = [(zero, p), (bias / (1 - p), p * (1 - p)), (whole, (1 - p) ** 2)]
    else:
        levels = [(zero, 1 - (1 - p) ** 2), (whole, (1 - p) ** 2)]
    return block, levels


def check_pattern(oracle, out, levels, norms, *, what):
    """The same behind so many norms: what is above 0 was kept, and all else follows from that."""
    _, (kept_level, _) = levels
    kept = (out > 0) * kept_level
    check_levels(kept, levels, what)
    plain = silent_block("LayerNorm", d_model=out.shape[-1])
    for _ in range(norms):
        kept = oracle.output(*plain, (kept,))
    compare(out, kept, f"dropout of {what}")


def loud_model(side, where, places, p):
    """A model whose token vectors or one part give a constant, the levels to expect, and where."""
    model = silent_model((D, D), d_model=D, num_heads=2, d_ff=D, max_length=places)
    model = model.changed(output__weight=torch.eye(D, dtype=torch.float64))
    one = torch.ones(D, dtype=torch.float64)
    if where == "embedding":
        table = torch.full((D, D), 1 / math.sqrt(D), dtype=torch.float64)
        model = model.changed(source_embedding__weight=table, target_embedding__weight=table)
        return model, [(0 * one, p), (one / (1 - p), 1 - p)], "the vectors of the tokens"
    model, levels = loud_part(model, f"{side}.layers.0.{where}", one, False, p=p)
    return model, levels, f"{WHERE[where]} in the {side}"
