"""PyTorch's answers in float64, which the tests of assignment 4 compare with.

Every sentence is processed alone and without its padding, so no batch can affect an answer.
Answers have the dtype of the parameters, or of the inputs if there are none.
"""

from itertools import product

import torch
import torch.nn.functional as F

from common.data.numbers import BOS, EOS, PAD

GRU_WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def answer(name, parameters, inputs):
    """Everything that the module or function of this name returns, as a list."""
    dtype = _dtype(parameters, inputs)
    found = ANSWERS[name](_doubled(parameters), *map(_double, inputs))
    return [tensor.detach().to(dtype) for tensor in found]


def gradients(name, parameters, inputs, cotangents):
    """The gradients of the inputs (None for integer ones) and of the parameters."""
    dtype, named = _dtype(parameters, inputs), _doubled(parameters)
    given = [_double(value) for value in inputs]
    leaves = [value for value in given if _is_float(value)]
    for leaf in (*leaves, *named.values()):
        leaf.requires_grad_()
    found = torch.autograd.grad(
        ANSWERS[name](named, *given),
        [*leaves, *named.values()],
        [_double(cotangent) for cotangent in cotangents],
        allow_unused=True,
        materialize_grads=True,
    )
    found = [_without_noise(gradient).to(dtype) for gradient in found]
    inner = iter(found[: len(leaves)])
    of_inputs = [next(inner) if _is_float(value) else None for value in given]
    return of_inputs, dict(zip(named, found[len(leaves) :], strict=True))


def sequences(parameters, source, max_length):
    """The log-probability of every row of ids of up to that length, with EOS at most at its end.

    source: the ids of one sentence. The vocabulary must be tiny.
    """
    size = len(parameters["decoder.output.bias"])
    words = [token for token in range(size) if token != EOS]
    rows = list(product(words, repeat=max_length - 1))
    inputs = torch.tensor([(BOS, *row) for row in rows])
    (logits, *_) = _translation(_doubled(parameters), source, inputs)
    found = {}
    for row, steps in zip(rows, logits.log_softmax(-1).tolist(), strict=True):
        total = 0.0
        for length, following in enumerate(steps):
            found |= {(*row[:length], token): total + part for token, part in enumerate(following)}
            total += 0.0 if length == len(row) else following[row[length]]
    return found


def training(parameters, source, target, steps, learning_rate, max_norm):
    """Losses and norms of full-batch steps, and the parameters after the last.

    Adam as in its paper, on one long vector.
    """
    values, losses, norms = _doubled(parameters), [], []
    mean = square = 0.0
    for t in range(1, steps + 1):
        leaves = [value.requires_grad_() for value in values.values()]
        (loss,) = _loss(values, source, target)
        found = torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True)
        grad = torch.cat([gradient.flatten() for gradient in found])
        losses += [loss.item()]
        norms += [grad.norm().item()]
        grad = grad * min(1.0, max_norm / (norms[-1] + 1e-6))  # 1e-6 as PyTorch has it
        mean, square = 0.9 * mean + 0.1 * grad, 0.999 * square + 0.001 * grad**2
        scale = (square / (1 - 0.999**t)).sqrt() + 1e-8
        rate = learning_rate * (1 - (t - 1) / steps)
        update = rate * mean / (1 - 0.9**t) / scale
        parts = update.split([value.numel() for value in values.values()])
        pairs = zip(values.items(), parts, strict=True)
        values = {name: (value - part.view_as(value)).detach() for (name, value), part in pairs}
    return losses, norms, values


def _masked_softmax(_, scores, mask=None):
    """Row by row, over the allowed positions only."""
    allowed = torch.ones(scores.shape, dtype=torch.bool) if mask is None else mask
    size = scores.shape[-1]
    pairs = zip(
        scores.reshape(-1, size), allowed.expand(scores.shape).reshape(-1, size), strict=True
    )
    rows = [_spread(row[seen].softmax(0)[None], seen) for row, seen in pairs]
    return (torch.cat(rows).reshape(scores.shape),)


def _spread(weights, seen):
    """Weights (m, k) at the k positions where seen (t,) is True, and zeros elsewhere."""
    zeros = weights.new_zeros(len(weights), len(seen))
    return zeros.index_copy(1, seen.nonzero()[:, 0], weights)


def _attend(named, queries, keys):
    """Contexts and weights of some queries of one sentence, which attend to all of its keys.

    Each pair of a query and a key goes through one layer, with both weights side by side.
    """
    sides = (queries.repeat_interleave(len(keys), 0), keys.repeat(len(queries), 1))
    joint = torch.hstack((named["query.weight"], named["key.weight"]))
    hidden = F.linear(torch.hstack(sides), joint).tanh()
    weights = F.linear(hidden, named["score.weight"]).view(len(queries), len(keys)).softmax(1)
    return weights @ keys, weights


def _attention(named, query, keys, mask=None):
    """Each sentence attends to its allowed keys; the others are removed."""
    allowed = torch.ones(keys.shape[:2], dtype=torch.bool) if mask is None else mask
    found = []
    for i, seen in enumerate(allowed):
        context, weights = _attend(named, query[i : i + 1], keys[i, seen])
        found.append((context, _spread(weights, seen)))
    return tuple(torch.cat(parts) for parts in zip(*found, strict=True))


def _read(weights, x, state=None):
    """The states (m, u, hidden) of PyTorch's GRU with these weights, after each step."""
    first = x.new_zeros(len(x), weights[1].shape[1]) if state is None else state
    return torch.gru(x, first[None], weights, True, 1, 0.0, False, False, True)[0]


def _sentence(named, ids):
    """States (t, 2 * hidden) and final (2 * hidden,) of one sentence: a GRU for each way."""
    one_way, other_way = (
        [named[f"gru.{name}_l0{ending}"] for name in GRU_WEIGHTS] for ending in ("", "_reverse")
    )
    x = named["embedding.weight"][ids][None]
    there = _read(one_way, x)[0]
    back = _read(other_way, x.flip(1))[0].flip(0)
    return torch.hstack((there, back)), torch.hstack((there[-1], back[0]))


def _encoder(named, source):
    """Sentence by sentence, with zeros at the padding."""
    found = [_sentence(named, _without_padding(row)) for row in source]
    states = [F.pad(states, (0, 0, 0, source.shape[1] - len(states))) for states, _ in found]
    return torch.stack(states), torch.stack([final for _, final in found])


def _start(named, context):
    return (F.linear(context, named["initial.weight"], named["initial.bias"]).tanh(),)


def _step(named, token, state, context):
    """One step of a GRU whose inputs are one-hot ids, with the context beside them.

    So the embedding is part of its weights.
    """
    embedding, weight = named["embedding.weight"], named["cell.weight_ih"]
    of_ids, of_context = weight.split([embedding.shape[1], context.shape[1]], 1)
    weights = [named[f"cell.{name}"] for name in GRU_WEIGHTS]
    weights[0] = torch.hstack((of_ids @ embedding.T, of_context))
    units = torch.eye(len(embedding), dtype=context.dtype)[token]
    after = _read(weights, torch.hstack((units, context))[:, None], state)[:, 0]
    joined = torch.hstack((after, context))
    return F.linear(joined, named["output.weight"], named["output.bias"]), after


def _steps(named, inputs, state, attend):
    """Logits (m, u, vocab_size), and the weights of each step."""
    found = []
    for token in inputs.unbind(1):
        context, weights = attend(state)
        row, state = _step(named, token, state, context)
        found.append((row, weights))
    rows, weights = zip(*found, strict=True)
    return torch.stack(rows, 1), weights


def _fixed_decoder(named, inputs, context):
    (state,) = _start(named, context)
    return _steps(named, inputs, state, lambda _: (context, None))[:1]


def _attention_step(named, token, state, keys, mask=None):
    context, weights = _attention(_part(named, "attention."), state, keys, mask)
    return *_step(named, token, state, context), weights


def _attention_decoder(named, inputs, final, keys, mask=None):
    (state,), inner = _start(named, final), _part(named, "attention.")
    logits, weights = _steps(named, inputs, state, lambda s: _attention(inner, s, keys, mask))
    return logits, torch.stack(weights, 1)


def _translation(named, ids, inputs):
    """Logits (m, u, vocab_size) of m rows of ids for one source; with attention, weights too."""
    decoder = _part(named, "decoder.")
    keys, final = _sentence(_part(named, "encoder."), ids)
    context, inner = final.expand(len(inputs), -1), _part(decoder, "attention.")
    (state,) = _start(decoder, context)
    if not inner:
        return _steps(decoder, inputs, state, lambda _: (context, None))[:1]
    logits, weights = _steps(decoder, inputs, state, lambda s: _attend(inner, s, keys))
    return logits, torch.stack(weights, 1)


def _loss(named, source, target):
    """Sentence by sentence: the sum over all ids that follow others, divided by their number."""
    total, count = 0.0, 0
    for ids, words in zip(source, target, strict=True):
        ids, words = _without_padding(ids), _without_padding(words)
        (logits, *_) = _translation(named, ids, words[None, :-1])
        total = total + F.nll_loss(logits[0].log_softmax(1), words[1:], reduction="sum")
        count += len(words) - 1
    return (total / count,)


ANSWERS = {
    "masked_softmax": _masked_softmax,
    "AdditiveAttention": _attention,
    "Encoder": _encoder,
    "FixedContextDecoder": _fixed_decoder,
    "FixedContextDecoder.start": _start,
    "FixedContextDecoder.step": _step,
    "AttentionDecoder": _attention_decoder,
    "AttentionDecoder.start": _start,
    "AttentionDecoder.step": _attention_step,
    "Seq2Seq.loss": _loss,
    "translation": _translation,
}


def _part(named, prefix):
    """The parameters with this prefix, without the prefix."""
    return {n.removeprefix(prefix): value for n, value in named.items() if n.startswith(prefix)}


def _without_padding(ids):
    return ids[ids.ne(PAD)]


def _is_float(value):
    return value is not None and value.is_floating_point()


def _double(value):
    return value.detach().double().clone() if _is_float(value) else value


def _doubled(parameters):
    return {name: _double(value) for name, value in parameters.items()}


def _dtype(parameters, inputs):
    return next(value.dtype for value in (*parameters.values(), *inputs) if _is_float(value))


def _without_noise(gradient):
    """Zeros where there is only rounding: a query with one key changes no weight."""
    return gradient if gradient.abs().max() > 1e-12 else torch.zeros_like(gradient)
