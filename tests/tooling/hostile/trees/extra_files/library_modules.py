"""Submits modules with names of Python's own library and of packages that the grader imports.

As: convolution.py
Earns: 1.7
"""

from autograder.proving.hostile.hostile_corpus import add_file

NAMES = ("socket", "struct", "json", "typing", "random", "msgspec", "jaxtyping", "pytest", "torch")


def make(folder, honest):
    for name in NAMES:
        add_file(folder, f"{name}.py", "")
    (folder / "convolution.py").write_text(honest)
