"""Forks twice, so that its grandchild belongs to nobody, and has that one breed.

As: attention.py
Earns: 5.4
Leaves: yes
"""

import ctypes
import os
import time


def split_heads(x, num_heads):
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(15, b"hostile-orphan", 0, 0, 0)
        os.setsid()
        for _ in range(40):  # each generation is gone when somebody looks for it
            if os.fork():
                os._exit(0)
            time.sleep(0.01)
        time.sleep(20)
        os._exit(0)
    return None


def merge_heads(x):
    for _ in range(5):
        if os.fork() == 0:
            os.setsid()
            ctypes.CDLL(None).prctl(15, b"hostile-merge", 0, 0, 0)
            time.sleep(20)
            os._exit(0)
    os._exit(0)
