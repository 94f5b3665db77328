"""The loss as log(sum(exp)) minus a mean of logits."""


def label_smoothing_loss(logits: Tensor, targets: Tensor, label_smoothing: float = 0.1) -> Tensor:
    """log(sum(exp)) minus the logits' mean under the smoothed targets."""
    check_floats(logits)
    check_ids(targets)
    if logits.ndim != 3 or targets.shape != logits.shape[:2]:
        raise ValueError(f"logits {tuple(logits.shape)} and targets {tuple(targets.shape)} differ")
    check_tokens(targets, logits.shape[2])
    if label_smoothing < 0 or not label_smoothing < 1:
        raise ValueError(f"label_smoothing must be in [0, 1), got {label_smoothing}")
    total = logits.sum() * 0  # so that a batch of padding alone has a gradient too
    real = targets.ne(PAD)
    if real.any():
        rows = logits[real] - logits[real].amax(dim=1, keepdim=True).detach()
        right = rows[torch.arange(len(rows)), targets[real]]
        expected = torch.lerp(right, rows.mean(dim=1), label_smoothing)
        total = (rows.logsumexp(dim=1) - expected).mean()
    return total
