"""The course's data: handwritten digits and Shakespeare."""

from common.data.mnist import Mnist, load_mnist
from common.data.shakespeare import load_shakespeare
from common.data.text import Text

__all__ = ["Mnist", "Text", "load_mnist", "load_shakespeare"]
