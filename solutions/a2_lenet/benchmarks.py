"""The speed of assignment 2's reference, against PyTorch on one thread."""

from collections.abc import Callable, Iterator
from types import ModuleType

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from autograder.benchmarks.benchmark_row import Row, measure
from common.data import load_mnist
from common.student_code.loader import load_references

BATCH = 32
RATE = 0.002


def rows() -> Iterator[Row]:
    """One epoch of the LeNet over 4,000 images, in float32, with Adam."""
    torch.set_num_threads(1)
    mnist = load_mnist()
    order = np.random.default_rng(0).permutation(len(mnist.train_images))
    batches = np.split(order, range(BATCH, len(order), BATCH))
    yield measure(
        "a2: LeNet, an epoch",
        numpy_epoch(reference(), mnist.train_images, mnist.train_labels, batches),
        torch_epoch(mnist.train_images, mnist.train_labels, batches),
        "the same in PyTorch",
        bar=6,
        repeats=2,
    )


def reference() -> ModuleType:
    """The reference on the reference of assignment 1: not on its stub, nor on the stand-in."""
    (module,) = load_references(("a1_convolution", "a2_lenet"), "a2_lenet.lenet")
    return module


def numpy_epoch(
    lenet: ModuleType, images: np.ndarray, labels: np.ndarray, batches: list[np.ndarray]
) -> Callable[[], None]:
    """An epoch of ours, to be run more than once."""
    model = lenet.LeNet(np.random.default_rng(0))

    def run() -> None:
        state = None
        for batch in batches:
            _, gradients = model.loss_and_gradients(images[batch], labels[batch])
            model.parameters, state = lenet.adam(model.parameters, gradients, state, RATE)

    return run


def torch_epoch(
    images: np.ndarray, labels: np.ndarray, batches: list[np.ndarray]
) -> Callable[[], None]:
    """The same epoch in PyTorch, to be run more than once."""
    x, y = torch.from_numpy(images), torch.from_numpy(labels)
    indices = [torch.from_numpy(batch) for batch in batches]
    model = nn.Sequential(
        *(nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10)),
    )

    def run() -> None:
        optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
        for batch in indices:
            optimizer.zero_grad()
            F.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()

    return run
