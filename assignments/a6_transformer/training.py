"""Assignment 6, exercises 6.6 and 6.7: the loss, the learning rate and the training loop.

The conventions at the top of layers.py hold here too.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from assignments.a6_transformer.layers import check_floats
from assignments.a6_transformer.transformer import (
    PAD,
    Transformer,
    check_ids,
    check_padding,
    check_tokens,
    trim,
)
from common.training.training_progress import TrainingDisplay

# Exercise 6.6


def label_smoothing_loss(
    logits: Float[Tensor, "n t v"], targets: Int[Tensor, "n t"], label_smoothing: float = 0.1
) -> Float[Tensor, ""]:
    """Cross-entropy against smoothed targets: the mean over all positions that are not padding.

    At each position the right id gets probability 1 - label_smoothing, and then all v ids, the
    right one and padding included, get label_smoothing / v more. The loss of a position is -(the
    sum over ids of its target probability times the log-softmax of its logit), in nats.

    Positions whose target is PAD don't count, neither in the sum nor in the number that it is
    divided by. The mean is over all other positions of the batch together: it is not a mean of the
    sequences' means. If all targets are padding, the loss is 0 and so is its gradient. Stable for
    large logits, up to 1e5 and down to -1e5.

    Returns a scalar tensor. F.log_softmax is allowed, F.cross_entropy is not.
    Raises ValueError unless 0 <= label_smoothing < 1.
    """
    check_floats(logits)
    check_ids(targets)
    if logits.ndim != 3 or targets.shape != logits.shape[:2]:
        raise ValueError(
            "logits must be (n, t, v) and targets (n, t), "
            f"got {tuple(logits.shape)} and {tuple(targets.shape)}"
        )
    check_tokens(targets, logits.shape[2])
    raise NotImplementedError("label_smoothing_loss: exercise 6.6 is yours to write")


def noam_rate(step: int, d_model: int, warmup: int) -> float:
    """The learning rate of a step: it rises linearly for `warmup` steps, then decays.

    d_model**-0.5 * min(step**-0.5, step * warmup**-1.5), for step 1, 2, ...

    Returns a Python float. Raises ValueError if step, d_model or warmup is below 1.
    """
    raise NotImplementedError("noam_rate: exercise 6.6 is yours to write")


# Exercise 6.7


@dataclass(frozen=True)
class TrainConfig:
    """Given: how to train. Raises ValueError for invalid settings."""

    steps: int = 450  # updates in total
    batch_size: int = 32  # pairs
    warmup: int = 100  # steps
    factor: float = 0.5  # the learning rate is factor * noam_rate
    label_smoothing: float = 0.1
    max_norm: float = 1.0  # gradients are clipped to this norm, over all parameters together
    seed: int = 0  # of batches and dropout: the same seed gives the same run

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "warmup"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("factor", "max_norm"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        if not 0 <= self.label_smoothing < 1:
            raise ValueError(
                f"label_smoothing must be at least 0 and below 1, got {self.label_smoothing}"
            )


def train(
    model: Transformer, source: Int[Tensor, "n s"], target: Int[Tensor, "n t"], config: TrainConfig
) -> dict[str, list[float]]:
    """Fit a model to pairs of sources and targets, by teacher forcing.

    A batch is config.batch_size pairs (or all, if there are fewer), trimmed. Each pass over the
    pairs (an epoch) takes them in a new random order, each pair at most once; pairs left over at
    its end, too few for a batch, are not used. Of the batch's trimmed targets, the model reads
    target[:, :-1], and label_smoothing_loss compares the logits with target[:, 1:]: every position
    predicts the next token.

    Each step clips the gradients (nn.utils.clip_grad_norm_) and updates the parameters by
    torch.optim.Adam with betas (0.9, 0.98), eps 1e-9 and the learning rate
    config.factor * noam_rate(step, d_model, config.warmup), for step 1 ... config.steps.

    Seeds PyTorch with config.seed first (torch.manual_seed), so that the same model, pairs and
    config give the same run. Trains in training mode, and leaves the model in evaluation mode
    (model.eval()).

    Shows its progress: `with TrainingDisplay(config.steps, title="Transformer") as display`, then
    `display.step(loss=...)` after each step.

    Returns history, a dict of lists with one float per step: "loss", that of the step's batch, from
    before the step's update, and "learning_rate".
    A new model with one encoder layer and one decoder layer, trained on the training set of
    the number words (common/data/numbers.py) with TrainConfig(steps=250, warmup=40, factor=0.35)
    and otherwise the defaults of TransformerConfig and TrainConfig, translates at least 90 % of
    unseen numbers exactly, with greedy_decode.
    Raises ValueError when source and target differ in number, and as soon as a loss is not finite:
    the message then says "step N", with N the number of that step, from 1 on. Which weights and
    which mode the model has after an error is up to you.
    """
    check_padding(source)
    check_padding(target)
    if len(source) != len(target):
        raise ValueError(
            f"source and target must have the same n, got {len(source)} and {len(target)}"
        )
    raise NotImplementedError("train: exercise 6.7 is yours to write")
