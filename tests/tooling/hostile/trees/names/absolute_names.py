"""Submits a zip whose members have absolute names, and names of drives.

As: attention.py
Earns: 5.4
"""

import zipfile

NAMES = (
    "/tmp/hostile.py",
    "/autograder/results/results.json",
    "C:\\hostile.py",
    "//tmp/hostile.py",
)


def make(folder, honest):
    place = folder / "submission.zip"
    with zipfile.ZipFile(place, "w") as archive:
        for name in (*NAMES, "/attention.py", "/attention_numpy.py"):
            archive.writestr(name, "raise SystemExit\n")
        archive.writestr("attention.py", honest)
    return place
