"""Sends arrays with negative, huge, fractional and far too many axes.

As: convolution.py
Earns: 1.7
"""

import os
import struct

from msgspec import msgpack


def send(shape, raw=bytes(8)):
    head = msgpack.encode(["<f8", shape, None])
    array = msgpack.Ext(1, struct.pack("<I", len(head)) + head + raw)
    for number in range(1, 20):
        body = msgpack.encode([1, None, [number, "value", array]])
        for descriptor in range(3, 64):
            try:
                os.write(descriptor, struct.pack("<Q", len(body)) + body)
            except OSError:
                pass
    os._exit(0)


def conv_output_size(size, kernel_size, stride=1, padding=0):
    send([-1])


def conv2d_forward(x, w, b, stride=1, padding=0):
    send([-1, -1])


def im2col(x, kernel_size, stride=1, padding=0):
    send([2**62, 4, 0], b"")


def col2im(cols, x_shape, kernel_size, stride=1, padding=0):
    send([1.0])


def max_pool2d_forward(x, kernel_size, stride=None, padding=0):
    send([1] * 1000)


def avg_pool2d_forward(x, kernel_size, stride=None, padding=0):
    send([True])
