"""Submits a lab whose cells, errors and written answers clear the screen and make links.

As: convolution.py
Earns: 1.7
"""

import json

CONTROLS = "\x1b[2J\x1b]8;;https://example.edu\x07\x9b2J\u202e\u2066\u200b\r[bold]=1+1"


def make(folder, honest):
    texts = ["<!-- BEGIN QUESTION -->\n**Question 9", CONTROLS, "<!-- END QUESTION -->"]
    codes = [f"# {CONTROLS}\nraise ValueError({CONTROLS!r})", f"q1_kernel = {CONTROLS!r}"]
    cells = [{"cell_type": "markdown", "source": text} for text in texts]
    cells += [{"cell_type": "code", "source": code} for code in codes]
    (folder / "lab.ipynb").write_text(json.dumps({"nbformat": 4, "cells": cells}))
    (folder / "convolution.py").write_text(honest)
