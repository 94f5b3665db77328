"""Submits files whose names are no UTF-8, hold escapes, or read like the one that counts.

As: convolution.py
Earns: 1.7
"""

import os

NAMES = (
    b"\xff\xfe.py",
    b"con\xe9volution.py",
    b"line\nbreak.py",
    b"\x1b[31mred.py",
    b"\xed\xa0\x80.py",
)
NAMES += (
    "convolution\u200b.py".encode(),
    "c\u043envolution.py".encode(),
    b"convolution.py ",
    b"-rf",
)
NAMES += ("Convolution.py".encode(), b"CONVOLUTION.PY", b"%s%n%x.py", b"convolution.py\x08")


def make(folder, honest):
    for name in NAMES:
        with open(os.path.join(os.fsencode(folder), name), "wb") as stream:
            stream.write(b"raise SystemExit\n")
    (folder / "convolution.py").write_text(honest)
