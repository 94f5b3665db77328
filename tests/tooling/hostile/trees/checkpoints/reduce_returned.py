"""Returns, as weights and caches, tensors whose storage and hooks run code when they are saved.

As: attention.py
Earns: 5.4
"""

CODE = """
import torch


class Bomb:
    def __reduce__(self):
        return (exec, ("open('/tmp/hostile-weights', 'w').close()",))


class MultiHeadAttention(torch.nn.Module):
    def __init__(self, d_model, num_heads, bias=True):
        super().__init__()
        for name in ("query", "key", "value", "out"):
            setattr(self, name, torch.nn.Linear(d_model, d_model, bias=bias))
            getattr(self, name).weight.bomb = Bomb()

    def state_dict(self, *args, **kwargs):
        return {"query.weight": Bomb()}

    def __getstate__(self):
        return Bomb()

    def forward(self, query, key, value, mask=None):
        return Bomb(), torch.zeros(1)


"""


def make(folder, honest):
    (folder / "attention.py").write_text(CODE + honest)
