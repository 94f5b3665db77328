"""The loss as log(sum(exp)) minus a mean of logits."""


def label_smoothing_loss(logits: Tensor, targets: Tensor, smoothing: float = 0.1) -> Tensor:
    """log(sum(exp)) minus the logits' mean under the smoothed targets."""
    check_floats(logits)
    check_ids(targets)
    if logits.ndim != 3 or targets.shape != logits.shape[:2]:
        raise ValueError(f"logits {tuple(logits.shape)} and targets {tuple(targets.shape)} differ")
    check_tokens(targets, logits.shape[2])
    if smoothing < 0 or not smoothing < 1:
        raise ValueError(f"smoothing must lie from 0 to 1 (without 1), got {smoothing}")
    total = logits.sum() * 0  # so that a batch of padding alone has a gradient too
    real = targets.ne(PADDING)
    if real.any():
        rows = logits[real] - logits[real].amax(dim=1, keepdim=True).detach()
        right = rows[torch.arange(len(rows)), targets[real]]
        expected = torch.lerp(right, rows.mean(dim=1), smoothing)
        total = (rows.logsumexp(dim=1) - expected).mean()
    return total
