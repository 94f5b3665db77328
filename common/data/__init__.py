"""The course's data: handwritten digits, Shakespeare and number words."""

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
]
