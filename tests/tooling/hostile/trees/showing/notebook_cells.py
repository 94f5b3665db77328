"""Submits a lab whose first cell fails with words of its own, for hidden questions to repeat.

As: convolution.py
Earns: 1.7
"""

import json

WORD = "LEA" + "KED"


def make(folder, honest):
    cells = [f"# {WORD}: the first line\nraise ValueError('{WORD}: the message')", "x = 1"]
    cells = [{"cell_type": "code", "source": source} for source in cells]
    (folder / "lab.ipynb").write_text(json.dumps({"nbformat": 4, "cells": cells}))
    (folder / "convolution.py").write_text(honest)
