"""Trains the LSTM of assignment 3 on the windows that the mini-GPT reads, for the experiments.

Given, and not graded.
"""

import importlib
from collections.abc import Iterable
from types import ModuleType

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from common.training.training_progress import TrainingDisplay

EMBEDDING, HIDDEN = 64, 410  # about as many weights as the mini-GPT has
PEAK, FLOOR = 5e-3, 5e-4  # of the learning rate
Curve = list[tuple[int, float]]  # tokens that were read, loss on the validation plays


def load_recurrent() -> tuple[ModuleType | None, str]:
    """Your recurrent.py if it works; else None, and why."""
    try:
        module = importlib.import_module("assignments.a3_recurrent.recurrent")
        model = module.CharLM(np.random.default_rng(0), 3, 2, 2)
        ids = np.array([[0, 1]])
        module.clip_by_global_norm(model.loss_and_gradients(ids, ids)[1], 1.0)
    except ModuleNotFoundError:
        return None, "assignments/a3_recurrent/recurrent.py isn't here"
    except NotImplementedError as error:
        return None, f"assignment 3 is not written yet ({error})"
    except Exception as error:  # it isn't this assignment's business what is wrong there
        return None, f"assignment 3 raises {type(error).__name__} ({error})"
    return module, ""


def train_lstm(
    recurrent: ModuleType,
    training: ModuleType,
    texts: tuple[Tensor, Tensor],
    config: object,
    context: int,
    looks: Iterable[int],
) -> tuple[int, Curve]:
    """How many weights it has, and its loss after each of the steps in looks.

    Windows, schedule and clipping are those of the mini-GPT's config. Every window starts from the
    state of zeros, so both models see the same characters before each one.
    """
    data, validation = texts
    rng = np.random.default_rng(config.seed)
    lstm = recurrent.CharLM(rng, int(data.max()) + 1, EMBEDDING, HIDDEN)
    generator, state, curve = torch.Generator().manual_seed(config.seed), None, []

    def batch(text: Tensor, generator: torch.Generator) -> list[np.ndarray]:
        pair = training.get_batch(text, config.batch_size, context, generator)
        return [ids.numpy() for ids in pair]

    with TrainingDisplay(config.steps, title="LSTM") as display:
        for step in range(1, config.steps + 1):
            loss, gradients, _ = lstm.loss_and_gradients(*batch(data, generator))
            gradients, _ = recurrent.clip_by_global_norm(gradients, config.clip)
            rate = training.learning_rate(step, PEAK, config.warmup, config.steps, FLOOR)
            updated, state = recurrent.adam(lstm.parameters, gradients, state, rate)
            lstm.parameters.update(updated)
            display.step(loss=loss)
            if step in looks:
                fresh = torch.Generator().manual_seed(config.seed)
                pairs = [batch(validation, fresh) for _ in range(config.evaluate_batches)]
                tokens = step * config.batch_size * context
                curve.append((tokens, float(np.mean([batch_loss(lstm, *pair) for pair in pairs]))))
    return sum(array.size for array in lstm.parameters.values()), curve


def batch_loss(lstm: object, x: np.ndarray, y: np.ndarray) -> float:
    """The mean loss over a batch."""
    logits = torch.from_numpy(lstm.forward(x)[0]).flatten(0, 1)
    return float(F.cross_entropy(logits, torch.from_numpy(y).flatten()))
