"""Submits files of other names alone, for the tests of the missing file to list them.

As: convolution.py
Earns: nothing
"""

WORD = "LEA" + "KED"


def make(folder, honest):
    for number in range(3):
        (folder / f"{WORD}_{number}.txt").write_text(honest)
