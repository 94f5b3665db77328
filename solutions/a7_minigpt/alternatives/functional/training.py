"""Assignment 7 by functions: one loss function for all, and a training made of small parts."""

import json
import math
import time
from collections import defaultdict
from contextlib import nullcontext
from functools import partial
from itertools import filterfalse
from pathlib import Path
from tempfile import NamedTemporaryFile

import torch
from jaxtyping import Int
from safetensors import SafetensorError
from safetensors.torch import load_file, save, save_file
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
        raise ValueError("batch_size and block_size: at least 1")
    if len(data) - block_size < 1:
        raise ValueError(
            f"{block_size + 1} tokens are needed for a window, and there are {len(data)}"
        )
    starts = torch.randint(0, len(data) - block_size, [batch_size], generator=generator).tolist()
    blocks = torch.stack([data[start : start + block_size + 1] for start in starts])
    x, y = blocks[:, :-1].contiguous(), blocks[:, 1:].contiguous()
    if torch.device(device).type == "cuda":
        x, y = x.pin_memory(), y.pin_memory()
    return tuple(part.to(device, non_blocking=True) for part in (x, y))


# Exercise 7.5


def learning_rate(step: int, peak: float, warmup: int, total: int, floor: float = 0.0) -> float:
    """The learning rate of a step: up in a straight line, then down along half a cosine wave."""
    if step < 1 or warmup < 0 or warmup >= total or floor < 0 or floor > peak:
        raise ValueError("these settings make no schedule")
    rise = step / warmup if warmup else 1.0
    done = max(0.0, min(1.0, (step - warmup) / (total - warmup)))
    fall = floor + (peak - floor) * math.cos(math.pi / 2 * done) ** 2
    return peak * rise if rise < 1 else fall


def configure_optimizer(
    model: nn.Module,
    learning_rate: float,
    weight_decay: float,
    betas: tuple[float, float] = (0.9, 0.95),
) -> torch.optim.Optimizer:
    """AdamW (torch.optim.AdamW, its other settings as they come) for all parameters of a model."""

    def is_matrix(parameter: nn.Parameter) -> bool:
        return parameter.dim() > 1

    parameters = list(model.parameters())
    decayed = list(filter(is_matrix, parameters))
    free = list(filterfalse(is_matrix, parameters))
    optimizer = torch.optim.AdamW(decayed, learning_rate, betas, weight_decay=weight_decay)
    optimizer.add_param_group({"params": free, "weight_decay": 0.0})
    return optimizer


def train_step(
    model: GPT,
    optimizer: torch.optim.Optimizer,
    batches: list[tuple[Int[Tensor, "n t"], Int[Tensor, "n t"]]],
    clip: float = 1.0,
    autocast: bool = False,
) -> float:
    """One update of the model, from the gradients of all batches together."""
    if not batches:
        raise ValueError("nothing to learn from")
    device = next(model.parameters()).device.type
    optimizer.zero_grad(set_to_none=True)
    losses = []
    for x, y in batches:
        with torch.autocast(device, torch.bfloat16) if autocast else nullcontext():
            loss = model(x, y)[1]
        loss.backward(torch.full_like(loss, 1 / len(batches)))
        losses.append(loss.item())
    nn.utils.clip_grad_norm_(list(model.parameters()), clip, foreach=False)
    optimizer.step()
    return math.fsum(losses) / len(losses)


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
    was, place = model.training, next(model.parameters()).device

    @torch.no_grad()
    def one() -> float:
        return model(*get_batch(data, batch_size, model.config.context, generator, place))[1].item()

    model.eval()
    try:
        return math.fsum(one() for _ in range(batches)) / batches
    finally:
        model.train(was)


def save_checkpoint(
    path: str | Path,
    model: GPT,
    optimizer: torch.optim.Optimizer,
    step: int,
    generator: torch.Generator,
) -> None:
    """Write all that a training needs to go on after that step, in the format of safetensors."""
    state = optimizer.state_dict()["state"]
    tensors = {
        "step": torch.tensor([step]),
        "random.windows": generator.get_state(),
        "random.torch": torch.get_rng_state(),
        **{f"model.{name}": value for name, value in model.state_dict().items()},
        **{f"adam.{i}.{key}": value for i, own in state.items() for key, value in own.items()},
    }
    if torch.device(next(model.parameters()).device).type == "cuda":
        tensors["random.cuda"] = torch.cuda.get_rng_state()
    with NamedTemporaryFile(dir=Path(path).absolute().parent, delete=False) as file:
        file.write(save({name: value.cpu().clone() for name, value in tensors.items()}))
    Path(file.name).replace(path)


def load_checkpoint(
    path: str | Path, model: GPT, optimizer: torch.optim.Optimizer, generator: torch.Generator
) -> int:
    """Put everything back that save_checkpoint wrote, and return the step."""
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise ValueError(f"{path}: {error}") from error
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "adam": {}, "random": {}, "step": {}}
    for name, value in tensors.items():
        kind, _, rest = name.partition(".")
        parts.setdefault(kind, {})[rest] = value
    own = {name: value.shape for name, value in model.state_dict().items()}
    if own != {name: value.shape for name, value in parts["model"].items()} or not parts["step"]:
        raise ValueError(f"{path}: not a checkpoint of this model")
    state: dict[int, dict[str, Tensor]] = defaultdict(dict)
    for name, value in parts["adam"].items():
        index, _, key = name.partition(".")
        state[int(index)][key] = value
    model.load_state_dict(parts["model"])
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": dict(state), "param_groups": groups})
    generator.set_state(parts["random"]["windows"])
    torch.set_rng_state(parts["random"]["torch"])
    if "cuda" in parts["random"] and next(model.parameters()).is_cuda:
        torch.cuda.set_rng_state(parts["random"]["cuda"])
    return int(parts["step"][""])


def due(step: int, every: int, last: int) -> bool:
    """Whether something that is done every so many steps is done now."""
    return step == last or (every > 0 and step % every == 0)


def train(
    model: GPT,
    data: Int[Tensor, " length"],
    config: TrainConfig,
    validation: Int[Tensor, " length"] | None = None,
) -> dict[str, list]:
    """Train a model on random windows of a text, with a progress bar."""
    torch.manual_seed(config.seed)
    generator = torch.Generator().manual_seed(config.seed)
    optimizer = configure_optimizer(model, config.peak, config.weight_decay)
    done = load_checkpoint(config.checkpoint, model, optimizer, generator) if config.resume else 0
    last = config.stop or config.steps
    device, context = next(model.parameters()).device, model.config.context
    history: dict[str, list] = defaultdict(list, step=[], loss=[], learning_rate=[])
    history |= {"validation_step": [], "validation_loss": []}

    def one_step(step: int) -> tuple[float, float]:
        rate = learning_rate(step, config.peak, config.warmup, config.steps, config.floor)
        for group in optimizer.param_groups:
            group["lr"] = rate
        draw = partial(get_batch, data, config.batch_size, context, generator, device)
        batches = [draw() for _ in range(config.micro_batches)]
        loss = train_step(model.train(), optimizer, batches, config.clip, config.autocast)
        if not math.isfinite(loss):
            raise ValueError(f"step {step} has a loss of {loss}")
        return loss, rate

    def validate(step: int) -> None:
        again = torch.Generator().manual_seed(config.seed)
        sizes = config.batch_size, config.evaluate_batches
        history["validation_step"].append(step)
        history["validation_loss"].append(estimate_loss(model, validation, *sizes, again))

    with TrainingDisplay(max(0, last - done), "GPT") as display:
        for step in range(done + 1, last + 1):
            began = time.perf_counter()
            loss, rate = one_step(step)
            took = time.perf_counter() - began
            history["step"].append(step)
            history["loss"].append(loss)
            history["learning_rate"].append(rate)
            tokens = config.micro_batches * config.batch_size * context
            display.step(loss=loss, tokens=tokens / took)
            if validation is not None and due(step, config.evaluate_every, last):
                validate(step)
            if config.checkpoint and due(step, config.save_every, last):
                save_checkpoint(config.checkpoint, model, optimizer, step, generator)
    model.eval()
    return dict(history)


# Exercise 7.10


def export_model(model: GPT, tokenizer: CharTokenizer, folder: str | Path) -> None:
    """Given: write what you submit for 7.10: checkpoint.safetensors and config.json in a folder."""
    tensors = {name: p.detach().cpu().clone() for name, p in model.named_parameters()}
    save_file(tensors, Path(folder) / "checkpoint.safetensors")
    sizes = {name: getattr(model.config, name) for name in ("context", "layers", "heads", "width")}
    content = json.dumps({"vocabulary": tokenizer.vocabulary, **sizes}, ensure_ascii=False)
    (Path(folder) / "config.json").write_text(content, encoding="utf-8")
