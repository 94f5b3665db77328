"""Makes shared memory, semaphores and queues in every way there is, for a process that comes later.

As: attention.py
Earns: 5.4
Leaves: yes
"""

import ctypes
import mmap
import os
from multiprocessing import shared_memory

LIBC = ctypes.CDLL(None, use_errno=True)
WON = []
CREATE = 0o1000 | 0o666


def split_heads(x, num_heads):
    for name, attempt in (
        ("shm_open", lambda: shared_memory.SharedMemory("hostile", create=True, size=4096)),
        ("file", lambda: os.open("/dev/shm/hostile", os.O_CREAT | os.O_RDWR)),
        ("shared library", lambda: mmap.mmap(os.open("/usr/lib/os-release", os.O_RDWR), 16)),
    ):
        try:
            attempt()
            WON.append(name)
        except OSError:
            pass
    key = 0x686F7374
    found = LIBC.shmget(key, 0, 0)
    if found >= 0:
        WON.append("memory of an earlier process")
    LIBC.shmget(key, 4096, CREATE)
    if LIBC.mq_open(b"/hostile", os.O_CREAT | os.O_RDWR, 0o666, None) >= 0:
        WON.append("queue")
    raise RuntimeError("GOT " + f"THROUGH by {WON}" if WON else "in vain")
