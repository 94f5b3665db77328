"""PyTorch's answers in float64, for NumPy arrays: what the tests of assignment 1 compare with."""

import numpy as np
import torch
import torch.nn.functional as F


def conv2d(x, w, b, stride=1, padding=0):
    """The output of a convolution."""
    out = F.conv2d(_tensor(x), _tensor(w), _tensor(b), _size(stride), _size(padding))
    return _array(out, _float_type(x, w, b))


def conv2d_gradients(x, w, b, dout, stride=1, padding=0):
    """dx, dw and db of a convolution, given the gradient of its output."""
    inputs = [_tensor(array).requires_grad_() for array in (x, w, b)]
    out = F.conv2d(*inputs, _size(stride), _size(padding))
    dtype = _float_type(x, w, b, dout)
    return tuple(_array(gradient, dtype) for gradient in _gradients(out, inputs, dout))


def max_pool2d(x, kernel_size, stride=None, padding=0):
    """The output of max pooling, in the type of x."""
    return _array(F.max_pool2d(_tensor(x), *_window(kernel_size, stride, padding)), x.dtype)


def max_pool2d_gradient(x, dout, kernel_size, stride=None, padding=0):
    """dx of max pooling, in the type of dout."""
    inputs = [_tensor(x).requires_grad_()]
    out = F.max_pool2d(inputs[0], *_window(kernel_size, stride, padding))
    return _array(_gradients(out, inputs, dout)[0], dout.dtype)


def avg_pool2d(x, kernel_size, stride=None, padding=0):
    """The output of average pooling, where padding counts."""
    return _array(F.avg_pool2d(_tensor(x), *_window(kernel_size, stride, padding)), _float_type(x))


def avg_pool2d_gradient(x, dout, kernel_size, stride=None, padding=0):
    """dx of average pooling, in the type of dout."""
    inputs = [_tensor(x).requires_grad_()]
    out = F.avg_pool2d(inputs[0], *_window(kernel_size, stride, padding))
    return _array(_gradients(out, inputs, dout)[0], dout.dtype)


def im2col(x, kernel_size, stride=1, padding=0):
    """Every patch as a column, in the type of x."""
    kernel_size, stride, padding = _size(kernel_size), _size(stride), _size(padding)
    return _array(F.unfold(_tensor(x), kernel_size, padding=padding, stride=stride), x.dtype)


def col2im(cols, x_shape, kernel_size, stride=1, padding=0):
    """Every column added back to its pixels, in the type of cols."""
    kernel_size, stride, padding = _size(kernel_size), _size(stride), _size(padding)
    x = F.fold(_tensor(cols), x_shape[2:], kernel_size, padding=padding, stride=stride)
    return _array(x, cols.dtype)


def _tensor(array):
    # torch takes no views with negative strides, and a copy can't be changed by anyone else.
    return torch.from_numpy(np.array(array, dtype=np.float64, order="C"))


def _array(tensor, dtype):
    return tensor.detach().numpy().astype(dtype)


def _gradients(out, inputs, dout):
    return torch.autograd.grad(out, inputs, _tensor(dout))


def _size(size):
    """A size as a pair of Python ints: torch refuses some of NumPy's."""
    return (int(size),) * 2 if np.ndim(size) == 0 else tuple(int(length) for length in size)


def _window(kernel_size, stride, padding):
    return _size(kernel_size), _size(kernel_size if stride is None else stride), _size(padding)


def _float_type(*arrays):
    """float32 if all arrays are float32; integers count as float64."""
    return np.dtype(np.float32 if all(a.dtype == np.float32 for a in arrays) else np.float64)
