"""Crashes the interpreter: a bad pointer, an abort, a stack that overflows in C.

As: attention.py
Earns: 5.4
"""

import ctypes
import os


def split_heads(x, num_heads):
    ctypes.string_at(0)


def merge_heads(x):
    os.abort()


def saturation(scores):
    deep = []
    for _ in range(10**6):
        deep = [deep]
    return repr(deep)
