"""Hands in a .pth file, whose lines Python runs when it starts.

As: convolution.py
Earns: 1.7
"""

FILE = "hostile.pth"
TEXT = """
import os; open('/tmp/hostile-pth-' + str(os.getuid()), 'w').close()
"""


def make(folder, honest):
    for place in (folder, folder / "a5_attention"):
        place.mkdir(exist_ok=True)
        (place / FILE).parent.mkdir(parents=True, exist_ok=True)
        (place / FILE).write_text(TEXT.lstrip())
    (folder / "convolution.py").write_text(honest)
