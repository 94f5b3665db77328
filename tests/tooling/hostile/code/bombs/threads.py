"""Starts threads as fast as it can: at most 400, each of which ends after ten seconds.

As: attention.py
Earns: 5.4
"""

import threading
import time

LIMIT = 400


def split_heads(x, num_heads):
    started = 0
    try:
        while started < LIMIT:
            threading.Thread(target=time.sleep, args=(10,), daemon=True).start()
            started += 1
    except (RuntimeError, MemoryError):
        pass
    raise RuntimeError("GOT " + f"THROUGH with {started}" if started == LIMIT else "in vain")
