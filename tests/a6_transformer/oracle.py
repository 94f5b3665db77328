"""PyTorch's answers in float64: what the tests of assignment 6 compare with.

A module is given by the name of its class, its settings, and its parameters under the stub's names.
Results have the dtype of the parameters.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call


def output(kind, settings, parameters, inputs):
    """The output of a module for its inputs: tensors, or None for no mask."""
    named = {name: _double(p) for name, p in parameters.items()}
    found = FUNCTIONS[kind](settings, named, *map(_double, inputs))
    return found.to(_dtype(parameters, inputs))


def gradients(kind, settings, parameters, inputs, cotangent):
    """The gradients of all inputs (None for those that are not floats), and of all parameters."""
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


def sinusoidal_encoding(length, d_model):
    """Sines and cosines: imaginary and real parts of numbers on the unit circle."""
    speeds = np.logspace(0, -4, d_model // 2, endpoint=False)
    circle = np.exp(1j * np.outer(np.arange(length), speeds))
    return torch.from_numpy(np.stack([circle.imag, circle.real], axis=2).reshape(length, d_model))


def attention_maps(settings, parameters, source, target):
    """The weights of every head in every layer, by nn.MultiheadAttention."""
    named = {name: _double(p) for name, p in parameters.items()}
    encoder, decoder = [], []
    source_mask, target_mask = visible(source, target)
    memory = _encode(settings, named, source, source_mask, seen=encoder)
    _decode(settings, named, target, memory, target_mask, source_mask, seen=decoder)
    maps = {"encoder": encoder, "decoder": decoder[::2], "cross": decoder[1::2]}
    dtype = _dtype(parameters, ())
    return {name: torch.stack(weights).to(dtype) for name, weights in maps.items()}


def visible(source, target):
    """The two masks of a batch: True where a query may attend."""
    not_later = torch.from_numpy(np.tri(target.shape[1], dtype=bool))
    keys = [ids.bool().unsqueeze(1) for ids in (source, target)]
    return keys[0], not_later.logical_and(keys[1])


def smoothed_loss(logits, targets, smoothing):
    """F.cross_entropy over all positions that are not padding, and its gradient."""
    leaf = _double(logits).requires_grad_()
    loss = _cross_entropy(leaf, targets, smoothing)
    (gradient,) = torch.autograd.grad(loss, [leaf])
    return loss.detach().to(logits.dtype), gradient.to(logits.dtype)


def loss_and_gradients(settings, parameters, source, target, smoothing):
    """The loss of a whole batch as a float, and the gradients of all parameters."""
    leaves = {name: _double(p).requires_grad_() for name, p in parameters.items()}
    logits = _transformer(settings, leaves, source, target[:, :-1])
    loss = _cross_entropy(logits, target[:, 1:], smoothing)
    found = torch.autograd.grad(loss, [*leaves.values()])
    return loss.item(), dict(zip(leaves, found, strict=True))


def transformer_pass(settings, parameters, source, target, cotangent):
    """A function that runs PyTorch's layers forward and backward, in the parameters' dtype.

    It returns the logits, and the gradients of all parameters.
    """
    named = {name: p.clone().requires_grad_() for name, p in parameters.items()}
    # Created once, as in a module: creating them in each pass would be an unfair baseline.
    made = {
        (side, index): layer(settings, _dtype(parameters, ()))
        for side, layer in (("encoder", _new_encoder_layer), ("decoder", _new_decoder_layer))
        for index in range(settings[f"num_{side}_layers"])
    }

    def run():
        logits = _transformer(settings, named, source, target, made)
        found = torch.autograd.grad(logits, [*named.values()], cotangent)
        return logits.detach(), found

    return run


# Modules: each a function of settings, parameters by name, and inputs.


def _layer_norm(settings, parameters, x):
    eps = settings.get("eps", 1e-5)
    return F.layer_norm(x, x.shape[-1:], parameters["weight"], parameters["bias"], eps)


def _feed_forward(settings, parameters, x):
    layers = nn.Sequential(
        nn.Linear(settings["d_model"], settings["d_ff"], dtype=torch.float64),
        nn.ReLU(),
        nn.Linear(settings["d_ff"], settings["d_model"], dtype=torch.float64),
    )
    return functional_call(layers, _renamed(parameters, linear1="0", linear2="2"), (x,))


def _feed_forward_conv(settings, parameters, x):
    layers = nn.Sequential(
        nn.Conv1d(settings["d_model"], settings["d_ff"], 1, dtype=torch.float64),
        nn.ReLU(),
        nn.Conv1d(settings["d_ff"], settings["d_model"], 1, dtype=torch.float64),
    )
    return functional_call(layers, _renamed(parameters, conv1="0", conv2="2"), (x.mT,)).mT


def _new_encoder_layer(settings, dtype=torch.float64):
    return nn.TransformerEncoderLayer(**_pytorchs_settings(settings), dtype=dtype)


def _new_decoder_layer(settings, dtype=torch.float64):
    return nn.TransformerDecoderLayer(**_pytorchs_settings(settings), dtype=dtype)


def _encoder_layer(settings, parameters, x, mask=None, seen=None, layer=None):
    layer = layer or _new_encoder_layer(settings)
    watch(layer.self_attn, seen)
    hidden = _hidden(mask, x, x, settings["num_heads"])
    return functional_call(layer, _pytorchs_names(parameters), (x, hidden))


def _decoder_layer(
    settings, parameters, x, memory, mask=None, memory_mask=None, seen=None, layer=None
):
    layer = layer or _new_decoder_layer(settings)
    watch(layer.self_attn, seen)
    watch(layer.multihead_attn, seen)
    heads = settings["num_heads"]
    masks = _hidden(mask, x, x, heads), _hidden(memory_mask, x, memory, heads)
    return functional_call(layer, _pytorchs_names(parameters), (x, memory, *masks))


def _stack(settings, parameters, run_one, x, *others, seen=None, made=None, side=""):
    for index in range(settings["num_layers"]):
        inside, layer = _inside(parameters, f"layers.{index}"), (made or {}).get((side, index))
        x = run_one(settings, inside, x, *others, seen=seen, layer=layer)
    last = _inside(parameters, "norm")
    return _layer_norm({}, last, x) if last else x


def _encoder(settings, parameters, x, mask=None, **more):
    return _stack(settings, parameters, _encoder_layer, x, mask, **more)


def _decoder(settings, parameters, x, memory, mask=None, memory_mask=None, **more):
    return _stack(settings, parameters, _decoder_layer, x, memory, mask, memory_mask, **more)


def _vectors(parameters, name, ids):
    tied = parameters["source_embedding.weight"]
    table = parameters.get(f"{name}_embedding.weight", tied)
    d_model, length = table.shape[1], ids.shape[1]
    if "positions.weight" in parameters:
        positions = parameters["positions.weight"][torch.arange(length)]
    else:
        positions = sinusoidal_encoding(length, d_model).to(table.dtype)
    return torch.add(positions, F.embedding(ids, table), alpha=math.sqrt(d_model))


def _encode(settings, parameters, source, mask=None, **more):
    stack = settings | {"num_layers": settings["num_encoder_layers"]}
    x = _vectors(parameters, "source", source)
    return _encoder(stack, _inside(parameters, "encoder"), x, mask, side="encoder", **more)


def _decode(settings, parameters, target, memory, mask=None, memory_mask=None, **more):
    stack = settings | {"num_layers": settings["num_decoder_layers"]}
    x = _vectors(parameters, "target", target)
    inside = _inside(parameters, "decoder")
    x = _decoder(stack, inside, x, memory, mask, memory_mask, side="decoder", **more)
    return F.linear(x, parameters.get("output.weight", parameters["source_embedding.weight"]))


def _transformer(settings, parameters, source, target, made=None):
    source_mask, target_mask = visible(source, target)
    memory = _encode(settings, parameters, source, source_mask, made=made)
    return _decode(settings, parameters, target, memory, target_mask, source_mask, made=made)


def _recurrent(settings, parameters, x):
    named = {"weight_ih_l0": parameters["w_x"].mT, "weight_hh_l0": parameters["w_h"].mT}
    module = nn.RNN(x.shape[1], x.shape[1], bias=False, dtype=torch.float64)
    return functional_call(module, named, (x,))[0]


def _convolution(settings, parameters, x):
    """nn.Conv1d's kernel runs forwards in time, ours backwards."""
    kernel, dilation = parameters["w"].flip(0).permute(2, 1, 0), settings["dilation"]
    before = F.pad(x.mT, ((kernel.shape[2] - 1) * dilation, 0))
    return F.conv1d(before, kernel, dilation=dilation).mT


def _attention(settings, parameters, x):
    return F.scaled_dot_product_attention(x[None], x[None], x[None])[0]


FUNCTIONS = {
    "LayerNorm": _layer_norm,
    "FeedForward": _feed_forward,
    "FeedForwardConv": _feed_forward_conv,
    "EncoderLayer": _encoder_layer,
    "DecoderLayer": _decoder_layer,
    "Encoder": _encoder,
    "Decoder": _decoder,
    "Transformer": _transformer,
    "Transformer.encode": _encode,
    "Transformer.decode": _decode,
    "recurrent": _recurrent,
    "convolution": _convolution,
    "attention": _attention,
}


def watch(attention, seen):
    """Let an nn.MultiheadAttention put its weights into a list, if there is one."""
    if seen is None:
        return
    attend = attention.forward

    def attend_and_record(*args, **kwargs):
        options = {"need_weights": True, "average_attn_weights": False}
        out, weights = attend(*args, **kwargs | options)
        seen.append(weights)
        return out, weights

    attention.forward = attend_and_record


def _hidden(mask, queries, keys, heads):
    """The mask as PyTorch's layers expect it: True where attention is not allowed, per head."""
    if mask is None:
        return None
    shape = (len(queries), queries.shape[1], keys.shape[1])
    return mask.logical_not().expand(shape).repeat_interleave(heads, dim=0)


def _pytorchs_settings(settings):
    return {
        "d_model": settings["d_model"],
        "nhead": settings["num_heads"],
        "dim_feedforward": settings["d_ff"],
        "dropout": 0.0,
        "batch_first": True,
        "norm_first": settings.get("norm", "pre") == "pre",
    }


def _pytorchs_names(parameters):
    """The parameters of a layer under the names that PyTorch's layers have for them."""
    named = {name: p for name, p in parameters.items() if name.startswith("norm")}
    named |= _inside(parameters, "feed_forward")
    for ours, theirs in (("self_attention", "self_attn"), ("cross_attention", "multihead_attn")):
        attention = _inside(parameters, ours)
        for kind in ("weight", "bias") if attention else ():
            three = [attention[f"{name}.{kind}"] for name in ("query", "key", "value")]
            named[f"{theirs}.in_proj_{kind}"] = torch.cat(three)
            named[f"{theirs}.out_proj.{kind}"] = attention[f"out.{kind}"]
    return named


def _inside(parameters, prefix):
    """The parameters whose names begin with the prefix, without it."""
    start = f"{prefix}."
    return {n.removeprefix(start): p for n, p in parameters.items() if n.startswith(start)}


def _renamed(parameters, **others):
    """The parameters with another name for each layer."""
    pairs = ((name.split("."), p) for name, p in parameters.items())
    return {f"{others[layer]}.{kind}": p for (layer, kind), p in pairs}


def _cross_entropy(logits, targets, smoothing):
    return F.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=0, label_smoothing=smoothing
    )


def _is_float(value):
    return value is not None and value.is_floating_point()


def _double(value):
    """A float64 copy of a float tensor; anything else unchanged."""
    return value.detach().to(torch.float64, copy=True) if _is_float(value) else value


def _dtype(parameters, inputs):
    return next(value.dtype for value in (*parameters.values(), *inputs) if _is_float(value))
