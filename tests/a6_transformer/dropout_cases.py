"""How the tests check where dropout acts: on parts that give the same number everywhere.

Each drops a number by itself, and divides what it keeps by 1 - p. So the numbers that come out tell
which dropouts they went through, whatever random numbers are drawn.
"""

import math

import torch

from common.testing.dropout import check_levels, check_tensor
from tests.a6_transformer.cases import (
    compare,
    draw_vectors,
    expected_output,
    silent_block,
)

WHERE = {
    "self_attention": "what the self-attention gives",
    "cross_attention": "what the attention to memory gives",
    "feed_forward": "the hidden features and what the feed-forward gives",
}
PARTS_OF = {
    "EncoderLayer": ("self_attention", "feed_forward"),
    "DecoderLayer": ("self_attention", "cross_attention", "feed_forward"),
}


def check_dropout_of_feed_forward(student, rng, d, p, *, shape):
    """Dropout acts between relu and linear2."""
    block = silent_block("FeedForward", d_model=d, d_ff=d)
    bias = draw_vectors(rng, d)
    block = block.changed(
        linear1__bias=torch.ones(d).double(), linear2__weight=torch.eye(d).double()
    ).changed(linear2__bias=bias)
    module, x = block.on(student, dropout=p), draw_vectors(rng, *shape, d)
    out = module(x)
    check_tensor(out, x.shape)
    check_levels(out, [(bias, p), (bias + 1 / (1 - p), 1 - p)], "the hidden features")


def check_dropout_of_part(student, oracle, rng, kind, *, part, norm, p, shape):
    """Dropout acts on what one part of a layer gives, before it is added to what runs past it."""
    d = 20
    block = silent_block(kind, d_model=d, num_heads=2, d_ff=d, norm=norm)
    before = norm == "pre"
    constant = torch.from_numpy(rng.uniform(0.4, 1, size=d)) if before else torch.ones(d)
    block, levels = loud_part(block, part, constant.double(), before, p=p)
    x = draw_vectors(rng, *shape, d) if before else torch.zeros(*shape, d).double()
    memory = (draw_vectors(rng, shape[0], 3, d),) if kind == "DecoderLayer" else ()
    out = block.on(student, dropout=p)(x, *memory)
    check_tensor(out, x.shape)
    if before:
        check_levels(out - x, levels, WHERE[part])
    else:
        norms = len(PARTS_OF[kind]) - PARTS_OF[kind].index(part)
        check_pattern(oracle, out, levels, norms, what=WHERE[part])


def loud_part(block, part, constant, with_bias, *, p):
    """One part of a layer gives the constant everywhere; and the levels that dropout makes of it.

    Without a bias, the feed-forward has two levels instead of three.
    """
    d, zero = len(constant), torch.zeros(len(constant), dtype=torch.float64)
    eye = torch.eye(d, dtype=torch.float64)
    if part != "feed_forward":
        # The values are the same at all places, so their mean is too, whatever the weights are.
        values = {f"{part}__value__bias": constant, f"{part}__out__weight": eye}
        return block.changed(**values), [(zero, p), (constant / (1 - p), 1 - p)]
    bias = constant if with_bias else zero
    block = block.changed(
        feed_forward__linear1__bias=zero + 1, feed_forward__linear2__weight=eye
    ).changed(feed_forward__linear2__bias=bias)
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
    d = out.shape[-1]
    plain = silent_block("LayerNorm", d_model=d)
    for _ in range(norms):
        kept = expected_output(oracle, plain, (kept,))
    compare(out, kept, f"dropout of {what}")


def check_dropout_of_model(student, oracle, side, where, *, p, shape):
    """The model hands its dropout on to its layers, and has one on the vectors of the tokens."""
    d = 20
    settings = {
        "source_vocabulary": d,
        "target_vocabulary": d,
        "d_model": d,
        "num_heads": 2,
        "d_ff": d,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "positions": "learned",
        "max_length": shape[1],
    }
    block, one = silent_block("Transformer", **settings), torch.ones(d, dtype=torch.float64)
    block = block.changed(output__weight=torch.eye(d, dtype=torch.float64))
    if where == "embedding":
        table = torch.full((d, d), 1 / math.sqrt(d), dtype=torch.float64)
        block = block.changed(source_embedding__weight=table, target_embedding__weight=table)
        levels, what = [(0 * one, p), (one / (1 - p), 1 - p)], "the vectors of the tokens"
    else:
        block, levels = loud_part(block, f"{side}.layers.0.{where}", one, False, p=p)
        what = f"{WHERE[where]} in the {side}"
    model, ids = block.on(student, dropout=p), torch.full(shape, 3)
    memory = torch.zeros(shape[0], 2, d, dtype=torch.float64)
    out = model.encode(ids) if side == "encoder" else model.decode(ids, memory)
    check_tensor(out, (*shape, d))
    check_pattern(oracle, out, levels, 1, what=what)
