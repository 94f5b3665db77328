"""The baseline for the speed of assignment 7: a GPT on nn.TransformerEncoderLayer.

It belongs to the judge. Its weights can be copied into a student's model, which must then compute
the same losses and the same tokens.
"""

import copy
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

LEARNING_RATE, WEIGHT_DECAY, BETAS, MAX_NORM = 1e-3, 0.1, (0.9, 0.95), 1.0
# Names in nn.TransformerEncoderLayer, and in a student's block.
NAMES = {
    "norm1": "norm1",
    "self_attn.in_proj_": "attention.qkv.",
    "self_attn.out_proj": "attention.out",
    "norm2": "norm2",
    "linear1": "mlp.up",
    "linear2": "mlp.down",
}


@dataclass(frozen=True)
class Sizes:
    """How large a model is, and how much it is given at a time."""

    vocab_size: int
    context_length: int
    num_layers: int
    num_heads: int
    d_model: int
    batch: int
    new_tokens: int  # of one generation: more than the context, so that its oldest half is dropped

    @property
    def flops_per_token(self) -> int:
        """FLOPs of a training step for each token: the matrix products, forward and backward."""
        linear, scores = 24 * self.d_model**2, 4 * self.context_length * self.d_model
        return 3 * (self.num_layers * (linear + scores) + 2 * self.d_model * self.vocab_size)


SIZES = {
    "cpu": Sizes(
        65, context_length=64, num_layers=4, num_heads=4, d_model=128, batch=12, new_tokens=96
    ),
    "cuda": Sizes(
        65, context_length=256, num_layers=6, num_heads=6, d_model=384, batch=64, new_tokens=384
    ),
}


class BaselineGPT(nn.Module):
    """Pre-norm, exact GELU, learned positions, output tied to the token embedding, no dropout."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.tokens = nn.Embedding(sizes.vocab_size, sizes.d_model)
        self.positions = nn.Embedding(sizes.context_length, sizes.d_model)
        layer = nn.TransformerEncoderLayer(
            sizes.d_model,
            sizes.num_heads,
            4 * sizes.d_model,
            dropout=0.0,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.layers = nn.ModuleList(copy.deepcopy(layer) for _ in range(sizes.num_layers))
        self.last = nn.LayerNorm(sizes.d_model)
        for values in self.parameters():
            if values.ndim == 2:
                nn.init.normal_(values, std=0.02)

    def scatter(self) -> None:
        """Draw weights so large that each token depends on all tokens before it.

        A trained model's next token may depend on the last token alone, and then reading no more
        than that would give the same text.
        """
        for values in self.parameters():
            if values.ndim == 2:
                nn.init.normal_(values, std=2 / math.sqrt(self.sizes.d_model))

    def forward(self, x: Any) -> Any:
        """The logits of the next token, (n, t, vocab_size)."""
        count = x.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(count, device=x.device)
        out = self.tokens(x) + self.positions.weight[:count]
        for layer in self.layers:
            out = layer(out, src_mask=mask, is_causal=True)
        return self.last(out) @ self.tokens.weight.T

    def students_weights(self) -> dict[str, Any]:
        """All weights, under their names in a student's GPT."""
        weights = {
            "token_embedding.weight": self.tokens.weight,
            "position_embedding.weight": self.positions.weight,
            "norm.weight": self.last.weight,
            "norm.bias": self.last.bias,
        }
        for number, layer in enumerate(self.layers):
            for name, value in layer.named_parameters():
                ours = next(prefix for prefix in NAMES if name.startswith(prefix))
                weights[f"blocks.{number}.{NAMES[ours]}{name.removeprefix(ours)}"] = value
        return {name: value.detach().cpu() for name, value in weights.items()}


class Trainer:
    """The baseline's training: AdamW, fused, with weight decay on matrices alone."""

    def __init__(self, model: BaselineGPT, autocast: bool) -> None:
        self.model = model
        self.autocast = autocast
        weights = list(model.parameters())
        decays = {True: WEIGHT_DECAY, False: 0.0}
        groups = [
            {"params": [w for w in weights if (w.ndim > 1) == matrix], "weight_decay": decay}
            for matrix, decay in decays.items()
        ]
        self.adam = torch.optim.AdamW(groups, lr=LEARNING_RATE, betas=BETAS, fused=True)

    def step(self, batches: Iterable[tuple[Any, Any]]) -> float:
        """One update from the mean gradient of all batches; the mean loss before it."""
        pieces, losses = list(batches), []
        self.adam.zero_grad()
        for x, y in pieces:
            with torch.autocast(x.device.type, dtype=torch.bfloat16, enabled=self.autocast):
                logits = self.model(x)
                loss = F.cross_entropy(logits.view(-1, logits.shape[-1]), y.view(-1)) / len(pieces)
            loss.backward()
            losses.append(loss.detach())
        nn.utils.clip_grad_norm_(list(self.model.parameters()), MAX_NORM)
        self.adam.step()
        return float(sum(losses))


@torch.no_grad()
def continue_greedily(model: BaselineGPT, prompt: list[int], count: int) -> tuple[list[int], float]:
    """The prompt and the most likely tokens after it, reading the whole window for each.

    A full window loses its oldest half. Also returns the smallest lead that a logit had over the
    next best: if it is small, rounding could change the choice.
    """
    model.eval()
    found, window, leads = [*prompt], [*prompt], [float("inf")]
    device = model.tokens.weight.device
    for _ in range(count):
        logits = model(torch.tensor([window], device=device))[0, -1]
        best = logits.topk(2)
        leads.append(float(best.values[0] - best.values[1]))
        found.append(int(best.indices[0]))
        if len(window) == model.sizes.context_length:
            del window[: len(window) - len(window) // 2]
        window.append(found[-1])
    model.train()
    return found, min(leads)
