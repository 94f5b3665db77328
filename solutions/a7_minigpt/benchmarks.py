"""The speed of assignment 7's reference, on one thread at the sizes of a CPU."""

from collections.abc import Callable, Iterator

import torch
from torch import nn

from autograder.benchmarks.benchmark_row import NotMeasured, Row, measure
from autograder.timing.baseline_gpt import LEARNING_RATE, SIZES, WEIGHT_DECAY, BaselineGPT, Trainer
from common.student_code.loader import load_references
from solutions.a7_minigpt import speedrun

NAME = "a7_minigpt"
SIZE = SIZES["cpu"]
BATCH = 32
LONG_CONTEXT = TOKENS = 256


def rows() -> Iterator[Row | NotMeasured]:
    """A training step against PyTorch's layers; generation with the cache; the speedrun."""
    torch.set_num_threads(1)
    files = ("model", "training", "sampling")
    model, training, sampling = load_references([NAME], *(f"{NAME}.{file}" for file in files))
    x, y = torch.randint(SIZE.vocabulary, (2, BATCH, SIZE.context), generator=seeded())
    gpt, baseline = model.GPT(model.GPTConfig(SIZE.vocabulary)), Trainer(BaselineGPT(SIZE), False)
    optimizer = training.configure_optimizer(gpt.train(), LEARNING_RATE, WEIGHT_DECAY)
    yield measure(
        f"a7: a training step on {BATCH} x {SIZE.context} tokens",
        lambda: training.train_step(gpt, optimizer, [(x, y)]),
        lambda: baseline.step([(x, y)]),
        "the same on nn.TransformerEncoderLayer",
        bar=1.0,
        repeats=20,
    )
    writer = model.GPT(model.GPTConfig(SIZE.vocabulary, context=LONG_CONTEXT))
    yield measure(
        f"a7: generate_cached, {TOKENS} tokens",
        generation(sampling.generate_cached, writer),
        generation(sampling.generate, writer),
        "generate, without a cache",
        bar=0.5,
        repeats=3,
    )
    yield speedrun.benchmark()


def seeded() -> torch.Generator:
    """The same random numbers in each run."""
    return torch.Generator().manual_seed(0)


def generation(generate: Callable, model: nn.Module) -> Callable:
    """A text from one token on, always the same, to be written more than once."""
    prompt = torch.zeros(1, dtype=torch.int64)
    return lambda: generate(model, prompt, TOKENS, top_k=10, generator=seeded())
