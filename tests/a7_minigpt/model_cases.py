"""How the tests of exercise 7.4 check a whole GPT."""

import math

import torch
import torch.nn.functional as F

from common.testing.checks import check_normal, check_refused, check_unchanged
from common.testing.compare import assert_close, check, unpack
from common.testing.dropout import check_levels, check_tensor
from common.testing.remote.torch_modules import (
    compare_gradients,
    load_parameters,
    parameters_of,
    vjp,
)
from tests.a7_minigpt.cases import (
    LOGIT_AXES,
    VECTOR_AXES,
    draw_tokens,
    expected_output,
    new_module,
    shapes_of,
    silent_block,
    view_of,
)

NEW = {"context_length": 32, "num_layers": 2, "num_heads": 4, "d_model": 64}  # for first losses
DEVIATION = 0.02
# How far the loss of a new model may be from ln(vocab_size), for d_model 64 and 512 positions.
# The logits of other tokens have a standard deviation of 0.02 * sqrt(64) = 0.16, which adds half of
# its square, 0.013. A token's own logit is about 0.9 higher, since half of its vector is its row of
# the embedding: that adds 0.02. The mean over 512 positions is off by 0.01 or so, and ten times
# that is allowed. Embeddings with a standard deviation of 1 give logits near 8, and losses over 10.
FIRST_LOSS_TOLERANCE = 0.15


def logits_of(result):
    """The logits of a forward pass without targets."""
    logits, loss = unpack(result, 2, "forward without targets")
    check(loss is None, "Without targets, the loss must be None.")
    return logits


def compare_logits(actual, expected, situation):
    assert_close(actual, expected, f"the logits ({situation})", LOGIT_AXES)


def check_first_values(code, settings):
    """Names and shapes, and the distributions of the initial values."""
    module = new_module(code, "GPT", **settings)
    first, shapes = parameters_of(module), shapes_of("GPT", settings)
    load_parameters(module, {name: torch.zeros(shape) for name, shape in shapes.items()})
    for name in shapes:
        values = first[name]
        owner = name.split(".")[-2]
        if len(shapes[name]) == 1:
            gain = owner.startswith("norm") and name.endswith("weight")
            start = (torch.ones if gain else torch.zeros)(shapes[name])
            assert_close(values, start, what=f"the initial values of {name}")
        else:
            ends_branch = name.endswith(("attention.out.weight", "mlp.down.weight"))
            smaller = math.sqrt(2 * settings["num_layers"]) if ends_branch else 1.0
            check_normal(values, DEVIATION / smaller, name)
    names = [name for name in shapes if len(shapes[name]) > 1]
    for index, name in enumerate(names):
        twins = [other for other in names[:index] if first[other].shape == first[name].shape]
        alike = [other for other in twins if torch.equal(first[other], first[name])]
        check(not alike, f"The initial values of {name} and {', '.join(alike)} are the same.")
    again = parameters_of(new_module(code, "GPT", **settings))
    same = torch.equal(first[names[0]], again[names[0]])
    check(not same, "Two new models have the same random initial values.")


def check_first_loss(result, vocab_size):
    """To a new model all tokens are about equally likely."""
    _, loss = unpack(result, 2, "forward")
    check(isinstance(loss, torch.Tensor) and loss.ndim == 0, "The loss must be a tensor (0 axes).")
    off = float(loss) - math.log(vocab_size)
    check(
        abs(off) < FIRST_LOSS_TOLERANCE,
        "The loss of a new model is not near ln(vocab_size).",
        f"It is {float(loss):.3f}, and ln({vocab_size}) is {math.log(vocab_size):.3f}.",
        "The docstring of GPT describes the initialization.",
    )


def draw_loss_vjp(rng, oracle, model, batch):
    """The batch, a gradient for the loss, and what is right: logits, loss, and all gradients."""
    logits = expected_output(oracle, model, batch[0])
    loss, wanted = oracle.loss_and_gradients(model.settings, model.parameters, *batch)
    factor = torch.tensor(float(rng.uniform(0.5, 2)), dtype=model.dtype)
    scaled = {name: (float(factor) * g).to(model.dtype) for name, g in wanted.items()}
    return batch, factor, (logits, torch.tensor(loss, dtype=model.dtype), scaled)


def check_loss(module, drawn, situation):
    """Logits, the loss, and its gradients with respect to all parameters."""
    batch, factor, (logits, expected, wanted) = drawn
    outputs, _, gradients = vjp(module, batch, [None, factor])
    actual, loss = unpack(outputs, 2, "forward with targets")
    compare_logits(actual, logits, f"{situation}, with targets")
    assert_close(loss, expected, what=f"the loss ({situation})")
    compare_gradients(gradients, wanted, f"of the loss, {situation}")
    _, loss = unpack(module(*map(view_of, batch)), 2, "forward with targets")
    assert_close(loss, expected, what=f"the loss ({situation}, views)")
    check_unchanged("forward", module, *batch)


def check_causal(module, model, tokens, *, oracle, rng):
    """Changing a token changes no logits before it, and does change those at its position."""
    vocab_size, before = model.settings["vocab_size"], expected_output(oracle, model, tokens)
    for position in range(tokens.shape[1]):
        other = tokens.clone()
        shift = torch.from_numpy(rng.integers(1, vocab_size, size=len(tokens)))
        other[:, position] = (tokens[:, position] + shift) % vocab_size
        logits = logits_of(module(other))
        compare_logits(logits, expected_output(oracle, model, other), "another token")
        early = "the logits before a changed token"
        assert_close(logits[:, :position], before[:, :position], early, LOGIT_AXES)
        check(
            bool((logits[:, position] - before[:, position]).abs().max() > 1e-6),
            "The logits at a position must depend on the token there.",
        )


def check_rows_alone(module, model, tokens, oracle):
    """Each sequence of a batch has the logits that it has alone, in any order."""
    expected = [expected_output(oracle, model, row[None]) for row in tokens]
    together = logits_of(module(tokens))
    compare_logits(together, torch.cat(expected), "a batch, beside each sequence alone")
    for row, right in zip(tokens, expected, strict=True):
        compare_logits(logits_of(module(row[None])), right, "a sequence alone")
    backwards = logits_of(module(tokens.flip(0)))
    compare_logits(backwards, torch.cat(expected[::-1]), "the batch in another order")


def check_tied(module, model, tokens, oracle):
    """One matrix for both ends: changing it changes vectors and logits."""
    compare_logits(logits_of(module(tokens)), expected_output(oracle, model, tokens), "usual")
    table = model.parameters["token_embedding.weight"].clone()
    unused = next(i for i in range(len(table)) if not bool((tokens == i).any()))
    table[unused] += 1.5
    changed = model.changed({"token_embedding.weight": table})
    load_parameters(module, changed.parameters)
    expected = expected_output(oracle, changed, tokens)
    compare_logits(
        logits_of(module(tokens)), expected, "another row for a token that doesn't occur"
    )


def check_embed(embed, tokens, start, expected):
    """Rows of both embeddings, from a position on."""
    for given, situation in ((tokens, ""), (view_of(tokens), ", a view")):
        found = embed(given, start) if start else embed(given)
        assert_close(found, expected, f"embed (start {start}{situation})", VECTOR_AXES)
    check_unchanged("embed", embed, tokens, start)


def check_ids_refused(module, rng):
    """Anything that doesn't fit vocab_size 7 and context_length 5 raises ValueError."""
    tokens = draw_tokens(rng, 7, 2, 5)
    check(module(tokens, tokens) is not None, "forward returned None.")
    check(module.embed(tokens[:, :2], 3) is not None, "embed returned None.")
    for wrong in (7, -1):
        other = tokens.clone()
        other[1, 2] = wrong
        check_refused("an id that is out of range", module, other)
        check_refused("an id that is out of range", module.embed, other)
        check_refused("a target that is out of range", module, tokens, other)
    check_refused("more tokens than the context", module, draw_tokens(rng, 7, 2, 6))
    for start in (1, 5):
        check_refused("positions past the context", module.embed, tokens, start)
    check_refused("positions past the context", module.embed, tokens[:, :3], 3)
    check_refused("fewer targets than tokens", module, tokens, tokens[:, :4])
    check_refused("targets for fewer sequences", module, tokens, tokens[:1])
    check_refused("targets without an axis", module, tokens, tokens.flatten())
    wide, tall = tokens[:, :3], draw_tokens(rng, 7, 3, 2)
    for given, targets in ((wide, tall), (tall, wide)):
        check_refused("as many targets, but in another shape", module, given, targets)
    check_refused("ids without a first axis", module, tokens[0])
    check_refused("ids as floats", module, tokens.double())
    check_refused("ids in lists", module, tokens.tolist())
    check_refused("no tokens", module, tokens[:, :0])


WIDE = 20  # features, and the token whose vector is 0


def model_for_dropout(where, context_length):
    """A model whose vectors are all ones, from the position embedding or from an MLP.

    The rows of the token embedding are unit vectors, except the one that is read, which is 0: so
    the logits are the output of the final norm, and positive ones were kept by dropout.
    """
    sizes = {
        "vocab_size": WIDE + 1,
        "context_length": context_length,
        "num_layers": 1,
        "num_heads": 2,
        "d_model": WIDE,
    }
    changes = {"token_embedding.weight": torch.eye(WIDE + 1, WIDE, dtype=torch.float64)}
    if where == "embedding":
        changes["position_embedding.weight"] = torch.ones(context_length, WIDE, dtype=torch.float64)
    else:
        changes["blocks.0.mlp.down.bias"] = torch.ones(WIDE, dtype=torch.float64)
    return silent_block("GPT", **sizes).changed(changes)


def check_dropout(result, shape, where, p):
    """Dropout is applied to the token vectors, and the model passes its rate to the blocks."""
    what = "the vectors of the tokens" if where == "embedding" else "the output of a block's MLP"
    logits, _ = unpack(result, 2, "forward")
    check_tensor(logits, (*shape, WIDE + 1))
    kept = (logits[..., :WIDE] > 0).double() / (1 - p)
    one = torch.ones(WIDE, dtype=torch.float64)
    check_levels(kept, [(0 * one, p), (one / (1 - p), 1 - p)], what)
    expected = F.layer_norm(kept, (WIDE,))
    compare_logits(logits, F.pad(expected, (0, 1)), f"dropout of {what}")
