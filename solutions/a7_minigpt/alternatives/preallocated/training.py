"""Assignment 7 on whole arrays: windows as views of the text, gradients scaled at the end."""

import json
import math
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
    """Random windows of a text, and for each of their places the token that comes next."""
    if min(batch_size, block_size) < 1:
        raise ValueError("a batch has at least one row and one column")
    if data.numel() < block_size + 1:
        raise ValueError("the text is shorter than one window")
    windows = data.unfold(0, block_size + 1, 1)  # a view: (length - block_size, block_size + 1)
    numbers = torch.rand(batch_size, dtype=torch.float64, generator=generator)
    rows = windows[(numbers * len(windows)).long()]
    if torch.device(device).type == "cuda":
        rows = rows.pin_memory()
    rows = rows.to(device, non_blocking=True)
    return rows[:, :-1], rows[:, 1:]


# Exercise 7.5


def learning_rate(step: int, peak: float, warmup: int, total: int, floor: float = 0.0) -> float:
    """The learning rate of a step: up in a straight line, then down along half a cosine wave."""
    if not (step >= 1 and 0 <= warmup < total and 0 <= floor <= peak):
        raise ValueError(f"no rate at step {step}: {peak=} {warmup=} {total=} {floor=}")
    if step < warmup:
        return step / warmup * peak
    left = max(total - step, 0) / (total - warmup)
    return floor + (peak - floor) * math.sin(math.pi / 2 * left) ** 2


def configure_optimizer(
    model: nn.Module,
    learning_rate: float,
    weight_decay: float,
    betas: tuple[float, float] = (0.9, 0.95),
) -> torch.optim.Optimizer:
    """AdamW (torch.optim.AdamW, its other settings as they come) for all parameters of a model."""
    groups: dict[bool, list[nn.Parameter]] = {False: [], True: []}
    for parameter in model.parameters():
        groups[parameter.ndim >= 2].append(parameter)
    settings = [
        {"params": group, "weight_decay": weight_decay * is_matrix}
        for is_matrix, group in groups.items()
        if group
    ]
    return torch.optim.AdamW(settings, lr=learning_rate, betas=betas, foreach=True)


def train_step(
    model: GPT,
    optimizer: torch.optim.Optimizer,
    batches: list[tuple[Int[Tensor, "n t"], Int[Tensor, "n t"]]],
    clip: float = 1.0,
    autocast: bool = False,
) -> float:
    """One update of the model, from the gradients of all batches together."""
    if not batches:
        raise ValueError("there is no batch")
    kind = next(model.parameters()).device.type
    model.zero_grad(set_to_none=False)
    losses = []
    for x, y in batches:
        with torch.autocast(device_type=kind, dtype=torch.bfloat16, enabled=autocast):
            loss = model(x, y)[1]
        loss.backward()
        losses.append(loss.detach().double())
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    torch._foreach_div_(gradients, len(batches))
    norm = torch.stack([gradient.norm() for gradient in gradients]).norm().item()
    torch._foreach_mul_(gradients, min(1.0, clip / (norm + 1e-6)))
    optimizer.step()
    return torch.stack(losses).mean().item()


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
        """Given: keep the settings, if they make sense."""
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
    device = next(model.parameters()).device
    modes = {module: module.training for module in model.modules()}
    model.eval()
    with torch.no_grad():
        try:
            losses = [
                model(*get_batch(data, batch_size, model.config.context, generator, device))[1]
                for _ in range(batches)
            ]
        finally:
            for module, mode in modes.items():
                module.training = mode
    return float(torch.stack(losses).mean())


def save_checkpoint(
    path: str | Path,
    model: GPT,
    optimizer: torch.optim.Optimizer,
    step: int,
    generator: torch.Generator,
) -> None:
    """Write all that a training needs to go on after that step, in the format of safetensors."""
    tensors = {"windows": generator.get_state(), "dropout": torch.random.get_rng_state()}
    if next(model.parameters()).is_cuda:
        tensors["cuda"] = torch.cuda.get_rng_state()
    for name, parameter in model.named_parameters():
        tensors[f"{name}|"] = parameter.data
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"{name}|{key}"] = value
    tensors = {name: value.cpu().clone() for name, value in tensors.items()}
    save_file(tensors, path, metadata={"about": json.dumps({"step": step})})


def load_checkpoint(
    path: str | Path, model: GPT, optimizer: torch.optim.Optimizer, generator: torch.Generator
) -> int:
    """Put everything back that save_checkpoint wrote, and return the step."""
    try:
        with safe_open(path, "pt") as file:
            about = json.loads((file.metadata() or {}).get("about", "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise ValueError(f"can't read {path}: {error}") from error
    sizes = {name[:-1]: value.shape for name, value in tensors.items() if name.endswith("|")}
    if "step" not in about or sizes != {n: p.shape for n, p in model.named_parameters()}:
        raise ValueError(f"{path} doesn't fit this model")
    for name, parameter in model.named_parameters():
        parameter.data.copy_(tensors.pop(f"{name}|"))
        own = [key for key in tensors if key.startswith(f"{name}|")]
        if own:
            where = parameter.device
            optimizer.state[parameter] = {
                key.partition("|")[2]: tensors[key].to(where if tensors[key].ndim else "cpu")
                for key in own
            }
    generator.set_state(tensors["windows"])
    torch.random.set_rng_state(tensors["dropout"])
    if "cuda" in tensors and next(model.parameters()).is_cuda:
        torch.cuda.set_rng_state(tensors["cuda"])
    return about["step"]


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
    begin = 0
    if config.resume:
        begin = load_checkpoint(config.checkpoint, model, optimizer, generator)
    last = config.stop or config.steps
    device = next(model.parameters()).device
    rows, context = config.micro_batches * config.batch_size, model.config.context
    steps, checks = [], []
    model.train()
    with TrainingDisplay(max(0, last - begin), "training") as display:
        for step in range(begin + 1, last + 1):
            clock = time.monotonic()
            rate = learning_rate(step, config.peak, config.warmup, config.steps, config.floor)
            for group in optimizer.param_groups:
                group.update(lr=rate)
            size, count = config.batch_size, config.micro_batches
            pieces = [get_batch(data, size, context, generator, device) for _ in range(count)]
            loss = train_step(model, optimizer, pieces, config.clip, config.autocast)
            if math.isnan(loss) or math.isinf(loss):
                raise ValueError(f"not finite at step {step}: {loss}")
            steps.append((step, loss, rate))
            display.step(loss=loss, speed=rows * context / (time.monotonic() - clock + 1e-9))
            ends = step == last
            if validation is not None and (ends or step % (config.evaluate_every or last) == 0):
                again = torch.Generator().manual_seed(config.seed)
                count = config.evaluate_batches
                found = estimate_loss(model, validation, config.batch_size, count, again)
                checks.append((step, found))
            if config.checkpoint and (ends or step % (config.save_every or last) == 0):
                save_checkpoint(config.checkpoint, model, optimizer, step, generator)
    model.eval()
    return {
        "step": [step for step, _, _ in steps],
        "loss": [loss for _, loss, _ in steps],
        "learning_rate": [rate for _, _, rate in steps],
        "validation_step": [step for step, _ in checks],
        "validation_loss": [loss for _, loss in checks],
    }


# Exercise 7.10


def export_model(model: GPT, tokenizer: CharTokenizer, folder: str | Path) -> None:
    """Given: write what you submit for 7.10: checkpoint.safetensors and config.json in a folder."""
    tensors = {name: p.detach().cpu().clone() for name, p in model.named_parameters()}
    save_file(tensors, Path(folder) / "checkpoint.safetensors")
    sizes = {name: getattr(model.config, name) for name in ("context", "layers", "heads", "width")}
    content = json.dumps({"vocabulary": tokenizer.vocabulary, **sizes}, ensure_ascii=False)
    (Path(folder) / "config.json").write_text(content, encoding="utf-8")
