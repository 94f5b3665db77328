"""Formulas written out: percentiles of a sorted list, and products counted one by one."""


def summarize(times: list[float]) -> Timing:
    """The median of the times, and percentiles."""
    if len(times) == 0:
        raise ValueError("no times")
    ordered = sorted(times)

    def percentile(q: float) -> float:
        index = q / 100 * (len(ordered) - 1)
        below = math.floor(index)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (index - below) * (ordered[above] - ordered[below])

    return Timing(percentile(50), percentile(10), percentile(90), len(ordered))


def time_ms(
    function: Callable[[], object], device: str = "cpu", warmup: int = 3, repeats: int = 20
) -> Timing:
    """How long a call takes."""
    if warmup < 0:
        raise ValueError("warmup must be at least 0")
    if repeats < 1:
        raise ValueError("repeats must be at least 1")
    on_gpu = torch.device(device).type == "cuda"
    times = []
    for number in range(-warmup, repeats):
        if on_gpu:
            torch.cuda.synchronize()
            begin = torch.cuda.Event(enable_timing=True)
            end = torch.cuda.Event(enable_timing=True)
            begin.record()
            function()
            end.record()
            torch.cuda.synchronize()
            taken = begin.elapsed_time(end)
        else:
            began = time.perf_counter()
            function()
            taken = (time.perf_counter() - began) * 1e3
        if number >= 0:
            times.append(taken)
    return summarize(times)


def flops_per_token(config: GPTConfig, training: bool = True) -> int:
    """FLOPs in the matrix products of a model, for each token of a full context."""
    t, d, inner = config.context_length, config.d_model, 4 * config.d_model
    count = 0
    for _ in range(config.num_layers):
        count += 2 * t * d * 3 * d  # queries, keys, values
        count += 2 * t * d * t  # scores: the heads' sizes add up to d_model
        count += 2 * t * t * d  # weights times values
        count += 2 * t * d * d  # the output projection
        count += 2 * t * d * inner
        count += 2 * t * inner * d
    count += 2 * t * d * config.vocab_size
    if training:
        count *= 3
    return count // t


def naive_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Unfused causal attention as in assignment 5, with a (t, t) matrix of scores for each head."""
    t, d_head = q.shape[-2:]
    scores = torch.einsum("nhqs,nhks->nhqk", q, k) / d_head**0.5
    positions = torch.arange(t, device=q.device)
    scores = scores.masked_fill(positions[None, :] > positions[:, None], -math.inf)
    return torch.einsum("nhqk,nhks->nhqs", torch.softmax(scores, dim=3), v)
