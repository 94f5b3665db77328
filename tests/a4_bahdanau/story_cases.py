"""Models whose every step is known: what the tests of exercises 4.6 and 4.7 let them tell."""

import math

import torch

from common.data.numbers import BEGIN, END, PADDING
from tests.a4_bahdanau.draw_cases import FIRST_WORD, Drawn, parameter_shapes

# A story tells how likely each id comes after each other one: ^ is BEGIN, $ is END, _ is PADDING.
# What comes after $ is there for code that goes on when it should have ended.
STORIES = {
    # The likeliest first id leads nowhere in particular.
    "a better second": {
        "^": {"a": 0.6, "b": 0.4},
        "a": {"$": 0.4, "b": 0.35, "c": 0.25},
        "b": {"$": 0.95, "c": 0.05},
        "c": {"$": 0.7, "a": 0.3},
        "$": {"c": 0.95, "a": 0.05},
    },
    # The best begins with the third likeliest id.
    "a better third": {
        "^": {"a": 0.4, "b": 0.35, "c": 0.25},
        "a": {"$": 0.28, "a": 0.26, "b": 0.24, "c": 0.22},
        "b": {"$": 0.29, "a": 0.25, "b": 0.27, "c": 0.19},
        "c": {"$": 1.0},
        "$": {"c": 0.95, "a": 0.05},
    },
    # An end at once is likely, and takes one of the places.
    "an early end": {
        "^": {"$": 0.45, "a": 0.3, "b": 0.25},
        "a": {"$": 0.3, "a": 0.28, "b": 0.22, "c": 0.2},
        "b": {"$": 1.0},
        "c": {"$": 0.6, "a": 0.4},
        "$": {"b": 0.95, "a": 0.05},
    },
    # A short one is likely, a long one hardly loses anything after its first step.
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
    # PADDING and BEGIN are written like any other id.
    "special ids": {
        "^": {"_": 0.7, "a": 0.3},
        "_": {"a": 0.8, "$": 0.2},
        "a": {"^": 0.6, "$": 0.4},
        "$": {"_": 0.9, "a": 0.1},
    },
}
SPECIAL = {"_": PADDING, "^": BEGIN, "$": END}
LETTERS = {letter: FIRST_WORD + place for place, letter in enumerate("abcdef")}
NEVER = 1e-15  # the probability of what a story doesn't mention
STEEP, SHUT = 200.0, -1000.0  # where tanh is 1, and where a gate is closed


def model(stories, vocabulary, letters=LETTERS, attention=True, *, dtype=torch.float64):
    """A model that tells the first story for the first word of the source, and so on.

    Each pair of a word and the id that was written last has a unit of its own in the decoder's
    state, which is 1 for this pair and -1 for all others, whatever was before.
    """
    names = SPECIAL | letters
    pairs = [(place, last) for place, story in enumerate(stories) for last in story]
    words = FIRST_WORD + len(stories)
    h, e = max(len(pairs), words), max(vocabulary, words)
    sizes = (words, vocabulary, e, h, attention)
    shapes = parameter_shapes("Seq2Seq", *sizes)
    p = {name: torch.zeros(shape, dtype=torch.float64) for name, shape in shapes.items()}
    for part in ("encoder", "decoder"):
        p[f"{part}.embedding.weight"].fill_diagonal_(1)
    for end in ("", "_reverse"):  # the encoder's state is the unit vector of the last word read
        p[f"encoder.gru.bias_ih_l0{end}"][h : 2 * h] = SHUT
        p[f"encoder.gru.weight_ih_l0{end}"][2 * h :].fill_diagonal_(STEEP)
    p["decoder.cell.bias_ih"][h : 2 * h] = SHUT
    for unit, (place, last) in enumerate(pairs):
        row = p["decoder.cell.weight_ih"][2 * h + unit]
        row[names[last]] = row[e + FIRST_WORD + place] = 2 * STEEP
        p["decoder.cell.bias_ih"][2 * h + unit] = -3 * STEEP
        logits = torch.full((vocabulary,), math.log(NEVER), dtype=torch.float64)
        for letter, chance in stories[place][last].items():
            logits[names[letter]] = math.log(chance)
        logits += 3 * (unit % 4) - 5  # changes no probability
        p["decoder.output.weight"][:, unit] = logits / 2
        p["decoder.output.bias"] += logits / 2
    return Drawn("Seq2Seq", sizes, {name: value.to(dtype) for name, value in p.items()})


def source(count):
    """A source for each story: its word, once, twice or three times, with padding after it."""
    rows = torch.full((count, 3), PADDING)
    for place in range(count):
        rows[place, : 1 + place % 3] = FIRST_WORD + place
    return rows


def ids_of(text, letters=LETTERS):
    """The ids of a text, without the END that may be its last."""
    return [(SPECIAL | letters)[letter] for letter in text.removesuffix("$")]


def log_probability(story, text):
    pairs = zip(f"^{text}", text, strict=False)
    return sum(math.log(story[last][following]) for last, following in pairs)


def flat_model(source_vocabulary, bias, attention=True):
    """A model whose logits are the same at every step: these numbers, to the last digit."""
    sizes = (source_vocabulary, len(bias), 2, 3, attention)
    shapes = parameter_shapes("Seq2Seq", *sizes)
    p = {name: torch.zeros(shape, dtype=torch.float64) for name, shape in shapes.items()}
    p["decoder.output.bias"] += torch.tensor(bias)
    return Drawn("Seq2Seq", sizes, p)


def told(text):
    """The story that is sure to be this text. No letter may come twice, but for a loop at the end.

    After the last letter of a text without END, its first letter follows again.
    """
    story = {last: {following: 1.0} for last, following in zip(f"^{text}", text, strict=False)}
    return story if text.endswith("$") else story | {text[-1]: {text[0]: 1.0}}
