"""Assignment 6, exercises 6.1, 6.2 and 6.8: layers, and what they cost.

Conventions of the whole assignment
    Sequences of vectors are tensors of shape (n, t, d): sequence, place, feature.
    Tokens are ids, int64 tensors of shape (n, t). Each row is a sequence of at least one token,
    with padding (id 0) after it where others are longer, and nowhere else.
    A source is its tokens alone. A target begins with BEGIN (id 1) and ends with END (id 2).
    Masks are of bool, True means "may be attended to", in the shapes of assignment 5: (t_q, t_k),
    (n, t_q, t_k) or (n, 1, t_k). None means that everything may be attended to. A mask of another
    shape or type is refused by assignment 5's MultiHeadAttention, with ValueError.
    A module has the parameters that its docstring lists, under these names, as named_parameters()
    gives them, and no others. Buffers are up to you. "self_attention.*" stands for the eight
    parameters of a MultiHeadAttention of that name, "norm1.*" for the two of a LayerNorm.
    First values are those that PyTorch's own layers draw, where the docstring names no others.
    A module works in the dtype of its parameters, float32 or float64 (after module.double()).
    Dropout acts in training mode only (module.train()); rate 0 means none.
    No function changes a tensor that it is given. Only train changes something: its model.
    Bad input raises ValueError. Where a check is given, it stands in the stub already: of sizes
    below 1, of vectors that are not (n, t, d_model), of ids, and of lists where tensors belong.
    What else is to be refused, the docstring says.

The attention of assignment 5 is the only one: nn.MultiheadAttention, nn.Transformer and their kin
are not allowed, nor is nn.LayerNorm.
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
    """Given: raise ValueError unless x is a tensor of floats."""
    if not isinstance(x, Tensor):
        raise ValueError(f"a tensor is needed, not a {type(x).__name__}")
    if not x.is_floating_point():
        raise ValueError(f"a tensor of floats is needed, not of {x.dtype}")


def check_vectors(x: Float[Tensor, "n t d_model"], d_model: int) -> None:
    """Given: raise ValueError unless x is a tensor of floats, (n, t, d_model)."""
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
    """A vector for each place 0 ... length - 1: d_model / 2 waves, from fast to slow.

    out[p, 2 * i] = sin(p * w_i) and out[p, 2 * i + 1] = cos(p * w_i), with the frequency
    w_i = 10000 ** (-2 * i / d_model), for i = 0 ... d_model / 2 - 1.

    Returns float64, computed in float64: the angles of far places lose digits in float32.
    """
    check_encoding(d_model, length)
    # BEGIN SOLUTION
    places = torch.arange(length, dtype=torch.float64)  # (length,)
    evens = torch.arange(0, d_model, 2, dtype=torch.float64)  # 2 * i
    angles = places[:, None] * 10000 ** (-evens / d_model)  # (length, d_model / 2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)  # (length, d_model)
    # END SOLUTION


def shift_matrix(k: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    """The matrix that moves an encoding k places on, whatever the place it starts from.

    Encodings are column vectors here: out @ encoding[p] = encoding[p + k] for every p, where
    encoding = sinusoidal_encoding(length, d_model). k may be negative or 0.
    Returns float64.
    """
    check_encoding(d_model)
    # BEGIN SOLUTION
    evens = torch.arange(0, d_model, 2)
    angles = k * 10000 ** (-evens.double() / d_model)  # (d_model / 2,)
    out = torch.zeros(d_model, d_model, dtype=torch.float64)
    # Each pair (sin, cos) is turned by its own angle: sin(a + b) = cos(b) sin(a) + sin(b) cos(a).
    out[evens, evens] = out[evens + 1, evens + 1] = angles.cos()
    out[evens, evens + 1] = angles.sin()
    out[evens + 1, evens] = -angles.sin()
    return out
    # END SOLUTION


class LearnedPositions(nn.Module):
    """A vector for each place that is learned like any weight: the other way to tell places apart.

    Parameters: weight (max_length, d_model), drawn from the standard normal distribution.
    """

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        check_sizes(max_length, d_model)
        # BEGIN SOLUTION
        self.weight = nn.Parameter(torch.randn(max_length, d_model))
        # END SOLUTION

    def forward(self, length: int) -> Float[Tensor, "length d_model"]:
        """The vectors of the places 0 ... length - 1.

        Raises ValueError for a length below 1 or above max_length: nothing is known about places
        that were never learned.
        """
        # BEGIN SOLUTION
        if not 1 <= length <= len(self.weight):
            raise ValueError(f"length must be from 1 to {len(self.weight)}, got {length}")
        return self.weight[:length]
        # END SOLUTION


# Exercise 6.2


class LayerNorm(nn.Module):
    """Bring each vector to mean 0 and variance 1, then scale and shift each of its features.

    out = (x - mean) / sqrt(variance + epsilon) * weight + bias

    The mean and the variance are those of one vector, over the last axis; any axes may come before
    it. The variance is the mean of the squared differences: it divides by d_model, not by
    d_model - 1. Take the differences before you square: the mean of the squares minus the square of
    the mean loses all its digits when the vector lies far from 0.

    Parameters: weight (d_model,), ones at first; bias (d_model,), zeros at first.
    """

    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        check_sizes(d_model)
        self.epsilon = epsilon
        # BEGIN SOLUTION
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        # END SOLUTION

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Raises ValueError if the last axis of x is not d_model long."""
        check_floats(x)
        # BEGIN SOLUTION
        if x.shape[-1:] != self.weight.shape:
            raise ValueError(f"vectors of {len(self.weight)} features needed, got {tuple(x.shape)}")
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = centred.square().mean(dim=-1, keepdim=True)  # (..., 1)
        return centred * torch.rsqrt(variance + self.epsilon) * self.weight + self.bias
        # END SOLUTION


class FeedForward(nn.Module):
    """Two dense layers on each vector by itself: linear2(dropout(relu(linear1(x)))).

    linear1 and linear2 are nn.Linear layers with bias.

    Parameters: linear1.weight (d_ff, d_model), linear1.bias (d_ff,),
        linear2.weight (d_model, d_ff), linear2.bias (d_model,).
    """

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        check_sizes(d_model, d_ff)
        self.d_model = d_model
        # BEGIN SOLUTION
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)
        # END SOLUTION

    def forward(self, x: Float[Tensor, "n t d_model"]) -> Float[Tensor, "n t d_model"]:
        """Raises ValueError for vectors of another length than d_model."""
        check_vectors(x, self.d_model)
        # BEGIN SOLUTION
        return self.linear2(self.dropout(F.relu(self.linear1(x))))
        # END SOLUTION


class FeedForwardConv(nn.Module):
    """The same, seen as two convolutions along the sequence with kernels of size 1.

    conv1 and conv2 are nn.Conv1d layers with bias, with a relu between them and without dropout.
    nn.Conv1d wants (n, features, t), so the axes change places on the way in and on the way out.

    Parameters: conv1.weight (d_ff, d_model, 1), conv1.bias (d_ff,),
        conv2.weight (d_model, d_ff, 1), conv2.bias (d_model,).
    """

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        check_sizes(d_model, d_ff)
        self.d_model = d_model
        # BEGIN SOLUTION
        self.conv1 = nn.Conv1d(d_model, d_ff, kernel_size=1)
        self.conv2 = nn.Conv1d(d_ff, d_model, kernel_size=1)
        # END SOLUTION

    def forward(self, x: Float[Tensor, "n t d_model"]) -> Float[Tensor, "n t d_model"]:
        """Raises ValueError for vectors of another length than d_model."""
        check_vectors(x, self.d_model)
        # BEGIN SOLUTION
        hidden = F.relu(self.conv1(x.transpose(1, 2)))  # (n, d_ff, t)
        return self.conv2(hidden).transpose(1, 2)
        # END SOLUTION


def from_linear(feed_forward: FeedForward) -> FeedForwardConv:
    """A new FeedForwardConv that computes what feed_forward computes (without its dropout).

    It has copies of the weights, in their dtype: changing one module doesn't change the other.
    """
    # BEGIN SOLUTION
    d_ff, d_model = feed_forward.linear1.weight.shape
    conv = FeedForwardConv(d_model, d_ff).to(feed_forward.linear1.weight.dtype)
    with torch.no_grad():
        conv.conv1.weight.copy_(feed_forward.linear1.weight[:, :, None])
        conv.conv1.bias.copy_(feed_forward.linear1.bias)
        conv.conv2.weight.copy_(feed_forward.linear2.weight[:, :, None])
        conv.conv2.bias.copy_(feed_forward.linear2.bias)
    return conv
    # END SOLUTION


# Exercise 6.8


class CountedProducts:
    """Given: does matrix products, and counts what they cost."""

    def __init__(self) -> None:
        self.multiplications = 0  # of numbers
        self.steps = 0  # that had to wait for one another

    def together(self, *pairs: tuple[Tensor, Tensor]) -> list[Tensor]:
        """a @ b for each pair (a, b) of matrices, all at the same time: one step.

        So none of them may need the result of another.
        """
        self.steps += 1
        self.multiplications += sum(a.numel() * b.shape[1] for a, b in pairs)
        return [a @ b for a, b in pairs]


def check_layer(kind: str, n: int, d: int, k: int) -> None:
    """Given: raise ValueError for a kind of layer that isn't known, or sizes that are too small."""
    if kind not in ("recurrent", "convolution", "dilated", "attention"):
        raise ValueError(f"there is no kind {kind!r} of layer")
    if n < 1 or d < 1 or k < 2:
        raise ValueError(f"n and d must be at least 1 and k at least 2, got {n}, {d}, {k}")


def complexity(kind: str, n: int, d: int, k: int = 3) -> dict[str, int]:
    """What a layer costs that turns n vectors of d features into n others, by formula.

    kind: "recurrent", "convolution", "dilated" or "attention", as described in run_layer. k is the
        size of the kernel of a convolution. The other kinds don't use it, but a k below 2 is
        refused for them too.

    Returns a dict of three ints:
        "multiplications": of numbers, in all matrix products of one layer.
        "sequential_steps": how many products of one layer must wait for one another.
        "path_length": how many steps lie between the first vector that goes in and the last one
            that comes out. Layers are stacked until that output depends on that input (at least one
            layer); path_length is the number of layers times sequential_steps. In a stack of kind
            "convolution" every layer has dilation 1. In a stack of kind "dilated", which are
            convolutions too, the layers have the dilations 1, k, k**2, ...
    All are exact, also for large sizes: no floats.
    """
    check_layer(kind, n, d, k)
    # BEGIN SOLUTION
    if kind == "recurrent":
        return {"multiplications": 2 * n * d * d, "sequential_steps": n, "path_length": n}
    if kind == "attention":
        return {"multiplications": 2 * n * n * d, "sequential_steps": 2, "path_length": 2}
    if kind == "convolution":
        layers = max(1, -(-(n - 1) // (k - 1)))  # a layer reaches k - 1 places further back
    else:
        layers, seen = 1, k
        while seen < n:  # a layer sees k times as much as the one before
            layers, seen = layers + 1, seen * k
    return {"multiplications": k * n * d * d, "sequential_steps": 1, "path_length": layers}
    # END SOLUTION


def run_layer(
    kind: str, x: Float[Tensor, "n d"], weights: tuple[Tensor, ...] = (), dilation: int = 1
) -> tuple[Float[Tensor, "n d"], int, int]:
    """Run one small layer on one sequence, with all its matrix products in CountedProducts.

    "recurrent", weights (w_x, w_h), both (d, d): out[p] = tanh(x[p] @ w_x + out[p - 1] @ w_h).
        Before the first there is a vector of zeros, and its product is done like the others. The
        two products of a place are done together.
    "convolution", weights (w,), w (k, d, d): out[p] = the sum over j = 0 ... k - 1 of
        x[p - j * dilation] @ w[j]. Before the first there are zeros, and their products are done
        like the others. All products are done together.
    "attention", no weights: out = softmax(x @ x.T / sqrt(d)) @ x, softmax over the last axis. The
        second product needs the first.

    Returns (out, multiplications, steps), the last two as counted by CountedProducts.
    Raises ValueError for another kind, and, whatever the kind, for a dilation below 1. Gradients
    flow through.
    """
    check_floats(x)
    # BEGIN SOLUTION
    if dilation < 1:
        raise ValueError(f"dilation must be at least 1, got {dilation}")
    products = CountedProducts()
    n, d = x.shape
    if kind == "recurrent":
        w_x, w_h = weights
        state, states = x.new_zeros(1, d), []
        for row in x.split(1):
            from_input, from_state = products.together((row, w_x), (state, w_h))
            state = torch.tanh(from_input + from_state)  # (1, d)
            states.append(state)
        out = torch.cat(states)
    elif kind == "convolution":
        (w,) = weights
        before = (len(w) - 1) * dilation
        padded = torch.cat([x.new_zeros(before, d), x])
        starts = [before - j * dilation for j in range(len(w))]
        windows = [padded[start : start + n] for start in starts]  # k times (n, d)
        out = sum(products.together(*zip(windows, w, strict=True)))
    elif kind == "attention":
        (scores,) = products.together((x, x.T))  # (n, n)
        (out,) = products.together((torch.softmax(scores / math.sqrt(d), dim=-1), x))
    else:
        raise ValueError(f"there is no layer {kind!r}")
    return out, products.multiplications, products.steps
    # END SOLUTION


def measure(kind: str, n: int, d: int, k: int = 3) -> dict[str, int]:
    """The same dict as complexity, but measured: on runs of run_layer with random numbers.

    "multiplications" and "sequential_steps" are the counts of one layer. For "path_length", layers
    are stacked one by one until the gradient of the last output with respect to the first input is
    not all zeros. So run_layer runs at least once for each layer of the stack: tests count that.
    """
    check_layer(kind, n, d, k)
    # BEGIN SOLUTION
    rng = torch.Generator().manual_seed(0)
    shapes = {"recurrent": [(d, d), (d, d)], "attention": []}.get(kind, [(k, d, d)])
    weights = tuple(torch.randn(shape, generator=rng).double() / math.sqrt(d) for shape in shapes)
    x = torch.randn(n, d, generator=rng).double().requires_grad_()

    out, layers, reached = x, 0, False
    while not reached:
        dilation = k**layers if kind == "dilated" else 1
        layer = "convolution" if kind == "dilated" else kind
        out, multiplications, steps = run_layer(layer, out, weights, dilation)
        layers += 1
        (dx,) = torch.autograd.grad(out[-1].sum(), x, retain_graph=True)
        reached = bool(dx[0].any())
    return {
        "multiplications": multiplications,
        "sequential_steps": steps,
        "path_length": layers * steps,
    }
    # END SOLUTION
