"""PyTorch's answers in float64: what the tests of assignment 7 compare with.

A module is asked for by the name of its class, the sizes of its GPTConfig, and its parameters under
the stub's names. Answers come in the type that the parameters have.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call
from torch.utils.flop_counter import FlopCounterMode


def output(kind, settings, parameters, inputs):
    """What a module makes of its inputs."""
    named = {name: _double(p) for name, p in parameters.items()}
    found = FUNCTIONS[kind](settings, named, *map(_double, inputs))
    return found.to(_dtype(parameters, inputs))


def gradients(kind, settings, parameters, inputs, cotangent):
    """The gradients of all inputs (None for those that are no floats), and of all parameters."""
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


def loss(settings, parameters, tokens, targets):
    """The same without gradients, in the parameters' own type."""
    with torch.inference_mode():
        return _loss(_gpt(settings, parameters, tokens), targets).item()


class Optimizer:
    """torch.optim.AdamW in float64, with weight decay for parameters of two axes or more."""

    def __init__(self, parameters, learning_rate, weight_decay, betas=(0.9, 0.95)):
        self.now = {name: _double(p).requires_grad_() for name, p in parameters.items()}
        matrices = [p for p in self.now.values() if p.ndim > 1]
        vectors = [p for p in self.now.values() if p.ndim < 2]
        groups = [
            {"params": matrices, "weight_decay": weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ]
        self.steps = torch.optim.AdamW(
            [group for group in groups if group["params"]], lr=learning_rate, betas=betas
        )

    def step(self, gradients, learning_rate=None):
        """One step with these gradients."""
        for group in self.steps.param_groups if learning_rate is not None else ():
            group["lr"] = learning_rate
        for name, parameter in self.now.items():
            parameter.grad = gradients[name].double()
        self.steps.step()

    def values(self):
        return {name: p.detach().clone() for name, p in self.now.items()}


def clipped(gradients, clip):
    """The gradients, scaled down to a norm of clip where theirs is larger, and that norm."""
    norm = math.sqrt(sum(float(g.double().square().sum()) for g in gradients.values()))
    factor = min(1.0, clip / norm)
    return {name: factor * gradient for name, gradient in gradients.items()}, norm


def next_probabilities(logits, temperature, top_k, top_p):
    """By sorting and by summing in Python: no two tokens are equally likely."""
    if temperature == 0:
        return F.one_hot(logits.argmax(), len(logits)).to(logits.dtype)
    values = torch.softmax(logits.double() / temperature, dim=0).tolist()
    ranking = sorted(range(len(values)), key=values.__getitem__, reverse=True)[:top_k]
    whole = math.fsum(values[token] for token in ranking)
    kept, reached = [], 0.0
    for token in ranking:
        kept.append(token)
        reached += values[token] / whole
        if top_p is not None and reached >= top_p:
            break
    whole = math.fsum(values[token] for token in kept)
    found = [values[token] / whole if token in kept else 0.0 for token in range(len(values))]
    return torch.tensor(found, dtype=logits.dtype)


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
    """What PyTorch counts in the matrix products of one full context, for each of its tokens.

    Attention is written out as products: PyTorch counts half of a fused one that is causal.
    """
    width, context = settings["width"], settings["context"]
    x = torch.zeros(1, context, width, requires_grad=True)
    shapes = [(3 * width, width), (width, width), (4 * width, width), (width, 4 * width)]
    output_layer = torch.zeros(settings["vocabulary"], width, requires_grad=True)
    heads = (1, context, settings["heads"], width // settings["heads"])
    counter = FlopCounterMode(display=False)
    with counter:
        now = x
        for _ in range(settings["layers"]):
            qkv, out, up, down = (torch.zeros(s, requires_grad=True) for s in shapes)
            parts = F.linear(now, qkv).split(width, dim=2)
            q, k, v = (part.reshape(heads).transpose(1, 2) for part in parts)
            mixed = (q @ k.mT) @ v
            now = F.linear(mixed.transpose(1, 2).reshape(1, context, width), out)
            now = F.linear(F.linear(now, up), down)
        result = F.linear(now, output_layer)
        if training:
            result.sum().backward()
    return counter.get_total_flops() // context


# Yardsticks, in float32.


def new_layers(settings):
    """PyTorch's layers, made once: making them anew for each pass would be no fair yardstick."""
    return [_new_layer(settings, torch.float32) for _ in range(settings["layers"])]


def training_step(settings, parameters, tokens, targets, rate):
    """A function that takes one step of AdamW with PyTorch's layers, and returns the loss."""
    named = {name: p.clone().requires_grad_() for name, p in parameters.items()}
    made, optimizer = new_layers(settings), torch.optim.AdamW([*named.values()], lr=rate)

    def run():
        optimizer.zero_grad()
        loss = _loss(_gpt(settings, named, tokens, made), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_([*named.values()], 1.0)
        optimizer.step()
        return loss.item()

    return run


def uncached_generation(settings, parameters, prompt, length):
    """A function that reads all tokens anew for each further one, and takes the likeliest."""
    made = new_layers(settings)

    def run():
        tokens = list(prompt)
        with torch.inference_mode():
            for _ in range(length):
                scores = _gpt(settings, parameters, torch.tensor([tokens]), made)
                tokens.append(int(scores[0, -1].argmax()))
        return tokens

    return run


# Modules: each a function of settings, parameters by name, and inputs.


def _attention(settings, parameters, x):
    width, heads = settings["width"], settings["heads"]
    layer = nn.MultiheadAttention(width, heads, batch_first=True, dtype=x.dtype)
    hidden = _later(x.shape[1])
    arguments, asked = (x, x, x), {"attn_mask": hidden, "need_weights": False}
    return functional_call(layer, _attention_names(parameters), arguments, asked)[0]


def _project(settings, parameters, x):
    """Queries, keys and values, stacked along a first axis."""
    projected = torch.addmm(
        parameters["qkv.bias"], x.flatten(0, 1), parameters["qkv.weight"].mT
    ).unflatten(0, x.shape[:2])
    shape = (*x.shape[:2], 3, settings["heads"], -1)
    return projected.reshape(shape).permute(2, 0, 3, 1, 4)


def _attend(settings, parameters, q, k, v):
    """The queries of the last places: what comes later in time is hidden from each."""
    queries, keys = q.shape[2], k.shape[2]
    visible = ~_later(keys)[keys - queries :]
    mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
    mixed = mixed.transpose(1, 2).flatten(2)
    return F.linear(mixed, parameters["out.weight"], parameters["out.bias"])


def _mlp(settings, parameters, x):
    width = settings["width"]
    layers = nn.Sequential(
        nn.Linear(width, 4 * width, dtype=x.dtype),
        nn.GELU(),
        nn.Linear(4 * width, width, dtype=x.dtype),
    )
    return functional_call(layers, _renamed(parameters, up="0", down="2"), (x,))


def _new_layer(settings, dtype):
    return nn.TransformerEncoderLayer(
        settings["width"],
        settings["heads"],
        4 * settings["width"],
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
    places = parameters["position_embedding.weight"].narrow(0, start, tokens.shape[1])
    return F.embedding(tokens, parameters["token_embedding.weight"]) + places


def _scores(settings, parameters, x):
    last = parameters["norm.weight"], parameters["norm.bias"]
    return F.linear(F.layer_norm(x, x.shape[-1:], *last), parameters["token_embedding.weight"])


def _gpt(settings, parameters, tokens, made=None):
    x = _embed(settings, parameters, tokens)
    for index in range(settings["layers"]):
        inside = _inside(parameters, f"blocks.{index}")
        x = _block(settings, inside, x, made[index] if made else None)
    return _scores(settings, parameters, x)


FUNCTIONS = {
    "CausalSelfAttention": _attention,
    "CausalSelfAttention.project": _project,
    "CausalSelfAttention.attend": _attend,
    "MLP": _mlp,
    "Block": _block,
    "GPT": _gpt,
    "GPT.embed": _embed,
    "GPT.scores": _scores,
}


def _later(length):
    """True where one may not look: at what comes later."""
    return torch.from_numpy(~np.tri(length, dtype=bool))


def _attention_names(parameters):
    """Attention's parameters under the names that nn.MultiheadAttention has for them."""
    return {
        "in_proj_weight": parameters["qkv.weight"],
        "in_proj_bias": parameters["qkv.bias"],
        "out_proj.weight": parameters["out.weight"],
        "out_proj.bias": parameters["out.bias"],
    }


def _inside(parameters, prefix):
    """The parameters whose names begin with the prefix, without it."""
    start = f"{prefix}."
    return {n.removeprefix(start): p for n, p in parameters.items() if n.startswith(start)}


def _renamed(parameters, **others):
    """The parameters with another name for each layer."""
    pairs = ((name.split("."), p) for name, p in parameters.items())
    return {f"{others[layer]}.{kind}": p for (layer, kind), p in pairs}


def _loss(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def _is_float(value):
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _double(value):
    """A copy in float64 of what is of floats; anything else as it is."""
    return value.detach().to(torch.float64, copy=True) if _is_float(value) else value


def _dtype(parameters, inputs):
    return next(value.dtype for value in (*parameters.values(), *inputs) if _is_float(value))
