"""Submits a lab whose written questions have numbers of a million digits, for the result to repeat.

As: convolution.py
Earns: 1.7
"""

import json


def make(folder, honest):
    marker = "<!-- BEGIN QUESTION -->"
    cells = [f"{marker}\n**Question {digit * 1_000_000}" for digit in "123456789"]
    cells = [{"cell_type": "markdown", "source": source} for source in cells]
    cells.append({"cell_type": "code", "source": "q1_kernel = 10 ** 3_000_000"})
    (folder / "lab.ipynb").write_text(json.dumps({"nbformat": 4, "cells": cells}))
    (folder / "convolution.py").write_text(honest)
