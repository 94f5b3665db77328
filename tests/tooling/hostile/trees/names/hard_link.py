"""Submits a hard link to the hidden tests, so that what is taken is what must stay secret.

As: convolution.py
Earns: nothing
"""

import os


def make(folder, honest):
    hidden = folder.parent / "source" / "tests" / "a1_convolution" / "test_hidden.py"
    copy = folder.parent / "source" / "semester"
    assert hidden.is_file() and copy.is_file()
    os.link(copy, folder / "convolution.py")
    os.link(copy, folder / "again.py")
