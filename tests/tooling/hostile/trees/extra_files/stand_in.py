"""Hands in other modules of the same package, and an __init__.py, beside the file that counts.

As: convolution.py
Earns: 1.7
"""

FILE = "__init__.py"
TEXT = """
import os
from pathlib import Path

if True:
    Path("/tmp/hostile-" + str(os.getuid())).touch()
    print("GOT" + " THROUGH: this file was run")
"""


def make(folder, honest):
    for place in (folder, folder / "a5_attention"):
        place.mkdir(exist_ok=True)
        (place / FILE).parent.mkdir(parents=True, exist_ok=True)
        (place / FILE).write_text(TEXT.lstrip())
    (folder / "convolution.py").write_text(honest)
