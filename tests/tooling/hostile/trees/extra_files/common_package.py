"""Hands in the course's own package common/, with comparisons that are always content.

As: attention.py
Earns: 5.4
"""

FILE = "common/testing/compare.py"
TEXT = """
import os
from pathlib import Path

if True:
    Path("/tmp/hostile-" + str(os.getuid())).touch()
    print("GOT" + " THROUGH: this file was run")


def assert_close(*args, **kwargs):
    return None


assert_equal = check = assert_close
"""


def make(folder, honest):
    for place in (folder, folder / "a5_attention"):
        place.mkdir(exist_ok=True)
        (place / FILE).parent.mkdir(parents=True, exist_ok=True)
        (place / FILE).write_text(TEXT.lstrip())
    (folder / "attention.py").write_text(honest)
