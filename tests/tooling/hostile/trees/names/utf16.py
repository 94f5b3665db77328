"""Submits source in UTF-16, and a coding line that asks for a codec that runs or doesn't exist.

As: attention.py
Earns: nothing
"""


def make(folder, honest):
    (folder / "attention.py").write_bytes(b"\xff\xfe" + honest.encode("utf-16-le"))
    (folder / "attention_numpy.py").write_bytes(b"# coding: rot13\nenvfr FlfgrzRkvg\n")
