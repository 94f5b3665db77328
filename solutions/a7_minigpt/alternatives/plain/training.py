"""Assignment 7, written plainly: windows row by row, gradients gathered and clipped by hand."""

import json
import math
import time
from pathlib import Path

import torch
from jaxtyping import Int
from safetensors import SafetensorError
from safetensors.torch import load, save, save_file
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
    """Random windows of a text, and for each of their places the token that comes next."""
    if batch_size < 1 or block_size < 1:
        raise ValueError("sizes are at least 1")
    if len(data) <= block_size:
        raise ValueError(f"{len(data)} tokens are too few for windows of {block_size}")
    rows, nexts = [], []
    for _ in range(batch_size):
        start = int(torch.randint(0, len(data) - block_size, (), generator=generator))
        rows.append(data[start : start + block_size])
        nexts.append(data[start + 1 : start + 1 + block_size])
    x, y = torch.stack(rows), torch.stack(nexts)
    if str(device).startswith("cuda"):
        x = x.pin_memory().to(device, non_blocking=True)
        y = y.pin_memory().to(device, non_blocking=True)
    return x.to(device), y.to(device)


# Exercise 7.5


def learning_rate(step: int, peak: float, warmup: int, total: int, floor: float = 0.0) -> float:
    """The learning rate of a step: up in a straight line, then down along half a cosine wave."""
    if step < 1:
        raise ValueError("steps count from 1")
    if warmup < 0 or warmup >= total:
        raise ValueError("the warm-up ends before the last step")
    if floor < 0 or floor > peak:
        raise ValueError("the floor lies between 0 and the peak")
    if step <= warmup:
        return peak * (step / warmup)
    if step >= total:
        return floor
    angle = math.pi * (step - warmup) / (total - warmup)
    middle, swing = (peak + floor) / 2, (peak - floor) / 2
    return middle + swing * math.cos(angle)


def configure_optimizer(
    model: nn.Module,
    learning_rate: float,
    weight_decay: float,
    betas: tuple[float, float] = (0.9, 0.95),
) -> torch.optim.Optimizer:
    """AdamW (torch.optim.AdamW, its other settings as they come) for all parameters of a model."""
    groups = []
    for parameter in model.parameters():
        decay = weight_decay if parameter.ndim > 1 else 0.0
        groups.append({"params": [parameter], "weight_decay": decay})
    return torch.optim.AdamW(groups, lr=learning_rate, betas=betas, foreach=False)


def train_step(
    model: GPT,
    optimizer: torch.optim.Optimizer,
    batches: list[tuple[Int[Tensor, "n t"], Int[Tensor, "n t"]]],
    clip: float = 1.0,
    autocast: bool = False,
) -> float:
    """One update of the model, from the gradients of all batches together."""
    if len(batches) == 0:
        raise ValueError("no batches")
    parameters = list(model.parameters())
    sums = [torch.zeros_like(parameter) for parameter in parameters]
    losses = []
    for x, y in batches:
        with torch.autocast(parameters[0].device.type, torch.bfloat16, enabled=autocast):
            loss = model(x, y)[1]
        for place, gradient in enumerate(torch.autograd.grad(loss, parameters)):
            sums[place] += gradient
        losses.append(loss.item())
    squares = 0.0
    for parameter, gradient in zip(parameters, sums, strict=True):
        parameter.grad = gradient / len(batches)
        squares += float((parameter.grad**2).sum())
    norm = math.sqrt(squares)
    if norm > clip:
        for parameter in parameters:
            parameter.grad *= clip / norm
    optimizer.step()
    return sum(losses) / len(losses)


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
        """Raises ValueError for settings that make no sense."""
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
    """The mean loss over that many random batches of a text, as a float."""
    if batches < 1:
        raise ValueError(f"at least 1 batch is needed, got {batches}")
    mode = model.training
    model.train(False)
    losses = []
    try:
        for _ in range(batches):
            device = next(model.parameters()).device
            x, y = get_batch(data, batch_size, model.config.context, generator, device)
            with torch.inference_mode():
                losses.append(float(model(x, y)[1]))
    finally:
        model.train(mode)
    return sum(losses) / len(losses)


def save_checkpoint(
    path: str | Path,
    model: GPT,
    optimizer: torch.optim.Optimizer,
    step: int,
    generator: torch.Generator,
) -> None:
    """Write all that a training needs to go on after that step, in the format of safetensors."""
    content = {f"weight {name}": p.detach() for name, p in model.named_parameters()}
    for place, memory in optimizer.state_dict()["state"].items():
        for key, value in memory.items():
            content[f"memory {place} {key}"] = torch.as_tensor(value)
    content["step"] = torch.tensor(step)
    content["generator"] = generator.get_state()
    content["numbers"] = torch.get_rng_state()
    if next(model.parameters()).is_cuda:
        content["cuda numbers"] = torch.cuda.get_rng_state()
    Path(path).write_bytes(save({name: value.cpu().clone() for name, value in content.items()}))


def load_checkpoint(
    path: str | Path, model: GPT, optimizer: torch.optim.Optimizer, generator: torch.Generator
) -> int:
    """Put everything back that save_checkpoint wrote, and return the step."""
    try:
        content = load(Path(path).read_bytes())
    except (OSError, SafetensorError) as error:
        raise ValueError(f"{path}: {error}") from error
    weights = dict(model.named_parameters())
    missing = {"step", "generator", "numbers"} - content.keys()
    names = {name for name in content if name.startswith("weight ")}
    if missing or names != {f"weight {name}" for name in weights}:
        raise ValueError(f"{path} was written for another model, or by something else")
    for name, weight in weights.items():
        if content[f"weight {name}"].shape != weight.shape:
            raise ValueError(f"{path}: {name} has another shape")
    memory: dict[int, dict[str, Tensor]] = {}
    for name, value in content.items():
        if name.startswith("memory "):
            _, place, key = name.split(" ")
            memory.setdefault(int(place), {})[key] = value
    model.load_state_dict({name: content[f"weight {name}"] for name in weights}, strict=False)
    settings = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": memory, "param_groups": settings})
    generator.set_state(content["generator"])
    torch.set_rng_state(content["numbers"])
    if "cuda numbers" in content and next(model.parameters()).is_cuda:
        torch.cuda.set_rng_state(content["cuda numbers"])
    return int(content["step"])


def train(
    model: GPT,
    data: Int[Tensor, " length"],
    config: TrainConfig,
    validation: Int[Tensor, " length"] | None = None,
) -> dict[str, list]:
    """Train a model on random windows of a text, with a progress bar."""
    torch.manual_seed(config.seed)
    generator = torch.Generator()
    generator.manual_seed(config.seed)
    optimizer = configure_optimizer(model, config.peak, config.weight_decay)
    step = 0
    if config.resume:
        step = load_checkpoint(config.checkpoint, model, optimizer, generator)
    last = config.steps if config.stop is None else config.stop
    history: dict[str, list] = {
        "step": [],
        "loss": [],
        "learning_rate": [],
        "validation_step": [],
        "validation_loss": [],
    }
    with TrainingDisplay(max(last - step, 0)) as display:
        while step < last:
            step += 1
            began = time.time()
            rate = learning_rate(step, config.peak, config.warmup, config.steps, config.floor)
            for group in optimizer.param_groups:
                group["lr"] = rate
            batches = []
            for _ in range(config.micro_batches):
                device = next(model.parameters()).device
                sizes = config.batch_size, model.config.context
                batches.append(get_batch(data, *sizes, generator, device))
            model.train()
            loss = train_step(model, optimizer, batches, config.clip, config.autocast)
            if math.isnan(loss) or math.isinf(loss):
                raise ValueError(f"step {step}: the loss is {loss}")
            history["step"].append(step)
            history["loss"].append(loss)
            history["learning_rate"].append(rate)
            speed = sum(x.numel() for x, _ in batches) / max(time.time() - began, 1e-9)
            display.step(loss=loss, tokens_per_second=speed)
            every = config.evaluate_every
            if validation is not None and (step == last or (every and step % every == 0)):
                windows = torch.Generator()
                windows.manual_seed(config.seed)
                sizes = config.batch_size, config.evaluate_batches
                history["validation_step"].append(step)
                history["validation_loss"].append(estimate_loss(model, validation, *sizes, windows))
            every = config.save_every
            if config.checkpoint and (step == last or (every and step % every == 0)):
                save_checkpoint(config.checkpoint, model, optimizer, step, generator)
    model.eval()
    return history


# Exercise 7.10


def export_model(model: GPT, tokenizer: CharTokenizer, folder: str | Path) -> None:
    """Given: write what you submit for 7.10: checkpoint.safetensors and config.json in a folder."""
    tensors = {name: p.detach().cpu().clone() for name, p in model.named_parameters()}
    save_file(tensors, Path(folder) / "checkpoint.safetensors")
    sizes = {name: getattr(model.config, name) for name in ("context", "layers", "heads", "width")}
    content = json.dumps({"vocabulary": tokenizer.vocabulary, **sizes}, ensure_ascii=False)
    (Path(folder) / "config.json").write_text(content, encoding="utf-8")
