"""Models whose next-token probabilities are known, for the tests of exercises 4.6 and 4.7."""

import math

import torch

from common.data.numbers import BOS, EOS, PAD
from tests.a4_bahdanau.draw_cases import FIRST_WORD, Drawn, parameter_shapes

# A story gives the probability of each next id after each id: ^ is BOS, $ is EOS, _ is PAD.
# Entries after $ are there for code that continues after the end.
STORIES = {
    # The most likely first id leads to unlikely sentences.
    "a better second": {
        "^": {"a": 0.6, "b": 0.4},
        "a": {"$": 0.4, "b": 0.35, "c": 0.25},
        "b": {"$": 0.95, "c": 0.05},
        "c": {"$": 0.7, "a": 0.3},
        "$": {"c": 0.95, "a": 0.05},
    },
    # The best starts with the third most likely id.
    "a better third": {
        "^": {"a": 0.4, "b": 0.35, "c": 0.25},
        "a": {"$": 0.28, "a": 0.26, "b": 0.24, "c": 0.22},
        "b": {"$": 0.29, "a": 0.25, "b": 0.27, "c": 0.19},
        "c": {"$": 1.0},
        "$": {"c": 0.95, "a": 0.05},
    },
    # An immediate end is likely, and uses one of the beam slots.
    "an early end": {
        "^": {"$": 0.45, "a": 0.3, "b": 0.25},
        "a": {"$": 0.3, "a": 0.28, "b": 0.22, "c": 0.2},
        "b": {"$": 1.0},
        "c": {"$": 0.6, "a": 0.4},
        "$": {"b": 0.95, "a": 0.05},
    },
    # A short sentence is likely; a long one loses hardly anything after its first step.
    "a long one": {
        "^": {"a": 0.7, "b": 0.3},
        "a": {"$": 0.9, "a": 0.1},
        "b": {"c": 0.99, "a": 0.01},
        "c": {"d": 0.99, "a": 0.01},
        "d": {"e": 0.99, "a": 0.01},
        "e": {"f": 0.99, "a": 0.01},
        "f": {"$": 0.99, "a": 0.01},
        "$": {"b": 0.9, "a": 0.1},
    },
    # There is no end.
    "no end": {
        "^": {"b": 0.6, "a": 0.4},
        "a": {"b": 0.8, "c": 0.2},
        "b": {"a": 0.7, "b": 0.3},
        "c": {"a": 0.9, "b": 0.1},
    },
    # PAD and BOS are generated like any other id.
    "special ids": {
        "^": {"_": 0.7, "a": 0.3},
        "_": {"a": 0.8, "$": 0.2},
        "a": {"^": 0.6, "$": 0.4},
        "$": {"_": 0.9, "a": 0.1},
    },
}
SPECIAL = {"_": PAD, "^": BOS, "$": EOS}
LETTERS = {letter: FIRST_WORD + index for index, letter in enumerate("abcdef")}
NEVER = 1e-15  # the probability of ids that a story doesn't mention
STEEP, SHUT = 200.0, -1000.0  # inputs where tanh is 1, and where a gate is closed


def model(stories, vocab_size, letters=LETTERS, attention=True, *, dtype=torch.float64):
    """A model that follows the first story if the source is the first word, and so on.

    Each pair of a word and the previous id has its own unit in the decoder's state, which is 1 for
    this pair and -1 for all others, whatever came before.
    """
    names = SPECIAL | letters
    pairs = [(index, last) for index, story in enumerate(stories) for last in story]
    words = FIRST_WORD + len(stories)
    h, e = max(len(pairs), words), max(vocab_size, words)
    sizes = (words, vocab_size, e, h, attention)
    shapes = parameter_shapes("Seq2Seq", *sizes)
    p = {name: torch.zeros(shape, dtype=torch.float64) for name, shape in shapes.items()}
    for part in ("encoder", "decoder"):
        p[f"{part}.embedding.weight"].fill_diagonal_(1)
    for end in ("", "_reverse"):  # the encoder's state is the unit vector of the last word read
        p[f"encoder.gru.bias_ih_l0{end}"][h : 2 * h] = SHUT
        p[f"encoder.gru.weight_ih_l0{end}"][2 * h :].fill_diagonal_(STEEP)
    p["decoder.cell.bias_ih"][h : 2 * h] = SHUT
    for unit, (index, last) in enumerate(pairs):
        row = p["decoder.cell.weight_ih"][2 * h + unit]
        row[names[last]] = row[e + FIRST_WORD + index] = 2 * STEEP
        p["decoder.cell.bias_ih"][2 * h + unit] = -3 * STEEP
        logits = torch.full((vocab_size,), math.log(NEVER), dtype=torch.float64)
        for letter, probability in stories[index][last].items():
            logits[names[letter]] = math.log(probability)
        logits += 3 * (unit % 4) - 5  # changes no probability
        p["decoder.output.weight"][:, unit] = logits / 2
        p["decoder.output.bias"] += logits / 2
    return Drawn("Seq2Seq", sizes, {name: value.to(dtype) for name, value in p.items()})


def source(count):
    """A source for each story: its word one to three times, followed by padding."""
    rows = torch.full((count, 3), PAD)
    for index in range(count):
        rows[index, : 1 + index % 3] = FIRST_WORD + index
    return rows


def ids_of(text, letters=LETTERS):
    """The ids of a text, without EOS at its end."""
    return [(SPECIAL | letters)[letter] for letter in text.removesuffix("$")]


def log_probability(story, text):
    pairs = zip(f"^{text}", text, strict=False)
    return sum(math.log(story[last][following]) for last, following in pairs)


def flat_model(source_vocab_size, bias, attention=True):
    """A model whose logits are exactly these numbers at every step."""
    sizes = (source_vocab_size, len(bias), 2, 3, attention)
    shapes = parameter_shapes("Seq2Seq", *sizes)
    p = {name: torch.zeros(shape, dtype=torch.float64) for name, shape in shapes.items()}
    p["decoder.output.bias"] += torch.tensor(bias)
    return Drawn("Seq2Seq", sizes, p)


def certain(text):
    """The story in which this text has probability 1. No letter may occur twice.

    If the text doesn't end with $, it repeats from its first letter.
    """
    story = {last: {following: 1.0} for last, following in zip(f"^{text}", text, strict=False)}
    return story if text.endswith("$") else story | {text[-1]: {text[0]: 1.0}}
