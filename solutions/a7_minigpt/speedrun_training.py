"""How a speedrun's model is trained: batches, schedule, optimisers, validation, and a clock."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from common.data import Text
from common.errors import CourseError
from solutions.a7_minigpt.muon import Muon
from solutions.a7_minigpt.speedrun_model import GPT, Shape, Switches

CONTEXT = 64  # of the public recipe, and of every window that losses are compared on
EVERY_NTH = 8  # of the validation windows, while training goes on
VALIDATION_BATCH = 4096  # characters
SHORTEST = 600  # characters of a text that is worth a window
WARM_UP = 0.05  # of the public recipe: 100 of 2,000 steps
DECAYING = 0.6  # the last part of our training, in which the rates fall
BAR = 1.88  # the validation loss that the public recipe ends at
NEAR = 0.03  # so near the bar, on some windows, the whole split is asked


Clock = Callable[[], float]  # seconds since some time
PLAIN = Switches()


@dataclass(frozen=True)
class Recipe:
    """How to train: the defaults are the public recipe's."""

    name: str
    steps: int = 2000
    switches: Switches = PLAIN
    batch: int = 12
    context: int = CONTEXT
    muon: bool = False
    linear_decay: bool = False
    rate: float = 1e-3  # of AdamW
    betas: tuple[float, float] = (0.9, 0.99)
    weight_decay: float = 0.1  # of AdamW, on matrices
    clip: float = 1.0  # the longest gradient; 0 for any
    muon_rate: float = 0.02
    muon_momentum: float = 0.95
    muon_decay: float = 0.0
    seconds: float = 0.0  # if not 0, training ends by the clock and not after so many steps


@dataclass(frozen=True)
class Measurement:
    """The validation loss at some time of the training clock."""

    step: int
    seconds: float
    loss: float


class Corpus:
    """A text as numbers: windows to train on, and fixed windows to validate with."""

    def __init__(self, text: Text) -> None:
        for name, part in (("training", text.train), ("validation", text.validation)):
            if len(part) < SHORTEST:
                raise CourseError(
                    f"The {name} text has only {len(part)} characters, and {SHORTEST} are needed."
                )
        self.vocabulary = len(text.vocabulary)
        self.train = torch.from_numpy(text.encode(text.train))
        self.validation = torch.from_numpy(text.encode(text.validation))

    def draw(
        self, batch: int, context: int, rng: torch.Generator
    ) -> Int64[Tensor, "batch context+1"]:
        """Windows from anywhere, each with one character more than the context."""
        starts = torch.randint(len(self.train) - context, (batch, 1), generator=rng)
        return self.train[starts + torch.arange(context + 1)]

    def windows(
        self, context: int
    ) -> tuple[Int64[Tensor, "count context"], Int64[Tensor, "count context"]]:
        """The validation text cut into windows, and what comes next at each place."""
        end = (len(self.validation) - 1) // context * context
        inputs, targets = self.validation[:end], self.validation[1 : end + 1]
        return inputs.view(-1, context), targets.view(-1, context)

    @torch.no_grad()
    def loss(self, model: nn.Module, every: int = 1, context: int = CONTEXT) -> float:
        """The mean loss over the validation windows, of which every one or every nth is read."""
        model.eval()
        inputs, targets = (each[::every] for each in self.windows(context))
        rows = VALIDATION_BATCH // context
        pieces = zip(inputs.split(rows), targets.split(rows), strict=True)
        total = sum(mean_loss(model(x), y).item() * len(x) for x, y in pieces)
        model.train()
        return total / len(inputs)


def mean_loss(
    logits: Float[Tensor, "batch time vocabulary"], targets: Int64[Tensor, "batch time"]
) -> Float[Tensor, ""]:
    """The cross-entropy, in nats per character."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def rate_factor(progress: float, linear_decay: bool) -> float:
    """What the learning rates are multiplied by when a part of the training is done.

    The public recipe warms up and then follows a cosine down to a tenth. Ours starts at once, since
    Muon's steps have the right length from the first, and falls to nothing in a straight line.
    """
    if linear_decay:
        return min(1.0, (1.0 - progress) / DECAYING)
    if progress < WARM_UP:
        return progress / WARM_UP
    along = (progress - WARM_UP) / (1 - WARM_UP)
    return 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * along))


def new_optimizers(model: GPT, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """AdamW for all; or Muon for the matrices inside blocks, and AdamW for what is left."""
    inside = [] if not recipe.muon else [p for p in model.blocks.parameters() if p.ndim == 2]
    taken = {id(parameter) for parameter in inside}
    left = [p for p in model.parameters() if id(p) not in taken]
    matrices = {"params": [p for p in left if p.ndim == 2], "weight_decay": recipe.weight_decay}
    gains = {"params": [p for p in left if p.ndim < 2], "weight_decay": 0.0}
    groups = [group for group in (matrices, gains) if group["params"]]
    adam = torch.optim.AdamW(groups, lr=recipe.rate, betas=recipe.betas, fused=True)
    if not recipe.muon:
        return [adam]
    blocks = model.blocks
    muon = Muon(
        [
            {"params": [block.attention.qkv.weight for block in blocks], "split": 3},
            {"params": [block.attention.out.weight for block in blocks]},
            {"params": [block.mlp.up.weight for block in blocks]},
            {"params": [block.mlp.down.weight for block in blocks]},
        ],
        *(recipe.muon_rate, recipe.muon_momentum, recipe.muon_decay),
    )
    return [adam, muon]


class Run:
    """One training that can be stopped and gone on with; its clock stands still in between."""

    def __init__(self, recipe: Recipe, corpus: Corpus, clock: Clock, seed: int) -> None:
        torch.manual_seed(seed)
        self.recipe, self.corpus, self.clock = recipe, corpus, clock
        self.model = GPT(Shape(corpus.vocabulary, recipe.context), recipe.switches)
        self.optimizers = new_optimizers(self.model, recipe)
        self.rates = [[g["lr"] for g in o.param_groups] for o in self.optimizers]
        self.rng = torch.Generator().manual_seed(seed)
        self.step, self.seconds = 0, 0.0
        self.reached: Measurement | None = None  # the bar, on the whole validation split

    @property
    def progress(self) -> float:
        """How much of the training is done, from 0 to 1."""
        if self.recipe.seconds:
            return min(1.0, self.seconds / self.recipe.seconds)
        return self.step / self.recipe.steps

    def advance(self, until: float) -> None:
        """Train until so much of the whole is done."""
        while self.progress < until:
            start = self.clock()
            self.train_step()
            self.step += 1
            self.seconds += self.clock() - start

    def train_step(self) -> None:
        """Draw a batch and learn from it."""
        recipe = self.recipe
        windows = self.corpus.draw(recipe.batch, recipe.context, self.rng)
        mean_loss(self.model(windows[:, :-1]), windows[:, 1:]).backward()
        if recipe.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), recipe.clip)
        factor = rate_factor(self.progress, recipe.linear_decay)
        for optimizer, rates in zip(self.optimizers, self.rates, strict=True):
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * factor
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def measure(self, whole: bool = False) -> float:
        """The validation loss, off the clock: on every nth window, or on the whole split.

        Where it is near the bar, the whole split says whether the bar is reached.
        """
        loss = self.corpus.loss(self.model, 1 if whole else EVERY_NTH)
        if not self.reached and not whole and loss < BAR + NEAR:
            loss = self.corpus.loss(self.model)
            whole = True
        if not self.reached and whole and loss <= BAR:
            self.reached = Measurement(self.step, self.seconds, loss)
        return loss
