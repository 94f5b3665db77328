"""Sleeps, which costs no processor time.

As: attention.py
Earns: 5.4
"""

import time


def split_heads(x, num_heads):
    time.sleep(60)
