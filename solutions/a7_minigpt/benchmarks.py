"""The speed of assignment 7's reference, on one thread with the sizes for a CPU."""

import math
from collections.abc import Callable, Iterator

import torch
from torch import nn

from autograder.benchmarks.benchmark_row import NotMeasured, Row, measure
from autograder.speedrun.race import race_alone
from autograder.speedrun.speedrun_training import TARGET
from autograder.timing.baseline_gpt import LEARNING_RATE, SIZES, WEIGHT_DECAY, BaselineGPT, Trainer
from common.data import Text
from common.errors import CourseError
from common.student_code.loader import load_references

NAME = "a7_minigpt"
SIZE = SIZES["cpu"]
BATCH = 32
LONG_CONTEXT = TOKENS = 256


def rows() -> Iterator[Row | NotMeasured]:
    """A training step against PyTorch's layers; generation with the cache; the speedrun."""
    torch.set_num_threads(1)
    files = ("model", "training", "sampling")
    model, training, sampling = load_references([NAME], *(f"{NAME}.{file}" for file in files))
    x, y = torch.randint(SIZE.vocab_size, (2, BATCH, SIZE.context_length), generator=seeded())
    gpt, baseline = model.GPT(model.GPTConfig(SIZE.vocab_size)), Trainer(BaselineGPT(SIZE), False)
    optimizer = training.configure_optimizer(gpt.train(), LEARNING_RATE, WEIGHT_DECAY)
    yield measure(
        f"a7: a training step on {BATCH} x {SIZE.context_length} tokens",
        lambda: training.train_step(gpt, optimizer, [(x, y)]),
        lambda: baseline.step([(x, y)]),
        "the same on nn.TransformerEncoderLayer",
        bar=1.0,
        repeats=20,
    )
    writer = model.GPT(model.GPTConfig(SIZE.vocab_size, context_length=LONG_CONTEXT))
    yield measure(
        f"a7: generate_cached, {TOKENS} tokens",
        generation(sampling.generate_cached, writer),
        generation(sampling.generate, writer),
        "generate, without a cache",
        bar=0.5,
        repeats=3,
    )
    yield speedrun_row()


def speedrun_row(text: Text | None = None) -> Row | NotMeasured:
    """The speedrun's time to its target, against nanoGPT's recipe."""
    name = f"a7: speedrun to a validation loss of {TARGET}"
    try:
        nanogpt, ours = race_alone(text)
    except CourseError as error:
        return NotMeasured(name, str(error))
    return Row(
        name,
        "nanoGPT's recipe, until it is there or ends",
        ours.reached.seconds if ours.reached else math.inf,
        nanogpt.reached.seconds if nanogpt.reached else nanogpt.seconds,
        bar=1 / 3,
    )


def seeded() -> torch.Generator:
    """The same random numbers in each run."""
    return torch.Generator().manual_seed(0)


def generation(generate: Callable, model: nn.Module) -> Callable:
    """A function that generates the same text from one token each time."""
    prompt = torch.zeros(1, dtype=torch.int64)
    return lambda: generate(model, prompt, TOKENS, top_k=10, generator=seeded())
