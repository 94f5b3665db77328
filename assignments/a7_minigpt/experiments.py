"""The experiments of assignment 7: what your mini-GPT does, as plots, tables and texts.

    python -m assignments.a7_minigpt.experiments                    # all six, into figures/
    python -m assignments.a7_minigpt.experiments scaling --quick    # one, in a short version

Given, and not graded. scaling needs exercise 7.9 alone, ablation 7.1 to 7.6, the others 7.1 to 7.8.
If your assignment 3 is there, its LSTM takes part in curves.
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
    """A mini-GPT, what it wrote on the way, and how its loss went."""

    model: nn.Module
    samples: list[tuple[int, float, str]]  # step, loss on the validation plays, text
    curve: Curve


class Study:
    """What the experiments share: your code, the plays, and one trained model."""

    def __init__(self, out: Path, quick: bool, seed: int, device: str) -> None:
        self.out, self.quick, self.seed, self.device = out, quick, seed, device
        self.moments = (1, 10, 20, 40) if quick else (1, 20, 50, 100, 200, 400, 600)  # steps

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
    def known(self) -> object:
        """Your tokenizer, which knows the characters of the plays."""
        text = load_shakespeare()
        return load_code("tokenizer", NAME).CharTokenizer.from_text(text.train + text.validation)

    @cached_property
    def texts(self) -> tuple[Tensor, Tensor]:
        """The plays to learn from and those to ask for, as ids."""
        text = load_shakespeare()
        return self.known.encode(text.train), self.known.encode(text.validation)

    @cached_property
    def trained(self) -> Trained:
        """The model that samples, curves, maps and sampling look at."""
        return train_in_parts(self)

    def new_model(self, **sizes: int) -> nn.Module:
        """A model with the sizes for a CPU that has learned nothing yet."""
        torch.manual_seed(self.seed)
        config = self.model.GPTConfig(self.known.size, **sizes)
        return self.model.GPT(config).to(self.device)

    def train(self, model: nn.Module, config: object) -> dict[str, list]:
        """Train a model on the plays."""
        try:
            return self.training.train(model, self.texts[0], config, self.texts[1])
        except ValueError as error:
            raise CourseError(f"The training ended early: {error}.") from None

    def write(self, model: nn.Module, length: int, **settings: float) -> str:
        """What a model writes after the prompt."""
        generator = torch.Generator().manual_seed(self.seed)
        prompt = self.known.encode(PROMPT)
        ids = self.sampling.generate_cached(model, prompt, length, **settings, generator=generator)
        return self.known.decode(ids)[len(PROMPT) :]

    def save(self, figure: Figure, name: str) -> None:
        """Write a figure, and say where."""
        print(f"  written: {save(figure, self.out / f'{name}.png')}", flush=True)


def train_in_parts(study: Study) -> Trained:
    """Train. At each moment the training stops, is looked at, and goes on from its checkpoint."""
    model, samples, curve = study.new_model(), [], []
    with tempfile.TemporaryDirectory() as folder:
        for moment in study.moments:
            config = run_config(
                study,
                steps=study.moments[-1],
                evaluate_every=study.moments[-1] // 6,
                checkpoint=str(Path(folder) / "training.safetensors"),
                stop=moment,
                resume=moment > study.moments[0],
            )
            history = study.train(model, config)
            tokens = config.batch_size * model.config.context
            measured = zip(history["validation_step"], history["validation_loss"], strict=True)
            curve += [(step * tokens, loss) for step, loss in measured]
            samples.append((moment, curve[-1][1], study.write(model, 200, temperature=0.8)))
    return Trained(model, samples, curve)


def run_config(study: Study, steps: int, **settings: object) -> object:
    """The settings of a short training: as TrainConfig has them, but for what must be shorter."""
    usual = {
        "warmup": min(100, steps // 5),
        "evaluate_batches": 5 if study.quick else 20,
        "seed": study.seed,
    }
    return study.training.TrainConfig(steps, **usual | settings)


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


def indented(text: str) -> str:
    """Each line a little to the right."""
    return "\n".join(f"    {line}".rstrip() for line in text.split("\n"))


def visible(text: str) -> list[str]:
    """Its characters; spaces and line breaks as signs that can be seen."""
    return [{" ": "␣", "\n": "¶"}.get(character, character) for character in text]


# What it writes while it learns


def samples(study: Study) -> None:
    """The text after the prompt at several moments of the training, with the same draws."""
    print(f"samples: after {PROMPT!r}, temperature 0.8")
    for step, loss, text in study.trained.samples:
        print(f"  step {step}, validation loss {loss:.3f}\n{indented(text)}", flush=True)


# The mini-GPT and the LSTM of assignment 3, on the same windows


def curves(study: Study) -> None:
    """The loss on the validation plays against the tokens that were read."""
    model = study.trained.model
    contestants = {f"mini-GPT, {model.num_parameters():,} weights": (BLUE, study.trained.curve)}
    recurrent, reason = load_recurrent()
    if recurrent is None:
        print(f"curves: the LSTM is left out: {reason}")
    else:
        print(f"curves: the same windows of {model.config.context} characters for both")
        config, context = run_config(study, steps=study.moments[-1]), model.config.context
        looks = [tokens // (config.batch_size * context) for tokens, _ in study.trained.curve]
        count, curve = train_lstm(recurrent, study.training, study.texts, config, context, looks)
        contestants[f"LSTM, {count:,} weights"] = ORANGE, curve
    figure, axes = chart(7.2, 3.8)
    for name, (colour, curve) in contestants.items():
        tokens, losses = zip(*curve, strict=True)
        axes.plot(tokens, losses, "o-", color=colour, markersize=3.5, label=name)
        half = next(loss for read, loss in curve if read >= tokens[-1] / 2)
        print(f"  {name}: {losses[-1]:.3f} after {tokens[-1]:,} tokens, {half:.3f} half-way")
    plain(axes, "tokens read", "loss on the validation plays")
    axes.legend(frameon=False, fontsize=9)
    study.save(figure, "curves")


# Who looks at whom

LINE = "KING RICHARD:\nThe king shall "


def maps(study: Study) -> None:
    """The weights of attention of every layer and head, and how far back they look."""
    model, (_, validation) = study.trained.model, study.texts
    context = model.config.context
    generator = torch.Generator().manual_seed(study.seed)
    x, _ = study.training.get_batch(validation, 16, context, generator, study.device)
    weights = attention_weights(model, x)  # (layers, n, heads, t, t)
    places = torch.arange(context)
    distance = (places[:, None] - places).clamp(min=0)
    late = slice(context // 2, None)  # places with much to look back at
    print(f"maps: the second half of {len(x)} windows of {context} characters")
    for layer, heads in enumerate(weights.mean(dim=1), start=1):
        for head, mean in enumerate(heads, start=1):
            itself = mean.diagonal()[late].mean()
            before = mean.diagonal(-1)[context // 2 - 1 :].mean()
            far = (mean * distance)[late].sum(dim=1).mean()
            shares = f"{itself:4.0%} on the place itself, {before:4.0%} on the one before"
            print(f"  layer {layer}, head {head}: {shares}, {far:4.1f} places back on average")
    line = study.known.encode(LINE)[None].to(study.device)
    study.save(heads_figure(attention_weights(model, line)[:, 0], LINE), "maps")


def attention_weights(model: nn.Module, tokens: Tensor) -> Tensor:
    """All weights, (layers, n, heads, t, t).

    Fused attention doesn't show them. But where the values are unit vectors, what it gives are the
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
    """A map for each layer and head: weights (layers, heads, t, t)."""
    layers, heads = weights.shape[:2]
    letters = visible(text)
    figure = figure_of(0.8 + 2.5 * heads, 0.8 + 2.6 * layers)
    grid = figure.subplots(layers, heads, squeeze=False)
    for layer, row in enumerate(grid):
        for head, axes in enumerate(row):
            axes.imshow(weights[layer, head], cmap="Blues", vmin=0, vmax=1)
            axes.set_title(f"layer {layer + 1}, head {head + 1}", fontsize=8.5, fontfamily=FONT)
            axes.spines[:].set_color(FAINT)
            axes.set_xticks(range(len(letters)), letters, fontsize=5.5)
            axes.set_yticks(range(len(letters)), letters, fontsize=5.5)
    figure.supylabel("who looks", fontsize=9, fontfamily=FONT)
    figure.supxlabel("at whom", fontsize=9, fontfamily=FONT)
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
BEFORE = "ROMEO:\nI will not s"  # the bars are of what may follow
SHOWN = 10


def sampling(study: Study) -> None:
    """Texts and probabilities of the same model, side by side."""
    model, real = study.trained.model, set(words_of(load_shakespeare().train))
    length = 300 if study.quick else 1000
    print(f"sampling: {length} characters after {PROMPT!r}")
    for name, settings in SETTINGS.items():
        text = study.write(model, length, **settings)
        words = words_of(text)
        share = sum(word in real for word in words) / max(len(words), 1)
        print(f"  {name}: {share:.0%} of its words are in the plays, {len(set(words))} different")
        print(indented(text[:160]), flush=True)

    with torch.no_grad():
        logits = model(study.known.encode(BEFORE)[None].to(study.device))[0][0, -1].cpu()
    likeliest = logits.argsort(descending=True)[:SHOWN]
    letters = visible(study.known.decode(likeliest))
    figure = figure_of(9.4, 4.4, f"what follows {BEFORE!r}")
    for axes, (name, settings) in zip(
        figure.subplots(2, 3, sharey=True).flat, SETTINGS.items(), strict=True
    ):
        p = study.sampling.next_probabilities(logits, **settings)
        axes.bar(range(SHOWN), p[likeliest], color=BLUE)
        plain(axes, title=f"{name}: {int((p > 0).sum())} of {len(p)} stay")
        axes.set_xticks(range(SHOWN), letters)
    study.save(figure, "sampling")


def words_of(text: str) -> list[str]:
    """The words, in small letters."""
    return "".join(c if c.isalpha() or c == "'" else " " for c in text.lower()).split()


# What attention costs


def scaling(study: Study) -> None:
    """Milliseconds and memory of attention against the length, by hand and fused."""
    lengths = [64 * 2**k for k in range(5 if study.quick else 7)]
    rows = load_code("timing", NAME).scaling_table(lengths, study.device)
    print("scaling: length, ms by hand, ms fused, MB by hand, MB fused")
    for row in rows:
        memory = [row[f"{kind}_bytes"] / 2**20 for kind in ("by_hand", "fused")]
        print(
            f"  {row['length']:5} {row['by_hand_ms']:9.2f} {row['fused_ms']:9.2f} "
            f"{memory[0]:9.2f} {memory[1]:9.2f}"
        )
    figure = figure_of(9.4, 3.8)
    panels = {"ms": ("milliseconds", 1), "bytes": ("MB", 2**20)}
    for axes, (unit, (label, scale)) in zip(figure.subplots(1, 2), panels.items(), strict=True):
        for kind, colour in (("by_hand", ORANGE), ("fused", BLUE)):
            costs = np.array([row[f"{kind}_{unit}"] for row in rows]) / scale
            slope = math.log2(costs[-1] / costs[-3]) / 2
            name = kind.replace("_", " ")
            axes.loglog(lengths, costs, "o-", color=colour, markersize=3.5, label=name)
            print(f"  {label} {name}: slope {slope:.2f} from {lengths[-3]} to {lengths[-1]}")
        square = costs_like(lengths, rows[0][f"by_hand_{unit}"] / scale)
        axes.loglog(lengths, square, ":", color=FAINT, label="slope 2")
        plain(axes, "length", label)
        axes.set_xticks(lengths, lengths)
        axes.minorticks_off()
        axes.legend(frameon=False, fontsize=9)
    study.save(figure, "scaling")


def costs_like(lengths: list[int], first: float) -> list[float]:
    """What would grow with the square of the length."""
    return [first * (length / lengths[0]) ** 2 for length in lengths]


# What happens without


@dataclass(frozen=True)
class Change:
    """What a run of the ablation does in another way."""

    settings: dict  # of TrainConfig
    sizes: dict  # of GPTConfig
    places: bool = True
    embeddings: float = 0.02  # the standard deviation of their first values


CHANGES = {
    "as it is": Change({}, {}),
    "another seed": Change({"seed": 1}, {}),
    "no warm-up": Change({"warmup": 0}, {}),
    "rate never falls": Change({"floor": 2e-3}, {}),
    "no weight decay": Change({"weight_decay": 0.0}, {}),
    "no clipping": Change({"clip": 1e9}, {}),
    "one head": Change({}, {"heads": 1}),
    "one layer": Change({}, {"layers": 1}),
    "no places": Change({}, {}, places=False),
    "large embeddings": Change({}, {}, embeddings=1.0),
}


def ablation(study: Study) -> None:
    """The loss after a short training, with one thing changed at a time."""
    steps = 10 if study.quick else 200
    print(f"ablation: {steps} steps of 16 windows; first loss, validation loss, difference")
    figure, axes = chart(7.2, 3.6)
    losses = {}
    for name, change in CHANGES.items():
        first, losses[name] = short_run(study, change, steps)
        difference = losses[name] - losses["as it is"]
        print(f"  {name:17} {first:7.3f} {losses[name]:7.3f} {difference:+7.3f}", flush=True)
    colours = {"as it is": BLUE, "another seed": GREEN}
    shown = [colours.get(name, PINK) for name in losses]
    axes.barh(range(len(losses)), list(losses.values()), color=shown)
    axes.axvline(losses["as it is"], color=FAINT, linewidth=0.8, linestyle=":")
    plain(axes, f"validation loss after {steps} steps")
    axes.set_yticks(range(len(losses)), losses)
    axes.invert_yaxis()
    # A bar that is far too long just leaves the picture.
    axes.set_xlim(0.9 * min(losses.values()), 1.5 * losses["as it is"])
    study.save(figure, "ablation")


def short_run(study: Study, change: Change, steps: int) -> tuple[float, float]:
    """The first loss and the last validation loss."""
    model = study.new_model(**change.sizes)
    with torch.no_grad():
        for embedding in (model.token_embedding, model.position_embedding):
            embedding.weight *= change.embeddings / 0.02
        if not change.places:
            model.position_embedding.weight.zero_()
    model.position_embedding.weight.requires_grad_(change.places)
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
    """Run the experiments that are asked for; 2 if something is missing."""
    about, quick = __doc__.splitlines()[0], "a short version, under a minute"
    parser = new_parser(NAME, about, quick)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where (cpu)")
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
