"""The experiments of assignment 6: what your Transformer does, as plots.

    python -m assignments.a6_transformer.experiments                   # all five, into figures/
    python -m assignments.a6_transformer.experiments depth --quick     # one, in a short version

Given, and not graded. encoding needs exercise 6.1, the others 6.1 to 6.7, on your assignment 5.
If your assignment 4 is there, race and lengths include its RNN with attention.
"""

import importlib
import sys
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from torch import Tensor, nn

from common.data import load_numbers
from common.data.numbers import Numbers, pad
from common.training.experiments import add_prerequisites, load_code, new_parser, read_options, run
from common.training.plots import BLUE, FAINT, FONT, GREEN, INK, ORANGE, PAPER, save
from common.training.training_progress import TrainingDisplay

PAD, BOS, EOS, FIRST = 0, 1, 2, 3  # ids; FIRST is that of the first word, or of the digit 0
BATCH = 32
NAME = "a6_transformer"


class Study:
    """What the experiments share: your code, the number words, and the models trained so far."""

    def __init__(self, standins: list[str], out: Path, quick: bool, seed: int) -> None:
        self.layers = load_code("layers", NAME, standins)
        self.transformer = load_code("transformer", NAME)
        self.training = load_code("training", NAME)
        self.decoding = load_code("decoding", NAME)
        self.out, self.quick, self.seed = out, quick, seed
        self._done: dict[str, Any] = {}

    @cached_property
    def numbers(self) -> Numbers:
        """The number words of assignment 4."""
        return load_numbers()

    @cached_property
    def recurrent(self) -> ModuleType | None:
        """Your assignment 4, or None: then the reason is printed once."""
        module, reason = load_recurrent()
        if module is None:
            print(f"  Without the RNN with attention: {reason}.", flush=True)
        return module

    def new_transformer(self, source: int, target: int, **settings: object) -> nn.Module:
        """An untrained Transformer for vocabularies of these sizes."""
        torch.manual_seed(self.seed)
        config = self.transformer.TransformerConfig(source, target, **settings)
        return self.transformer.Transformer(config)

    def new_recurrent(self, source: int, target: int) -> nn.Module:
        """The same for the network of assignment 4."""
        torch.manual_seed(self.seed)
        return self.recurrent.Seq2Seq(source, target)

    def once(self, name: str, train: Callable[[], Any]) -> Any:
        """The result of train, which is called only the first time."""
        if name not in self._done:
            self._done[name] = train()
        return self._done[name]

    def exact_match(self, model: nn.Module, source: Tensor, target: Tensor) -> float:
        """The fraction of sources that are translated exactly, with greedy decoding."""
        longest = target.shape[1]
        if isinstance(model, self.transformer.Transformer):
            decoded = self.decoding.greedy_decode(model, source, longest)
        else:
            decoded = model.greedy_decode(source, longest)
        return self.decoding.exact_match(decoded, target)

    def save(self, figure: Figure, name: str) -> None:
        """Write a figure, and print its path."""
        print(f"  written: {save(figure, self.out / f'{name}.png')}", flush=True)


def as_tensors(sources: list, targets: list) -> tuple[Tensor, Tensor]:
    """Lists of ids as two tensors, with padding."""
    return torch.from_numpy(pad(sources)[0]), torch.from_numpy(pad(targets)[0])


def count_parameters(model: nn.Module) -> int:
    """How many parameters a model has."""
    return sum(parameter.numel() for parameter in model.parameters())


class Trainer:
    """Trains a model with Adam, given its loss on a batch and the learning rate of each step."""

    def __init__(
        self,
        model: nn.Module,
        loss: Callable[[Tensor, Tensor], Tensor],
        rate: Callable[[int], float],
        **adam: object,
    ) -> None:
        self.model, self.loss, self.rate = model, loss, rate
        self.optimizer = torch.optim.Adam(model.parameters(), **adam)

    def step(self, number: int, source: Tensor, target: Tensor) -> float:
        """Make update `number`, counted from 1. Returns the loss."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(number)
        loss = self.loss(source, target)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()


def transformer_trainer(
    study: Study, model: nn.Module, rate: Callable[[int], float], label_smoothing: float
) -> Trainer:
    """As in your train, but with another learning rate."""
    loss_function = study.training.label_smoothing_loss

    def loss(source: Tensor, target: Tensor) -> Tensor:
        return loss_function(model(source, target[:, :-1]), target[:, 1:], label_smoothing)

    return Trainer(model, loss, rate, betas=(0.9, 0.98), eps=1e-9)


def recurrent_trainer(study: Study, model: nn.Module, steps: int) -> Trainer:
    """As in assignment 4's train."""
    first = study.recurrent.TrainConfig().learning_rate
    return Trainer(model, model.loss, lambda step: first * (1 - (step - 1) / steps))


def fit(
    trainer: Trainer,
    pairs: tuple[Tensor, Tensor],
    steps: int,
    seed: int,
    title: str,
    after_step: Callable[[int, float], None] = lambda step, seconds: None,
) -> list[float]:
    """Train on random batches. after_step gets each step's number and the CPU seconds so far.

    The time spent in after_step doesn't count.
    """
    source, target = pairs
    rng = torch.Generator().manual_seed(seed)
    losses, seconds = [], 0.0
    with TrainingDisplay(steps, title=title) as display:
        for step in range(1, steps + 1):
            start = time.process_time()
            batch = torch.randint(len(source), (BATCH,), generator=rng)
            loss = trainer.step(step, trimmed(source[batch]), trimmed(target[batch]))
            seconds += time.process_time() - start
            losses.append(loss)
            display.step(loss=loss)
            after_step(step, seconds)
    return losses


def trimmed(ids: Tensor) -> Tensor:
    """Without the columns at the end that hold only padding."""
    return ids[:, : int((ids != PAD).sum(dim=1).max())]


# Figures


def figure_of(width: float, height: float, title: str = "") -> Figure:
    """An empty figure of width x height inches."""
    figure = Figure(figsize=(width, height), facecolor=PAPER, layout="constrained")
    if title:
        figure.suptitle(title, color=INK, fontfamily=FONT, fontsize=11)
    return figure


def plain(axes: Axes, across: str = "", down: str = "", title: str = "") -> None:
    """Only the left and bottom spines, with their labels."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=9, labelfontfamily=FONT)
    axes.set_xlabel(across, fontsize=9, fontfamily=FONT)
    axes.set_ylabel(down, fontsize=9, fontfamily=FONT)
    axes.set_title(title, fontsize=10, fontfamily=FONT, color=INK)


# Positional encodings


def encoding(study: Study) -> None:
    """The sinusoidal encoding, and the dot products of positions."""
    length, d_model = 64, 64
    vectors = study.layers.sinusoidal_encoding(length, d_model)  # (length, d_model)
    print(f"encoding: {length} positions, {d_model} features")
    errors = [
        float((study.layers.shift_matrix(k, d_model) @ vectors[p] - vectors[p + k]).abs().max())
        for k in (1, 5, 20)
        for p in range(length - k)
    ]
    print(f"  shift_matrix shifts by 1, 5 and 20 with an error of at most {max(errors):.0e}")
    products = vectors @ vectors.T  # (length, length)
    shown = ", ".join(f"{products[0, k]:.1f} at distance {k}" for k in (0, 1, 2, 5, 10, 50))
    print(f"  dot product of two positions: {shown}")

    figure = figure_of(11, 3.6)
    left, middle, right = figure.subplots(1, 3)
    image = left.imshow(vectors, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
    plain(left, "feature", "position", "encoding")
    figure.colorbar(image, ax=left, shrink=0.8, ticks=[-1, 0, 1])
    image = middle.imshow(products, cmap="cividis")
    plain(middle, "position q", "position p", "dot product of two positions")
    figure.colorbar(image, ax=middle, shrink=0.8)
    for p, color in ((0, BLUE), (20, ORANGE), (40, GREEN)):
        distances = np.arange(length) - p
        right.plot(distances, products[p], color=color, linewidth=3 - p / 20, label=p)
    plain(right, "q - p", "dot product", "it depends only on q - p")
    right.legend(frameon=False, fontsize=9, title="p", title_fontsize=9)
    study.save(figure, "encoding")


# The Transformer and the RNN with attention on the same number words

MOMENTS = (10, 20, 30, 40, 60, 80, 100, 125, 150, 200, 250, 300, 400, 500)  # steps
Curve = list[tuple[int, float, float]]  # step, seconds, exact match


def race(study: Study) -> None:
    """The exact match on unseen numbers, by steps and by seconds."""
    print(f"race: number words, {race_steps(study)} steps with {BATCH} pairs each")
    _, points = number_transformer(study)
    curves = {"Transformer": (BLUE, points)}
    if study.recurrent:
        curves["RNN with attention"] = ORANGE, number_recurrent(study)

    figure = figure_of(9.4, 3.6)
    by_steps, by_seconds = figure.subplots(1, 2, sharey=True)
    for name, (color, points) in curves.items():
        numbers, seconds, right = zip(*points, strict=True)
        by_steps.plot(numbers, right, "o-", color=color, markersize=3.5, label=name)
        by_seconds.plot(seconds, right, "o-", color=color, markersize=3.5)
    plain(by_steps, "steps", "exact match on unseen numbers")
    plain(by_seconds, "CPU seconds")
    by_steps.set_ylim(0, 1.02)
    by_steps.yaxis.set_major_formatter(PercentFormatter(1))
    by_steps.legend(frameon=False, fontsize=9, loc="upper left" if study.quick else "lower right")
    study.save(figure, "race")


def race_steps(study: Study) -> int:
    """The number of training steps on the number words."""
    return 60 if study.quick else MOMENTS[-1]


def number_pairs(study: Study) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Training pairs of number words, and unseen ones to evaluate on."""
    train, new = study.numbers.train, study.numbers.validation
    count = 100 if study.quick else 300
    unseen = as_tensors(new.source_ids[:count], new.target_ids[:count])
    return as_tensors(train.source_ids, train.target_ids), unseen


def vocab_sizes(study: Study) -> tuple[int, int]:
    """The number of English and French tokens."""
    return len(study.numbers.source_vocabulary), len(study.numbers.target_vocabulary)


def number_transformer(study: Study) -> tuple[nn.Module, Curve]:
    """A Transformer trained on the number words with TrainConfig's defaults, and its curve."""
    config = study.training.TrainConfig(steps=race_steps(study))

    def train() -> tuple[nn.Module, Curve]:
        model = study.new_transformer(*vocab_sizes(study))

        def rate(step: int) -> float:
            d_model = model.config.d_model
            return config.factor * study.training.noam_rate(step, d_model, config.warmup)

        trainer = transformer_trainer(study, model, rate, config.label_smoothing)
        return model, race_curve(study, trainer, "Transformer")

    return study.once("number words", train)


def number_recurrent(study: Study) -> Curve:
    """The curve of assignment 4's network."""
    model = study.new_recurrent(*vocab_sizes(study))
    return race_curve(
        study, recurrent_trainer(study, model, race_steps(study)), "RNN with attention"
    )


def race_curve(study: Study, trainer: Trainer, name: str) -> Curve:
    """Train, and record step, seconds and exact match at some moments."""
    pairs, unseen = number_pairs(study)
    curve: Curve = []

    def evaluate(step: int, seconds: float) -> None:
        if step in MOMENTS:
            curve.append((step, seconds, study.exact_match(trainer.model, *unseen)))

    fit(trainer, pairs, race_steps(study), study.seed, name, evaluate)
    print(f"  {name}, {count_parameters(trainer.model):,} parameters")
    for step, seconds, right in curve:
        print(f"    {right:4.0%} after {step} steps, {seconds:.1f} s", flush=True)
    return curve


# Sequences longer than in training

TASKS = {"sorting": np.sort, "reversing": np.flip}
DIGITS = 10
LONGEST = 8  # in training
LENGTHS = (2, 4, 6, 7, 8, 9, 10, 11, 12, 14, 16)  # in the test


def lengths(study: Study) -> None:
    """Sort and reverse digits: exact match by sequence length."""
    steps = digit_steps(study)
    kinds = {"sinusoidal": BLUE, "learned": GREEN}
    print(f"lengths: trained on 1 to {LONGEST} digits, {steps} steps")
    figure = figure_of(9.4, 3.6)
    for axes, task in zip(figure.subplots(1, 2, sharey=True), TASKS, strict=True):
        models = {
            f"Transformer, {kind} positions": (color, digit_transformer(study, task, kind))
            for kind, color in kinds.items()
        }
        if study.recurrent:
            models["RNN with attention"] = ORANGE, digit_recurrent(study, task)
        for name, (color, model) in models.items():
            right = [exact_match_at_length(study, model, task, k) for k in LENGTHS]
            axes.plot(LENGTHS, right, "o-", color=color, markersize=3.5, label=name)
            shown = ", ".join(
                f"{k}: {fraction:.0%}" for k, fraction in zip(LENGTHS, right, strict=True)
            )
            print(f"  {task}, {name}: {shown}", flush=True)
        axes.axvline(LONGEST + 0.5, color=FAINT, linewidth=0.8, linestyle=":")
        plain(axes, "digits in the sequence", title=task)
        axes.set_ylim(-0.02, 1.04)
        axes.yaxis.set_major_formatter(PercentFormatter(1))
        axes.text(LENGTHS[-1], 0.9, "longer than in training", fontsize=8.5, color=INK, ha="right")
    first, last = figure.axes
    plain(first, "digits in the sequence", "exact match on unseen sequences", first.get_title())
    last.legend(frameon=False, fontsize=8.5, loc="center right")
    study.save(figure, "lengths")


def exact_match_at_length(study: Study, model: nn.Module, task: str, length: int) -> float:
    """The exact match on unseen sequences of one length."""
    rng = np.random.default_rng([study.seed, length])
    count = 50 if study.quick else 200
    return study.exact_match(model, *digit_pairs(rng, task, count, (length, length)))


def digit_pairs(
    rng: np.random.Generator, task: str, count: int, between: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """Random digits and their targets, of random lengths from `between`."""
    shortest, longest = between
    sizes = rng.integers(shortest, longest + 1, size=count)
    sources = [rng.integers(FIRST, FIRST + DIGITS, size=size) for size in sizes]
    targets = [[BOS, *TASKS[task](source), EOS] for source in sources]
    return as_tensors(sources, targets)


def digit_steps(study: Study) -> int:
    """The number of training steps on digits."""
    return 60 if study.quick else 800


def digit_transformer(study: Study, task: str, positions: str) -> nn.Module:
    """A Transformer trained, by your train, to sort or to reverse digits."""

    def train() -> nn.Module:
        pairs = digit_pairs(np.random.default_rng(study.seed), task, 20_000, (1, LONGEST))
        model = study.new_transformer(FIRST + DIGITS, FIRST + DIGITS, positions=positions)
        steps = digit_steps(study)
        config = study.training.TrainConfig(steps=steps, batch_size=BATCH, seed=study.seed)
        study.training.train(model, *pairs, config)
        return model

    return study.once(f"{task} {positions}", train)


def digit_recurrent(study: Study, task: str) -> nn.Module:
    """The same with the network of assignment 4."""
    steps = digit_steps(study)
    pairs = digit_pairs(np.random.default_rng(study.seed), task, 20_000, (1, LONGEST))
    model = study.new_recurrent(FIRST + DIGITS, FIRST + DIGITS)
    fit(recurrent_trainer(study, model, steps), pairs, steps, study.seed, "RNN with attention")
    return model


# Attention maps

NUMBER = 76_693  # one of the test set
KINDS = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "cross": "cross-attention",
}


def maps(study: Study) -> None:
    """The attention weights of every head, for one number and for a sequence of digits."""
    print("maps: attention weights of every head")
    model, _ = number_transformer(study)
    test = study.numbers.test
    row = test.numbers.index(NUMBER)
    read, written = test.source[row], ["<bos>", *test.target[row]]
    print(f"  the number is {NUMBER}: {' '.join(read)}")
    source, target = as_tensors([test.source_ids[row]], [test.target_ids[row]])
    weights = study.decoding.attention_maps(model, source, target[:, :-1])
    sides = {"encoder": (read, read), "decoder": (written, written), "cross": (written, read)}
    for kind, (queries, keys) in sides.items():
        figure = heads_figure(weights[kind][:, 0], queries, keys, KINDS[kind])
        study.save(figure, f"maps_{kind}")
    mirror(study)


def mirror(study: Study) -> None:
    """To reverse digits, heads must attend to the mirrored position."""
    model = digit_transformer(study, "reversing", "sinusoidal")
    rng = np.random.default_rng(study.seed + 1)
    source, target = digit_pairs(rng, "reversing", 200, (LONGEST, LONGEST))
    cross = study.decoding.attention_maps(model, source, target[:, :-1])["cross"]
    # The position that predicts the first digit must attend to the last one, and so on.
    mirrored = cross[..., :LONGEST, :].flip(-1).diagonal(dim1=-2, dim2=-1)  # (layers, n, heads, t)
    for layer, heads in enumerate(mirrored.mean(dim=(1, 3)).tolist(), start=1):
        shown = ", ".join(f"{fraction:.0%}" for fraction in heads)
        print(f"  reversing, layer {layer}: {shown} of each head's weight on the mirrored position")
    digits = [str(token - FIRST) for token in source[0].tolist()]
    written = ["<bos>", *digits[::-1]]
    title = "reversing: cross-attention"
    study.save(heads_figure(cross[:, 0], written, digits, title), "maps_reversing")


def heads_figure(weights: Tensor, queries: list[str], keys: list[str], title: str) -> Figure:
    """A map for each layer and head: weights (layers, heads, t_q, t_k)."""
    layers, heads = weights.shape[:2]
    turned = 90 if max(map(len, keys)) > 1 else 0  # words need more space than digits
    figure = figure_of(1.6 + 2.1 * heads, 1.1 + 2.1 * layers, title)
    grid = figure.subplots(layers, heads, sharex=True, sharey=True, squeeze=False)
    for layer, row in enumerate(grid):
        for head, axes in enumerate(row):
            axes.imshow(weights[layer, head], cmap="Blues", vmin=0, vmax=1)
            axes.set_title(f"layer {layer + 1}, head {head + 1}", fontsize=8.5, fontfamily=FONT)
            axes.spines[:].set_color(FAINT)
            axes.set_xticks(range(len(keys)), keys, rotation=turned, fontsize=7.5)
            axes.set_yticks(range(len(queries)), queries, fontsize=7.5)
    figure.supylabel("query", fontsize=9, fontfamily=FONT)
    figure.supxlabel("key", fontsize=9, fontfamily=FONT)
    return figure


# Pre-norm and post-norm, with and without warm-up

MAX_LR, WARMUP = 0.005, 100  # the maximum learning rate, and the steps until it is reached


def depth(study: Study) -> None:
    """Pre-norm and post-norm, shallow and deep, with and without warm-up."""
    steps, deep = (30, 6) if study.quick else (150, 12)
    print(f"depth: number words, {steps} steps, maximum learning rate {MAX_LR}")
    pairs, _ = number_pairs(study)
    guess = frequency_loss(pairs[1])
    print(f"  baseline, the frequency of each word: loss {guess:.2f}")
    figure = figure_of(9.4, 3.6)
    for axes, layers in zip(figure.subplots(1, 2, sharey=True), (2, deep), strict=True):
        for norm, color in (("pre", BLUE), ("post", ORANGE)):
            for warmup, style in ((True, "-"), (False, "--")):
                name = f"{norm}-norm, {'with' if warmup else 'without'} warm-up"
                losses, right = deep_run(study, norm, layers, warmup, steps, name)
                axes.plot(running_mean(losses), style, color=color, label=name)
                print(
                    f"  {layers} + {layers} layers, {name}: loss {np.mean(losses[-10:]):.2f}, "
                    f"{right:.0%} right",
                    flush=True,
                )
        plain(axes, "steps", title=f"{layers} + {layers} layers")
        axes.axhline(guess, color=FAINT, linewidth=0.8, linestyle=":")
        axes.set_ylim(0, 5)
    first, last = figure.axes
    plain(first, "steps", "loss (mean of 10 steps)", "2 + 2 layers")
    first.legend(frameon=False, fontsize=8.5)
    last.text(1, guess - 0.25, "word frequencies", fontsize=8.5, color=INK)
    study.save(figure, "depth")


def deep_run(
    study: Study, norm: str, num_layers: int, warmup: bool, steps: int, title: str
) -> tuple[list[float], float]:
    """The losses of a small Transformer, and its final exact match on unseen numbers."""
    sizes = {
        "d_model": 32,
        "d_ff": 64,
        "num_encoder_layers": num_layers,
        "num_decoder_layers": num_layers,
    }
    model = study.new_transformer(*vocab_sizes(study), norm=norm, **sizes)
    noam_rate = study.training.noam_rate
    factor = MAX_LR / noam_rate(WARMUP, 32, WARMUP)

    def rate(step: int) -> float:
        # Without warm-up, the first steps already have the maximum rate.
        return factor * noam_rate(step if warmup else max(step, WARMUP), 32, WARMUP)

    pairs, unseen = number_pairs(study)
    trainer = transformer_trainer(study, model, rate, label_smoothing=0.0)
    losses = fit(trainer, pairs, steps, study.seed, f"{num_layers} layers, {title}")
    return losses, study.exact_match(model, *unseen)


def frequency_loss(target: Tensor) -> float:
    """The loss of a model that knows only the frequency of each target token."""
    tokens = target[:, 1:]
    counts = torch.bincount(tokens[tokens != PAD]).double()
    frequencies = counts[counts > 0] / counts.sum()
    return float(-(frequencies * frequencies.log()).sum())


def running_mean(losses: list[float], last: int = 10) -> np.ndarray:
    """The mean of the last losses at each step."""
    total = np.cumsum([0.0, *losses])
    ends = np.arange(1, len(losses) + 1)
    starts = np.maximum(ends - last, 0)
    return (total[ends] - total[starts]) / (ends - starts)


EXPERIMENTS = {
    "encoding": encoding,
    "race": race,
    "lengths": lengths,
    "maps": maps,
    "depth": depth,
}


def load_recurrent() -> tuple[ModuleType | None, str]:
    """Your bahdanau.py if it works; else None, and the reason."""
    try:
        module = importlib.import_module("assignments.a4_bahdanau.bahdanau")
        source, target = torch.tensor([[FIRST]]), torch.tensor([[BOS, FIRST, EOS]])
        model = module.Seq2Seq(FIRST + 1, FIRST + 1)
        model.loss(source, target).backward()
        model.greedy_decode(source, 2)
    except ModuleNotFoundError:
        return None, "assignments/a4_bahdanau/bahdanau.py isn't here"
    except NotImplementedError as error:
        return None, f"assignment 4 is not written yet ({error})"
    except Exception as error:  # whatever is wrong there
        return None, f"assignment 4 raises {type(error).__name__} ({error})"
    return module, ""


def main(arguments: list[str]) -> int:
    """Run the chosen experiments; returns 2 if something is missing."""
    about, quick = __doc__.splitlines()[0], "a short version, under a minute"
    parser = new_parser(NAME, about, quick)
    add_prerequisites(parser, 5)
    options = read_options(parser, EXPERIMENTS, arguments)
    torch.set_num_threads(1)  # small models are not faster on more, and seconds are compared

    def work() -> None:
        standins = ["a5_attention"] if options.prerequisites == "standin" else []
        study = Study(standins, options.out, options.quick, options.seed)
        for name in options.names:
            EXPERIMENTS[name](study)

    return run(work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
