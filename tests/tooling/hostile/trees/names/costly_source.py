"""Submits source of just under 1 MB that is as costly to compile as it can be.

As: attention.py
Earns: nothing
"""


def make(folder, honest):
    pieces = ["x = " + "-" * 2500 + "1\n", "y = " + "(" * 150 + ")" * 150 + "\n"]
    pieces.append("z = " + "+".join(["'a' 'b' f'{1}'"] * 2000) + "\n")
    text = "".join(pieces * 20)[: (1 << 20) - 100]
    (folder / "attention.py").write_text(text)
