"""How the tests of exercise 4.6 check the loss, greedy decoding and beam search."""

import torch

from common.data.numbers import BEGIN, END, PADDING
from common.testing.checks import check_float, check_unchanged
from common.testing.compare import assert_close, check, kind_of, unpack
from common.testing.remote.torch_modules import check_same_weights, loss_gradients
from tests.a4_bahdanau.cases import (
    compare_results,
    draw_module,
    draw_source,
)
from tests.a4_bahdanau.story_cases import LETTERS, ids_of, log_probability, story_source

# Exercise 4.6: the loss


def check_loss(student, oracle, drawn, source, target, situation):
    """The loss is the mean over all ids that are to be predicted."""
    loss = drawn.on(student).loss(source, target)
    expected = oracle.answer("Seq2Seq.loss", drawn.parameters, (source, target))
    compare_results("Seq2Seq.loss", [loss], expected, situation)


def check_loss_gradients(student, oracle, drawn, source, *, target, situation):
    """The gradients of the loss with respect to all weights are PyTorch's."""
    model = drawn.on(student)
    loss, gradients = loss_gradients(model, model.loss, source, target)
    right = oracle.answer("Seq2Seq.loss", drawn.parameters, (source, target))
    compare_results("Seq2Seq.loss", [loss], right, situation)
    check(
        gradients is not None,
        f"The loss carries no gradient ({situation}).",
        help="Does something cut it off, such as detach, .item() or torch.no_grad?",
    )
    one = torch.tensor(1.0, dtype=torch.float64)
    _, expected = oracle.gradients("Seq2Seq.loss", drawn.parameters, (source, target), [one])
    for name, right in expected.items():
        assert_close(gradients[name], right, what=f"the gradient of {name} ({situation})")


# Exercise 4.6: greedy decoding


def read_translations(rows, n, what):
    """Translations are a list of n lists of int."""
    check(rows is not None, f"{what} returned None.", help="Is the return statement missing?")
    right = isinstance(rows, list) and all(isinstance(row, list) for row in rows)
    check(right, f"{what} must return a list of lists.", f"It returned {kind_of(rows)}.")
    check(len(rows) == n, f"{what} must return one list for each sentence.", f"got {len(rows)}")
    check(
        all(type(token) is int for row in rows for token in row),
        f"The lists of {what} must hold numbers of type int.",
        help="int(...) or .tolist() makes them of a tensor.",
    )
    return [list(row) for row in rows]


def check_greedy_stories(student, drawn, expected, max_length, *, situation, letters=LETTERS):
    """expected: what is written for each source, in letters."""
    source = story_source(len(expected))
    rows = drawn.on(student).greedy_decode(source, max_length)
    rows = read_translations(rows, len(expected), "greedy_decode")
    for row, text in zip(rows, expected, strict=True):
        check(
            row == ids_of(text, letters),
            f"greedy_decode writes something else than the likeliest ids ({situation}).",
            f"got {row}, expected {ids_of(text, letters)}, max_length {max_length}",
        )


def check_greedy(student, oracle, drawn, source, *, max_length, situation):
    """Each id that is written has the highest logit, also that of the END which is left out."""
    rows = drawn.on(student).greedy_decode(source, max_length)
    rows = read_translations(rows, len(source), "greedy_decode")
    for ids, row in zip(source, rows, strict=True):
        check_highest(
            oracle, drawn, ids, row, max_length=max_length, what=f"greedy_decode ({situation})"
        )
    return rows


def check_highest(oracle, drawn, ids, row, *, max_length, what):
    """row: what was written for one source, without END."""
    size = drawn.sizes[1]
    check(len(row) <= max_length, f"{what} writes more than max_length ids.", f"got {row}")
    check(all(0 <= token < size for token in row), f"{what} writes ids that don't exist.")
    written = row if len(row) == max_length else [*row, END]
    inputs = torch.tensor([[BEGIN, *written[:-1]]])
    (logits, *_) = oracle.answer("translation", drawn.parameters, (ids[ids.ne(PADDING)], inputs))
    highest, best = (found.tolist() for found in logits[0].max(dim=1))
    # Logits that differ by rounding only may be taken for equal.
    margin = drawn.tolerance * float(logits.abs().max())
    wrong = [
        f"step {k} should write {best[k]}"
        for k, token in enumerate(written)
        if float(logits[0, k, token]) < highest[k] - margin
    ]
    check(
        not wrong,
        f"{what} writes an id that has not the highest logit.",
        f"For the source {ids.tolist()} it writes {row}, but {''.join(wrong[:1])}.",
        "Does each sentence end by itself? And does padding in the batch change anything?",
    )


# Exercise 4.6: beam search


def beams(student, drawn, source, width, *, alpha, max_length):
    """Rows and scores of the student's beam search."""
    result = drawn.on(student).beam_decode(source, width, alpha, max_length)
    return read_beams(result, len(source))


def read_beams(result, n):
    rows, scores = unpack(result, 2, "beam_decode")
    rows = read_translations(rows, n, "beam_decode")
    right = isinstance(scores, list | tuple) and len(scores) == n
    check(right, "beam_decode must return one score for each sentence.")
    for score in scores:
        check_float(score, "A score of beam_decode")
    return rows, scores


def compare_beam(row, score, expected, situation, *, tolerance=None):
    """expected: (ids without END, score)."""
    ids, wanted = expected
    check(
        row == ids,
        f"beam_decode gives something else than the search of its docstring ({situation}).",
        f"got {row} with a score of {score:.6g}, expected {ids} with {wanted:.6g}",
    )
    what = f"the score of beam_decode ({situation})"
    assert_close(score, wanted, what, tolerance=tolerance)


def check_beam_stories(student, drawn, stories, expected, *, settings, letters=LETTERS):
    """expected: the best for each source, in letters, with its END if it has one."""
    width, alpha, max_length = settings
    source = story_source(len(expected))
    rows, scores = beams(student, drawn, source, width, alpha=alpha, max_length=max_length)
    for row, score, story, text in zip(rows, scores, stories, expected, strict=True):
        wanted = log_probability(story, text) / len(text) ** alpha
        situation = f"width {width}, alpha {alpha}, max_length {max_length}"
        compare_beam(
            row, score, (ids_of(text, letters), wanted), situation, tolerance=drawn.tolerance
        )


def best_of(found, alpha):
    """The candidate with the highest score among rows with their log-probabilities."""
    row = max(found, key=lambda row: found[row] / len(row) ** alpha)
    ids = list(row[:-1] if row[-1] == END else row)
    return ids, found[row] / len(row) ** alpha


def all_candidates(oracle, drawn, ids, max_length):
    """Every row of ids that ends with END or is as long as allowed, with its log-probability."""
    found = oracle.sequences(drawn.parameters, ids[ids.ne(PADDING)], max_length)
    return {row: log for row, log in found.items() if row[-1] == END or len(row) == max_length}


def check_widest_beam(student, oracle, drawn, source, *, alphas, max_length):
    """So wide that nothing is dropped, beam search finds the best of all there are."""
    width = 2 * drawn.sizes[1] ** max_length
    every = [all_candidates(oracle, drawn, ids, max_length) for ids in source]
    for alpha in alphas:
        rows, scores = beams(student, drawn, source, width, alpha=alpha, max_length=max_length)
        for row, score, found in zip(rows, scores, every, strict=True):
            situation = f"nothing is dropped, alpha {alpha}"
            compare_beam(row, score, best_of(found, alpha), situation)


def check_single_beam(student, oracle, drawn, source, *, max_length, situation):
    """Width 1 writes what has the highest logit, and its score is that of what it writes."""
    rows, scores = beams(student, drawn, source, 1, alpha=1.0, max_length=max_length)
    for ids, row, score in zip(source, rows, scores, strict=True):
        check_highest(
            oracle,
            drawn,
            ids,
            row,
            max_length=max_length,
            what=f"beam_decode of width 1 ({situation})",
        )
        written = row if len(row) == max_length else [*row, END]
        given = (ids[ids.ne(PADDING)], torch.tensor([[BEGIN, *written[:-1]]]))
        (logits, *_) = oracle.answer("translation", drawn.parameters, given)
        logs = logits[0].log_softmax(dim=1)[range(len(written)), written]
        wanted, what = float(logs.sum()) / len(written), f"the score of width 1 ({situation})"
        assert_close(score, wanted, what, tolerance=drawn.tolerance)


def check_searches_stay_apart(student, drawn, source, target):
    """Sources and weights stay as they are, and a second call gives the same."""
    model = drawn.on(student)

    def both():
        beam = read_beams(model.beam_decode(source, 3, 1.0, 5), len(source))
        return model.greedy_decode(source, 5), *beam

    first = both()
    model.greedy_decode(source.flip(0), 4)
    check(first == both(), "Two calls with the same source give different translations.")
    check_unchanged("greedy_decode", model.greedy_decode, source, 3)
    check_unchanged("beam_decode", model.beam_decode, source, 2, 1.0, 3)
    check_unchanged("loss", model.loss, source, target)
    check_same_weights(model, drawn.parameters, "Decoding")


def draw_translator(rng, attention, sizes=(7, 5, 4, 3), dtype=torch.float64):
    """A model with clear preferences."""
    drawn = draw_module(rng, "Seq2Seq", *sizes, attention, dtype=dtype)
    drawn.parameters["decoder.output.weight"].mul_(2)
    return drawn


def draw_sources(rng, drawn, lengths, t=None):
    return draw_source(rng, lengths, drawn.sizes[0], t)
