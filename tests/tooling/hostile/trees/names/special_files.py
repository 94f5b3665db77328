"""Submits a pipe that nobody writes to and a socket, under names that count.

As: attention.py
Earns: nothing
"""

import os
import socket


def make(folder, honest):
    os.mkfifo(folder / "attention.py")
    with socket.socket(socket.AF_UNIX) as sock:
        here = os.open(folder, os.O_PATH)
        sock.bind(f"/proc/self/fd/{here}/attention_numpy.py")
        os.close(here)
