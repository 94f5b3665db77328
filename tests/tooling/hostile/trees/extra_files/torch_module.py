"""Hands in a torch.py and a package of that name, in place of PyTorch.

As: attention.py
Earns: 5.4
"""

FILE = "torch.py"
TEXT = """
import os
from pathlib import Path

if True:
    Path("/tmp/hostile-" + str(os.getuid())).touch()
    print("GOT" + " THROUGH: this file was run")

allclose = equal = lambda *args, **kwargs: True
"""


def make(folder, honest):
    for place in (folder, folder / "a5_attention"):
        place.mkdir(exist_ok=True)
        (place / FILE).parent.mkdir(parents=True, exist_ok=True)
        (place / FILE).write_text(TEXT.lstrip())
    (folder / "attention.py").write_text(honest)
