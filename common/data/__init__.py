"""The course's datasets: MNIST digits, Shakespeare, number words."""

from collections.abc import Callable, Iterable

from common.data import cache
from common.data.mnist import Mnist, load_mnist
from common.data.numbers import Numbers, Pairs, Vocabulary, load_numbers
from common.data.shakespeare import load_shakespeare
from common.data.text import Text

__all__ = [
    "Mnist",
    "Numbers",
    "Pairs",
    "Text",
    "Vocabulary",
    "load_mnist",
    "load_numbers",
    "load_shakespeare",
    "preload",
]

LOADERS: dict[str, Callable[[], object]] = {
    "mnist": load_mnist,
    "numbers": load_numbers,
    "shakespeare": load_shakespeare,
}


def preload(names: Iterable[str]) -> None:
    """Load data now and hold it in memory, so that forks of this process needn't make it."""
    cache.hold_in_memory()
    for name in names:
        LOADERS[name]()
