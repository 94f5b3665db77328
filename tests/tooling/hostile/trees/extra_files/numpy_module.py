"""Hands in a numpy.py, which is found before NumPy in the folder of the submission.

As: convolution.py
Earns: 1.7
"""

FILE = "numpy.py"
TEXT = """
import os
from pathlib import Path

if True:
    Path("/tmp/hostile-" + str(os.getuid())).touch()
    print("GOT" + " THROUGH: this file was run")

class testing:
    assert_allclose = staticmethod(lambda *args, **kwargs: None)
"""


def make(folder, honest):
    for place in (folder, folder / "a5_attention"):
        place.mkdir(exist_ok=True)
        (place / FILE).parent.mkdir(parents=True, exist_ok=True)
        (place / FILE).write_text(TEXT.lstrip())
    (folder / "convolution.py").write_text(honest)
