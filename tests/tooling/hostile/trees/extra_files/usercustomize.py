"""Hands in a usercustomize.py where a user's own packages lie.

As: attention.py
Earns: 5.4
"""

FILE = ".local/lib/python3.11/site-packages/usercustomize.py"
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
    (folder / "attention.py").write_text(honest)
