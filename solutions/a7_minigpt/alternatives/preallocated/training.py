"""Whole arrays: windows as views of the text, gradients scaled at the end.

A checkpoint has the step in its metadata, and other names of tensors.
"""


def get_batch(
    data: Tensor,
    batch_size: int,
    context_length: int,
    generator: torch.Generator,
    device: str | torch.device = "cpu",
) -> tuple[Tensor, Tensor]:
    """Random windows of a text, and for each of their positions the token that comes next."""
    if min(batch_size, context_length) < 1:
        raise ValueError("sizes must be at least 1")
    if data.numel() < context_length + 1:
        raise ValueError("the text is shorter than one window")
    windows = data.unfold(0, context_length + 1, 1)  # a view of all windows
    numbers = torch.rand(batch_size, dtype=torch.float64, generator=generator)
    rows = windows[(numbers * len(windows)).long()]
    if torch.device(device).type == "cuda":
        rows = rows.pin_memory()
    rows = rows.to(device, non_blocking=True)
    return rows[:, :-1], rows[:, 1:]


def train_step(
    model: GPT,
    optimizer: torch.optim.Optimizer,
    batches: list[tuple[Tensor, Tensor]],
    max_norm: float = 1.0,
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
    torch._foreach_mul_(gradients, min(1.0, max_norm / (norm + 1e-6)))
    optimizer.step()
    return torch.stack(losses).mean().item()


def estimate_loss(
    model: GPT,
    data: Tensor,
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
                model(*get_batch(data, batch_size, model.config.context_length, generator, device))[
                    1
                ]
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
    """Write all that a run needs to continue after that step, in the safetensors format."""
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
    """Restore everything that save_checkpoint wrote, and return the step."""
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
