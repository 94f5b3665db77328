"""Assignment 7, exercises 7.2, 7.5 and 7.6: batches, the optimiser, and a training that can resume.

Conventions
    data is a text as ids: an int64 tensor of one axis, on the CPU. A model and its batches are on
    the model's device; the model says which: next(model.parameters()).device.
    Steps count from 1. Random windows of the text come from a torch.Generator on the CPU.
    Only train, train_step and load_checkpoint change something: the model, and what steps it.
    Bad input raises ValueError.
"""

import json
import math
import os
import time
from pathlib import Path

import torch
from jaxtyping import Int
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from assignments.a7_minigpt.model import GPT
from assignments.a7_minigpt.tokenizer import CharTokenizer
from common.training.training_progress import TrainingDisplay

# Exercise 7.2


def get_batch(
    data: Int[Tensor, " length"],
    batch_size: int,
    block_size: int,
    generator: torch.Generator,
    device: str | torch.device = "cpu",
) -> tuple[Int[Tensor, "batch_size block_size"], Int[Tensor, "batch_size block_size"]]:
    """Random windows of a text, and for each of their places the token that comes next.

    A window is block_size tokens in a row that have a token after them, so a text has
    length - block_size windows. Each is equally likely for every row, whatever the other rows are.
    Returns (x, y), int64, on the device: where row r of x is data[s : s + block_size], row r of y
    is data[s + 1 : s + 1 + block_size]. All random numbers come from the generator.

    On a GPU, both go through pinned memory and are copied with non_blocking=True, so that the
    copy runs while the GPU computes.
    Raises ValueError if the text has no window, and for sizes below 1.
    """
    raise NotImplementedError("get_batch: exercise 7.2 is yours to write")


# Exercise 7.5


def learning_rate(step: int, peak: float, warmup: int, total: int, floor: float = 0.0) -> float:
    """The learning rate of a step: up in a straight line, then down along half a cosine wave.

    peak * step / warmup for step = 1 ... warmup. From there it falls along a cosine: it is peak at
    step warmup, half-way between peak and floor in the middle, and floor at step total. After
    total it stays at floor. warmup may be 0: then the cosine starts from step 0.
    Raises ValueError for a step below 1, a warmup below 0 or not below total, and unless
    0 <= floor <= peak.
    """
    raise NotImplementedError("learning_rate: exercise 7.5 is yours to write")


def configure_optimizer(
    model: nn.Module,
    learning_rate: float,
    weight_decay: float,
    betas: tuple[float, float] = (0.9, 0.95),
) -> torch.optim.Optimizer:
    """AdamW (torch.optim.AdamW, its other settings as they come) for all parameters of a model.

    Weight decay is for matrices alone, parameters with two axes or more. Biases and the gains of
    norms have one axis, and are left to the gradient.
    """
    raise NotImplementedError("configure_optimizer: exercise 7.5 is yours to write")


def train_step(
    model: GPT,
    optimizer: torch.optim.Optimizer,
    batches: list[tuple[Int[Tensor, "n t"], Int[Tensor, "n t"]]],
    clip: float = 1.0,
    autocast: bool = False,
) -> float:
    """One update of the model, from the gradients of all batches together.

    batches: pairs (x, y) of one shape. Each goes through the model by itself, so a batch that
    doesn't fit into memory can be cut into pieces. The update is the one that all rows as one batch
    would give: their gradient is the mean over the batches. Gradients left over from before don't
    count.
    clip: if the norm of all gradients together is above it, they are scaled down to it. This is
        done once, before the update.
    autocast: whether forward and loss run under torch.autocast with bfloat16, for the model's
        device. The weights stay as they are, and backward runs outside.
    The model stays in the mode in which it is: training, or evaluation without dropout.
    Returns the mean loss of the batches, before the update, as a float. Raises ValueError for an
    empty list.
    """
    raise NotImplementedError("train_step: exercise 7.5 is yours to write")


# Exercise 7.6


class TrainConfig:
    """Given: the settings of a training."""

    def __init__(
        self,
        steps: int = 2000,
        batch_size: int = 32,
        micro_batches: int = 1,
        peak: float = 2e-3,
        floor: float = 2e-4,
        warmup: int = 100,
        weight_decay: float = 0.1,
        clip: float = 1.0,
        autocast: bool = False,
        seed: int = 0,
        evaluate_every: int = 0,
        evaluate_batches: int = 20,
        checkpoint: str = "",
        save_every: int = 0,
        stop: int | None = None,
        resume: bool = False,
    ) -> None:
        """Raises ValueError for settings that make no sense.

        batch_size: windows in each of the micro_batches of a step.
        peak, floor, warmup: as learning_rate takes them; its total is steps.
        evaluate_every: steps between two validations; 0: only after the last step.
        evaluate_batches: batches of a validation.
        checkpoint: the file for checkpoints; "" for none.
        save_every: steps between two checkpoints; 0: only after the last step.
        stop: the last step of this run; None: the last of all. The schedule is that of all steps.
        resume: go on from the checkpoint, not from the start.
        """
        if min(steps, batch_size, micro_batches, evaluate_batches) < 1:
            raise ValueError("steps, batch_size, micro_batches, evaluate_batches: at least 1 each")
        if min(evaluate_every, save_every) < 0 or not 0 <= warmup < steps:
            raise ValueError("evaluate_every, save_every, warmup: at least 0, warmup below steps")
        if not 0 <= floor <= peak or clip <= 0 or weight_decay < 0:
            raise ValueError("0 <= floor <= peak, clip above 0 and weight_decay at least 0, please")
        if stop is not None and not 1 <= stop <= steps:
            raise ValueError(f"stop must be from 1 to {steps}, got {stop}")
        if resume and not checkpoint:
            raise ValueError("resume needs a checkpoint to go on from")
        self.steps = steps
        self.batch_size = batch_size
        self.micro_batches = micro_batches
        self.peak = peak
        self.floor = floor
        self.warmup = warmup
        self.weight_decay = weight_decay
        self.clip = clip
        self.autocast = autocast
        self.seed = seed
        self.evaluate_every = evaluate_every
        self.evaluate_batches = evaluate_batches
        self.checkpoint = checkpoint
        self.save_every = save_every
        self.stop = stop
        self.resume = resume


def estimate_loss(
    model: GPT,
    data: Int[Tensor, " length"],
    batch_size: int,
    batches: int,
    generator: torch.Generator,
) -> float:
    """The mean loss over that many random batches of a text, as a float.

    Windows are as long as the model's context, drawn by get_batch. The model is in evaluation mode
    meanwhile, and afterwards in the mode in which it was. No gradients are computed.
    Raises ValueError for sizes below 1, and for a text without a window.
    """
    if batches < 1:
        raise ValueError(f"at least 1 batch is needed, got {batches}")
    raise NotImplementedError("estimate_loss: exercise 7.6 is yours to write")


def save_checkpoint(
    path: str | Path,
    model: GPT,
    optimizer: torch.optim.Optimizer,
    step: int,
    generator: torch.Generator,
) -> None:
    """Write all that a training needs to go on after that step, in the format of safetensors.

    That is: the model's parameters, what the optimizer remembers of each (optimizer.state; nothing
    before its first step), the step, and the states of the generator and of PyTorch's own random
    numbers, from which dropout draws (torch.get_rng_state; for a model on a GPU also
    torch.cuda.get_rng_state). Which names they have in the file is up to you. Only tensors and
    short strings fit into that format, and that is its point: unlike a pickle, it runs no code when
    it is read. A file that is there already is replaced.
    """
    raise NotImplementedError("save_checkpoint: exercise 7.6 is yours to write")


def load_checkpoint(
    path: str | Path, model: GPT, optimizer: torch.optim.Optimizer, generator: torch.Generator
) -> int:
    """Put everything back that save_checkpoint wrote, and return the step.

    Raises ValueError, with the path in its message, for a file that is missing, that safetensors
    can't read, that save_checkpoint didn't write, or that is of another model (names or shapes of
    the parameters differ). In that case nothing has been changed.
    """
    raise NotImplementedError("load_checkpoint: exercise 7.6 is yours to write")


def train(
    model: GPT,
    data: Int[Tensor, " length"],
    config: TrainConfig,
    validation: Int[Tensor, " length"] | None = None,
) -> dict[str, list]:
    """Train a model on random windows of a text, with a progress bar.

    1. Seed PyTorch (torch.manual_seed) and a new generator for the windows with config.seed, make
       the optimiser, and if config.resume is set, load the checkpoint: the run then goes on after
       its step as if it had never stopped, with the same numbers.
    2. For each step: set the learning rate of all parameter groups, draw micro_batches batches of
       batch_size windows, as long as the model's context, and call train_step in training mode.
    3. After every evaluate_every steps and after the last, if there is a validation text: its
       estimate_loss with a fresh generator, seeded with config.seed. So each validation looks at
       the same windows, and training doesn't notice it.
    4. After every save_every steps and after the last, if there is a checkpoint file: save.

    "The last" is config.stop, or config.steps if that is None. The model is in evaluation mode
    afterwards. The display (TrainingDisplay) shows the loss and tokens per second, and how long it
    will take.

    Returns a history of lists, one entry for each step of this run: "step", "loss" and
    "learning_rate"; and one for each validation: "validation_step" and "validation_loss".
    Raises ValueError if a loss is not finite, with a message that names its step, as in "step 12",
    before anything is saved after that step; and for a text, data or validation, that is too short
    for one window.
    A run that resumes at its last step or later does nothing, and its lists are empty.
    """
    raise NotImplementedError("train: exercise 7.6 is yours to write")


# Exercise 7.10


def export_model(model: GPT, tokenizer: CharTokenizer, folder: str | Path) -> None:
    """Given: write what you submit for 7.10: checkpoint.safetensors and config.json in a folder."""
    tensors = {name: p.detach().cpu().clone() for name, p in model.named_parameters()}
    save_file(tensors, Path(folder) / "checkpoint.safetensors")
    sizes = {name: getattr(model.config, name) for name in ("context", "layers", "heads", "width")}
    content = json.dumps({"vocabulary": tokenizer.vocabulary, **sizes}, ensure_ascii=False)
    (Path(folder) / "config.json").write_text(content, encoding="utf-8")
