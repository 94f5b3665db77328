"""Checks of the loss, greedy decoding and beam search for the tests of exercise 4.6."""

import torch

from common.data.numbers import BOS, EOS, PAD
from common.testing.checks import check_float, check_unchanged
from common.testing.compare import assert_close, check, kind_of, unpack
from common.testing.remote.torch_modules import check_same_weights
from tests.a4_bahdanau.story_cases import LETTERS, ids_of, log_probability


def compare_loss_gradients(gradients, oracle, drawn, pairs, *, situation):
    """The gradients of the loss with respect to all weights are PyTorch's. pairs: source, target"""
    check(
        gradients is not None,
        f"The loss carries no gradient ({situation}).",
        help="Does detach, .item() or torch.no_grad cut it off?",
    )
    one = torch.tensor(1.0, dtype=torch.float64)
    _, expected = oracle.gradients("Seq2Seq.loss", drawn.parameters, pairs, [one])
    for name, right in expected.items():
        assert_close(gradients[name], right, what=f"the gradient of {name} ({situation})")


def check_translations(rows, n, what):
    """Translations are a list of n lists of int."""
    check(rows is not None, f"{what} returned None.", help="Is the return statement missing?")
    right = isinstance(rows, list) and all(isinstance(row, list) for row in rows)
    check(right, f"{what} must return a list of lists.", f"It returned {kind_of(rows)}.")
    check(len(rows) == n, f"{what} must return one list for each sentence.", f"got {len(rows)}")
    check(
        all(type(token) is int for row in rows for token in row),
        f"The lists of {what} must hold Python ints.",
        help="Convert tensors with int(...) or .tolist().",
    )


def compare_greedy(rows, texts, max_length, *, situation, letters=LETTERS):
    """texts: the expected translation of each source, in letters."""
    check_translations(rows, len(texts), "greedy_decode")
    for row, text in zip(rows, texts, strict=True):
        check(
            row == ids_of(text, letters),
            f"greedy_decode must generate the most likely ids ({situation}).",
            f"got {row}, expected {ids_of(text, letters)}, max_length {max_length}",
        )


def check_greedy(rows, oracle, drawn, source, *, max_length, situation):
    """Each generated id has the highest logit, including the EOS that is left out."""
    check_translations(rows, len(source), "greedy_decode")
    what = f"greedy_decode ({situation})"
    for ids, row in zip(source, rows, strict=True):
        check_highest(row, oracle, drawn, ids, max_length=max_length, what=what)


def check_highest(row, oracle, drawn, ids, *, max_length, what):
    """row: the translation of one source, without EOS. Returns its mean log-probability."""
    size = drawn.sizes[1]
    check(len(row) <= max_length, f"{what} generates more than max_length ids.", f"got {row}")
    check(all(0 <= token < size for token in row), f"{what} generates ids that don't exist.")
    written = row if len(row) == max_length else [*row, EOS]
    inputs = torch.tensor([[BOS, *written[:-1]]])
    (logits, *_) = oracle.answer("translation", drawn.parameters, (ids[ids.ne(PAD)], inputs))
    highest, best = (found.tolist() for found in logits[0].max(dim=1))
    # Logits that differ by rounding only may be taken for equal.
    margin = drawn.tolerance * float(logits.abs().max())
    wrong = [
        f"step {k} should give {best[k]}"
        for k, token in enumerate(written)
        if float(logits[0, k, token]) < highest[k] - margin
    ]
    check(
        not wrong,
        f"{what} generates an id that doesn't have the highest logit.",
        f"For the source {ids.tolist()} it gives {row}, but {''.join(wrong[:1])}.",
        "Does each sentence end on its own? Does padding in the batch change anything?",
    )
    log_probabilities = logits[0].log_softmax(dim=1)[range(len(written)), written]
    return float(log_probabilities.sum()) / len(written)


def read_beams(result, n):
    """The rows and the scores of beam_decode, one of each per sentence."""
    rows, scores = unpack(result, 2, "beam_decode")
    check_translations(rows, n, "beam_decode")
    right = isinstance(scores, list | tuple) and len(scores) == n
    check(right, "beam_decode must return one score for each sentence.")
    for score in scores:
        check_float(score, "A score of beam_decode")
    return rows, scores


def check_beam_width_1(result, oracle, drawn, source, *, max_length, situation):
    """beam_width 1 takes the highest logits, and its score is that of its translation."""
    rows, scores = read_beams(result, len(source))
    name = f"beam_decode with beam_width 1 ({situation})"
    what = f"the score with beam_width 1 ({situation})"
    for ids, row, score in zip(source, rows, scores, strict=True):
        wanted = check_highest(row, oracle, drawn, ids, max_length=max_length, what=name)
        assert_close(score, wanted, what, tolerance=drawn.tolerance)


def compare_beams(result, expected, situation, tolerance=None):
    """expected: (ids without EOS, score) for each sentence."""
    rows, scores = read_beams(result, len(expected))
    for row, score, (ids, wanted) in zip(rows, scores, expected, strict=True):
        check(
            row == ids,
            f"beam_decode must give the result of the search in its docstring ({situation}).",
            f"got {row} with a score of {score:.6g}, expected {ids} with {wanted:.6g}",
        )
        what = f"the score of beam_decode ({situation})"
        assert_close(score, wanted, what, tolerance=tolerance)


def compare_stories(result, drawn, stories, texts, *, settings, letters=LETTERS):
    """texts: the best for each source, in letters, with its EOS if it has one."""
    beam_width, length_penalty, max_length = settings
    expected = [
        (ids_of(text, letters), log_probability(story, text) / len(text) ** length_penalty)
        for story, text in zip(stories, texts, strict=True)
    ]
    situation = f"beam_width {beam_width}, length_penalty {length_penalty}, max_length {max_length}"
    compare_beams(result, expected, situation, drawn.tolerance)


def best_of(found, length_penalty):
    """The candidate with the highest score among rows with their log-probabilities."""
    row = max(found, key=lambda row: found[row] / len(row) ** length_penalty)
    ids = list(row[:-1] if row[-1] == EOS else row)
    return ids, found[row] / len(row) ** length_penalty


def all_candidates(oracle, drawn, ids, max_length):
    """Every row of ids that ends with EOS or has max_length ids, with its log-probability."""
    found = oracle.sequences(drawn.parameters, ids[ids.ne(PAD)], max_length)
    return {row: log for row, log in found.items() if row[-1] == EOS or len(row) == max_length}


def check_searches_stay_apart(model, drawn, source, target):
    """Sources and weights don't change, and a second call gives the same result."""

    def both():
        beam = read_beams(model.beam_decode(source, 3, 1.0, 5), len(source))
        return model.greedy_decode(source, 5), *beam

    first = both()
    model.greedy_decode(source.flip(0), 4)
    check(first == both(), "Two calls with the same source must give the same translations.")
    check_unchanged("greedy_decode", model.greedy_decode, source, 3)
    check_unchanged("beam_decode", model.beam_decode, source, 2, 1.0, 3)
    check_unchanged("loss", model.loss, source, target)
    check_same_weights(model, drawn.parameters, "Decoding")
