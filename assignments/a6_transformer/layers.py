"""Assignment 6, exercises 6.1, 6.2 and 6.8: positions, layer norm, feed-forward, and layer costs.

Conventions of layers.py, transformer.py, training.py and decoding.py:

- Vectors: float tensors (n, t, d_model), the axes being sequence, position and feature.
- Tokens: ids, int64 tensors (n, t). A row holds one sequence of at least one token, then PAD (id 0)
  up to the length of the longest, and PAD nowhere else. A source is its tokens alone. A target
  starts with BOS (id 1) and ends with EOS (id 2).
- Masks: boolean, True means "may be attended to", in the shapes of assignment 5: (t_q, t_k),
  (n, t_q, t_k) or (n, 1, t_k). None means no mask. Assignment 5's MultiHeadAttention raises
  ValueError for a mask of another shape or dtype.
- Parameters: a module has those that its docstring lists, under these names (named_parameters()),
  and no others. "self_attention.*" stands for the eight parameters of a MultiHeadAttention,
  "norm1.*" for the two of a LayerNorm. Buffers are up to you.
- Initialization: that of PyTorch's own layers, unless the docstring says otherwise.
- dtype: a module computes in the dtype of its parameters, float32 or float64 (module.double()).
- Dropout: in training mode only (module.train()). Rate 0 means none.
- Side effects: no function changes a tensor that it is given. Only train changes a model.
- Errors: bad input raises ValueError. The given checks cover sizes below 1, vectors that are not
  (n, t, d_model), ids, and lists instead of tensors. The docstrings say what else to refuse.
- Not allowed: nn.LayerNorm, nn.MultiheadAttention, nn.Transformer and its layers. All attention is
  assignment 5's.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


def check_sizes(*sizes: int) -> None:
    """Given: raise ValueError for a size below 1."""
    if min(sizes) < 1:
        raise ValueError(f"all sizes must be at least 1, got {sizes}")


def check_floats(x: Float[Tensor, "..."]) -> None:
    """Given: raise ValueError unless x is a float tensor."""
    if not isinstance(x, Tensor):
        raise ValueError(f"expected a tensor, got {type(x).__name__}")
    if not x.is_floating_point():
        raise ValueError(f"expected a float tensor, got {x.dtype}")


def check_vectors(x: Float[Tensor, "n t d_model"], d_model: int) -> None:
    """Given: raise ValueError unless x is a float tensor (n, t, d_model)."""
    check_floats(x)
    if x.ndim != 3 or x.shape[2] != d_model:
        raise ValueError(f"vectors must be (n, t, {d_model}), got {tuple(x.shape)}")


# Exercise 6.1


def check_encoding(d_model: int, length: int = 1) -> None:
    """Given: raise ValueError for an odd d_model, one below 2, or a length below 1."""
    if d_model < 2 or d_model % 2:
        raise ValueError(
            f"d_model must be even and at least 2 for sines and cosines, got {d_model}"
        )
    if length < 1:
        raise ValueError(f"length must be at least 1, got {length}")


def sinusoidal_encoding(length: int, d_model: int) -> Float[Tensor, "length d_model"]:
    """The positional encodings of positions 0 ... length - 1: d_model / 2 waves, fast to slow.

    out[p, 2 * i] = sin(p * w_i) and out[p, 2 * i + 1] = cos(p * w_i), with the frequency
    w_i = 10000 ** (-2 * i / d_model), for i = 0 ... d_model / 2 - 1.

    Returns float64, computed in float64: in float32, the angles of large positions lose digits.
    """
    check_encoding(d_model, length)
    raise NotImplementedError("sinusoidal_encoding: exercise 6.1 is yours to write")


def shift_matrix(k: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    """The matrix that shifts an encoding by k positions, whatever position it starts from.

    Encodings are column vectors here: out @ encoding[p] = encoding[p + k] for every p, where
    encoding = sinusoidal_encoding(length, d_model). k may be negative or 0.
    Returns float64.
    """
    check_encoding(d_model)
    raise NotImplementedError("shift_matrix: exercise 6.1 is yours to write")


class LearnedPositions(nn.Module):
    """A learned positional embedding: one vector per position, trained like any parameter.

    Parameters: weight (max_length, d_model), initialized from the standard normal distribution.
    """

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        check_sizes(max_length, d_model)
        raise NotImplementedError("LearnedPositions.__init__: exercise 6.1 is yours to write")

    def forward(self, length: int) -> Float[Tensor, "length d_model"]:
        """The vectors of positions 0 ... length - 1.

        Raises ValueError for a length below 1 or above max_length: the table has no vectors for
        later positions.
        """
        raise NotImplementedError("LearnedPositions.forward: exercise 6.1 is yours to write")


# Exercise 6.2


class LayerNorm(nn.Module):
    """Normalize each vector to mean 0 and variance 1 (but for eps), then scale and shift features.

    out = (x - mean) / sqrt(variance + eps) * weight + bias

    The mean and the variance are those of one vector, over the last axis; x may have any number of
    axes before it. The variance is the mean of the squared differences: it divides by d_model, not
    by d_model - 1. Subtract the mean before you square: for a vector far from 0, the mean of the
    squares minus the square of the mean loses all its digits.

    Parameters: weight (d_model,), initialized to ones; bias (d_model,), initialized to zeros.
    """

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        check_sizes(d_model)
        self.eps = eps
        raise NotImplementedError("LayerNorm.__init__: exercise 6.2 is yours to write")

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Raises ValueError if the last axis of x does not have d_model features."""
        check_floats(x)
        raise NotImplementedError("LayerNorm.forward: exercise 6.2 is yours to write")


class FeedForward(nn.Module):
    """Two linear layers, applied to each position on its own: linear2(dropout(relu(linear1(x)))).

    linear1 and linear2 are nn.Linear layers with bias.

    Parameters: linear1.weight (d_ff, d_model), linear1.bias (d_ff,),
        linear2.weight (d_model, d_ff), linear2.bias (d_model,).
    """

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        check_sizes(d_model, d_ff)
        self.d_model = d_model
        raise NotImplementedError("FeedForward.__init__: exercise 6.2 is yours to write")

    def forward(self, x: Float[Tensor, "n t d_model"]) -> Float[Tensor, "n t d_model"]:
        """Raises ValueError unless x is (n, t, d_model)."""
        check_vectors(x, self.d_model)
        raise NotImplementedError("FeedForward.forward: exercise 6.2 is yours to write")


class FeedForwardConv(nn.Module):
    """The same function as two convolutions along the sequence with kernel_size 1.

    conv1 and conv2 are nn.Conv1d layers with bias, with a relu between them and without dropout.
    nn.Conv1d expects (n, features, t), so transpose on the way in and on the way out.

    Parameters: conv1.weight (d_ff, d_model, 1), conv1.bias (d_ff,),
        conv2.weight (d_model, d_ff, 1), conv2.bias (d_model,).
    """

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        check_sizes(d_model, d_ff)
        self.d_model = d_model
        raise NotImplementedError("FeedForwardConv.__init__: exercise 6.2 is yours to write")

    def forward(self, x: Float[Tensor, "n t d_model"]) -> Float[Tensor, "n t d_model"]:
        """Raises ValueError unless x is (n, t, d_model)."""
        check_vectors(x, self.d_model)
        raise NotImplementedError("FeedForwardConv.forward: exercise 6.2 is yours to write")


def from_linear(feed_forward: FeedForward) -> FeedForwardConv:
    """A new FeedForwardConv that computes what feed_forward computes (without its dropout).

    It has trainable copies of the parameters, in their dtype: changing one module doesn't change
    the other. The mode of the new module is up to you.
    """
    raise NotImplementedError("from_linear: exercise 6.2 is yours to write")


# Exercise 6.8


class MatmulCounter:
    """Given: computes matrix products and counts their cost."""

    def __init__(self) -> None:
        self.multiplications = 0  # of scalars
        self.sequential_steps = 0  # that had to wait for one another

    def matmul(self, *pairs: tuple[Tensor, Tensor]) -> list[Tensor]:
        """a @ b for each pair (a, b) of matrices, all in parallel: one step.

        So no pair may need the result of another.
        """
        self.sequential_steps += 1
        self.multiplications += sum(a.numel() * b.shape[1] for a, b in pairs)
        return [a @ b for a, b in pairs]


def check_layer(kind: str, n: int, d: int, k: int) -> None:
    """Given: raise ValueError for an unknown kind of layer, or for sizes that are too small."""
    if kind not in ("recurrent", "convolution", "dilated", "attention"):
        raise ValueError(f"kind must be recurrent, convolution, dilated or attention, got {kind!r}")
    if n < 1 or d < 1 or k < 2:
        raise ValueError(f"n and d must be at least 1 and k at least 2, got {n}, {d}, {k}")


def complexity(kind: str, n: int, d: int, k: int = 3) -> dict[str, int]:
    """The cost of a layer that maps n vectors of d features to n others, by formula.

    kind: "recurrent", "convolution" or "attention", as described in run_layer, or "dilated": one of
        a stack of convolutions with growing dilations (see "path_length"). k is the kernel size of
        a convolution. The other kinds don't use it, but a k below 2 raises ValueError for them too.

    Returns a dict of three ints:
        "multiplications": of scalars, in all matrix products of one layer.
        "sequential_steps": the length of the longest chain of products of one layer in which each
            must wait for the one before.
        "path_length": how many steps lie between the first input vector and the last output
            vector. Layers are stacked until that output depends on that input (at least one
            layer); path_length is the number of layers times sequential_steps. In a stack of kind
            "convolution" every layer has dilation 1. In a stack of kind "dilated", which are
            convolutions too, the layers have the dilations 1, k, k**2, ...
    All are exact, also for large sizes: no floats.
    """
    check_layer(kind, n, d, k)
    raise NotImplementedError("complexity: exercise 6.8 is yours to write")


def run_layer(
    kind: str, x: Float[Tensor, "n d"], weights: tuple[Tensor, ...] = (), dilation: int = 1
) -> tuple[Float[Tensor, "n d"], int, int]:
    """Run one small layer on one sequence, with all its matrix products in a MatmulCounter.

    "recurrent", weights (w_x, w_h), both (d, d): out[p] = tanh(x[p] @ w_x + out[p - 1] @ w_h).
        Before position 0 stands a vector of zeros, and its product is computed like the others.
        The two products of a position run in parallel.
    "convolution", weights (w,), w (k, d, d): out[p] = the sum over j = 0 ... k - 1 of
        x[p - j * dilation] @ w[j]. Before position 0 stand zeros, and their products are computed
        like the others. All products run in parallel.
    "attention", no weights: out = softmax(x @ x.T / sqrt(d)) @ x, softmax over the last axis. The
        second product needs the first.

    Move rows by padding and slicing: a product with a shift matrix would count. Weights fit the
    kind and x; what other weights do is up to you.

    Returns (out, multiplications, sequential_steps), the last two from the MatmulCounter.
    Raises ValueError for any other kind, "dilated" too: that is "convolution" with a dilation. Also
    raises it for a dilation below 1, even if the kind doesn't use it. Gradients flow through.
    """
    check_floats(x)
    raise NotImplementedError("run_layer: exercise 6.8 is yours to write")


def measure(kind: str, n: int, d: int, k: int = 3) -> dict[str, int]:
    """The same dict as complexity, but measured: on runs of run_layer with random numbers.

    "multiplications" and "sequential_steps" are the counts of one layer. For "path_length", layers
    are stacked one by one until the gradient of the last output vector (of its sum) with respect to
    the first input vector is not all zeros. So run_layer runs at least once for each layer of the
    stack: tests count that. Mind the scale of the random numbers: in a long recurrent layer the
    gradient must not underflow to 0.
    """
    check_layer(kind, n, d, k)
    raise NotImplementedError("measure: exercise 6.8 is yours to write")
