"""The experiments of assignment 7: plots, tables and texts of your mini-GPT.

    python -m assignments.a7_minigpt.experiments                    # all six, into figures/
    python -m assignments.a7_minigpt.experiments scaling --quick    # one, shortened

Given, and not graded. scaling needs exercise 7.9 only, ablation 7.1 to 7.6, the others 7.1 to 7.8.
If your assignment 3 is there, curves includes its LSTM.
"""

import math
import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor, nn

from assignments.a7_minigpt.lstm import Curve, load_recurrent, train_lstm
from common.data import load_shakespeare
from common.errors import CourseError
from common.training.experiments import load_code, new_parser, read_options, run
from common.training.plots import BLUE, FAINT, FONT, GREEN, INK, ORANGE, PAPER, PINK, chart, save

NAME = "a7_minigpt"
PROMPT = "ROMEO:\n"


@dataclass(frozen=True)
class Trained:
    """A mini-GPT, its samples during training, and its loss curve."""

    model: nn.Module
    samples: list[tuple[int, float, str]]  # step, validation loss, text
    curve: Curve


class Study:
    """What the experiments share: your code, the plays, and one trained model."""

    def __init__(self, out: Path, quick: bool, seed: int, device: str) -> None:
        self.out, self.quick, self.seed, self.device = out, quick, seed, device
        self.sample_steps = (1, 10, 20, 40) if quick else (1, 20, 50, 100, 200, 400, 600)

    @cached_property
    def model(self) -> ModuleType:
        """Your model.py."""
        return load_code("model", NAME)

    @cached_property
    def training(self) -> ModuleType:
        """Your training.py."""
        return load_code("training", NAME)

    @cached_property
    def sampling(self) -> ModuleType:
        """Your sampling.py."""
        return load_code("sampling", NAME)

    @cached_property
    def tokenizer(self) -> object:
        """Your tokenizer, for the characters of the plays."""
        text = load_shakespeare()
        return load_code("tokenizer", NAME).CharTokenizer.from_text(text.train + text.validation)

    @cached_property
    def texts(self) -> tuple[Tensor, Tensor]:
        """The training plays and the validation plays, as ids."""
        text = load_shakespeare()
        return self.tokenizer.encode(text.train), self.tokenizer.encode(text.validation)

    @cached_property
    def trained(self) -> Trained:
        """The model for samples, curves, maps and sampling."""
        return train_in_parts(self)

    def new_model(self, **sizes: int) -> nn.Module:
        """An untrained model with the sizes for a CPU."""
        torch.manual_seed(self.seed)
        config = self.model.GPTConfig(self.tokenizer.vocab_size, **sizes)
        return self.model.GPT(config).to(self.device)

    def train(self, model: nn.Module, config: object) -> dict[str, list]:
        """Train a model on the plays."""
        try:
            return self.training.train(model, self.texts[0], config, self.texts[1])
        except ValueError as error:
            raise CourseError(f"Training stopped: {error}.") from None

    def write(self, model: nn.Module, length: int, **settings: float) -> str:
        """A model's continuation of the prompt."""
        generator = torch.Generator().manual_seed(self.seed)
        prompt = self.tokenizer.encode(PROMPT)
        ids = self.sampling.generate_cached(model, prompt, length, **settings, generator=generator)
        return self.tokenizer.decode(ids)[len(PROMPT) :]

    def save(self, figure: Figure, name: str) -> None:
        """Write a figure, and print its path."""
        print(f"  written: {save(figure, self.out / f'{name}.png')}", flush=True)


def train_in_parts(study: Study) -> Trained:
    """Train in parts: stop at each of the steps, sample, and resume from the checkpoint."""
    model, samples, curve = study.new_model(), [], []
    with tempfile.TemporaryDirectory() as folder:
        for step in study.sample_steps:
            config = run_config(
                study,
                steps=study.sample_steps[-1],
                evaluate_every=study.sample_steps[-1] // 6,
                checkpoint=str(Path(folder) / "training.safetensors"),
                stop=step,
                resume=step > study.sample_steps[0],
            )
            history = study.train(model, config)
            tokens = config.batch_size * model.config.context_length
            measured = zip(history["validation_step"], history["validation_loss"], strict=True)
            curve += [(at * tokens, loss) for at, loss in measured]
            samples.append((step, curve[-1][1], study.write(model, 200, temperature=0.8)))
    return Trained(model, samples, curve)


def run_config(study: Study, steps: int, **settings: object) -> object:
    """The settings of a short run: TrainConfig's defaults, except for a few shorter ones."""
    defaults = {
        "warmup": min(100, steps // 5),
        "evaluate_batches": 5 if study.quick else 20,
        "seed": study.seed,
    }
    return study.training.TrainConfig(steps, **defaults | settings)


def figure_of(width: float, height: float, title: str = "") -> Figure:
    """An empty figure of width x height inches."""
    figure = Figure(figsize=(width, height), facecolor=PAPER, layout="constrained")
    if title:
        figure.suptitle(title, color=INK, fontfamily=FONT, fontsize=11)
    return figure


def plain(axes: Axes, across: str = "", down: str = "", title: str = "") -> None:
    """Only the two spines that carry a scale, with labels."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=9, labelfontfamily=FONT)
    axes.set_xlabel(across, fontsize=9, fontfamily=FONT)
    axes.set_ylabel(down, fontsize=9, fontfamily=FONT)
    axes.set_title(title, fontsize=10, fontfamily=FONT, color=INK)


def indented(text: str) -> str:
    """The text, indented."""
    return "\n".join(f"    {line}".rstrip() for line in text.split("\n"))


def visible(text: str) -> list[str]:
    """Its characters, with visible signs for spaces and line breaks."""
    return [{" ": "␣", "\n": "¶"}.get(character, character) for character in text]


# Samples during training


def samples(study: Study) -> None:
    """Continuations of the prompt at several steps, with the same random numbers."""
    print(f"samples: after {PROMPT!r}, temperature 0.8")
    for step, loss, text in study.trained.samples:
        print(f"  step {step}, validation loss {loss:.3f}\n{indented(text)}", flush=True)


# The mini-GPT and the LSTM of assignment 3, on the same windows


def curves(study: Study) -> None:
    """The validation loss against the number of training tokens."""
    model = study.trained.model
    contestants = {f"mini-GPT, {model.num_parameters():,} parameters": (BLUE, study.trained.curve)}
    recurrent, reason = load_recurrent()
    if recurrent is None:
        print(f"curves: without the LSTM: {reason}")
    else:
        print(f"curves: the same windows of {model.config.context_length} characters for both")
        config = run_config(study, steps=study.sample_steps[-1])
        context_length = model.config.context_length
        tokens_per_step = config.batch_size * context_length
        measured = [tokens // tokens_per_step for tokens, _ in study.trained.curve]
        count, curve = train_lstm(
            recurrent, study.training, study.texts, config, context_length, measured
        )
        contestants[f"LSTM, {count:,} parameters"] = ORANGE, curve
    figure, axes = chart(7.2, 3.8)
    for name, (color, curve) in contestants.items():
        tokens, losses = zip(*curve, strict=True)
        axes.plot(tokens, losses, "o-", color=color, markersize=3.5, label=name)
        half = next(loss for read, loss in curve if read >= tokens[-1] / 2)
        print(f"  {name}: {losses[-1]:.3f} after {tokens[-1]:,} tokens, {half:.3f} halfway")
    plain(axes, "training tokens", "validation loss")
    axes.legend(frameon=False, fontsize=9)
    study.save(figure, "curves")


# Which position attends to which

LINE = "KING RICHARD:\nThe king shall "


def maps(study: Study) -> None:
    """The attention weights of every layer and head, and how far back they reach."""
    model, (_, validation) = study.trained.model, study.texts
    context_length = model.config.context_length
    generator = torch.Generator().manual_seed(study.seed)
    x, _ = study.training.get_batch(validation, 16, context_length, generator, study.device)
    weights = attention_weights(model, x)  # (num_layers, n, num_heads, t, t)
    positions = torch.arange(context_length)
    distance = (positions[:, None] - positions).clamp(min=0)
    late = slice(context_length // 2, None)  # positions with many before them
    print(f"maps: the second half of {len(x)} windows of {context_length} characters")
    for layer, heads in enumerate(weights.mean(dim=1), start=1):
        for head, mean in enumerate(heads, start=1):
            itself = mean.diagonal()[late].mean()
            before = mean.diagonal(-1)[context_length // 2 - 1 :].mean()
            far = (mean * distance)[late].sum(dim=1).mean()
            shares = f"{itself:4.0%} on the position itself, {before:4.0%} on the previous one"
            print(f"  layer {layer}, head {head}: {shares}, {far:4.1f} positions back on average")
    line = study.tokenizer.encode(LINE)[None].to(study.device)
    study.save(heads_figure(attention_weights(model, line)[:, 0], LINE), "maps")


def attention_weights(model: nn.Module, tokens: Tensor) -> Tensor:
    """All attention weights, (num_layers, n, num_heads, t, t).

    Fused attention doesn't return them. But if the values are unit vectors, its outputs are the
    weights themselves.
    """
    found = []
    with torch.no_grad():
        vectors = model.embed(tokens)
        units = torch.eye(tokens.shape[1], device=vectors.device)
        for block in model.blocks:
            q, k, _ = block.attention.project(block.norm1(vectors))
            values = units.expand(*q.shape[:2], *units.shape)
            found.append(F.scaled_dot_product_attention(q, k, values, is_causal=True).cpu())
            vectors = block(vectors)
    return torch.stack(found)


def heads_figure(weights: Tensor, text: str) -> Figure:
    """A map for each layer and head: weights (num_layers, num_heads, t, t)."""
    num_layers, num_heads = weights.shape[:2]
    letters = visible(text)
    figure = figure_of(0.8 + 2.5 * num_heads, 0.8 + 2.6 * num_layers)
    grid = figure.subplots(num_layers, num_heads, squeeze=False)
    for layer, row in enumerate(grid):
        for head, axes in enumerate(row):
            axes.imshow(weights[layer, head], cmap="Blues", vmin=0, vmax=1)
            axes.set_title(f"layer {layer + 1}, head {head + 1}", fontsize=8.5, fontfamily=FONT)
            axes.spines[:].set_color(FAINT)
            axes.set_xticks(range(len(letters)), letters, fontsize=5.5)
            axes.set_yticks(range(len(letters)), letters, fontsize=5.5)
    figure.supylabel("query", fontsize=9, fontfamily=FONT)
    figure.supxlabel("key", fontsize=9, fontfamily=FONT)
    return figure


# Temperature and top-p

SETTINGS = {
    "temperature 0": {"temperature": 0.0},
    "temperature 0.5": {"temperature": 0.5},
    "temperature 1": {"temperature": 1.0},
    "temperature 1.5": {"temperature": 1.5},
    "top-p 0.9": {"temperature": 1.0, "top_p": 0.9},
    "temperature 1.5, top-p 0.9": {"temperature": 1.5, "top_p": 0.9},
}
BEFORE = "ROMEO:\nI will not s"  # the bars show what may follow
SHOWN = 10


def sampling(study: Study) -> None:
    """Texts and probabilities of the same model, side by side."""
    model, in_plays = study.trained.model, set(words_of(load_shakespeare().train))
    length = 300 if study.quick else 1000
    print(f"sampling: {length} characters after {PROMPT!r}")
    for name, settings in SETTINGS.items():
        text = study.write(model, length, **settings)
        words = words_of(text)
        share = sum(word in in_plays for word in words) / max(len(words), 1)
        print(f"  {name}: {share:.0%} of its words are in the plays, {len(set(words))} different")
        print(indented(text[:160]), flush=True)

    with torch.no_grad():
        logits = model(study.tokenizer.encode(BEFORE)[None].to(study.device))[0][0, -1].cpu()
    most_likely = logits.argsort(descending=True)[:SHOWN]
    letters = visible(study.tokenizer.decode(most_likely))
    figure = figure_of(9.4, 4.4, f"what follows {BEFORE!r}")
    for axes, (name, settings) in zip(
        figure.subplots(2, 3, sharey=True).flat, SETTINGS.items(), strict=True
    ):
        p = study.sampling.next_probabilities(logits, **settings)
        axes.bar(range(SHOWN), p[most_likely], color=BLUE)
        plain(axes, title=f"{name}: {int((p > 0).sum())} of {len(p)} kept")
        axes.set_xticks(range(SHOWN), letters)
    study.save(figure, "sampling")


def words_of(text: str) -> list[str]:
    """The words, in lower case."""
    return "".join(c if c.isalpha() or c == "'" else " " for c in text.lower()).split()


# What attention costs


def scaling(study: Study) -> None:
    """Milliseconds and memory of attention against the length, naive and fused."""
    lengths = [64 * 2**k for k in range(5 if study.quick else 7)]
    rows = load_code("timing", NAME).scaling_table(lengths, study.device)
    print("scaling: length, ms naive, ms fused, MB naive, MB fused")
    for row in rows:
        memory = [row[f"{kind}_bytes"] / 2**20 for kind in ("naive", "fused")]
        print(
            f"  {row['length']:5} {row['naive_ms']:9.2f} {row['fused_ms']:9.2f} "
            f"{memory[0]:9.2f} {memory[1]:9.2f}"
        )
    figure = figure_of(9.4, 3.8)
    panels = {"ms": ("milliseconds", 1), "bytes": ("MB", 2**20)}
    for axes, (unit, (label, scale)) in zip(figure.subplots(1, 2), panels.items(), strict=True):
        for kind, color in (("naive", ORANGE), ("fused", BLUE)):
            costs = np.array([row[f"{kind}_{unit}"] for row in rows]) / scale
            slope = math.log2(costs[-1] / costs[-3]) / 2
            axes.loglog(lengths, costs, "o-", color=color, markersize=3.5, label=kind)
            print(f"  {label} {kind}: slope {slope:.2f} from {lengths[-3]} to {lengths[-1]}")
        square = costs_like(lengths, rows[0][f"naive_{unit}"] / scale)
        axes.loglog(lengths, square, ":", color=FAINT, label="slope 2")
        plain(axes, "length", label)
        axes.set_xticks(lengths, lengths)
        axes.minorticks_off()
        axes.legend(frameon=False, fontsize=9)
    study.save(figure, "scaling")


def costs_like(lengths: list[int], first: float) -> list[float]:
    """Costs that grow with the square of the length."""
    return [first * (length / lengths[0]) ** 2 for length in lengths]


# Ablation


@dataclass(frozen=True)
class Change:
    """What a run of the ablation changes."""

    settings: dict  # of TrainConfig
    sizes: dict  # of GPTConfig
    positions: bool = True
    embeddings: float = 0.02  # the standard deviation of their initial values


CHANGES = {
    "baseline": Change({}, {}),
    "another seed": Change({"seed": 1}, {}),
    "no warm-up": Change({"warmup": 0}, {}),
    "constant rate after warm-up": Change({"min_lr": 2e-3}, {}),
    "no weight decay": Change({"weight_decay": 0.0}, {}),
    "no clipping": Change({"max_norm": 1e9}, {}),
    "one head": Change({}, {"num_heads": 1}),
    "one layer": Change({}, {"num_layers": 1}),
    "no positions": Change({}, {}, positions=False),
    "large embeddings": Change({}, {}, embeddings=1.0),
}


def ablation(study: Study) -> None:
    """The loss after a short run, with one thing changed at a time."""
    steps = 10 if study.quick else 200
    print(f"ablation: {steps} steps of 16 windows; first loss, validation loss, difference")
    figure, axes = chart(7.2, 3.6)
    losses = {}
    for name, change in CHANGES.items():
        first, losses[name] = short_run(study, change, steps)
        difference = losses[name] - losses["baseline"]
        print(f"  {name:27} {first:7.3f} {losses[name]:7.3f} {difference:+7.3f}", flush=True)
    colors = {"baseline": BLUE, "another seed": GREEN}
    shown = [colors.get(name, PINK) for name in losses]
    axes.barh(range(len(losses)), list(losses.values()), color=shown)
    axes.axvline(losses["baseline"], color=FAINT, linewidth=0.8, linestyle=":")
    plain(axes, f"validation loss after {steps} steps")
    axes.set_yticks(range(len(losses)), losses)
    axes.invert_yaxis()
    # A bar that is far too long leaves the picture.
    axes.set_xlim(0.9 * min(losses.values()), 1.5 * losses["baseline"])
    study.save(figure, "ablation")


def short_run(study: Study, change: Change, steps: int) -> tuple[float, float]:
    """The first loss and the last validation loss."""
    model = study.new_model(**change.sizes)
    with torch.no_grad():
        for embedding in (model.token_embedding, model.position_embedding):
            embedding.weight *= change.embeddings / 0.02
        if not change.positions:
            model.position_embedding.weight.zero_()
    model.position_embedding.weight.requires_grad_(change.positions)
    config = run_config(study, steps, batch_size=16, **change.settings)
    history = study.train(model, config)
    return history["loss"][0], history["validation_loss"][-1]


EXPERIMENTS = {
    "samples": samples,
    "curves": curves,
    "maps": maps,
    "sampling": sampling,
    "scaling": scaling,
    "ablation": ablation,
}


def main(arguments: list[str]) -> int:
    """Run the chosen experiments; 2 if something is missing."""
    about, quick = __doc__.splitlines()[0], "a short version, under a minute"
    parser = new_parser(NAME, about, quick)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="device (cpu)")
    options = read_options(parser, EXPERIMENTS, arguments)
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: there is no GPU here")

    def work() -> None:
        study = Study(options.out, options.quick, options.seed, options.device)
        for name in options.names:
            EXPERIMENTS[name](study)

    return run(work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
