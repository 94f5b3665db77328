"""The speed of assignment 7's reference, on one thread at the sizes of a CPU."""

import importlib
from collections.abc import Callable, Iterator
from types import ModuleType

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.assignment import ROOT
from common.benchmark import NotMeasured, Row, measure
from common.submitted import mount, unmount
from solutions.a7_minigpt import speedrun

VOCABULARY, CONTEXT, LAYERS, HEADS, WIDTH = 65, 64, 4, 4, 128
BATCH = 32
LONG_CONTEXT = TOKENS = 256


def rows() -> Iterator[Row | NotMeasured]:
    """A training step against PyTorch's layers; generation with the cache; the speedrun."""
    torch.set_num_threads(1)
    model, training, sampling = reference()
    x, y = torch.randint(VOCABULARY, (2, BATCH, CONTEXT), generator=seeded())
    yield measure(
        f"a7: a training step on {BATCH} x {CONTEXT} tokens",
        training_step(training, model.GPT(model.GPTConfig(VOCABULARY)), x, y),
        training_step(training, Yardstick(), x, y),
        "the same on nn.TransformerEncoderLayer",
        bar=1.0,
        repeats=20,
    )
    gpt = model.GPT(model.GPTConfig(VOCABULARY, context=LONG_CONTEXT))
    yield measure(
        f"a7: generate_cached, {TOKENS} tokens",
        generation(sampling.generate_cached, gpt),
        generation(sampling.generate, gpt),
        "generate, without a cache",
        bar=0.5,
        repeats=3,
    )
    yield speedrun.benchmark()


def reference() -> tuple[ModuleType, ...]:
    """The reference's modules model, training and sampling."""
    mount({"a7_minigpt": ROOT / "solutions" / "a7_minigpt"})
    try:
        names = ("model", "training", "sampling")
        return tuple(importlib.import_module(f"assignments.a7_minigpt.{name}") for name in names)
    finally:
        unmount()


def seeded() -> torch.Generator:
    """The same random numbers in each run."""
    return torch.Generator().manual_seed(0)


class Yardstick(nn.Module):
    """The same model of PyTorch's own layers, with the same tied output."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                *(WIDTH, HEADS, 4 * WIDTH),
                dropout=0.0,
                activation="gelu",
                batch_first=True,
                norm_first=True,
            )
            for _ in range(LAYERS)
        )
        self.norm = nn.LayerNorm(WIDTH)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(CONTEXT))

    def forward(self, tokens: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Scores and loss, as the reference gives them."""
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        for layer in self.layers:
            x = layer(x, src_mask=self.mask, is_causal=True)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def training_step(training: ModuleType, model: nn.Module, x: Tensor, y: Tensor) -> Callable:
    """One update, with the reference's optimiser for both, to be run more than once."""
    optimizer = training.configure_optimizer(model.train(), 1e-4, 0.1)
    return lambda: training.train_step(model, optimizer, [(x, y)])


def generation(generate: Callable, model: nn.Module) -> Callable:
    """A text from one token on, always the same, to be written more than once."""
    prompt = torch.zeros(1, dtype=torch.int64)
    return lambda: generate(model, prompt, TOKENS, top_k=10, generator=seeded())
