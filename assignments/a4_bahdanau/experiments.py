"""The experiments of assignment 4: what your bahdanau.py does, as plots and tables.

    python -m assignments.a4_bahdanau.experiments                        # all three
    python -m assignments.a4_bahdanau.experiments alignment --quick      # one, in a short version

Given, and not graded. All need exercises 4.1 to 4.7; beam is the only one that uses beam_decode.
"""

import sys
import time
from collections import Counter
from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from torch import Tensor

from assignments.a4_bahdanau.bahdanau import (
    PADDING,
    Config,
    Seq2Seq,
    alignment,
    exact_match,
    train,
)
from common.data import Numbers, Pairs, load_numbers
from common.data.numbers import END, detokenize, pad
from common.training.experiments import new_parser, report, run_each
from common.training.plots import BLUE, FONT, GREEN, ORANGE, PAPER, PINK, RED, SKY, chart, save


class Contestant:
    """One kind of model and how long it is trained. Two of the same are trained once."""

    def __init__(self, attention: bool, units: int, epochs: int) -> None:
        self.attention = attention
        self.units = units
        self.epochs = epochs

    @property
    def name(self) -> str:
        """attention, 64 units, 2 epochs"""
        kind = "attention" if self.attention else "one vector"
        return f"{kind}, {self.units} units, {self.epochs} epoch{'s' * (self.epochs > 1)}"


# Models that this run has trained already, so that experiments can share them.
TRAINED: dict[tuple[bool, int, int, int], Seq2Seq] = {}


def trained(contestant: Contestant, data: Numbers, seed: int) -> Seq2Seq:
    """The contestant after its training on the English and French numbers."""
    key = contestant.attention, contestant.units, contestant.epochs, seed
    if key not in TRAINED:
        torch.manual_seed(seed)
        model = Seq2Seq(
            len(data.source_vocabulary),
            len(data.target_vocabulary),
            hidden_size=contestant.units,
            attention=contestant.attention,
        )
        weights = sum(parameter.numel() for parameter in model.parameters())
        print(f"  training: {contestant.name}, {weights:,} weights")
        start = time.perf_counter()
        train(model, *tensors(data.train), Config(epochs=contestant.epochs, seed=seed))
        print(f"  took {time.perf_counter() - start:.0f} s")
        TRAINED[key] = model
    return TRAINED[key]


def tensors(pairs: Pairs) -> tuple[Tensor, Tensor]:
    """Sources and targets as padded ids, (n, t) and (n, u)."""
    source, _ = pad(pairs.source_ids)
    target, _ = pad(pairs.target_ids)
    return torch.from_numpy(source), torch.from_numpy(target)


# The bottleneck: exact match against the length of the source

BANDS = ((1, 4), (5, 6), (7, 8), (9, 10), (11, 12))  # lengths of English numbers, in tokens
CONTEST = (
    (Contestant(True, 32, 2), GREEN),
    (Contestant(True, 64, 2), BLUE),
    (Contestant(False, 32, 2), RED),
    (Contestant(False, 64, 2), ORANGE),
    (Contestant(False, 128, 2), PINK),
    (Contestant(False, 64, 4), SKY),
)
QUICK_CONTEST = ((Contestant(True, 64, 1), BLUE), (Contestant(False, 64, 1), ORANGE))


def bottleneck(out: Path, quick: bool, seed: int) -> None:
    """Train models with and without attention; plot how often they are right, by length."""
    data = load_numbers()
    print("bottleneck: exact match on numbers that were kept from training, by source length")
    sizes = len(data.source_vocabulary), len(data.target_vocabulary)
    print(f"  vocabularies: {sizes[0]} English tokens, {sizes[1]} French ones")
    for part, pairs in (("training", data.train), ("kept", data.validation)):
        counts = [len(rows) for rows in rows_by_length(tensors(pairs)[0])]
        print(f"  {part} pairs of {in_bands(counts)}")
    source, target = tensors(data.validation)
    figure, axes = chart(7.2, 4.2)
    for contestant, colour in QUICK_CONTEST if quick else CONTEST:
        model = trained(contestant, data, seed)
        parts = [exact_match(model, source[rows], target[rows]) for rows in rows_by_length(source)]
        style = "-" if contestant.attention else "--"
        axes.plot(parts, style, marker="o", color=colour, label=contestant.name)
        shown = in_bands([f"{part:.0%}" for part in parts])
        print(f"  {contestant.name}: {exact_match(model, source, target):.1%} in all; {shown}")
    axes.set_xticks(range(len(BANDS)), [f"{low} to {high}" for low, high in BANDS])
    axes.set(xlabel="tokens of the English number", ylabel="exact match", ylim=(-0.02, 1.05))
    axes.legend(frameon=False, fontsize=9, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1))
    report(save(figure, out / "bottleneck.png"))


def rows_by_length(source: Tensor) -> list[Tensor]:
    """For each band, the rows whose sources are as long as that."""
    tokens = (source != PADDING).sum(1)
    return [((tokens >= low) & (tokens <= high)).nonzero()[:, 0] for low, high in BANDS]


def in_bands(values: list) -> str:
    """1 to 4 tokens 99%, 5 to 6 98%, ..."""
    pairs = zip(BANDS, values, strict=True)
    (low, high), first = next(pairs)
    rest = [f"{low} to {high} {value}" for (low, high), value in pairs]
    return ", ".join([f"{low} to {high} tokens {first}", *rest])


# What the attention looks at

SHOWN = (799, 145_708, 418_973, 963_687)  # all kept from training
DICTIONARY = {
    "trente": "thirty",
    "quarante": "forty",
    "cinquante": "fifty",
    "cent": "hundred",
    "mille": "thousand",
}
SEVERAL = 300


def heat_maps(out: Path, quick: bool, seed: int) -> None:
    """Draw the weights for a few numbers; print what it looks at for a few words."""
    data = load_numbers()
    print("alignment: the weights of the attention while it translates")
    model = trained(Contestant(True, 64, 1 if quick else 2), data, seed)
    pairs = data.validation
    figure = Figure(figsize=(9.6, 8.6), facecolor=PAPER, layout="constrained")
    for axes, number in zip(figure.subplots(2, 2).flat, SHOWN, strict=True):
        heat_map(axes, model, pairs, pairs.numbers.index(number))
    figure.colorbar(axes.images[0], ax=figure.axes, shrink=0.4, label="weight")
    report(save(figure, out / "alignment.png"))
    print(f"  where the largest weight lies, over {SEVERAL} numbers:")
    for word, found in most_looked_at(model, pairs, SEVERAL).items():
        times = max(found.total(), 1)  # a model that has learned little may never write it
        expected, often = DICTIONARY[word], found.most_common(3)
        others = ", ".join(f"{english} {number / times:.0%}" for english, number in often)
        print(
            f"    {word}, written {found.total()} times: on {expected} in "
            f"{found[expected] / times:.0%}; most often on {others}"
        )


def heat_map(axes: Axes, model: Seq2Seq, pairs: Pairs, place: int) -> None:
    """One matrix: a row for each word written, a column for each word read."""
    written, matrix = look(model, pairs, place)
    white_to_blue = LinearSegmentedColormap.from_list("weights", [PAPER, BLUE])
    axes.imshow(matrix, cmap=white_to_blue, vmin=0, vmax=1, aspect="auto")
    source = pairs.source[place]
    slanted = {"rotation": 55, "rotation_mode": "anchor", "ha": "right"}
    axes.set_xticks(range(len(source)), source, fontfamily=FONT, **slanted)
    axes.set_yticks(range(len(written)), written, fontfamily=FONT)
    axes.set_title(f"{pairs.numbers[place]:,}", fontsize=10, fontfamily=FONT)
    axes.tick_params(length=0, labelsize=9)
    words = [word for word in written if word != "<end>"]
    right = "right" if words == pairs.target[place] else "wrong"
    print(f"  {detokenize(source)}: {detokenize(words)} ({right})")
    for word, row in zip(written, matrix.tolist(), strict=True):
        seen = [(read, weight) for read, weight in zip(source, row, strict=True) if weight >= 0.1]
        print(f"    {word} looks at " + ", ".join(f"{read} {weight:.2f}" for read, weight in seen))


def look(model: Seq2Seq, pairs: Pairs, place: int) -> tuple[list[str], Tensor]:
    """The words that the model writes for one number, <end> included, and its weights."""
    ids, matrix = alignment(model, torch.from_numpy(pairs.source_ids[place]))
    return [pairs.target_vocabulary.tokens[number] for number in ids], matrix


def most_looked_at(model: Seq2Seq, pairs: Pairs, count: int) -> dict[str, Counter[str]]:
    """For each French word of DICTIONARY, where the largest weight lay when it was written."""
    found: dict[str, Counter[str]] = {word: Counter() for word in DICTIONARY}
    for place in range(count):
        written, matrix = look(model, pairs, place)
        for word, best in zip(written, matrix.argmax(dim=1).tolist(), strict=True):
            if word in found:
                found[word][pairs.source[place][best]] += 1
    return found


# Beam search on models that are not sure


def beam(out: Path, quick: bool, seed: int) -> None:
    """Print how often beam search is right, and how long its translations are."""
    data = load_numbers()
    print("beam: exact match with beam search, on models without attention")
    source, target = tensors(data.validation)
    right = [row[1 : row.index(END)] for row in target.tolist()]
    print(f"  the right translations have {mean_length(right):.2f} tokens in the mean")
    settings = ((1, 1.0), (2, 1.0), (4, 1.0), (8, 1.0), (4, 0.0), (4, 0.5), (4, 2.0))
    for units in (64,) if quick else (32, 64):
        contestant = Contestant(False, units, 1 if quick else 2)
        model = trained(contestant, data, seed)
        greedy = model.greedy_decode(source)
        for width, alpha in settings[:3] if quick else settings:
            answers, _ = model.beam_decode(source, width, alpha)
            part = share(answers, right)
            print(
                f"  {contestant.name}, width {width}, alpha {alpha:g}: {part:.1%} right, "
                f"{mean_length(answers):.2f} tokens, {1 - share(answers, greedy):.1%} not as greedy"
            )


def share(answers: list[list[int]], others: list[list[int]]) -> float:
    """The part of the answers that equal their counterparts."""
    return sum(map(list.__eq__, answers, others)) / len(answers)


def mean_length(sentences: list[list[int]]) -> float:
    """How many tokens a sentence has, in the mean."""
    return sum(map(len, sentences)) / len(sentences)


EXPERIMENTS = {"bottleneck": bottleneck, "alignment": heat_maps, "beam": beam}


def main(arguments: list[str]) -> int:
    """Run the experiments that are asked for; 2 if something is missing."""
    parser = new_parser("a4_bahdanau", __doc__.splitlines()[0], "a short version, under a minute")
    torch.set_num_threads(1)  # these matrices are so small that more threads only wait
    return run_each(EXPERIMENTS, parser, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
