"""Checks of training, exact matches and alignments for the tests of exercise 4.7."""

from dataclasses import replace

import numpy as np
import torch

from common.data.numbers import BOS, EOS, PAD, pad
from common.testing.checks import check_float, check_names_step, check_refused, check_unchanged
from common.testing.compare import assert_close, check, kind_of, unpack
from common.testing.remote.torch_modules import parameters_of, vjp
from tests.a4_bahdanau import draw_cases as draw
from tests.a4_bahdanau import story_cases as story
from tests.a4_bahdanau.cases import as_views
from tests.a4_bahdanau.search_cases import check_highest

HISTORY = ("loss", "norm", "learning_rate")
# Differences add up: clipping exactly to max_norm, or to 1e-6 less as PyTorch does, changes losses
# and weights by about 1e-8. A wrong rate, or no clipping, changes them by more than 1e-4.
AFTER_STEPS = 1e-6
# So small that a step changes no weight: the loss of a step identifies its pairs.
STANDSTILL = 1e-300
NOTHING_TO_DERIVE = "cannot be empty"  # in PyTorch's error where there are no inputs
TINY = (9, 7, 3, 2)  # both vocabularies, embedding and hidden size


def draw_pairs(rng, lengths, word_counts):
    """Sources and targets of these lengths for a model of the sizes TINY."""
    return draw.source(rng, lengths, TINY[0]), draw.target(rng, word_counts, TINY[1])


def broken(drawn, name, row, value):
    """The same module, with this value in a row of one of its parameters."""
    parameter = drawn.parameters[name].clone()
    parameter[row] = value
    return replace(drawn, parameters=drawn.parameters | {name: parameter})


def read_history(history, steps):
    """The lists of a history as arrays, with one float per step."""
    check(isinstance(history, dict), f"train must return a dict, got {kind_of(history)}.")
    missing = [name for name in HISTORY if name not in history]
    check(not missing, f"The history lacks {', '.join(missing)}.")
    for name in HISTORY:
        entries = history[name]
        right = isinstance(entries, list) and all(isinstance(entry, float) for entry in entries)
        check(right, f'history["{name}"] must be a list of floats.')
        check(
            len(entries) == steps,
            f'history["{name}"] must have one entry per step.',
            f"It has {len(entries)} entries after {steps} steps.",
        )
    return {name: np.array(history[name]) for name in HISTORY}


def compare_learning_rates(rates, first):
    """The learning rate falls linearly from the first one to 0."""
    expected = first * (1 - np.arange(len(rates)) / len(rates))
    assert_close(rates, expected, 'history["learning_rate"]', ("training step",))


def compare_training(history, model, expected, situation, *, learning_rate):
    """Losses, norms and trained weights are those of Adam. expected: these three."""
    losses, norms, weights = expected
    history = read_history(history, len(losses))
    compare_learning_rates(history["learning_rate"], learning_rate)
    for name, wanted in (("loss", losses), ("norm", norms)):
        what = f'history["{name}"] ({situation})'
        assert_close(
            history[name], np.array(wanted), what, ("training step",), tolerance=AFTER_STEPS
        )
    trained = parameters_of(model)
    for name, wanted in weights.items():
        what = f"{name} after training ({situation})"
        assert_close(trained[name], wanted, what, tolerance=AFTER_STEPS)


def draw_distinct(oracle, rng, draw_batch):
    """A model, pairs with distinct losses, and these losses.

    draw_batch: returns sources and targets. It is called until no two losses are alike, since
    equal pairs have equal losses with every model.
    """
    while True:
        drawn, (source, target) = draw.module(rng, "Seq2Seq", *TINY, True), draw_batch()
        pairs = zip(source.split(1), target.split(1), strict=True)
        answers = [oracle.answer("Seq2Seq.loss", drawn.parameters, pair) for pair in pairs]
        losses = np.array([float(loss) for (loss,) in answers])
        if np.diff(np.sort(losses)).min() > 1e-5:
            return drawn, (source, target), losses


def check_every_pair_once(student, oracle, rng, *, n, batch_size):
    """In each of two epochs every pair is in one mini-batch; the last may be smaller."""
    drawn, pairs, losses = draw_distinct(
        oracle, rng, lambda: draw_pairs(rng, rng.integers(1, 5, size=n), [3] * n)
    )
    model, settings = drawn.build(student.Seq2Seq), {"learning_rate": STANDSTILL, "epochs": 2}
    history = student.train(model, *pairs, student.TrainConfig(batch_size=1, **settings))
    alone = np.sort(read_history(history, 2 * n)["loss"].reshape(2, n))
    what = 'the sorted history["loss"] of each epoch, with mini-batches of 1'
    assert_close(alone, np.tile(np.sort(losses), (2, 1)), what, ("epoch", "pair"))

    sizes = np.array([min(batch_size, n - start) for start in range(0, n, batch_size)])
    history = student.train(model, *pairs, student.TrainConfig(batch_size=batch_size, **settings))
    history = read_history(history, 2 * len(sizes))
    means = history["loss"].reshape(2, -1) @ sizes / n
    what = 'the mean of history["loss"] over the pairs of each epoch'
    assert_close(means, np.full(2, losses.mean()), what, ("epoch",))
    compare_learning_rates(history["learning_rate"], STANDSTILL)
    config = student.TrainConfig(epochs=1, batch_size=2)
    check_unchanged("train", student.train, model, *pairs, config)


def order_of(student, drawn, losses, pairs, *, seed, epochs):
    """The order of the pairs in each epoch, inferred from the losses of the steps."""
    settings = {"learning_rate": STANDSTILL, "batch_size": 1, "epochs": epochs, "seed": seed}
    model = drawn.build(student.Seq2Seq)
    history = student.train(model, *pairs, student.TrainConfig(**settings))
    steps = read_history(history, epochs * len(losses))["loss"]
    return np.abs(steps[:, None] - losses).argmin(axis=1).reshape(epochs, -1)


def check_orders(student, oracle, rng, n=12):
    """Each epoch has a new order, and the same config.seed gives the same run.

    Correct code fails if two of a few orders of 12 pairs are equal: 1 in 479,001,600 each.
    """
    drawn, pairs, losses = draw_distinct(
        oracle,
        rng,
        lambda: draw_pairs(rng, rng.integers(1, 4, size=n), rng.integers(0, 4, size=n)),
    )
    seed = int(rng.integers(1000))
    first = order_of(student, drawn, losses, pairs, seed=seed, epochs=2)
    new = not np.array_equal(*first)
    check(new, "Each epoch must go through the pairs in a new random order.")
    again = order_of(student, drawn, losses, pairs, seed=seed, epochs=2)
    check(np.array_equal(first, again), "The same config.seed must give the same run.")
    other = order_of(student, drawn, losses, pairs, seed=seed + 1, epochs=1)
    check(not np.array_equal(first[0], other[0]), "Another config.seed must give another order.")


def check_stops(student, oracle, rng, n=6):
    """A loss that is not finite raises ValueError, which names the step, counted from 1.

    NaN comes from one source, and an earlier run shows at which step it is used. Infinity comes
    from EOS, which every target has, so it is in the first step.
    """
    rare, index = TINY[0] - 1, int(rng.integers(2, n))

    def draw_batch():
        lengths, counts = rng.integers(1, 4, size=n), rng.integers(1, 4, size=n)
        source, target = draw.source(rng, lengths, rare), draw.target(rng, counts, TINY[1])
        source[index, 0] = rare
        return source, target

    drawn, pairs, losses = draw_distinct(oracle, rng, draw_batch)
    seed = int(rng.integers(1000))
    order = order_of(student, drawn, losses, pairs, seed=seed, epochs=1)[0].tolist()
    sentence = 'With mini-batches of 1, history["loss"] must hold the loss of each pair.'
    check(index in order, sentence)
    settings = {"learning_rate": STANDSTILL, "batch_size": 1, "epochs": 1, "seed": seed}
    for name, row, bad, step in (
        ("encoder.embedding.weight", rare, np.nan, 1 + order.index(index)),
        ("decoder.output.bias", EOS, -np.inf, 1),
    ):
        model = broken(drawn, name, row, bad).build(student.Seq2Seq)
        inputs = (model, *pairs, student.TrainConfig(**settings))
        message = check_refused("a loss that is not finite", student.train, *inputs)
        check_names_step(message, step)


def story_pairs(texts, vocab_size=9, letters=story.LETTERS, *, attention=True, dtype=torch.float64):
    """A model, sources, and targets: views for float32.

    texts: the model's output for each source, and its target, in letters. The output ends with $,
    or repeats.
    """
    stories = [story.certain(text) for text, _ in texts]
    drawn = story.model(stories, vocab_size, letters, attention, dtype=dtype)
    rows = [[BOS, *story.ids_of(wanted, letters), EOS] for _, wanted in texts]
    source, target = story.source(len(texts)), torch.from_numpy(pad(rows)[0])
    return drawn, *(as_views(source, target) if dtype == torch.float32 else (source, target))


def compare_accuracy(accuracy, texts, situation):
    """The fraction of the sources for which the model gives the target, and then EOS."""
    right = sum(text == f"{wanted}$" for text, wanted in texts)
    check_float(accuracy, "exact_match's result")
    what = f"the fraction of exact matches ({situation})"
    assert_close(accuracy, right / len(texts), what=what)


def read_alignment(result, t):
    """Tokens as a list of int, and a matrix with a row per token and t columns."""
    tokens, matrix = unpack(result, 2, "alignment")
    right = isinstance(tokens, list) and all(type(token) is int for token in tokens)
    check(right and len(tokens) > 0, "The tokens of alignment must be a non-empty list of int.")
    check(
        torch.is_tensor(matrix),
        f"The matrix of alignment must be a PyTorch tensor, got {kind_of(matrix)}.",
    )
    check(
        matrix.shape == (len(tokens), t),
        "The matrix of alignment must have one row per token and one column per source id.",
        f"got {tuple(matrix.shape)}, expected {(len(tokens), t)}",
    )
    return tokens, matrix


def check_alignment(result, oracle, drawn, ids, *, max_length, situation):
    """Tokens have the highest logits, and the matrix holds the weights of these steps."""
    tokens, matrix = read_alignment(result, len(ids))
    ended = tokens[-1] == EOS
    check(ended or len(tokens) == max_length, "alignment must stop at EOS or at max_length.")
    check(EOS not in tokens[:-1], "alignment must stop at the first EOS.")
    row = tokens[:-1] if ended else tokens
    check_highest(row, oracle, drawn, ids, max_length=max_length, what=f"alignment ({situation})")
    real = ids.ne(PAD)
    given = (ids[real], torch.tensor([[BOS, *tokens[:-1]]]))
    _, weights = oracle.answer("translation", drawn.parameters, given)
    expected = torch.zeros(len(tokens), len(ids), dtype=drawn.dtype)
    expected[:, real] = weights[0]
    assert_close(matrix, expected, f"the matrix of alignment ({situation})", ("token", "position"))
    check(not bool(matrix[:, ~real].any()), "Padding must get weights of exactly 0.")


def compare_certain_alignment(result, ids, text, *, max_length, letters=story.LETTERS):
    """Tokens end with EOS, or after max_length; all weights are equal."""
    expected = story.ids_of(text, letters)
    expected = ([*expected, EOS] if text.endswith("$") else expected * max_length)[:max_length]
    tokens, matrix = read_alignment(result, len(ids))
    check(
        tokens == expected,
        "The tokens of alignment must be those of greedy decoding, with EOS.",
        f"got {tokens}, expected {expected}, max_length {max_length}",
    )
    row = ids.ne(PAD) / ids.ne(PAD).sum().double()
    weights = row.expand(len(tokens), -1).contiguous()
    assert_close(matrix, weights, "the matrix of alignment (equal weights)", ("token", "position"))


def check_no_gradient(alignment, model, ids):
    """The matrix of alignment is detached from the weights."""
    _, matrix = read_alignment(alignment(model, ids), len(ids))
    try:  # vjp finds no input to give a gradient, and PyTorch objects if the matrix has one
        vjp(alignment, (model, ids), [None, torch.ones_like(matrix)])
    except RuntimeError as error:
        if NOTHING_TO_DERIVE not in str(error):  # alignment itself failed
            raise
        check(False, "The matrix of alignment must carry no gradient.")
