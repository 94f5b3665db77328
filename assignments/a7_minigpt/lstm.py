"""Trains the LSTM of assignment 3 on the mini-GPT's windows, for the experiments.

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

EMBEDDING_SIZE, HIDDEN_SIZE = 64, 410  # about as many parameters as the mini-GPT has
MAX_LR, MIN_LR = 5e-3, 5e-4
Curve = list[tuple[int, float]]  # tokens read, validation loss


def load_recurrent() -> tuple[ModuleType | None, str]:
    """Your recurrent.py if it works; otherwise None, and the reason."""
    try:
        module = importlib.import_module("assignments.a3_recurrent.recurrent")
        model = module.CharLM(np.random.default_rng(0), 3, 2, 2)
        ids = np.array([[0, 1]])
        module.clip_by_global_norm(model.loss_and_gradients(ids, ids)[1], 1.0)
    except ModuleNotFoundError:
        return None, "assignments/a3_recurrent/recurrent.py is missing"
    except NotImplementedError as error:
        return None, f"assignment 3 is not written yet ({error})"
    except Exception as error:  # whatever is wrong there isn't this assignment's concern
        return None, f"assignment 3 raises {type(error).__name__} ({error})"
    return module, ""


def train_lstm(
    recurrent: ModuleType,
    training: ModuleType,
    texts: tuple[Tensor, Tensor],
    config: object,
    context_length: int,
    measured_steps: Iterable[int],
) -> tuple[int, Curve]:
    """The number of its parameters, and its validation loss after each of the measured steps.

    Windows, schedule and clipping are those of the mini-GPT's config. Every window starts from the
    zero state, so both models see the same characters before each one.
    """
    data, validation = texts
    rng = np.random.default_rng(config.seed)
    lstm = recurrent.CharLM(rng, int(data.max()) + 1, EMBEDDING_SIZE, HIDDEN_SIZE)
    generator, state, curve = torch.Generator().manual_seed(config.seed), None, []

    def batch(text: Tensor, generator: torch.Generator) -> list[np.ndarray]:
        pair = training.get_batch(text, config.batch_size, context_length, generator)
        return [ids.numpy() for ids in pair]

    with TrainingDisplay(config.steps, title="LSTM") as display:
        for step in range(1, config.steps + 1):
            loss, gradients, _ = lstm.loss_and_gradients(*batch(data, generator))
            gradients, _ = recurrent.clip_by_global_norm(gradients, config.max_norm)
            rate = training.learning_rate_at(step, MAX_LR, config.warmup, config.steps, MIN_LR)
            updated, state = recurrent.adam(lstm.parameters, gradients, state, rate)
            lstm.parameters.update(updated)
            display.step(loss=loss)
            if step in measured_steps:
                fixed = torch.Generator().manual_seed(config.seed)
                pairs = [batch(validation, fixed) for _ in range(config.evaluate_batches)]
                tokens = step * config.batch_size * context_length
                curve.append((tokens, float(np.mean([batch_loss(lstm, *pair) for pair in pairs]))))
    return sum(array.size for array in lstm.parameters.values()), curve


def batch_loss(lstm: object, x: np.ndarray, y: np.ndarray) -> float:
    """The mean loss over a batch."""
    logits = torch.from_numpy(lstm.forward(x)[0]).flatten(0, 1)
    return float(F.cross_entropy(logits, torch.from_numpy(y).flatten()))
