"""Assignment 6, exercises 6.6 and 6.7: the loss, the learning rate and the training.

The conventions at the top of layers.py hold here too.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from assignments.a6_transformer.layers import check_floats
from assignments.a6_transformer.transformer import (
    PADDING,
    Transformer,
    check_ids,
    check_padding,
    check_tokens,
    trim,
)
from common.training.training_progress import TrainingDisplay

# Exercise 6.6


def label_smoothing_loss(
    logits: Float[Tensor, "n t v"], targets: Int[Tensor, "n t"], smoothing: float = 0.1
) -> Float[Tensor, ""]:
    """Cross-entropy against targets that are not quite sure: the mean over all real places.

    At each place the right id gets 1 - smoothing, and then all v ids, the right one and padding
    included, get smoothing / v more. The loss of a place is -(the sum over ids of what the id gets
    times the log-softmax of its logit), in nats.

    Places where the target is PADDING don't count, in the sum and in the number that it is divided
    by. The mean is over places, not over sequences first. If all are padding, the loss is 0 and so
    is its gradient. Stable for logits of any finite size, 1e4 too.

    Returns a tensor without axes. F.log_softmax is allowed, F.cross_entropy is not.
    Raises ValueError if smoothing is not at least 0 and below 1.
    """
    check_floats(logits)
    check_ids(targets)
    if logits.ndim != 3 or targets.shape != logits.shape[:2]:
        raise ValueError(f"logits {tuple(logits.shape)} and targets {tuple(targets.shape)} differ")
    check_tokens(targets, logits.shape[2])
    # BEGIN SOLUTION
    if not 0 <= smoothing < 1:
        raise ValueError(f"smoothing must be at least 0 and below 1, got {smoothing}")
    real = targets != PADDING  # (n, t)
    log_p = F.log_softmax(logits[real], dim=-1)  # (places, v)
    right = log_p.gather(1, targets[real][:, None])[:, 0]  # (places,)
    losses = -(1 - smoothing) * right - smoothing * log_p.mean(dim=-1)
    return losses.sum() / real.sum().clamp(min=1)
    # END SOLUTION


def noam_rate(step: int, d_model: int, warmup: int) -> float:
    """The learning rate of a step: up in a straight line for `warmup` steps, then down.

    d_model**-0.5 * min(step**-0.5, step * warmup**-1.5), for step 1, 2, ...

    Returns a Python float. Raises ValueError if step, d_model or warmup is below 1.
    """
    # BEGIN SOLUTION
    if min(step, d_model, warmup) < 1:
        raise ValueError(f"step {step}, d_model {d_model} and warmup {warmup} must be at least 1")
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    # END SOLUTION


# Exercise 6.7


class Config:
    """Given: how to train. Raises ValueError for settings that make no sense."""

    def __init__(
        self,
        steps: int = 450,
        batch_size: int = 32,
        warmup: int = 100,
        factor: float = 0.5,
        smoothing: float = 0.1,
        max_norm: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Each setting has a value that works.

        steps: weight updates in all.
        factor: the learning rate is noam_rate times this.
        max_norm: gradients are clipped to this norm, all parameters taken together.
        seed: the same seed gives the same run, another seed gives other batches.
        """
        if steps < 1 or batch_size < 1 or warmup < 1 or factor <= 0 or max_norm <= 0:
            raise ValueError(
                "steps, batch_size and warmup must be at least 1, factor and max_norm above 0, "
                f"got {steps}, {batch_size}, {warmup}, {factor}, {max_norm}"
            )
        if not 0 <= smoothing < 1:
            raise ValueError(f"smoothing must be at least 0 and below 1, got {smoothing}")
        self.steps = steps
        self.batch_size = batch_size
        self.warmup = warmup
        self.factor = float(factor)
        self.smoothing = float(smoothing)
        self.max_norm = float(max_norm)
        self.seed = seed


def train(
    model: Transformer, source: Int[Tensor, "n s"], target: Int[Tensor, "n t"], config: Config
) -> dict[str, list[float]]:
    """Fit a model to pairs of sources and targets, by teacher forcing.

    A batch is config.batch_size pairs (or all, if there are fewer), trimmed: in a new random order
    in each pass over the pairs, each pair once in a pass. What is left over at the end of a pass is
    not used. Of its targets, all but the last column go into the model, and all but the first are
    what label_smoothing_loss compares the logits with: every place is asked for the next token.

    Each step clips the gradients (nn.utils.clip_grad_norm_) and updates the weights by
    torch.optim.Adam with betas (0.9, 0.98), epsilon 1e-9 and the learning rate
    config.factor * noam_rate(step, d_model, config.warmup), for step 1 ... config.steps.

    Seeds PyTorch with config.seed first (torch.manual_seed), so that the same model, pairs and
    config give the same run. Trains in training mode, and leaves the model in evaluation mode
    (model.eval()).

    Shows its progress: `with TrainingDisplay(config.steps, title="Transformer") as display`, then
    `display.step(loss=...)` after each step.

    Returns history, a dict of lists with one float per step: "loss", that of the batch before the
    weights changed, and "learning_rate".
    A new model with one encoder layer and one decoder layer that is trained on the train part of
    the number words (common/data/numbers.py) with Config(steps=250, warmup=40, factor=0.35), all
    other settings of TransformerConfig and Config as they are given, gets at least 90 of 100
    numbers right that it has never seen, with greedy_decode.
    Raises ValueError when source and target differ in number, and as soon as a loss is not finite:
    the message then says "step N", with N the number of that step, from 1 on.
    """
    check_padding(source)
    check_padding(target)
    if len(source) != len(target):
        raise ValueError(f"there are {len(source)} sources and {len(target)} targets")
    # BEGIN SOLUTION
    torch.manual_seed(config.seed)
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9)
    size = min(config.batch_size, len(source))
    history = {"loss": [], "learning_rate": []}
    batches = []
    with TrainingDisplay(config.steps, title="Transformer") as display:
        for step in range(1, config.steps + 1):
            if not batches:  # a new pass
                order = torch.randperm(len(source))
                batches = list(order[: len(order) // size * size].split(size))
            batch = batches.pop()
            inputs, expected = trim(target[batch])[:, :-1], trim(target[batch])[:, 1:]
            logits = model(trim(source[batch]), inputs)  # (n, t - 1, v)
            loss = label_smoothing_loss(logits, expected, config.smoothing)
            if not torch.isfinite(loss):
                raise ValueError(f"the loss is {loss.item()} at step {step}: the run has diverged")

            learning_rate = config.factor * noam_rate(step, model.config.d_model, config.warmup)
            for group in optimizer.param_groups:
                group["lr"] = learning_rate
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), config.max_norm)
            optimizer.step()

            history["loss"].append(loss.item())
            history["learning_rate"].append(learning_rate)
            display.step(loss=loss.item())
    model.eval()
    return history
    # END SOLUTION
