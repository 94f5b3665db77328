"""Submits a lab with halves of characters, markup and an error without end, where text is expected.

As: convolution.py
Earns: 1.7
"""

import json

TEXT = "\ud83d</script><img src=x onerror=alert(1)> \u202e\x1b[2J\0\udfff"
ENDLESS = """
import sys


class Endless(Exception):
    def __str__(self):
        sys.setrecursionlimit(10**6)
        return str(self)


raise Endless
"""


def make(folder, honest):
    texts = [f"<!-- BEGIN QUESTION -->\n**Question 6** {TEXT}", TEXT, "<!-- END QUESTION -->"]
    codes = ["q2_sum = chr(0xD800)", f"q4_factor = {TEXT!r}\nraise Exception(q4_factor)", ENDLESS]
    cells = [{"cell_type": "markdown", "source": text} for text in texts]
    cells += [{"cell_type": "code", "source": code} for code in codes]
    (folder / "lab.ipynb").write_text(json.dumps({"nbformat": 4, "cells": cells}))
    (folder / "convolution.py").write_text(honest)
