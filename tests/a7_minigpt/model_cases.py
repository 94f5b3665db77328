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

NEW = {"context": 32, "layers": 2, "heads": 4, "width": 64}  # models whose first loss is looked at
DEVIATION = 0.02
# How far the loss of a new model may be from ln(vocabulary), with a width of 64 and 512 places.
# The scores of other tokens have a standard deviation of 0.02 * sqrt(64) = 0.16, which adds half of
# its square, 0.013. A token's own score is about 0.9 higher, as half of its vector is its row of
# the embedding: that adds 0.02. The mean over 512 places is off by 0.01 or so: ten times that is
# left for it. Embeddings with a standard deviation of 1 give scores near 8, and a loss above 10.
FIRST_LOSS_BAND = 0.15


def logits_of(result):
    """The logits of a forward pass without targets."""
    logits, loss = unpack(result, 2, "forward without targets")
    check(loss is None, "Without targets, the loss must be None.")
    return logits


def compare_logits(actual, expected, situation):
    assert_close(actual, expected, f"the logits ({situation})", LOGIT_AXES)


def check_first_values(code, settings):
    """Names and shapes, and the distributions that first values come from."""
    module = new_module(code, "GPT", **settings)
    first, shapes = parameters_of(module), shapes_of("GPT", settings)
    load_parameters(module, {name: torch.zeros(shape) for name, shape in shapes.items()})
    for name, values in first.items():
        owner = name.split(".")[-2]
        if len(shapes[name]) == 1:
            gain = owner.startswith("norm") and name.endswith("weight")
            start = (torch.ones if gain else torch.zeros)(shapes[name])
            assert_close(values, start, what=f"the first values of {name}")
        else:
            ends_branch = name.endswith(("attention.out.weight", "mlp.down.weight"))
            smaller = math.sqrt(2 * settings["layers"]) if ends_branch else 1.0
            check_normal(values, DEVIATION / smaller, name)
    names = [name for name in first if len(shapes[name]) > 1]
    for index, name in enumerate(names):
        twins = [other for other in names[:index] if first[other].shape == first[name].shape]
        alike = [other for other in twins if torch.equal(first[other], first[name])]
        check(not alike, f"The first values of {name} and {', '.join(alike)} are the same.")
    again = parameters_of(new_module(code, "GPT", **settings))
    same = torch.equal(first[names[0]], again[names[0]])
    check(not same, "Two new models have the same random first values.")


def check_first_loss(result, vocabulary):
    """A new model takes all tokens for about equally likely."""
    _, loss = unpack(result, 2, "forward")
    check(isinstance(loss, torch.Tensor) and loss.ndim == 0, "The loss must be a tensor (0 axes).")
    off = float(loss) - math.log(vocabulary)
    check(
        abs(off) < FIRST_LOSS_BAND,
        "The loss of a new model is not near ln(vocabulary).",
        f"It is {float(loss):.3f}, and ln({vocabulary}) is {math.log(vocabulary):.3f}.",
        "The docstring of GPT says how its first values are drawn.",
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
    """A changed token changes no logits before it, and does change those at its place."""
    vocabulary, before = model.settings["vocabulary"], expected_output(oracle, model, tokens)
    for place in range(tokens.shape[1]):
        other = tokens.clone()
        shift = torch.from_numpy(rng.integers(1, vocabulary, size=len(tokens)))
        other[:, place] = (tokens[:, place] + shift) % vocabulary
        logits = logits_of(module(other))
        compare_logits(logits, expected_output(oracle, model, other), "another token")
        early = "the logits before a token that was changed"
        assert_close(logits[:, :place], before[:, :place], early, LOGIT_AXES)
        check(
            bool((logits[:, place] - before[:, place]).abs().max() > 1e-6),
            "The logits at a place must depend on the token there.",
        )


def check_rows_alone(module, model, tokens, oracle):
    """Each sequence of a batch gets the logits that it gets alone, in any order."""
    expected = [expected_output(oracle, model, row[None]) for row in tokens]
    together = logits_of(module(tokens))
    compare_logits(together, torch.cat(expected), "a batch, beside each sequence alone")
    for row, right in zip(tokens, expected, strict=True):
        compare_logits(logits_of(module(row[None])), right, "a sequence alone")
    backwards = logits_of(module(tokens.flip(0)))
    compare_logits(backwards, torch.cat(expected[::-1]), "the batch in another order")


def check_tied(module, model, tokens, oracle):
    """One matrix for both ends: changing it changes vectors and scores."""
    compare_logits(logits_of(module(tokens)), expected_output(oracle, model, tokens), "usual")
    table = model.parameters["token_embedding.weight"].clone()
    unused = next(i for i in range(len(table)) if not bool((tokens == i).any()))
    table[unused] += 1.5
    changed = model.changed({"token_embedding.weight": table})
    load_parameters(module, changed.parameters)
    expected = expected_output(oracle, changed, tokens)
    compare_logits(logits_of(module(tokens)), expected, "another row for a token that isn't there")


def check_embed(embed, tokens, start, expected):
    """Rows of both embeddings, from a place on."""
    for given, situation in ((tokens, ""), (view_of(tokens), ", a view")):
        found = embed(given, start) if start else embed(given)
        assert_close(found, expected, f"embed (start {start}{situation})", VECTOR_AXES)
    check_unchanged("embed", embed, tokens, start)


def check_ids_refused(module, rng):
    """What doesn't fit a vocabulary of 7 and a context of 5 raises ValueError."""
    tokens = draw_tokens(rng, 7, 2, 5)
    check(module(tokens, tokens) is not None, "forward returned None.")
    check(module.embed(tokens[:, :2], 3) is not None, "embed returned None.")
    for wrong in (7, -1):
        other = tokens.clone()
        other[1, 2] = wrong
        check_refused("an id that isn't in the vocabulary", module, other)
        check_refused("an id that isn't in the vocabulary", module.embed, other)
        check_refused("a target that isn't in the vocabulary", module, tokens, other)
    check_refused("more tokens than the context", module, draw_tokens(rng, 7, 2, 6))
    for start in (1, 5):
        check_refused("places past the context", module.embed, tokens, start)
    check_refused("places past the context", module.embed, tokens[:, :3], 3)
    check_refused("fewer targets than tokens", module, tokens, tokens[:, :4])
    check_refused("targets for fewer sequences", module, tokens, tokens[:1])
    check_refused("targets without an axis", module, tokens, tokens.flatten())
    lying, standing = tokens[:, :3], draw_tokens(rng, 7, 3, 2)
    for given, targets in ((lying, standing), (standing, lying)):
        check_refused("as many targets in another shape", module, given, targets)
    check_refused("ids without a first axis", module, tokens[0])
    check_refused("ids as floats", module, tokens.double())
    check_refused("ids in lists", module, tokens.tolist())
    check_refused("no tokens", module, tokens[:, :0])


WIDE = 20  # features, and the token whose vector is 0


def model_for_dropout(where, context):
    """A model whose vectors are all ones, by the positions or by an MLP.

    The rows of the token embedding are unit vectors, but for the one that is read, which is 0: so
    the scores are what the last norm gives, and what is above 0 there was kept.
    """
    sizes = {"vocabulary": WIDE + 1, "context": context, "layers": 1, "heads": 2, "width": WIDE}
    changes = {"token_embedding.weight": torch.eye(WIDE + 1, WIDE, dtype=torch.float64)}
    if where == "embedding":
        changes["position_embedding.weight"] = torch.ones(context, WIDE, dtype=torch.float64)
    else:
        changes["blocks.0.mlp.down.bias"] = torch.ones(WIDE, dtype=torch.float64)
    return silent_block("GPT", **sizes).changed(changes)


def check_dropout(result, shape, where, p):
    """Dropout falls on the vectors of the tokens, and the model passes it on to its blocks."""
    what = "the vectors of the tokens" if where == "embedding" else "what a block's MLP gives"
    logits, _ = unpack(result, 2, "forward")
    check_tensor(logits, (*shape, WIDE + 1))
    kept = (logits[..., :WIDE] > 0).double() / (1 - p)
    one = torch.ones(WIDE, dtype=torch.float64)
    check_levels(kept, [(0 * one, p), (one / (1 - p), 1 - p)], what)
    expected = F.layer_norm(kept, (WIDE,))
    compare_logits(logits, F.pad(expected, (0, 1)), f"dropout of {what}")
