"""Submits a lab with halves of characters, markup and an error without end, where text is expected.

As: convolution.py
Earns: 1.7, test_q2_the_weights_of_a_kernel_that_ignores_brightness_add_up_to_the_right_number
"""

import json

TEXT = "</script><img src=x onerror=alert(1)> \u202e\x1b[2J\0"
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
    codes = [
        "q2_sum = 0",
        f"q4_factor = chr(0xD83D) + {TEXT!r}\nraise Exception(q4_factor)",
        ENDLESS,
    ]
    cells = [{"cell_type": "markdown", "source": text} for text in texts]
    cells += [{"cell_type": "code", "source": code} for code in codes]
    (folder / "lab.ipynb").write_text(json.dumps({"nbformat": 4, "cells": cells}))
    (folder / "convolution.py").write_text(honest)
