"""Stand-in for the NumPy part of assignment 5, on PyTorch and its autograd."""

import math
from typing import Any

import numpy as np
import torch

ATEN = torch.ops.aten


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """The softmax along an axis; zeros where there is nothing but -inf."""
    check_axis(x, axis)
    return ATEN._safe_softmax(tensor(x), axis).numpy()


def softmax_backward(dout: np.ndarray, out: np.ndarray, axis: int = -1) -> np.ndarray:
    """The gradient of x, from the softmax of x."""
    check_axis(out, axis)
    check_gradient(dout, out.shape)
    given = tensor(out)
    return ATEN._softmax_backward_data(tensor(dout), given, axis, given.dtype).numpy()


def attention_loops(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Attention for one sequence, without a mask."""
    if q.ndim != 2:
        raise ValueError(f"q must be (t_q, d_k), got shape {q.shape}")
    out, weights, _ = attention_forward(q, k, v)
    return out, weights


def attention_forward(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, Any]:
    """Attention for any leading axes, with a mask that is True where a query may attend."""
    check_attention(q, k, v, mask)
    inputs = [tensor(array).requires_grad_() for array in (q, k, v)]
    queries, keys, values = inputs
    scores = torch.matmul(queries, keys.mT).div(math.sqrt(q.shape[-1]))
    if mask is not None:
        scores = torch.where(tensor(mask), scores, -math.inf)
    weights = torch._safe_softmax(scores, dim=-1)
    out = torch.matmul(weights, values)
    return out.detach().numpy().copy(), weights.detach().numpy().copy(), (inputs, out)


def attention_backward(dout: np.ndarray, cache: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The gradients of q, k and v."""
    inputs, out = cache
    check_gradient(dout, tuple(out.shape))
    gradients = torch.autograd.grad(out, inputs, tensor(dout), retain_graph=True)
    dq, dk, dv = (gradient.numpy() for gradient in gradients)
    return dq, dk, dv


def check_axis(x: np.ndarray, axis: int) -> None:
    """A ValueError unless x has that axis and isn't empty."""
    if not -x.ndim <= axis < x.ndim or x.size == 0:
        raise ValueError(f"axis must be an axis of x, which must not be empty: {axis}, {x.shape}")


def check_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None) -> None:
    """A ValueError unless q, k and v fit together, and the mask to the weights."""
    shapes = f"q {q.shape}, k {k.shape}, v {v.shape}"
    if min(q.ndim, k.ndim, v.ndim) < 2 or 0 in (q.size, k.size, v.size):
        raise ValueError(f"q, k and v must have two axes or more, none of length 0: {shapes}")
    *front, t_q, d_k = q.shape
    t_k = k.shape[-2]
    if k.shape != (*front, t_k, d_k) or v.shape[:-1] != (*front, t_k):
        raise ValueError(f"q, k and v must fit together: {shapes}")
    if mask is None:
        return
    if not isinstance(mask, np.ndarray):
        raise ValueError(f"mask must be a boolean array, got {type(mask).__name__}")
    if mask.dtype != np.bool_:
        raise ValueError(f"mask must be boolean, got {mask.dtype}")
    np.broadcast_to(mask, (*front, t_q, t_k))  # raises ValueError where the mask doesn't fit


def check_gradient(dout: np.ndarray, shape: tuple[int, ...]) -> None:
    """A ValueError unless dout has this shape, the shape of out."""
    if dout.shape != shape:
        raise ValueError(f"dout must have the shape of out, {shape}, got {dout.shape}")


def tensor(array: np.ndarray) -> torch.Tensor:
    """A copy of an array as a tensor: changes to one don't show in the other."""
    return torch.from_numpy(np.array(array, order="C"))
