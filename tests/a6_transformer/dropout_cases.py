"""How the tests check where dropout is applied: on sublayers whose output is constant.

Each dropout zeroes a number or divides it by 1 - p. So the values of the output show which dropouts
they went through, whatever random numbers are drawn.
"""

import math

import torch

from common.testing.dropout import check_levels, check_tensor
from tests.a6_transformer.cases import compare, draw_vectors, silent_block
from tests.a6_transformer.model_cases import silent_model

WHERE = {
    "self_attention": "the output of the self-attention",
    "cross_attention": "the output of the cross-attention",
    "feed_forward": "the hidden features and the output of the feed-forward network",
}
SUBLAYERS_OF = {
    "EncoderLayer": ("self_attention", "feed_forward"),
    "DecoderLayer": ("self_attention", "cross_attention", "feed_forward"),
}
D = 20  # features of layers and models


def constant_feed_forward(rng, d):
    """A FeedForward whose hidden features are all 1; its output is 1 plus a random bias."""
    ones, eye = torch.ones(d, dtype=torch.float64), torch.eye(d, dtype=torch.float64)
    block = silent_block("FeedForward", d_model=d, d_ff=d)
    values = {"linear1__bias": ones, "linear2__weight": eye, "linear2__bias": draw_vectors(rng, d)}
    return block.changed(**values)


def check_hidden_features(out, x, block, p):
    """Dropout was applied between relu and linear2."""
    check_tensor(out, x.shape)
    bias = block.parameters["linear2.bias"]
    check_levels(out, [(bias, p), (bias + 1 / (1 - p), 1 - p)], "the hidden features")


def draw_layer(rng, kind, sublayer, norm, *, p, shape):
    """A layer with one sublayer of constant output, its inputs, and the levels to expect."""
    block = silent_block(kind, d_model=D, num_heads=2, d_ff=D, norm=norm)
    before = norm == "pre"
    constant = torch.from_numpy(rng.uniform(0.4, 1, size=D)) if before else torch.ones(D)
    block, levels = constant_sublayer(block, sublayer, constant.double(), before, p=p)
    x = draw_vectors(rng, *shape, D) if before else torch.zeros(*shape, D).double()
    memory = (draw_vectors(rng, shape[0], 3, D),) if kind == "DecoderLayer" else ()
    return block, (x, *memory), levels


def check_layer(out, oracle, case, sublayer):
    """Dropout was applied to the output of one sublayer, before it was added to x."""
    block, (x, *_), levels = case
    check_tensor(out, x.shape)
    if block.settings["norm"] == "pre":
        check_levels(out - x, levels, WHERE[sublayer])
    else:
        norms = len(SUBLAYERS_OF[block.kind]) - SUBLAYERS_OF[block.kind].index(sublayer)
        check_pattern(oracle, out, levels, norms, what=WHERE[sublayer])


def constant_sublayer(block, sublayer, constant, with_bias, *, p):
    """A block with one sublayer of constant output, and the levels that dropout makes of it."""
    zero, eye = torch.zeros_like(constant), torch.eye(len(constant), dtype=torch.float64)
    if sublayer != "feed_forward":
        # The values are the same at all positions, so any weighted mean is too.
        values = {f"{sublayer}__value__bias": constant, f"{sublayer}__out__weight": eye}
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
    """The same after so many norms: what is above 0 was kept, and the rest follows from that."""
    _, (kept_level, _) = levels
    kept = (out > 0) * kept_level
    check_levels(kept, levels, what)
    plain = silent_block("LayerNorm", d_model=out.shape[-1])
    for _ in range(norms):
        kept = oracle.output(*plain, (kept,))
    compare(out, kept, f"dropout of {what}")


def constant_model(side, where, length, p):
    """A model with constant embeddings or a constant sublayer, the levels to expect, and where."""
    model = silent_model((D, D), d_model=D, num_heads=2, d_ff=D, max_length=length)
    model = model.changed(output__weight=torch.eye(D, dtype=torch.float64))
    one = torch.ones(D, dtype=torch.float64)
    if where == "embedding":
        table = torch.full((D, D), 1 / math.sqrt(D), dtype=torch.float64)
        model = model.changed(source_embedding__weight=table, target_embedding__weight=table)
        return model, [(0 * one, p), (one / (1 - p), 1 - p)], "the vectors of the tokens"
    model, levels = constant_sublayer(model, f"{side}.layers.0.{where}", one, False, p=p)
    return model, levels, f"{WHERE[where]} in the {side}"
