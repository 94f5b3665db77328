"""Raises exceptions whose text, class and attributes sleep, exit and raise when they are looked at.

As: convolution.py
Earns: 1.7
"""

import os
import time


class Slow(Exception):
    def __str__(self):
        time.sleep(5)

    __repr__ = __str__


class Last(Exception):
    def __str__(self):
        os._exit(0)

    def __getattribute__(self, name):
        raise SystemExit(0)


class Hidden(Exception):
    @property
    def __class__(self):
        raise KeyboardInterrupt

    @property
    def __traceback__(self):
        raise StopIteration


class Endless(ExceptionGroup):
    def __str__(self):
        raise Endless("again", [self])


def conv_output_size(size, kernel_size, stride=1, padding=0):
    raise Slow


def conv2d_forward(x, w, b, stride=1, padding=0):
    raise Last


def im2col(x, kernel_size, stride=1, padding=0):
    raise Hidden


def col2im(cols, x_shape, kernel_size, stride=1, padding=0):
    raise Endless("one", [ValueError()] * 1000)


def max_pool2d_forward(x, kernel_size, stride=None, padding=0):
    raise type("A" * 10**6, (Exception,), {})("x" * 10**7)


def avg_pool2d_forward(x, kernel_size, stride=None, padding=0):
    error = cause = ValueError("first")
    for number in range(20_000):
        cause.__cause__ = cause = ValueError(number)
    cause.__context__ = error  # a ring
    raise error
