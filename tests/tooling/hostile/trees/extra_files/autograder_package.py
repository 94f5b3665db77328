"""Hands in a package autograder/ and tests of its own that all pass.

As: convolution.py
Earns: 1.7
"""

FILE = "tests/a1_convolution/test_hidden.py"
TEXT = """
import os
from pathlib import Path

if True:
    Path("/tmp/hostile-" + str(os.getuid())).touch()
    print("GOT" + " THROUGH: this file was run")


def test_passes():
    assert True
"""


def make(folder, honest):
    for place in (folder, folder / "a5_attention"):
        place.mkdir(exist_ok=True)
        (place / FILE).parent.mkdir(parents=True, exist_ok=True)
        (place / FILE).write_text(TEXT.lstrip())
    (folder / "convolution.py").write_text(honest)
