"""Endless batches, and a scheduler that sets the learning rate."""

from collections.abc import Iterator


def endless_batches(n: int, size: int) -> Iterator[Tensor]:
    """Batches of numbers below n, epoch after epoch."""
    while True:
        order = torch.randperm(n)
        for start in range(0, n - size + 1, size):
            yield order[start : start + size]


def train(model: Transformer, source: Tensor, target: Tensor, config: TrainConfig) -> dict:
    """Teacher forcing with Adam; a scheduler sets the learning rate."""
    check_padding(source)
    check_padding(target)
    if len(source) != len(target):
        raise ValueError(f"there are {len(source)} sources and {len(target)} targets")
    torch.manual_seed(config.seed)
    optimizer = torch.optim.Adam(
        model.parameters(), lr=config.factor, betas=(0.9, 0.98), eps=1e-9, foreach=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: noam_rate(step + 1, model.config.d_model, config.warmup)
    )
    history: dict[str, list[float]] = {"loss": [], "learning_rate": []}
    batches = endless_batches(len(source), min(config.batch_size, len(source)))
    model.train()
    with TrainingDisplay(config.steps, title="Transformer") as display:
        for step, batch in zip(range(config.steps), batches, strict=False):
            rows = trim(target[batch])
            logits = model(trim(source[batch]), rows[:, :-1])
            loss = label_smoothing_loss(logits, rows[:, 1:], config.label_smoothing)
            if not torch.isfinite(loss):
                raise ValueError(f"the loss is {loss.item()} at step {step + 1}")
            history["loss"].append(loss.item())
            history["learning_rate"].append(float(schedule.get_last_lr()[0]))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), config.max_norm)
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
            display.step(loss=history["loss"][-1])
    model.eval()
    return history
