"""Names a parameter after the sizes that a hidden test has drawn, for a sentence to list it.

As: attention.py
Earns: nothing
"""

import torch
from torch import nn

WORD = "LEA" + "KED"


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, bias=True):
        super().__init__()
        for name in ("query", "key", "value", "output"):
            setattr(self, name, nn.Linear(d_model, d_model, bias=bias))
        word = f"{WORD}_{d_model}_{num_heads}_{bias}"
        self.register_parameter(word, nn.Parameter(torch.zeros(1)))
