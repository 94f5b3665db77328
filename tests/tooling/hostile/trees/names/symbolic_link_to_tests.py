"""Submits a link to the hidden tests, under the name of the file that counts.

As: convolution.py
Earns: nothing
"""


def make(folder, honest):
    source = folder.parent / "source"
    (folder / "convolution.py").symlink_to(source / "tests" / "a1_convolution" / "test_hidden.py")
    (folder / "inner").symlink_to(source / "tests")
    (folder / "loop").symlink_to(folder)
