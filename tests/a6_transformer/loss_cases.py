"""How the tests of exercise 6.6 check the loss and the learning rate."""

import math

import torch

from common.testing.checks import check_float, check_refused
from common.testing.compare import assert_close, check
from common.testing.remote.torch_modules import vjp
from tests.a6_transformer.cases import draw_vectors


def draw_targets(rng, vocabulary, lengths, width):
    """Ids from 1 on, and padding after each sequence; a length of 0 is all padding."""
    targets = torch.zeros(len(lengths), width, dtype=torch.int64)
    for row, length in zip(targets, lengths, strict=True):
        row[:length] = torch.from_numpy(rng.integers(1, vocabulary, size=length))
    return targets


def check_loss(student, oracle, logits, targets, *, smoothing, situation, factor=1.7):
    """Loss and gradient are those of F.cross_entropy; None leaves the smoothing out."""
    arguments = (logits, targets) if smoothing is None else (logits, targets, smoothing)
    loss, gradient = oracle.smoothed_loss(logits, targets, 0.1 if smoothing is None else smoothing)
    upstream = torch.tensor(factor, dtype=logits.dtype)
    outputs, gradients, _ = vjp(student.label_smoothing_loss, arguments, [upstream])
    assert_close(outputs[0], loss, what=f"the loss ({situation})")
    axes = ("sequence", "place", "id")
    what = f"the gradient of the logits ({situation})"
    assert_close(gradients[0], factor * gradient, what=what, axes=axes)


def check_nothing_but_padding(student, rng, shape, dtype=torch.float64):
    """Where all targets are padding, the loss is 0, and so is its gradient."""
    logits, targets = draw_vectors(rng, *shape, dtype=dtype), torch.zeros(shape[:2]).long()
    upstream = torch.tensor(1.0, dtype=dtype)
    outputs, gradients, _ = vjp(student.label_smoothing_loss, (logits, targets), [upstream])
    zero = torch.zeros((), dtype=dtype)
    assert_close(outputs[0], zero, what="the loss (nothing but padding)")
    what = "the gradient of the logits (nothing but padding)"
    assert_close(gradients[0], torch.zeros_like(logits), what=what)


def check_loss_refuses(student, logits, targets):
    """Smoothings that make no sense raise ValueError; 0 and one just below 1 don't."""
    loss = student.label_smoothing_loss
    for smoothing in (0.0, 0.999):
        check(loss(logits, targets, smoothing) is not None, "label_smoothing_loss returned None.")
    for smoothing in (-0.1, 1.0, 1.5):
        check_refused("a smoothing that is not from 0 to 1", loss, logits, targets, smoothing)
    check_refused("logits in a list", loss, logits.tolist(), targets)
    check_refused("targets in a list", loss, logits, targets.tolist())


def rate_of(step, d_model, warmup):
    """The learning rate in another form: the smaller of two is 1 over the larger of two."""
    return 1 / math.sqrt(d_model * max(step, warmup**3 / step**2))


def check_rates(student, d_model, warmup, steps):
    """Up in a straight line, then down with the root of the step."""
    for step in steps:
        rate = student.noam_rate(step, d_model, warmup)
        check_float(rate, "the learning rate")
        assert_close(rate, rate_of(step, d_model, warmup), what="the learning rate")
