"""The speed of assignment 6's reference, against PyTorch on one thread."""

import math
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.benchmarks.benchmark_row import Row, measure
from common.student_code.loader import load_references

D_MODEL, HEADS, D_FF, LAYERS = 128, 4, 512, 3
BATCH, LENGTH, VOCAB_SIZE = 64, 24, 60
PAD, FIRST_WORD = 0, 3
SMOOTHING = 0.1


def rows() -> Iterator[Row]:
    """A training step: masks, forward, smoothed loss, backward, clipping, Adam, in float32."""
    torch.set_num_threads(1)
    source, target = batch()
    yield measure(
        "a6: Transformer, a training step",
        training_step(*ours(*reference()), source, target),
        training_step(*theirs(), source, target),
        "the same on nn.Transformer",
        bar=1.5,
        repeats=20,
    )


def reference() -> list[ModuleType]:
    """The reference's modules, on the reference of assignment 5 and not on its stub or stand-in."""
    files = "a6_transformer.transformer", "a6_transformer.training"
    return load_references(("a5_attention", "a6_transformer"), *files)


def batch() -> tuple[Tensor, Tensor]:
    """Sources (BATCH, LENGTH), and targets with one more id: inputs and labels, shifted by one."""
    rng = torch.Generator().manual_seed(0)
    source = torch.randint(FIRST_WORD, VOCAB_SIZE, (BATCH, LENGTH), generator=rng)
    target = torch.randint(FIRST_WORD, VOCAB_SIZE, (BATCH, LENGTH + 1), generator=rng)
    return source, target


def ours(
    transformer: ModuleType, training: ModuleType
) -> tuple[nn.Module, Callable[[Tensor, Tensor], Tensor]]:
    """The reference's model and its loss."""
    sizes = {"d_model": D_MODEL, "num_heads": HEADS, "d_ff": D_FF}
    layers = {"num_encoder_layers": LAYERS, "num_decoder_layers": LAYERS}
    config = transformer.TransformerConfig(VOCAB_SIZE, VOCAB_SIZE, **sizes, **layers)

    def loss(logits: Tensor, expected: Tensor) -> Tensor:
        return training.label_smoothing_loss(logits, expected, SMOOTHING)

    return transformer.Transformer(config), loss


class Baseline(nn.Module):
    """The same model from PyTorch's own layers, with the same masks."""

    def __init__(self) -> None:
        super().__init__()
        self.source_embedding = nn.Embedding(VOCAB_SIZE, D_MODEL)
        self.target_embedding = nn.Embedding(VOCAB_SIZE, D_MODEL)
        self.positions = torch.randn(LENGTH, D_MODEL)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # norm_first excludes nested tensors
            self.transformer = nn.Transformer(
                *(D_MODEL, HEADS, LAYERS, LAYERS, D_FF),
                dropout=0.0,
                batch_first=True,
                norm_first=True,
            )
        self.output = nn.Linear(D_MODEL, VOCAB_SIZE, bias=False)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        later = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
        decoded = self.transformer(
            self.source_embedding(source) * math.sqrt(D_MODEL) + self.positions,
            self.target_embedding(target) * math.sqrt(D_MODEL) + self.positions,
            tgt_mask=later,  # True means masked here
            src_key_padding_mask=source == PAD,
            tgt_key_padding_mask=target == PAD,
            memory_key_padding_mask=source == PAD,
        )
        return self.output(decoded)


def theirs() -> tuple[nn.Module, Callable[[Tensor, Tensor], Tensor]]:
    """PyTorch's model and its loss."""

    def loss(logits: Tensor, expected: Tensor) -> Tensor:
        return F.cross_entropy(
            logits.flatten(0, 1),
            expected.flatten(),
            ignore_index=PAD,
            label_smoothing=SMOOTHING,
        )

    return Baseline(), loss


def training_step(
    model: nn.Module, loss: Callable[[Tensor, Tensor], Tensor], source: Tensor, target: Tensor
) -> Callable[[], None]:
    """One update of the model, to be called repeatedly."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)

    def run() -> None:
        optimizer.zero_grad()
        loss(model(source, target[:, :-1]), target[:, 1:]).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return run
