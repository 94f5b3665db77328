"""Submits folders within folders, 200 deep, and 3,000 files beside them.

As: attention.py
Earns: 5.4
"""

import os


def make(folder, honest):
    (folder / "attention.py").write_text(honest)
    for number in range(3000):
        (folder / f"{number}.py").touch()
    place = os.fspath(folder)
    for _ in range(200):
        place = os.path.join(place, "deeper")
        os.mkdir(place)
