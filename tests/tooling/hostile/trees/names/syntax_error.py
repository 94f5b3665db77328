"""Submits what is no Python, with an error whose line quotes a lot.

As: attention.py
Earns: nothing
"""


def make(folder, honest):
    (folder / "attention.py").write_text("def broken(:\n    'LEA" + "KED" + "'" * 3 + "x" * 9000)
