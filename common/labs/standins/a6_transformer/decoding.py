"""Stand-in for the lab of assignment 6: the maps that the stand-in's attentions have kept."""

import torch
from torch import Tensor

from common.labs.standins.a6_transformer.transformer import Transformer


def attention_maps(model: Transformer, source: Tensor, target: Tensor) -> dict[str, Tensor]:
    """The weights that the attentions have kept, (layers, n, heads, t_q, t_k) for each kind."""
    with torch.enable_grad():  # without gradients PyTorch's fast path skips the attention module
        model.forward(source, target)
    kept = {
        "encoder": [layer.self_attn.weights for layer in model.encoder.layers],
        "decoder": [layer.self_attn.weights for layer in model.decoder.layers],
        "cross": [layer.multihead_attn.weights for layer in model.decoder.layers],
    }
    return {kind: torch.stack(weights).detach() for kind, weights in kept.items()}
