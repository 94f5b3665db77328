"""PyTorch's answers in float64: what the tests of assignment 7 compare with.

A module is identified by the name of its class, the sizes of its GPTConfig, and its parameters
under the stub's names. Answers have the dtype of the parameters.

Whole layers of PyTorch give them, those that students may not use. Students read this file: it
contains none of the answers that they write.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from tests.a7_minigpt.cases import shapes_of


def output(kind, settings, parameters, inputs):
    """The output of a module for its inputs."""
    named = {name: _double(p) for name, p in parameters.items()}
    found = FUNCTIONS[kind](settings, named, *map(_double, inputs))
    return found.to(_dtype(parameters, inputs))


def gradients(kind, settings, parameters, inputs, cotangent):
    """The gradients of all inputs (None for those that aren't floats), and of all parameters."""
    named = {name: _double(p).requires_grad_() for name, p in parameters.items()}
    doubles = [_double(value) for value in inputs]
    leaves = [value.requires_grad_() for value in doubles if _is_float(value)]
    found = torch.autograd.grad(
        FUNCTIONS[kind](settings, named, *doubles),
        [*leaves, *named.values()],
        _double(cotangent),
        allow_unused=True,
        materialize_grads=True,
    )
    found = iter([gradient.to(_dtype(parameters, inputs)) for gradient in found])
    of_inputs = [next(found) if _is_float(value) else None for value in inputs]
    return of_inputs, dict(zip(named, found, strict=True))


def loss_and_gradients(settings, parameters, tokens, targets):
    """The mean cross-entropy as a float, and the gradients of all parameters, in float64."""
    leaves = {name: _double(p).requires_grad_() for name, p in parameters.items()}
    loss = _loss(_gpt(settings, leaves, tokens), targets)
    found = torch.autograd.grad(loss, [*leaves.values()])
    return loss.item(), dict(zip(leaves, found, strict=True))


@torch.inference_mode()
def loss(settings, parameters, tokens, targets):
    """The same without gradients, in the parameters' own type."""
    return _loss(_gpt(settings, parameters, tokens), targets).item()


class Optimizer:
    """torch.optim.Adam in float64, with decay before each step, which makes it AdamW."""

    def __init__(self, parameters, learning_rate, weight_decay, betas=(0.9, 0.95)):
        self.now = {name: _double(p).requires_grad_() for name, p in parameters.items()}
        self.adam = torch.optim.Adam([*self.now.values()], lr=learning_rate, betas=betas)
        self.weight_decay = weight_decay

    def step(self, gradients, learning_rate=None):
        """One step with these gradients."""
        (settings,) = self.adam.param_groups
        settings["lr"] = settings["lr"] if learning_rate is None else learning_rate
        for name, parameter in self.now.items():
            parameter.grad = gradients[name].double()
            if parameter.ndim > 1:
                parameter.data *= 1 - settings["lr"] * self.weight_decay
        self.adam.step()

    def values(self):
        return {name: p.detach().clone() for name, p in self.now.items()}


def learning_rates(max_lr, warmup, total, min_lr):
    """The rates of the steps 1, 2, ... total, by PyTorch's own schedulers, one after the other."""
    schedulers = torch.optim.lr_scheduler
    rising, falling = (torch.optim.SGD([torch.zeros(1)], lr=max_lr) for _ in range(2))
    found = []
    if warmup:
        up = schedulers.LinearLR(rising, 1 / warmup, total_iters=warmup - 1)
        found += _rates_of(rising, up, warmup)
    # The cosine starts at the last step of the warm-up, or at step 0, which isn't taken.
    down = schedulers.CosineAnnealingLR(falling, total - warmup, min_lr)
    return found + _rates_of(falling, down, total - warmup + 1)[1:]


def _rates_of(optimizer, scheduler, count):
    found = []
    for _ in range(count):
        found += scheduler.get_last_lr()
        optimizer.step()
        scheduler.step()
    return found


def clipped(gradients, max_norm):
    """The gradients, scaled down to max_norm if their norm is larger, and that norm."""
    norm = math.sqrt(sum(float(g.double().square().sum()) for g in gradients.values()))
    factor = min(1.0, max_norm / norm)
    return {name: factor * gradient for name, gradient in gradients.items()}, norm


def attention(q, k, v):
    """Causal attention of all heads."""
    doubles = [_double(value) for value in (q, k, v)]
    return F.scaled_dot_product_attention(*doubles, is_causal=True).to(q.dtype)


def attention_gradients(q, k, v, cotangent):
    """The gradients of queries, keys and values."""
    leaves = [_double(value).requires_grad_() for value in (q, k, v)]
    out = F.scaled_dot_product_attention(*leaves, is_causal=True)
    found = torch.autograd.grad(out, leaves, _double(cotangent))
    return [gradient.to(q.dtype) for gradient in found]


def percentiles(times):
    """(median, 10th percentile, 90th percentile)"""
    return tuple(float(np.quantile(times, q)) for q in (0.5, 0.1, 0.9))


def flops(settings, training):
    """PyTorch's count for the matrix products of one full context, for each of its tokens.

    With unfused attention: of fused causal attention, PyTorch counts half.
    """
    shapes = shapes_of("GPT", settings).items()
    parameters = {name: torch.zeros(shape, requires_grad=True) for name, shape in shapes}
    tokens = torch.zeros(1, settings["context_length"], dtype=torch.int64)
    counter = FlopCounterMode(display=False)
    with sdpa_kernel(SDPBackend.MATH), counter:
        logits = _gpt(settings, parameters, tokens)
        if training:
            logits.sum().backward()
    return counter.get_total_flops() // settings["context_length"]


# Baselines, in float32.


def new_layers(settings):
    """PyTorch's layers, made once: making them for each pass would be an unfair baseline."""
    return [_new_layer(settings, torch.float32) for _ in range(settings["num_layers"])]


def training_step(settings, parameters, rate, decay):
    """A function that takes one step of AdamW with PyTorch's layers, on tokens and targets.

    It returns the loss before the step, and the parameters after it. decay: of matrices alone.
    """
    named = {name: p.clone().requires_grad_() for name, p in parameters.items()}
    leaves, made = [*named.values()], new_layers(settings)
    matrices, others = ([p for p in leaves if (p.ndim > 1) == kind] for kind in (True, False))
    groups = [{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}]
    adam = torch.optim.AdamW(groups, lr=rate)

    def run(tokens, targets):
        mean = _loss(_gpt(settings, named, tokens, made), targets)
        gradients = torch.autograd.grad(mean, leaves)
        norm = torch.stack([gradient.square().sum() for gradient in gradients]).sum().sqrt()
        for leaf, gradient in zip(leaves, gradients, strict=True):
            leaf.grad = gradient / max(1.0, float(norm))
        adam.step()
        return mean.item(), {name: leaf.detach() for name, leaf in named.items()}

    return run


def uncached_reading(settings, parameters, tokens, every=1):
    """A function that reads a text again up to each of its tokens, as without a cache.

    every: only up to every n-th token, in the middle of those that it represents.
    """
    made = new_layers(settings)

    @torch.inference_mode()
    def run():
        for end in range((every + 1) // 2, len(tokens) + 1, every):
            _gpt(settings, parameters, tokens[None, :end], made)

    return run


# Modules: each a function of settings, parameters by name, and inputs.


def _attention(settings, parameters, x):
    d_model, num_heads = settings["d_model"], settings["num_heads"]
    layer = nn.MultiheadAttention(d_model, num_heads, batch_first=True, dtype=x.dtype)
    hidden = _later(x.shape[1])
    arguments, asked = (x, x, x), {"attn_mask": hidden, "need_weights": False}
    return functional_call(layer, _attention_names(parameters), arguments, asked)[0]


def _attend(settings, parameters, q, k, v):
    """Attention with identity projections, and queries of 0 before the given ones."""
    q, k, v = (torch.cat(value.unbind(1), dim=2) for value in (q, k, v))
    one = torch.eye(settings["d_model"], dtype=q.dtype)
    named = {
        "in_proj_weight": torch.cat([one, one, one]),
        "in_proj_bias": torch.zeros(len(one) * 3, dtype=q.dtype),
        "out_proj.weight": parameters["out.weight"],
        "out_proj.bias": parameters["out.bias"],
    }
    before = torch.zeros_like(k[:, q.shape[1] :])
    layer = nn.MultiheadAttention(len(one), settings["num_heads"], batch_first=True, dtype=q.dtype)
    asked = {"attn_mask": _later(k.shape[1]), "need_weights": False}
    found, _ = functional_call(layer, named, (torch.cat([before, q], dim=1), k, v), asked)
    return found[:, before.shape[1] :]


def _mlp(settings, parameters, x):
    layer = _new_layer(settings, x.dtype)
    layer.forward = layer._ff_block  # the part of PyTorch's layer after attention
    return functional_call(layer, _renamed(parameters, up="linear1", down="linear2"), (x,))


def _new_layer(settings, dtype):
    return nn.TransformerEncoderLayer(
        settings["d_model"],
        settings["num_heads"],
        4 * settings["d_model"],
        dropout=0.0,
        activation="gelu",
        batch_first=True,
        norm_first=True,
        dtype=dtype,
    )


def _block(settings, parameters, x, layer=None):
    layer = layer or _new_layer(settings, x.dtype)
    named = {name: p for name, p in parameters.items() if name.startswith("norm")}
    attention = _attention_names(_inside(parameters, "attention"))
    named |= {f"self_attn.{name}": p for name, p in attention.items()}
    named |= _renamed(_inside(parameters, "mlp"), up="linear1", down="linear2")
    return functional_call(layer, named, (x, _later(x.shape[1])))


def _embed(settings, parameters, tokens, start=0):
    """Sums of bags of two rows each: positions are numbered after the tokens."""
    rows = torch.cat([parameters[f"{kind}_embedding.weight"] for kind in ("token", "position")])
    positions = settings["vocab_size"] + start + torch.arange(tokens.shape[1])
    bags = torch.stack(torch.broadcast_tensors(tokens, positions), dim=2)
    sums = F.embedding_bag(bags.flatten(0, 1), rows, mode="sum")
    return sums.unflatten(0, tokens.shape)


def _logits(settings, parameters, x):
    last = nn.LayerNorm(x.shape[2], dtype=x.dtype)
    normalized = functional_call(last, _inside(parameters, "norm"), (x,))
    return normalized @ parameters["token_embedding.weight"].mT


def _gpt(settings, parameters, tokens, made=None):
    vectors = _embed(settings, parameters, tokens)
    for index in range(settings["num_layers"]):
        inside = _inside(parameters, f"blocks.{index}")
        vectors = _block(settings, inside, vectors, made[index] if made else None)
    return _logits(settings, parameters, vectors)


FUNCTIONS = {
    "CausalSelfAttention": _attention,
    "CausalSelfAttention.attend": _attend,
    "MLP": _mlp,
    "Block": _block,
    "GPT": _gpt,
    "GPT.embed": _embed,
    "GPT.logits": _logits,
}


def _later(length):
    """True for pairs that may not attend: later positions."""
    return torch.from_numpy(~np.tri(length, dtype=bool))


def _attention_names(parameters):
    """Attention's parameters under nn.MultiheadAttention's names."""
    return {
        "in_proj_weight": parameters["qkv.weight"],
        "in_proj_bias": parameters["qkv.bias"],
        "out_proj.weight": parameters["out.weight"],
        "out_proj.bias": parameters["out.bias"],
    }


def _inside(parameters, prefix):
    """The parameters whose names start with the prefix, without it."""
    start = f"{prefix}."
    return {n.removeprefix(start): p for n, p in parameters.items() if n.startswith(start)}


def _renamed(parameters, **others):
    """The parameters under other layer names."""
    pairs = ((name.split("."), p) for name, p in parameters.items())
    return {f"{others[layer]}.{kind}": p for (layer, kind), p in pairs}


def _loss(logits, targets):
    return -Categorical(logits=logits, validate_args=False).log_prob(targets).mean()


def _is_float(value):
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _double(value):
    """A copy in float64 of a float tensor; anything else unchanged."""
    return value.detach().to(torch.float64, copy=True) if _is_float(value) else value


def _dtype(parameters, inputs):
    return next(value.dtype for value in (*parameters.values(), *inputs) if _is_float(value))
