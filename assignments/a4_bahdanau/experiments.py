"""The experiments of assignment 4: plots and tables made with your bahdanau.py.

    python -m assignments.a4_bahdanau.experiments                        # all three
    python -m assignments.a4_bahdanau.experiments alignment --quick      # one, in a short version

Given, and not graded. All need exercises 4.1 to 4.7; only beam uses beam_decode.
"""

import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from torch import Tensor

from assignments.a4_bahdanau.bahdanau import (
    PAD,
    Seq2Seq,
    TrainConfig,
    alignment,
    exact_match,
    train,
)
from common.data import Numbers, Pairs, load_numbers
from common.data.numbers import EOS, detokenize, pad
from common.training.experiments import new_parser, report, run_each
from common.training.plots import BLUE, FONT, GREEN, ORANGE, PAPER, PINK, RED, SKY, chart, save


@dataclass(frozen=True)
class ModelSettings:
    """A kind of model and how long it is trained. Equal ones are trained once."""

    attention: bool
    units: int  # hidden_size
    epochs: int

    @property
    def name(self) -> str:
        """attention, 64 units, 2 epochs"""
        kind = "attention" if self.attention else "one vector"
        return f"{kind}, {self.units} units, {self.epochs} epoch{'s' * (self.epochs > 1)}"


# Models that this run has already trained, so that experiments can share them.
TRAINED: dict[tuple[ModelSettings, int], Seq2Seq] = {}


def trained(settings: ModelSettings, data: Numbers, seed: int) -> Seq2Seq:
    """A model with these settings, trained on the English and French numbers."""
    key = settings, seed
    if key not in TRAINED:
        torch.manual_seed(seed)
        model = Seq2Seq(
            len(data.source_vocabulary),
            len(data.target_vocabulary),
            hidden_size=settings.units,
            attention=settings.attention,
        )
        parameters = sum(parameter.numel() for parameter in model.parameters())
        print(f"  training: {settings.name}, {parameters:,} parameters")
        start = time.perf_counter()
        train(model, *tensors(data.train), TrainConfig(epochs=settings.epochs, seed=seed))
        print(f"  took {time.perf_counter() - start:.0f} s")
        TRAINED[key] = model
    return TRAINED[key]


def tensors(pairs: Pairs) -> tuple[Tensor, Tensor]:
    """Sources and targets as padded ids, (n, t) and (n, u)."""
    source, _ = pad(pairs.source_ids)
    target, _ = pad(pairs.target_ids)
    return torch.from_numpy(source), torch.from_numpy(target)


# The bottleneck: exact match by source length

BANDS = ((1, 4), (5, 6), (7, 8), (9, 10), (11, 12))  # lengths of English numbers, in tokens
COMPARED = (
    (ModelSettings(True, 32, 2), GREEN),
    (ModelSettings(True, 64, 2), BLUE),
    (ModelSettings(False, 32, 2), RED),
    (ModelSettings(False, 64, 2), ORANGE),
    (ModelSettings(False, 128, 2), PINK),
    (ModelSettings(False, 64, 4), SKY),
)
QUICKLY_COMPARED = ((ModelSettings(True, 64, 1), BLUE), (ModelSettings(False, 64, 1), ORANGE))


def bottleneck(out: Path, quick: bool, seed: int) -> None:
    """Train models with and without attention; plot exact match by source length."""
    data = load_numbers()
    print("bottleneck: exact match on validation numbers, by source length")
    sizes = len(data.source_vocabulary), len(data.target_vocabulary)
    print(f"  vocabularies: {sizes[0]} English tokens, {sizes[1]} French tokens")
    for part, pairs in (("training", data.train), ("validation", data.validation)):
        counts = [len(rows) for rows in rows_by_length(tensors(pairs)[0])]
        print(f"  {part} pairs of {in_bands(counts)}")
    source, target = tensors(data.validation)
    figure, axes = chart(7.2, 4.2)
    for settings, color in QUICKLY_COMPARED if quick else COMPARED:
        model = trained(settings, data, seed)
        right = [exact_match(model, source[rows], target[rows]) for rows in rows_by_length(source)]
        style = "-" if settings.attention else "--"
        axes.plot(right, style, marker="o", color=color, label=settings.name)
        shown = in_bands([f"{fraction:.0%}" for fraction in right])
        print(f"  {settings.name}: {exact_match(model, source, target):.1%} overall; {shown}")
    axes.set_xticks(range(len(BANDS)), [f"{low} to {high}" for low, high in BANDS])
    axes.set(xlabel="tokens of the English number", ylabel="exact match", ylim=(-0.02, 1.05))
    axes.legend(frameon=False, fontsize=9, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1))
    report(save(figure, out / "bottleneck.png"))


def rows_by_length(source: Tensor) -> list[Tensor]:
    """For each band of lengths, the rows of its sources."""
    tokens = (source != PAD).sum(1)
    return [((tokens >= low) & (tokens <= high)).nonzero()[:, 0] for low, high in BANDS]


def in_bands(values: list) -> str:
    """1 to 4 tokens 99%, 5 to 6 98%, ..."""
    pairs = zip(BANDS, values, strict=True)
    (low, high), first = next(pairs)
    rest = [f"{low} to {high} {value}" for (low, high), value in pairs]
    return ", ".join([f"{low} to {high} tokens {first}", *rest])


# What the attention attends to

SHOWN = (799, 145_708, 418_973, 963_687)  # all in the validation split
DICTIONARY = {
    "trente": "thirty",
    "quarante": "forty",
    "cinquante": "fifty",
    "cent": "hundred",
    "mille": "thousand",
}
SEVERAL = 300


def heat_maps(out: Path, quick: bool, seed: int) -> None:
    """Draw the weights for a few numbers; print where they are largest for a few words."""
    data = load_numbers()
    print("alignment: the attention weights during translation")
    model = trained(ModelSettings(True, 64, 1 if quick else 2), data, seed)
    pairs = data.validation
    figure = Figure(figsize=(9.6, 8.6), facecolor=PAPER, layout="constrained")
    for axes, number in zip(figure.subplots(2, 2).flat, SHOWN, strict=True):
        heat_map(axes, model, pairs, pairs.numbers.index(number))
    figure.colorbar(axes.images[0], ax=figure.axes, shrink=0.4, label="weight")
    report(save(figure, out / "alignment.png"))
    print(f"  position of the largest weight, over {SEVERAL} numbers:")
    for word, found in most_attended(model, pairs, SEVERAL).items():
        count = max(found.total(), 1)  # a model that has learned little may never generate it
        expected, often = DICTIONARY[word], found.most_common(3)
        others = ", ".join(f"{english} {number / count:.0%}" for english, number in often)
        print(
            f"    {word}, generated {found.total()} times: on {expected} in "
            f"{found[expected] / count:.0%}; most often on {others}"
        )


def heat_map(axes: Axes, model: Seq2Seq, pairs: Pairs, index: int) -> None:
    """One matrix: a row for each generated word, a column for each source word."""
    generated, matrix = align(model, pairs, index)
    white_to_blue = LinearSegmentedColormap.from_list("weights", [PAPER, BLUE])
    axes.imshow(matrix, cmap=white_to_blue, vmin=0, vmax=1, aspect="auto")
    source = pairs.source[index]
    slanted = {"rotation": 55, "rotation_mode": "anchor", "ha": "right"}
    axes.set_xticks(range(len(source)), source, fontfamily=FONT, **slanted)
    axes.set_yticks(range(len(generated)), generated, fontfamily=FONT)
    axes.set_title(f"{pairs.numbers[index]:,}", fontsize=10, fontfamily=FONT)
    axes.tick_params(length=0, labelsize=9)
    words = [word for word in generated if word != "<eos>"]
    right = "right" if words == pairs.target[index] else "wrong"
    print(f"  {detokenize(source)}: {detokenize(words)} ({right})")
    for word, row in zip(generated, matrix.tolist(), strict=True):
        seen = [(read, weight) for read, weight in zip(source, row, strict=True) if weight >= 0.1]
        weights = ", ".join(f"{read} {weight:.2f}" for read, weight in seen)
        print(f"    {word} attends to {weights}")


def align(model: Seq2Seq, pairs: Pairs, index: int) -> tuple[list[str], Tensor]:
    """The words that the model generates for one number, including <eos>, and its weights."""
    ids, matrix = alignment(model, torch.from_numpy(pairs.source_ids[index]))
    return [pairs.target_vocabulary.tokens[token] for token in ids], matrix


def most_attended(model: Seq2Seq, pairs: Pairs, count: int) -> dict[str, Counter[str]]:
    """For each French word of DICTIONARY, the English words with the largest weight."""
    found: dict[str, Counter[str]] = {word: Counter() for word in DICTIONARY}
    for index in range(count):
        generated, matrix = align(model, pairs, index)
        for word, best in zip(generated, matrix.argmax(dim=1).tolist(), strict=True):
            if word in found:
                found[word][pairs.source[index][best]] += 1
    return found


# Beam search on weaker models


def beam(out: Path, quick: bool, seed: int) -> None:
    """Print the exact match of beam search, and the length of its translations."""
    data = load_numbers()
    print("beam: exact match with beam search, on models without attention")
    source, target = tensors(data.validation)
    right = [row[1 : row.index(EOS)] for row in target.tolist()]
    print(f"  the right translations have {mean_length(right):.2f} tokens on average")
    searches = ((1, 1.0), (2, 1.0), (4, 1.0), (8, 1.0), (4, 0.0), (4, 0.5), (4, 2.0))
    for units in (64,) if quick else (32, 64):
        settings = ModelSettings(False, units, 1 if quick else 2)
        model = trained(settings, data, seed)
        greedy = model.greedy_decode(source)
        for beam_width, length_penalty in searches[:3] if quick else searches:
            found, _ = model.beam_decode(source, beam_width, length_penalty)
            print(
                f"  {settings.name}, beam_width {beam_width}, length_penalty {length_penalty:g}: "
                f"{fraction_equal(found, right):.1%} right, {mean_length(found):.2f} tokens, "
                f"{1 - fraction_equal(found, greedy):.1%} differ from greedy"
            )


def fraction_equal(found: list[list[int]], others: list[list[int]]) -> float:
    """The fraction of the translations that equal their counterparts."""
    return sum(map(list.__eq__, found, others)) / len(found)


def mean_length(sentences: list[list[int]]) -> float:
    """The average number of tokens of a sentence."""
    return sum(map(len, sentences)) / len(sentences)


EXPERIMENTS = {"bottleneck": bottleneck, "alignment": heat_maps, "beam": beam}


def main(arguments: list[str]) -> int:
    """Run the requested experiments; 2 if something is missing."""
    parser = new_parser("a4_bahdanau", __doc__.splitlines()[0], "a short version, under a minute")
    torch.set_num_threads(1)  # these matrices are too small for more threads to help
    return run_each(EXPERIMENTS, parser, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
