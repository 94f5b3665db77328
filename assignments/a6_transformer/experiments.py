"""The experiments of assignment 6: what your Transformer does, as plots.

    python -m assignments.a6_transformer.experiments                   # all five, into figures/
    python -m assignments.a6_transformer.experiments depth --quick     # one, in a short version

Given, and not graded. encoding needs exercise 6.1, the others all up to 6.7, on your assignment 5.
If your assignment 4 is there, its network with attention takes part in race and lengths.
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

PADDING, BEGIN, END, FIRST = 0, 1, 2, 3  # ids; FIRST is that of the first word, or of the digit 0
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
        """Your assignment 4, or None: then a sentence says, once, why it takes no part."""
        module, reason = load_recurrent()
        if module is None:
            print(f"  The RNN with attention is left out: {reason}.", flush=True)
        return module

    def new_transformer(self, source: int, target: int, **settings: object) -> nn.Module:
        """A Transformer that has learned nothing yet, for vocabularies of these sizes."""
        torch.manual_seed(self.seed)
        config = self.transformer.TransformerConfig(source, target, **settings)
        return self.transformer.Transformer(config)

    def new_recurrent(self, source: int, target: int) -> nn.Module:
        """The same for the network of assignment 4."""
        torch.manual_seed(self.seed)
        return self.recurrent.Seq2Seq(source, target)

    def once(self, name: str, train: Callable[[], Any]) -> Any:
        """What train returns: it is called when this is first asked for."""
        if name not in self._done:
            self._done[name] = train()
        return self._done[name]

    def share_right(self, model: nn.Module, source: Tensor, target: Tensor) -> float:
        """How many sources are decoded without a mistake, greedily."""
        longest = target.shape[1]
        if isinstance(model, self.transformer.Transformer):
            decoded = self.decoding.greedy_decode(model, source, longest)
        else:
            decoded = model.greedy_decode(source, longest)
        return self.decoding.exact_match(decoded, target)

    def save(self, figure: Figure, name: str) -> None:
        """Write a figure, and say where."""
        print(f"  written: {save(figure, self.out / f'{name}.png')}", flush=True)


def as_tensors(sources: list, targets: list) -> tuple[Tensor, Tensor]:
    """Lists of ids as two tensors, with padding."""
    return torch.from_numpy(pad(sources)[0]), torch.from_numpy(pad(targets)[0])


def count_weights(model: nn.Module) -> int:
    """How many numbers a model learns."""
    return sum(weight.numel() for weight in model.parameters())


class Lesson:
    """A way to train a model: its loss on a batch, and the learning rate of each step."""

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
        """Update the weights once; number counts from 1. Returns the loss."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(number)
        loss = self.loss(source, target)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()


def transformer_lesson(
    study: Study, model: nn.Module, rate: Callable[[int], float], smoothing: float
) -> Lesson:
    """As your train does it, but for the learning rate."""
    smoothed = study.training.label_smoothing_loss

    def loss(source: Tensor, target: Tensor) -> Tensor:
        return smoothed(model(source, target[:, :-1]), target[:, 1:], smoothing)

    return Lesson(model, loss, rate, betas=(0.9, 0.98), eps=1e-9)


def recurrent_lesson(study: Study, model: nn.Module, steps: int) -> Lesson:
    """As assignment 4's train does it."""
    first = study.recurrent.Config().learning_rate
    return Lesson(model, model.loss, lambda step: first * (1 - (step - 1) / steps))


def teach(
    lesson: Lesson,
    pairs: tuple[Tensor, Tensor],
    steps: int,
    seed: int,
    title: str,
    look: Callable[[int, float], None] = lambda step, seconds: None,
) -> list[float]:
    """Train on random batches. After each step, look gets its number and the seconds so far.

    The seconds are those that the processor has worked on training: looking doesn't count.
    """
    source, target = pairs
    rng = torch.Generator().manual_seed(seed)
    losses, seconds = [], 0.0
    with TrainingDisplay(steps, title=title) as display:
        for step in range(1, steps + 1):
            start = time.process_time()
            batch = torch.randint(len(source), (BATCH,), generator=rng)
            loss = lesson.step(step, trimmed(source[batch]), trimmed(target[batch]))
            seconds += time.process_time() - start
            losses.append(loss)
            display.step(loss=loss)
            look(step, seconds)
    return losses


def trimmed(ids: Tensor) -> Tensor:
    """Without the columns at the end that hold nothing but padding."""
    return ids[:, : int((ids != PADDING).sum(dim=1).max())]


# Pictures


def figure_of(width: float, height: float, title: str = "") -> Figure:
    """An empty figure of width x height inches."""
    figure = Figure(figsize=(width, height), facecolor=PAPER, layout="constrained")
    if title:
        figure.suptitle(title, color=INK, fontfamily=FONT, fontsize=11)
    return figure


def plain(axes: Axes, across: str = "", down: str = "", title: str = "") -> None:
    """Only the two lines that carry a scale, and what they mean."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=9, labelfontfamily=FONT)
    axes.set_xlabel(across, fontsize=9, fontfamily=FONT)
    axes.set_ylabel(down, fontsize=9, fontfamily=FONT)
    axes.set_title(title, fontsize=10, fontfamily=FONT, color=INK)


# What places look like


def encoding(study: Study) -> None:
    """The sinusoidal encoding, and how alike the vectors of two places are."""
    length, d_model = 64, 64
    vectors = study.layers.sinusoidal_encoding(length, d_model)  # (length, d_model)
    print(f"encoding: {length} places, {d_model} features")
    errors = [
        float((study.layers.shift_matrix(k, d_model) @ vectors[p] - vectors[p + k]).abs().max())
        for k in (1, 5, 20)
        for p in range(length - k)
    ]
    print(f"  shift_matrix moves a place by 1, 5 and 20 with an error of {max(errors):.0e} at most")
    alike = vectors @ vectors.T  # (length, length)
    shown = ", ".join(f"{alike[0, k]:.1f} at distance {k}" for k in (0, 1, 2, 5, 10, 50))
    print(f"  dot product of two places: {shown}")

    figure = figure_of(11, 3.6)
    left, middle, right = figure.subplots(1, 3)
    image = left.imshow(vectors, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
    plain(left, "feature", "place", "the encoding")
    figure.colorbar(image, ax=left, shrink=0.8, ticks=[-1, 0, 1])
    image = middle.imshow(alike, cmap="cividis")
    plain(middle, "place q", "place p", "dot product of two places")
    figure.colorbar(image, ax=middle, shrink=0.8)
    for place, colour in ((0, BLUE), (20, ORANGE), (40, GREEN)):
        distances = np.arange(length) - place
        right.plot(distances, alike[place], color=colour, linewidth=3 - place / 20, label=place)
    plain(right, "q - p", "dot product", "it depends on q - p alone")
    right.legend(frameon=False, fontsize=9, title="p", title_fontsize=9)
    study.save(figure, "encoding")


# The Transformer and the RNN with attention on the same number words

MOMENTS = (10, 20, 30, 40, 60, 80, 100, 125, 150, 200, 250, 300, 400, 500)  # steps
Curve = list[tuple[int, float, float]]  # step, seconds, the part that is right


def race(study: Study) -> None:
    """How many new numbers are translated without a mistake, by steps and by seconds."""
    print(f"race: number words, {race_steps(study)} steps with {BATCH} pairs each")
    _, points = number_transformer(study)
    curves = {"Transformer": (BLUE, points)}
    if study.recurrent:
        curves["RNN with attention"] = ORANGE, number_recurrent(study)

    figure = figure_of(9.4, 3.6)
    by_steps, by_seconds = figure.subplots(1, 2, sharey=True)
    for name, (colour, points) in curves.items():
        numbers, seconds, right = zip(*points, strict=True)
        by_steps.plot(numbers, right, "o-", color=colour, markersize=3.5, label=name)
        by_seconds.plot(seconds, right, "o-", color=colour, markersize=3.5)
    plain(by_steps, "steps", "right on new numbers")
    plain(by_seconds, "seconds of one processor")
    by_steps.set_ylim(0, 1.02)
    by_steps.yaxis.set_major_formatter(PercentFormatter(1))
    by_steps.legend(frameon=False, fontsize=9, loc="upper left" if study.quick else "lower right")
    study.save(figure, "race")


def race_steps(study: Study) -> int:
    """How long the models are trained on the number words."""
    return 60 if study.quick else MOMENTS[-1]


def number_pairs(study: Study) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """The number words to learn from, and some others to ask for."""
    train, new = study.numbers.train, study.numbers.validation
    count = 100 if study.quick else 300
    asked = as_tensors(new.source_ids[:count], new.target_ids[:count])
    return as_tensors(train.source_ids, train.target_ids), asked


def vocabularies(study: Study) -> tuple[int, int]:
    """How many English and French tokens there are."""
    return len(study.numbers.source_vocabulary), len(study.numbers.target_vocabulary)


def number_transformer(study: Study) -> tuple[nn.Module, Curve]:
    """A Transformer that is trained on the number words as Config has it, and its curve."""
    config = study.training.Config(steps=race_steps(study))

    def train() -> tuple[nn.Module, Curve]:
        model = study.new_transformer(*vocabularies(study))

        def rate(step: int) -> float:
            size = model.config.d_model
            return config.factor * study.training.noam_rate(step, size, config.warmup)

        lesson = transformer_lesson(study, model, rate, config.smoothing)
        return model, race_curve(study, lesson, "Transformer")

    return study.once("number words", train)


def number_recurrent(study: Study) -> Curve:
    """The curve of assignment 4's network."""
    model = study.new_recurrent(*vocabularies(study))
    return race_curve(
        study, recurrent_lesson(study, model, race_steps(study)), "RNN with attention"
    )


def race_curve(study: Study, lesson: Lesson, name: str) -> Curve:
    """Train, and now and then note the step, the seconds and the part that is right."""
    pairs, asked = number_pairs(study)
    curve: Curve = []

    def look(step: int, seconds: float) -> None:
        if step in MOMENTS:
            curve.append((step, seconds, study.share_right(lesson.model, *asked)))

    teach(lesson, pairs, race_steps(study), study.seed, name, look)
    print(f"  {name}, {count_weights(lesson.model):,} weights")
    for step, seconds, right in curve:
        print(f"    {right:4.0%} after {step} steps, {seconds:.1f} s", flush=True)
    return curve


# Sequences longer than any seen in training

TASKS = {"sorting": np.sort, "reversing": np.flip}
DIGITS = 10
LONGEST = 8  # in training
LENGTHS = (2, 4, 6, 7, 8, 9, 10, 11, 12, 14, 16)  # in the test


def lengths(study: Study) -> None:
    """Sort and reverse digits: how many sequences are right, by their length."""
    steps = digit_steps(study)
    kinds = {"sinusoidal": BLUE, "learned": GREEN}
    print(f"lengths: trained on 1 to {LONGEST} digits, {steps} steps")
    figure = figure_of(9.4, 3.6)
    for axes, task in zip(figure.subplots(1, 2, sharey=True), TASKS, strict=True):
        models = {
            f"Transformer, {kind} places": (colour, digit_transformer(study, task, kind))
            for kind, colour in kinds.items()
        }
        if study.recurrent:
            models["RNN with attention"] = ORANGE, digit_recurrent(study, task)
        for name, (colour, model) in models.items():
            right = [share_of_length(study, model, task, k) for k in LENGTHS]
            axes.plot(LENGTHS, right, "o-", color=colour, markersize=3.5, label=name)
            shown = ", ".join(f"{k}: {part:.0%}" for k, part in zip(LENGTHS, right, strict=True))
            print(f"  {task}, {name}: {shown}", flush=True)
        axes.axvline(LONGEST + 0.5, color=FAINT, linewidth=0.8, linestyle=":")
        plain(axes, "digits in the sequence", title=task)
        axes.set_ylim(-0.02, 1.04)
        axes.yaxis.set_major_formatter(PercentFormatter(1))
        axes.text(LENGTHS[-1], 0.9, "longer than in training", fontsize=8.5, color=INK, ha="right")
    first, last = figure.axes
    plain(first, "digits in the sequence", "right on new sequences", first.get_title())
    last.legend(frameon=False, fontsize=8.5, loc="center right")
    study.save(figure, "lengths")


def share_of_length(study: Study, model: nn.Module, task: str, length: int) -> float:
    """How many new sequences of one length are right."""
    rng = np.random.default_rng([study.seed, length])
    count = 50 if study.quick else 200
    return study.share_right(model, *digit_pairs(rng, task, count, (length, length)))


def digit_pairs(
    rng: np.random.Generator, task: str, count: int, between: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """Random digits and what is to become of them, of random lengths between two numbers."""
    shortest, longest = between
    sizes = rng.integers(shortest, longest + 1, size=count)
    sources = [rng.integers(FIRST, FIRST + DIGITS, size=size) for size in sizes]
    targets = [[BEGIN, *TASKS[task](source), END] for source in sources]
    return as_tensors(sources, targets)


def digit_steps(study: Study) -> int:
    """How long the models are trained on digits."""
    return 60 if study.quick else 800


def digit_transformer(study: Study, task: str, positions: str) -> nn.Module:
    """A Transformer that your train has taught to sort or to reverse digits."""

    def train() -> nn.Module:
        pairs = digit_pairs(np.random.default_rng(study.seed), task, 20_000, (1, LONGEST))
        model = study.new_transformer(FIRST + DIGITS, FIRST + DIGITS, positions=positions)
        steps = digit_steps(study)
        config = study.training.Config(steps=steps, batch_size=BATCH, seed=study.seed)
        study.training.train(model, *pairs, config)
        return model

    return study.once(f"{task} {positions}", train)


def digit_recurrent(study: Study, task: str) -> nn.Module:
    """The same with the network of assignment 4."""
    steps = digit_steps(study)
    pairs = digit_pairs(np.random.default_rng(study.seed), task, 20_000, (1, LONGEST))
    model = study.new_recurrent(FIRST + DIGITS, FIRST + DIGITS)
    teach(recurrent_lesson(study, model, steps), pairs, steps, study.seed, "RNN with attention")
    return model


# Who looks at whom

NUMBER = 76_693  # one of the test part
KINDS = {
    "encoder": "the encoder's self-attention",
    "decoder": "the decoder's self-attention",
    "cross": "the decoder's attention to the encoder",
}


def maps(study: Study) -> None:
    """The attention weights of every head, for one number and for a row of digits."""
    print("maps: attention weights of every head")
    model, _ = number_transformer(study)
    test = study.numbers.test
    place = test.numbers.index(NUMBER)
    read, written = test.source[place], ["<begin>", *test.target[place]]
    print(f"  the number is {NUMBER}: {' '.join(read)}")
    source, target = as_tensors([test.source_ids[place]], [test.target_ids[place]])
    weights = study.decoding.attention_maps(model, source, target[:, :-1])
    sides = {"encoder": (read, read), "decoder": (written, written), "cross": (written, read)}
    for kind, (queries, keys) in sides.items():
        figure = heads_figure(weights[kind][:, 0], queries, keys, KINDS[kind])
        study.save(figure, f"maps_{kind}")
    mirror(study)


def mirror(study: Study) -> None:
    """The heads that reverse a row of digits must look at the mirrored place."""
    model = digit_transformer(study, "reversing", "sinusoidal")
    rng = np.random.default_rng(study.seed + 1)
    source, target = digit_pairs(rng, "reversing", 200, (LONGEST, LONGEST))
    cross = study.decoding.attention_maps(model, source, target[:, :-1])["cross"]
    # The place that writes the first digit must look at the last one, and so on.
    mirrored = cross[..., :LONGEST, :].flip(-1).diagonal(dim1=-2, dim2=-1)  # (layers, n, heads, t)
    for layer, heads in enumerate(mirrored.mean(dim=(1, 3)).tolist(), start=1):
        shown = ", ".join(f"{part:.0%}" for part in heads)
        print(f"  reversing, layer {layer}: {shown} of each head's weight on the mirrored place")
    digits = [str(token - FIRST) for token in source[0].tolist()]
    written = ["<begin>", *digits[::-1]]
    title = "reversing: the decoder's attention to the encoder"
    study.save(heads_figure(cross[:, 0], written, digits, title), "maps_reversing")


def heads_figure(weights: Tensor, queries: list[str], keys: list[str], title: str) -> Figure:
    """A map for each layer and head: weights (layers, heads, t_q, t_k)."""
    layers, heads = weights.shape[:2]
    turned = 90 if max(map(len, keys)) > 1 else 0  # words have no room side by side, digits do
    figure = figure_of(1.6 + 2.1 * heads, 1.1 + 2.1 * layers, title)
    grid = figure.subplots(layers, heads, sharex=True, sharey=True, squeeze=False)
    for layer, row in enumerate(grid):
        for head, axes in enumerate(row):
            axes.imshow(weights[layer, head], cmap="Blues", vmin=0, vmax=1)
            axes.set_title(f"layer {layer + 1}, head {head + 1}", fontsize=8.5, fontfamily=FONT)
            axes.spines[:].set_color(FAINT)
            axes.set_xticks(range(len(keys)), keys, rotation=turned, fontsize=7.5)
            axes.set_yticks(range(len(queries)), queries, fontsize=7.5)
    figure.supylabel("who looks", fontsize=9, fontfamily=FONT)
    figure.supxlabel("at whom", fontsize=9, fontfamily=FONT)
    return figure


# Where the norms stand, and how training begins

PEAK, WARMUP = 0.005, 100  # the highest learning rate, and the steps on the way to it


def depth(study: Study) -> None:
    """Pre-norm and post-norm, shallow and deep, with and without warm-up."""
    steps, deep = (30, 6) if study.quick else (150, 12)
    print(f"depth: number words, {steps} steps, learning rate {PEAK} at its highest")
    pairs, _ = number_pairs(study)
    guess = frequency_loss(pairs[1])
    print(f"  knowing only how frequent each word is: loss {guess:.2f}")
    figure = figure_of(9.4, 3.6)
    for axes, layers in zip(figure.subplots(1, 2, sharey=True), (2, deep), strict=True):
        for norm, colour in (("pre", BLUE), ("post", ORANGE)):
            for warmup, style in ((True, "-"), (False, "--")):
                name = f"{norm}-norm, {'with' if warmup else 'without'} warm-up"
                losses, right = deep_run(study, norm, layers, warmup, steps, name)
                axes.plot(running_mean(losses), style, color=colour, label=name)
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
    last.text(1, guess - 0.25, "word frequencies alone", fontsize=8.5, color=INK)
    study.save(figure, "depth")


def deep_run(
    study: Study, norm: str, layers: int, warmup: bool, steps: int, title: str
) -> tuple[list[float], float]:
    """The losses of a small Transformer, and how many new numbers it gets right at the end."""
    sizes = {"d_model": 32, "d_ff": 64, "encoder_layers": layers, "decoder_layers": layers}
    model = study.new_transformer(*vocabularies(study), norm=norm, **sizes)
    noam_rate = study.training.noam_rate
    factor = PEAK / noam_rate(WARMUP, 32, WARMUP)

    def rate(step: int) -> float:
        # Without warm-up, the first steps already have the highest rate.
        return factor * noam_rate(step if warmup else max(step, WARMUP), 32, WARMUP)

    pairs, asked = number_pairs(study)
    lesson = transformer_lesson(study, model, rate, smoothing=0.0)
    losses = teach(lesson, pairs, steps, study.seed, f"{layers} layers, {title}")
    return losses, study.share_right(model, *asked)


def frequency_loss(target: Tensor) -> float:
    """The loss of a model that knows how frequent each target token is, and nothing else."""
    asked = target[:, 1:]
    counts = torch.bincount(asked[asked != PADDING]).double()
    chances = counts[counts > 0] / counts.sum()
    return float(-(chances * chances.log()).sum())


def running_mean(losses: list[float], width: int = 10) -> np.ndarray:
    """The mean of each loss and those just before it."""
    total = np.cumsum([0.0, *losses])
    ends = np.arange(1, len(losses) + 1)
    starts = np.maximum(ends - width, 0)
    return (total[ends] - total[starts]) / (ends - starts)


EXPERIMENTS = {
    "encoding": encoding,
    "race": race,
    "lengths": lengths,
    "maps": maps,
    "depth": depth,
}


def load_recurrent() -> tuple[ModuleType | None, str]:
    """Your bahdanau.py if it works; else None, and why."""
    try:
        module = importlib.import_module("assignments.a4_bahdanau.bahdanau")
        source, target = torch.tensor([[FIRST]]), torch.tensor([[BEGIN, FIRST, END]])
        model = module.Seq2Seq(FIRST + 1, FIRST + 1)
        model.loss(source, target).backward()
        model.greedy_decode(source, 2)
    except ModuleNotFoundError:
        return None, "assignments/a4_bahdanau/bahdanau.py isn't here"
    except NotImplementedError as error:
        return None, f"assignment 4 is not written yet ({error})"
    except Exception as error:  # it isn't this assignment's business what is wrong there
        return None, f"assignment 4 raises {type(error).__name__} ({error})"
    return module, ""


def main(arguments: list[str]) -> int:
    """Run the experiments that are asked for; 2 if something is missing."""
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
