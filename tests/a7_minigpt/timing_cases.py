"""How the tests of exercise 7.9 check measurements, against the judge's own clock and counts."""

from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from common.testing.checks import check_float, check_refused, check_unchanged
from common.testing.compare import assert_close, assert_equal, check, kind_of
from common.testing.remote.operations import paced_function
from common.testing.remote.torch_modules import compare_gradient, vjp
from common.testing.remote.torch_objects import allocating_function
from common.testing.resident_memory import resident_peak
from common.testing.speed_ratio import best_seconds, timed
from tests.a7_minigpt.cases import check_object, first_of, view_of

HEAD_AXES = ("sequence", "head", "position", "feature")
MEGABYTE = 2**20
LARGE = 36  # MB: such a block is never made of memory that was freed before
SEEN = 0.8  # of such a block, what the kernel must have seen at least
SHORTEST = 0.1  # of PyTorch's time: nothing right is ten times as fast
COLUMNS = ("length", "naive_ms", "fused_ms", "naive_bytes", "fused_bytes")


def read_timing(timing, what):
    """The four numbers of a Timing."""
    check_object(timing, f"what {what} returns", "a Timing")
    numbers = {name: getattr(timing, name) for name in ("median", "low", "high")}
    for name, value in numbers.items():
        check_float(value, f"the {name} of {what}")
    check(
        numbers["low"] <= numbers["median"] <= numbers["high"],
        f"low, median and high of {what} are not in order.",
    )
    return numbers | {"n": timing.n}


def compare_summary(timing, times, oracle):
    """Median and percentiles are NumPy's."""
    found, right = read_timing(timing, "summarize"), oracle.percentiles(times)
    for name, expected in zip(("median", "low", "high"), right, strict=True):
        assert_close(found[name], expected, what=f"{name} of {len(times)} times")
    assert_equal(found["n"], len(times), what="n")


def check_paced(time_ms, rng, warm, delays):
    """Calls that take about so many milliseconds: counted, and timed between two bounds.

    A call never takes less than its delay. And all of them lie within the time that the judge sees,
    in which the warm-up has its own part: half of the timed calls take at least the median.
    """
    warm, delays = ((rng.uniform(0.8, 1.2, len(ms)) * ms).tolist() for ms in (warm, delays))
    function = paced_function([*warm, *delays])
    seconds, timing = timed(lambda: time_ms(function, "cpu", len(warm), len(delays)))
    found = read_timing(timing, "time_ms")
    assert_equal(found["n"], len(delays), what="n")
    assert_equal(function.calls, len(warm) + len(delays), what="the number of calls")
    for name, part in (("median", 0.5), ("low", 0.1), ("high", 0.9)):
        # Interpolation is another test's: load would decide it here.
        bound = np.quantile(delays, part, method="lower")
        check(
            found[name] > 0.99 * bound,
            f"The {name} of time_ms is shorter than the calls were.",
            f"It is {found[name]:.3f} ms, and calls took {delays} ms at least.",
        )
    left, half = 1000 * seconds - sum(warm), (len(delays) + 1) // 2
    most = {"median": left / half, "low": left / len(delays), "high": left}
    for name, bound in most.items():
        check(
            found[name] < 1.01 * bound,
            f"The {name} of time_ms is longer than the calls can have been.",
            f"It is {found[name]:.3f} ms, and all timed calls together had {left:.3f} ms.",
            "Warm-up calls don't count, and each call is timed by itself.",
        )


def check_time_refused(time_ms, function):
    """Counts that make no sense; no warm-up and a single call are fine."""
    check(time_ms(function, "cpu", 0, 1) is not None, "time_ms returned None.")
    for counts in ((-1, 3), (2, 0), (2, -1)):
        check_refused("a warmup below 0 or repeats below 1", time_ms, function, "cpu", *counts)


def check_speeds(timing, rng):
    """Tokens per second and model FLOPs utilization, against worked examples."""
    for tokens, milliseconds, expected in (
        (500, 250.0, 2000.0),
        (1, 4000.0, 0.25),
        (3, 0.5, 6000.0),
        (0, 3.0, 0.0),
    ):
        found = timing.tokens_per_second(tokens, milliseconds)
        check_float(found, "tokens_per_second")
        assert_close(found, expected, what="tokens_per_second")
    tokens, milliseconds = int(rng.integers(1, 10**6)), float(rng.uniform(1, 1000))
    found = timing.tokens_per_second(tokens, milliseconds)
    assert_close(found, tokens / (milliseconds / 1000), what="tokens_per_second")
    for per_second, per_token, peak_flops, expected in (
        (1000.0, 2e6, 1e10, 0.2),
        (50.0, 3e9, 3e11, 0.5),
        (0.0, 1e6, 1e12, 0.0),
        (0.1, 0.5, 0.5, 0.1),
    ):
        found = timing.mfu(per_second, per_token, peak_flops)
        check_float(found, "mfu")
        assert_close(found, expected, what="mfu")
    for wrong in (0.0, -1.0):
        check_refused("a time that is not above 0", timing.tokens_per_second, 5, wrong)
        check_refused("peak_flops that are not above 0", timing.mfu, 5.0, 5.0, wrong)


def check_flops(flops_per_token, config, settings, oracle):
    """PyTorch's own count for a model with unfused attention, forward and in training."""
    for training in (True, False):
        found = flops_per_token(config, training)
        expected = oracle.flops(settings, training)
        situation = "training" if training else "forward"
        assert_equal(found, expected, what=f"flops_per_token ({situation})")
    default = flops_per_token(config)
    assert_equal(default, oracle.flops(settings, True), what="flops_per_token (training not given)")


def check_peak(student, rng, device="cpu"):
    """peak_memory says the largest of tensors that are made one after another.

    How large they are is only said while it runs. On a CPU, the kernel must have seen it too.
    """
    for _ in range(2):
        sizes = [int(size) * MEGABYTE for size in rng.integers((3, LARGE, 1), (9, LARGE + 9, 3))]
        function = allocating_function(student, sizes, device)
        found, added = resident_peak(student, partial(student.timing.peak_memory, function, device))
        check(type(found) is int, f"peak_memory must return an int, but it is {kind_of(found)}.")
        seen = device != "cpu" or added is None or added > SEEN * max(sizes)
        # A GPU rounds up to blocks.
        check(
            0 <= found - max(sizes) < 0.01 * MEGABYTE and seen,
            "peak_memory is not the most that was alive at a time.",
            f"Tensors of {tuple(size // MEGABYTE for size in sizes)} MB were made, each after the "
            f"last was gone; it says {found / MEGABYTE:.3f} MB.",
        )


def check_naive_attention(function, inputs, upstream, oracle):
    """naive_attention is F.scaled_dot_product_attention, causal, with its gradients."""
    shape, expected = tuple(upstream.shape), oracle.attention(*inputs)
    outputs, gradients, _ = vjp(function, inputs, [upstream])
    assert_close(first_of(outputs), expected, f"naive_attention {shape}", HEAD_AXES)
    right = oracle.attention_gradients(*inputs, upstream)
    largest = max(float(gradient.abs().max()) for gradient in right)
    for name, actual, wanted in zip("qkv", gradients, right, strict=True):
        compare_gradient(actual, wanted, largest, f"the gradient of {name} {shape}", tolerance=None)
    views = [view_of(value) for value in inputs]
    assert_close(function(*views), expected, f"naive_attention {shape}, views", HEAD_AXES)
    check_unchanged("naive_attention", function, *inputs)


def check_table(student, lengths, num_heads, d_head):
    """A row for each length; naive memory grows with its square, fused memory doesn't.

    Judged by the clock of the tests, by PyTorch's own attention and by the kernel's count.
    """
    table = partial(student.timing.scaling_table, lengths, "cpu", num_heads, d_head, repeats=3)
    seconds, (rows, added) = timed(lambda: resident_peak(student, table))
    check(
        isinstance(rows, list) and len(rows) == len(lengths),
        "scaling_table must return a list with a row for each length.",
    )
    for length, row in zip(lengths, rows, strict=True):
        check(
            isinstance(row, dict) and set(row) == set(COLUMNS),
            f"A row of scaling_table must be a dict with {', '.join(COLUMNS)}.",
        )
        check(
            all(isinstance(value, int | float) for value in row.values()),
            "The entries of a row of scaling_table must be numbers.",
        )
        check(row["length"] == length, "The rows of scaling_table are not in the order given.")
        scores, vectors = 4 * num_heads * length**2, 4 * num_heads * length * d_head
        taken = added is None or scores < LARGE * MEGABYTE or added > SEEN * scores
        check(
            scores <= row["naive_bytes"] <= 6 * scores + 10 * vectors and taken,
            "Naive attention must hold all scores of all heads in memory, but only a few times.",
            f"At length {length} they take {scores} bytes; the row says {row['naive_bytes']}.",
        )
        check(
            vectors <= row["fused_bytes"] <= 6 * vectors + MEGABYTE,
            "Fused attention must hold outputs in memory, but no matrix of scores.",
            f"At length {length} an output takes {vectors} bytes; the row says "
            f"{row['fused_bytes']}.",
        )
        both = row["naive_ms"] + row["fused_ms"]
        naive_ms, fused_ms = (SHORTEST * ms for ms in pytorchs_ms((1, num_heads, length, d_head)))
        check(
            row["naive_ms"] > naive_ms and row["fused_ms"] > fused_ms and 2 * both < 1010 * seconds,
            "The times of scaling_table can't be right: medians of 3 calls, in milliseconds.",
            f"The row says {row['naive_ms']:.4g} and {row['fused_ms']:.4g}; all took "
            f"{1000 * seconds:.4g} ms.",
        )
    needed = {row["length"]: row["naive_bytes"] for row in rows}
    for length in needed:
        if 2 * length in needed:
            grown = needed[2 * length] / needed[length]
            check(
                3.5 < grown < 4.2,
                "Naive attention's memory must grow four times when the length doubles.",
                f"From {length} to {2 * length} it grows {grown:.2f} times.",
            )


def pytorchs_ms(shape):
    """How long PyTorch's causal attention takes here, unfused and fused, each at its best."""
    q, k, v = (torch.randn(shape) for _ in "qkv")
    call = partial(F.scaled_dot_product_attention, q, k, v, is_causal=True)
    with sdpa_kernel(SDPBackend.MATH):
        unfused = best_seconds(call)
    return 1000 * unfused, 1000 * best_seconds(call)


def check_table_refused(table):
    """No lengths, and lengths below 1; a length of 1 is right."""
    check(table([1], "cpu", 1, 2, 1) is not None, "scaling_table returned None.")
    check_refused("no lengths", table, [])
    for wrong in ([0], [4, -1]):
        check_refused("a length below 1", table, wrong)


def check_time_on_gpu(time_ms, function):
    """The time by events is that which a clock sees that waits for it."""
    timing = read_timing(time_ms(function, "cuda", 3, 10), "time_ms")
    whole, _ = timed(lambda: time_ms(function, "cuda", 3, 200))
    # 13 and 203 products by the judge's clock: the difference leaves out what comes but once.
    few, _ = timed(lambda: time_ms(function, "cuda", 3, 10))
    each = 1000 * (whole - few) / 190
    check(
        0.5 * each < timing["median"] < 2 * each,
        "time_ms on a GPU is not the time of the GPU's work.",
        f"It says {timing['median']:.3f} ms; by the clock a call took {each:.3f} ms.",
        "Events must be read after torch.cuda.synchronize().",
    )


def draw_times(rng):
    """Lists of many lengths, and one that is sorted the wrong way round."""
    drawn = [rng.uniform(0.1, 9, size=count).tolist() for count in (1, 2, 3, 10, 11, 25)]
    return [*drawn, np.arange(11.0)[::-1].tolist()]
