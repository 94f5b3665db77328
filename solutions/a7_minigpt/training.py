"""Assignment 7, exercises 7.2, 7.5 and 7.6: batches, the optimizer, and training that resumes.

Conventions
    - Data is a text as ids: an int64 tensor with one axis, on the CPU.
    - Device: a model and its batches are on one device, next(model.parameters()).device.
    - Steps count from 1.
    - Random windows of the text are drawn from a torch.Generator on the CPU.
    - Side effects: train, train_step and load_checkpoint change the model, the optimizer and random
      states; save_checkpoint writes a file; drawing advances the generator that is passed in.
      Nothing else changes.
    - Errors: ValueError, where a docstring says so. Other bad input is up to you.
"""

import json
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Int
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from assignments.a7_minigpt.model import GPT
from assignments.a7_minigpt.tokenizer import CharTokenizer
from common.training.evaluation_mode import evaluating
from common.training.training_progress import TrainingDisplay

# Exercise 7.2


def get_batch(
    data: Int[Tensor, " length"],
    batch_size: int,
    context_length: int,
    generator: torch.Generator,
    device: str | torch.device = "cpu",
) -> tuple[Int[Tensor, "batch_size context_length"], Int[Tensor, "batch_size context_length"]]:
    """Random windows of a text, and for each of their positions the token that comes next.

    A window is context_length consecutive tokens, the last of which has a token after it. So a
    text has length - context_length windows. Each is equally likely for every row, independently of
    the other rows. Returns (x, y), int64, on the device: if row r of x is
    data[s : s + context_length], row r of y is data[s + 1 : s + 1 + context_length]. All random
    numbers come from the generator.

    On a GPU, both go through pinned memory and are copied with non_blocking=True, so that the
    copy runs while the GPU computes.
    Raises ValueError if the text has no window, and for sizes below 1.
    """
    # BEGIN SOLUTION
    if batch_size < 1 or context_length < 1:
        raise ValueError(f"sizes must be at least 1, got {batch_size} and {context_length}")
    windows = len(data) - context_length
    if windows < 1:
        raise ValueError(f"data must have more than {context_length} tokens, got {len(data)}")
    starts = torch.randint(windows, (batch_size,), generator=generator)
    positions = starts[:, None] + torch.arange(context_length)  # (batch_size, context_length)
    x, y = data[positions], data[positions + 1]
    if torch.device(device).type == "cuda":
        x, y = x.pin_memory(), y.pin_memory()
    return x.to(device, non_blocking=True), y.to(device, non_blocking=True)
    # END SOLUTION


# Exercise 7.5


def learning_rate_at(
    step: int, max_lr: float, warmup: int, total: int, min_lr: float = 0.0
) -> float:
    """The learning rate of a step: linear warm-up, then cosine decay.

    max_lr * step / warmup for step = 1 ... warmup. From there it follows half a cosine wave: it is
    max_lr at step warmup, halfway between max_lr and min_lr in the middle, and min_lr at step
    total. After total it stays at min_lr. warmup may be 0: then the cosine starts at step 0.
    Raises ValueError if step is below 1, if warmup is below 0 or not below total, or if min_lr is
    below 0 or above max_lr.
    """
    # BEGIN SOLUTION
    if step < 1:
        raise ValueError(f"step must be at least 1, got {step}")
    if not 0 <= warmup < total:
        raise ValueError(f"warmup must be at least 0 and below total ({total}), got {warmup}")
    if not 0 <= min_lr <= max_lr:
        raise ValueError(f"min_lr must be between 0 and max_lr ({max_lr}), got {min_lr}")
    if step < warmup:
        return step / warmup * max_lr
    done = min((step - warmup) / (total - warmup), 1.0)  # from 0 at max_lr to 1 at min_lr
    return min_lr + (max_lr - min_lr) * (1 + math.cos(math.pi * done)) / 2
    # END SOLUTION


def configure_optimizer(
    model: nn.Module,
    learning_rate: float,
    weight_decay: float,
    betas: tuple[float, float] = (0.9, 0.95),
) -> torch.optim.Optimizer:
    """AdamW (torch.optim.AdamW, otherwise with its default settings) for all parameters of a model.

    Weight decay is applied to matrices only, parameters with two axes or more. Biases and the gains
    of norms have one axis, and don't decay.
    """
    # BEGIN SOLUTION
    decayed = [p for p in model.parameters() if p.ndim >= 2]
    free = [p for p in model.parameters() if p.ndim < 2]
    groups = [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": free, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=betas, fused=True)
    # END SOLUTION


def train_step(
    model: GPT,
    optimizer: torch.optim.Optimizer,
    batches: list[tuple[Int[Tensor, "n t"], Int[Tensor, "n t"]]],
    max_norm: float = 1.0,
    autocast: bool = False,
) -> float:
    """One update of the model, from the gradients of all batches together.

    batches: pairs (x, y) of one shape. Each goes through the model on its own, so a batch that
    doesn't fit into memory can be split (gradient accumulation). The update is the one that all
    rows as one batch would give: the gradient is the mean over the batches. Gradients from before
    the call don't count.
    max_norm: if the norm of all gradients together is larger, they are scaled down to it, as by
        nn.utils.clip_grad_norm_ (which ends slightly below). This is done once, before the update.
    autocast: whether the forward pass and the loss run under torch.autocast with bfloat16, for the
        model's device. The weights keep their dtype, and backward runs outside.
    The mode of the model, training or evaluation, doesn't change (evaluation has no dropout).
    Returns the mean loss of the batches before the update, as a float. Raises ValueError for an
    empty list.
    """
    # BEGIN SOLUTION
    if not batches:
        raise ValueError("batches must have at least one entry, got none")
    device = next(model.parameters()).device.type
    optimizer.zero_grad()
    total = 0.0
    for x, y in batches:
        with torch.autocast(device, dtype=torch.bfloat16, enabled=autocast):
            _, loss = model(x, y)
        loss = loss / len(batches)  # backward adds gradients up: their sum is then the mean
        loss.backward()
        total += loss.item()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return total
    # END SOLUTION


# Exercise 7.6


@dataclass(frozen=True)
class TrainConfig:
    """Given: the settings of a training run.

    batch_size: windows in each of the grad_accum_steps batches of a step.
    max_lr, min_lr, warmup: arguments of learning_rate_at; its total is steps.
    evaluate_every: steps between two validations; 0: only after the last step.
    evaluate_batches: batches of a validation.
    checkpoint: the file for checkpoints; "" for none.
    save_every: steps between two checkpoints; 0: only after the last step.
    stop: the last step of this run; None: the last of all. The schedule is that of all steps.
    resume: continue from the checkpoint instead of starting from scratch.
    """

    steps: int = 2000
    batch_size: int = 32
    grad_accum_steps: int = 1
    max_lr: float = 2e-3
    min_lr: float = 2e-4
    warmup: int = 100
    weight_decay: float = 0.1
    max_norm: float = 1.0
    autocast: bool = False
    seed: int = 0
    evaluate_every: int = 0
    evaluate_batches: int = 20
    checkpoint: str = ""
    save_every: int = 0
    stop: int | None = None
    resume: bool = False

    def __post_init__(self) -> None:
        """Raises ValueError for settings that make no sense."""
        for name in ("steps", "batch_size", "grad_accum_steps", "evaluate_batches"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("evaluate_every", "save_every", "weight_decay"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")
        if not 0 <= self.warmup < self.steps:
            limits = f"at least 0 and below steps ({self.steps})"
            raise ValueError(f"warmup must be {limits}, got {self.warmup}")
        if not 0 <= self.min_lr <= self.max_lr:
            limits = f"between 0 and max_lr ({self.max_lr})"
            raise ValueError(f"min_lr must be {limits}, got {self.min_lr}")
        if self.max_norm <= 0:
            raise ValueError(f"max_norm must be above 0, got {self.max_norm}")
        if self.stop is not None and not 1 <= self.stop <= self.steps:
            raise ValueError(f"stop must be from 1 to steps ({self.steps}), got {self.stop}")
        if self.resume and not self.checkpoint:
            raise ValueError("resume needs a checkpoint file, got none")


def estimate_loss(
    model: GPT,
    data: Int[Tensor, " length"],
    batch_size: int,
    batches: int,
    generator: torch.Generator,
) -> float:
    """The mean loss over a number of random batches of a text, as a float.

    Windows are as long as the model's context, drawn by get_batch. The model is in evaluation mode
    meanwhile, without gradients, and afterwards in its previous mode: the given context manager
    evaluating does that. Raises ValueError for sizes below 1, and for a text without a window.
    """
    if batches < 1:
        raise ValueError(f"batches must be at least 1, got {batches}")
    # BEGIN SOLUTION
    device, context_length = next(model.parameters()).device, model.config.context_length
    total = 0.0
    with evaluating(model):
        for _ in range(batches):
            x, y = get_batch(data, batch_size, context_length, generator, device)
            _, loss = model(x, y)
            total += loss.item()
    return total / batches
    # END SOLUTION


def save_checkpoint(
    path: str | Path,
    model: GPT,
    optimizer: torch.optim.Optimizer,
    step: int,
    generator: torch.Generator,
) -> None:
    """Write all that a run needs to continue after that step, in the safetensors format.

    That is: the model's parameters, the optimizer's state of each (optimizer.state; empty before
    its first step), the step, and the states of the generator and of PyTorch's own random numbers,
    which dropout uses (torch.get_rng_state; for a model on a GPU also torch.cuda.get_rng_state).
    The names in the file are up to you. The format holds only tensors and short strings, and that
    is its point: unlike a pickle, it runs no code when it is read. An existing file is replaced.
    Advice: write to another name in the same folder, then rename (os.replace). Until then the old
    file stays intact.
    """
    # BEGIN SOLUTION
    device = next(model.parameters()).device
    tensors = {"rng.windows": generator.get_state(), "rng.torch": torch.get_rng_state()}
    if device.type == "cuda":
        tensors["rng.cuda"] = torch.cuda.get_rng_state(device)
    for name, parameter in model.named_parameters():
        tensors[f"model.{name}"] = parameter
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"optimizer.{name}.{key}"] = value
    # Copies, because safetensors rejects tensors that share memory.
    tensors = {name: value.detach().cpu().clone() for name, value in tensors.items()}
    # Written beside it first: a run that is killed while it writes leaves the old file intact.
    part = Path(f"{path}.part")
    save_file(tensors, part, {"step": str(step)})
    os.replace(part, path)
    # END SOLUTION


def load_checkpoint(
    path: str | Path, model: GPT, optimizer: torch.optim.Optimizer, generator: torch.Generator
) -> int:
    """Restore everything that save_checkpoint wrote, and return the step.

    An optimizer that was saved with an empty state has an empty state again.

    Raises ValueError, with the path in its message, for a file that is missing, that safetensors
    can't read, that lacks the step or the random states, or that belongs to another model (names or
    shapes of the parameters differ). Then nothing has been changed, PyTorch's random state
    included. Other damage, and a model of another dtype than the saved one, need not be noticed.
    """
    # BEGIN SOLUTION
    # Read everything and check it, before anything is changed.
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            step = int((file.metadata() or {})["step"])
        for name in ("rng.windows", "rng.torch"):
            torch.Generator().set_state(tensors[name])  # a trial: a bad state raises here
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{path} is not a checkpoint: {error}") from None

    def part(prefix: str) -> dict[str, Tensor]:
        """The tensors whose names start with a prefix, by the rest of their names."""
        return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}

    parameters, weights = dict(model.named_parameters()), part("model.")
    expected = {name: parameter.shape for name, parameter in parameters.items()}
    if {name: value.shape for name, value in weights.items()} != expected:
        raise ValueError(f"{path} is a checkpoint of another model")

    # The file is good: restore the model, the optimizer, and the random states.
    device = next(model.parameters()).device
    optimizer.state.clear()
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])
            state = {key: value.to(device) for key, value in part(f"optimizer.{name}.").items()}
            if state:
                optimizer.state[parameter] = state
    generator.set_state(tensors["rng.windows"])
    torch.set_rng_state(tensors["rng.torch"])
    if device.type == "cuda" and "rng.cuda" in tensors:
        torch.cuda.set_rng_state(tensors["rng.cuda"], device)
    return step
    # END SOLUTION


def train(
    model: GPT,
    data: Int[Tensor, " length"],
    config: TrainConfig,
    validation: Int[Tensor, " length"] | None = None,
) -> dict[str, list]:
    """Train a model on random windows of a text, with a progress bar.

    1. Seed PyTorch (torch.manual_seed) and a new generator for the windows with config.seed, make
       the optimizer, and if config.resume is set, load the checkpoint: the run then continues
       after its step as if it had never stopped, with the same numbers.
    2. For each step: set the learning rate of all parameter groups, draw grad_accum_steps batches
       of batch_size windows, as long as the model's context, and call train_step in training mode.
    3. After every evaluate_every steps and after the last, if there is a validation text: its
       estimate_loss with a new generator, seeded with config.seed. So every validation uses the
       same windows, and doesn't affect training.
    4. After every save_every steps and after the last, if config.checkpoint isn't "": save to it.

    "The last" is config.stop, or config.steps if that is None. When train returns, the model is in
    evaluation mode. The display (TrainingDisplay) gets the loss and, under any name, the tokens per
    second; it adds the remaining time.

    Returns a history of lists, one entry for each step of this run: "step", "loss" and
    "learning_rate"; and one for each validation: "validation_step" and "validation_loss". Steps are
    Python ints, all else Python floats.
    Raises ValueError for a loss that is not finite, with a message that names its step, as in
    "step 12"; no checkpoint of that step is saved. Also raises it for a text, data or validation,
    that is too short for one window, at the latest when a window is drawn from it.
    A run that resumes at its last step or later only loads the checkpoint and sets evaluation mode;
    its lists are empty.
    """
    # BEGIN SOLUTION
    torch.manual_seed(config.seed)
    generator = torch.Generator().manual_seed(config.seed)
    optimizer = configure_optimizer(model, config.max_lr, config.weight_decay)
    done = load_checkpoint(config.checkpoint, model, optimizer, generator) if config.resume else 0
    last = config.stop or config.steps
    device, context_length = next(model.parameters()).device, model.config.context_length
    tokens = config.grad_accum_steps * config.batch_size * context_length  # in each step
    names = ("step", "loss", "learning_rate", "validation_step", "validation_loss")
    history: dict[str, list] = {name: [] for name in names}

    def is_due(step: int, every: int) -> bool:
        return step == last or (every > 0 and step % every == 0)

    model.train()
    with TrainingDisplay(max(last - done, 0), "mini-GPT") as display:
        for step in range(done + 1, last + 1):
            start = time.perf_counter()
            rate = learning_rate_at(step, config.max_lr, config.warmup, config.steps, config.min_lr)
            for group in optimizer.param_groups:
                group["lr"] = rate
            batches = [
                get_batch(data, config.batch_size, context_length, generator, device)
                for _ in range(config.grad_accum_steps)
            ]
            loss = train_step(model, optimizer, batches, config.max_norm, config.autocast)
            if not math.isfinite(loss):
                raise ValueError(f"the loss of step {step} is {loss}")
            history["step"].append(step)
            history["loss"].append(loss)
            history["learning_rate"].append(rate)
            display.step(loss=loss, **{"tokens/s": tokens / (time.perf_counter() - start)})

            if validation is not None and is_due(step, config.evaluate_every):
                same = torch.Generator().manual_seed(config.seed)
                sizes = config.batch_size, config.evaluate_batches
                validation_loss = estimate_loss(model, validation, *sizes, same)
                history["validation_step"].append(step)
                history["validation_loss"].append(validation_loss)
                display.note(f"step {step}: validation loss {validation_loss:.4f}")
            if config.checkpoint and is_due(step, config.save_every):
                save_checkpoint(config.checkpoint, model, optimizer, step, generator)
    model.eval()
    return history
    # END SOLUTION


# Exercise 7.10


def export_model(model: GPT, tokenizer: CharTokenizer, folder: str | Path) -> None:
    """Given: write what you submit for 7.10: checkpoint.safetensors and config.json in a folder."""
    tensors = {name: p.detach().cpu().clone() for name, p in model.named_parameters()}
    save_file(tensors, Path(folder) / "checkpoint.safetensors")
    sizes = ("context_length", "num_layers", "num_heads", "d_model")
    config = {"characters": tokenizer.characters}
    config |= {name: getattr(model.config, name) for name in sizes}
    content = json.dumps(config, ensure_ascii=False)
    (Path(folder) / "config.json").write_text(content, encoding="utf-8")
