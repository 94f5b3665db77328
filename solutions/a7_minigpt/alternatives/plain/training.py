"""Formulas written out: windows row by row, gradients summed and clipped without .backward().

Each parameter has its own group in the optimizer. A checkpoint numbers the parameters.
"""

from safetensors.torch import load, save


def get_batch(
    data: Tensor,
    batch_size: int,
    context_length: int,
    generator: torch.Generator,
    device: str | torch.device = "cpu",
) -> tuple[Tensor, Tensor]:
    """Random windows of a text, and for each of their positions the token that comes next."""
    if batch_size < 1 or context_length < 1:
        raise ValueError("sizes must be at least 1")
    if len(data) <= context_length:
        raise ValueError(f"{len(data)} tokens are too few for windows of {context_length}")
    rows, nexts = [], []
    for _ in range(batch_size):
        start = int(torch.randint(0, len(data) - context_length, (), generator=generator))
        rows.append(data[start : start + context_length])
        nexts.append(data[start + 1 : start + 1 + context_length])
    x, y = torch.stack(rows), torch.stack(nexts)
    if str(device).startswith("cuda"):
        x = x.pin_memory().to(device, non_blocking=True)
        y = y.pin_memory().to(device, non_blocking=True)
    return x.to(device), y.to(device)


def learning_rate_at(
    step: int, max_lr: float, warmup: int, total: int, min_lr: float = 0.0
) -> float:
    """The learning rate of a step: linear warm-up, then cosine decay."""
    if step < 1:
        raise ValueError("steps count from 1")
    if warmup < 0 or warmup >= total:
        raise ValueError("the warm-up must end before the last step")
    if min_lr < 0 or min_lr > max_lr:
        raise ValueError("min_lr must be between 0 and max_lr")
    if step <= warmup:
        return max_lr * (step / warmup)
    if step >= total:
        return min_lr
    angle = math.pi * (step - warmup) / (total - warmup)
    middle, swing = (max_lr + min_lr) / 2, (max_lr - min_lr) / 2
    return middle + swing * math.cos(angle)


def configure_optimizer(
    model: nn.Module,
    learning_rate: float,
    weight_decay: float,
    betas: tuple[float, float] = (0.9, 0.95),
) -> torch.optim.Optimizer:
    """AdamW (otherwise with its default settings) for all parameters of a model."""
    groups = []
    for parameter in model.parameters():
        decay = weight_decay if parameter.ndim > 1 else 0.0
        groups.append({"params": [parameter], "weight_decay": decay})
    return torch.optim.AdamW(groups, lr=learning_rate, betas=betas, foreach=False)


def train_step(
    model: GPT,
    optimizer: torch.optim.Optimizer,
    batches: list[tuple[Tensor, Tensor]],
    max_norm: float = 1.0,
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
        for index, gradient in enumerate(torch.autograd.grad(loss, parameters)):
            sums[index] += gradient
        losses.append(loss.item())
    squares = 0.0
    for parameter, gradient in zip(parameters, sums, strict=True):
        parameter.grad = gradient / len(batches)
        squares += float((parameter.grad**2).sum())
    norm = math.sqrt(squares)
    if norm > max_norm:
        for parameter in parameters:
            parameter.grad *= max_norm / norm
    optimizer.step()
    return sum(losses) / len(losses)


def save_checkpoint(
    path: str | Path,
    model: GPT,
    optimizer: torch.optim.Optimizer,
    step: int,
    generator: torch.Generator,
) -> None:
    """Write all that a run needs to continue after that step, in the safetensors format."""
    content = {f"weight {name}": p.detach() for name, p in model.named_parameters()}
    for index, memory in optimizer.state_dict()["state"].items():
        for key, value in memory.items():
            content[f"memory {index} {key}"] = torch.as_tensor(value)
    content["step"] = torch.tensor(step)
    content["generator"] = generator.get_state()
    content["numbers"] = torch.get_rng_state()
    if next(model.parameters()).is_cuda:
        content["cuda numbers"] = torch.cuda.get_rng_state()
    Path(path).write_bytes(save({name: value.cpu().clone() for name, value in content.items()}))


def load_checkpoint(
    path: str | Path, model: GPT, optimizer: torch.optim.Optimizer, generator: torch.Generator
) -> int:
    """Restore everything that save_checkpoint wrote, and return the step."""
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
            _, index, key = name.split(" ")
            memory.setdefault(int(index), {})[key] = value
    model.load_state_dict({name: content[f"weight {name}"] for name in weights}, strict=False)
    settings = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": memory, "param_groups": settings})
    generator.set_state(content["generator"])
    torch.set_rng_state(content["numbers"])
    if "cuda numbers" in content and next(model.parameters()).is_cuda:
        torch.cuda.set_rng_state(content["cuda numbers"])
    return int(content["step"])
