"""How a speedrun's model is trained: batches, schedule, optimizers, validation, and a clock."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from autograder.speedrun.muon import Muon
from autograder.speedrun.speedrun_model import GPT, Shape, Switches
from common.data import Text
from common.errors import CourseError

CONTEXT = 64  # of nanoGPT's recipe, and of every window on which losses are compared
EVERY_NTH = 8  # of the validation windows, during training
VALIDATION_BATCH = 4096  # characters
SHORTEST = 600  # characters of a usable text
WARM_UP = 0.05  # of nanoGPT's recipe: 100 of 2,000 steps
DECAYING = 0.6  # the share of our training, at its end, in which the rates fall
TARGET = 1.88  # the validation loss at which nanoGPT's recipe ends
NEAR = 0.03  # this close to the target on some windows, the whole split is evaluated


Clock = Callable[[], float]  # seconds since some point in time
BASELINE = Switches()


@dataclass(frozen=True)
class Recipe:
    """How to train: the defaults are nanoGPT's recipe for a CPU."""

    name: str
    steps: int = 2000
    switches: Switches = BASELINE
    batch_size: int = 12
    context_length: int = CONTEXT
    muon: bool = False
    linear_decay: bool = False
    learning_rate: float = 1e-3  # of AdamW
    betas: tuple[float, float] = (0.9, 0.99)
    weight_decay: float = 0.1  # of AdamW, on matrices
    max_norm: float = 1.0  # of the gradient; 0: no clipping
    muon_lr: float = 0.02
    muon_momentum: float = 0.95
    muon_weight_decay: float = 0.0
    seconds: float = 0.0  # if not 0, training ends by the clock instead of by steps


@dataclass(frozen=True)
class Measurement:
    """The validation loss at a time of the training clock."""

    step: int
    seconds: float
    loss: float


class Corpus:
    """A text as ids: random windows for training, and fixed windows for validation."""

    def __init__(self, text: Text) -> None:
        for name, part in (("training", text.train), ("validation", text.validation)):
            if len(part) < SHORTEST:
                raise CourseError(
                    f"The {name} text must have at least {SHORTEST} characters, got {len(part)}."
                )
        self.vocab_size = len(text.vocabulary)
        self.train = torch.from_numpy(text.encode(text.train))
        self.validation = torch.from_numpy(text.encode(text.validation))

    def draw(
        self, batch_size: int, context_length: int, rng: torch.Generator
    ) -> Int64[Tensor, "batch context+1"]:
        """Random windows, each with one character more than the context."""
        starts = torch.randint(len(self.train) - context_length, (batch_size, 1), generator=rng)
        return self.train[starts + torch.arange(context_length + 1)]

    def windows(
        self, context_length: int
    ) -> tuple[Int64[Tensor, "count context"], Int64[Tensor, "count context"]]:
        """The validation text cut into windows, and the next character at each position."""
        end = (len(self.validation) - 1) // context_length * context_length
        inputs, targets = self.validation[:end], self.validation[1 : end + 1]
        return inputs.view(-1, context_length), targets.view(-1, context_length)

    @torch.no_grad()
    def loss(self, model: nn.Module, every: int = 1, context_length: int = CONTEXT) -> float:
        """The mean loss over all validation windows, or over every n-th."""
        model.eval()
        inputs, targets = (each[::every] for each in self.windows(context_length))
        rows = VALIDATION_BATCH // context_length
        pieces = zip(inputs.split(rows), targets.split(rows), strict=True)
        total = sum(mean_loss(model(x), y).item() * len(x) for x, y in pieces)
        model.train()
        return total / len(inputs)


def mean_loss(
    logits: Float[Tensor, "batch time vocab_size"], targets: Int64[Tensor, "batch time"]
) -> Float[Tensor, ""]:
    """The cross-entropy, in nats per character."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def rate_factor(progress: float, linear_decay: bool) -> float:
    """The factor of the learning rates at a progress from 0 to 1.

    nanoGPT's recipe has a warm-up and then a cosine down to a tenth. Ours starts at once, since
    Muon's steps have the right length from the start, and decays linearly to 0.
    """
    if linear_decay:
        return min(1.0, (1.0 - progress) / DECAYING)
    if progress < WARM_UP:
        return progress / WARM_UP
    along = (progress - WARM_UP) / (1 - WARM_UP)
    return 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * along))


def new_optimizers(model: GPT, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """AdamW for all; or Muon for the matrices inside blocks, and AdamW for the rest."""
    inside = [] if not recipe.muon else [p for p in model.blocks.parameters() if p.ndim == 2]
    taken = {id(parameter) for parameter in inside}
    left = [p for p in model.parameters() if id(p) not in taken]
    matrices = {"params": [p for p in left if p.ndim == 2], "weight_decay": recipe.weight_decay}
    gains = {"params": [p for p in left if p.ndim < 2], "weight_decay": 0.0}
    groups = [group for group in (matrices, gains) if group["params"]]
    adam = torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=recipe.betas, fused=True)
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
        *(recipe.muon_lr, recipe.muon_momentum, recipe.muon_weight_decay),
    )
    return [adam, muon]


class Run:
    """A training run that can pause and resume; its clock stops in between."""

    def __init__(self, recipe: Recipe, corpus: Corpus, clock: Clock, seed: int) -> None:
        torch.manual_seed(seed)
        self.recipe, self.corpus, self.clock = recipe, corpus, clock
        self.model = GPT(Shape(corpus.vocab_size, recipe.context_length), recipe.switches)
        self.optimizers = new_optimizers(self.model, recipe)
        self.rates = [[g["lr"] for g in o.param_groups] for o in self.optimizers]
        self.rng = torch.Generator().manual_seed(seed)
        self.step, self.seconds = 0, 0.0
        self.reached: Measurement | None = None  # the target, on the whole validation split

    @property
    def progress(self) -> float:
        """How much of the training is done, from 0 to 1."""
        if self.recipe.seconds:
            return min(1.0, self.seconds / self.recipe.seconds)
        return self.step / self.recipe.steps

    def advance(self, until: float) -> None:
        """Train up to a progress from 0 to 1."""
        while self.progress < until:
            start = self.clock()
            self.train_step()
            self.step += 1
            self.seconds += self.clock() - start

    def train_step(self) -> None:
        """One update on a random batch."""
        recipe = self.recipe
        windows = self.corpus.draw(recipe.batch_size, recipe.context_length, self.rng)
        mean_loss(self.model(windows[:, :-1]), windows[:, 1:]).backward()
        if recipe.max_norm:
            nn.utils.clip_grad_norm_(self.model.parameters(), recipe.max_norm)
        factor = rate_factor(self.progress, recipe.linear_decay)
        for optimizer, rates in zip(self.optimizers, self.rates, strict=True):
            for group, learning_rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = learning_rate * factor
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def measure(self, whole: bool = False) -> float:
        """The validation loss, off the clock: on every n-th window, or on the whole split.

        Near the target, the whole split decides whether it is reached.
        """
        loss = self.corpus.loss(self.model, 1 if whole else EVERY_NTH)
        if not self.reached and not whole and loss < TARGET + NEAR:
            loss = self.corpus.loss(self.model)
            whole = True
        if not self.reached and whole and loss <= TARGET:
            self.reached = Measurement(self.step, self.seconds, loss)
        return loss
