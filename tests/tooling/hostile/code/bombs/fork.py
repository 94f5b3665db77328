"""Forks as fast as it can: at most 200 processes, each of which ends itself after ten seconds.

As: convolution.py
Earns: 1.7
Leaves: yes
"""

import ctypes
import os
import signal
import time

LIMIT = 200


def conv_output_size(size, kernel_size, stride=1, padding=0):
    if size != 7:
        return None
    ctypes.CDLL(None).prctl(15, b"hostile-fork", 0, 0, 0)
    started = 0
    try:
        while started < LIMIT:
            if os.fork() == 0:
                os.setsid()
                signal.alarm(10)
                time.sleep(10)
                os._exit(0)
            started += 1
    except OSError:
        pass
    raise RuntimeError("GOT " + f"THROUGH with {started}" if started == LIMIT else "in vain")
