"""A submission that computes by what PyTorch loads late, compiles from source or traces.

Tests read this file as text: it runs in a sandbox. Each function returns a result and what it
should be.
"""

import importlib.resources
import inspect
import json
import linecache
import traceback

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

X = torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(2, 3)


def f(x):
    return torch.softmax(2 * x, -1).sin()


def jacobian():
    return torch.autograd.functional.jacobian(f, X)


# Differentiation


def jacfwd():
    return torch.func.jacfwd(f)(X), jacobian()


def forward_mode_jacobian():
    functional = torch.autograd.functional
    return functional.jacobian(f, X, strategy="forward-mode", vectorize=True), jacobian()


def hessian():
    def total(x):
        return f(x).sum()

    return torch.func.hessian(total)(X), torch.autograd.functional.hessian(total, X)


def jvp():
    _, tangent = torch.func.jvp(f, (X,), (X,))
    return tangent, torch.einsum("abcd,cd->ab", jacobian(), X)


def linearize():
    _, tangent = torch.func.linearize(f, X)
    return tangent(X), torch.einsum("abcd,cd->ab", jacobian(), X)


def gradcheck():
    x = X.clone().requires_grad_()
    right = torch.autograd.gradcheck(f, (x,), check_forward_ad=True)
    return torch.tensor(right), torch.tensor(True)


def checkpoint():
    from torch.utils.checkpoint import checkpoint

    x = X.clone().requires_grad_()
    checkpoint(f, x, use_reentrant=False).sum().backward()
    return x.grad, jacobian().sum((0, 1))


# Transforms


def vmap():
    return torch.func.vmap(torch.dot)(X, X), (X * X).sum(-1)


def functional_call():
    layer = nn.Linear(3, 2).double()

    def loss(parameters, x):
        return torch.func.functional_call(layer, parameters, (x,)).sum()

    gradients = torch.func.vmap(torch.func.grad(loss), (None, 0))
    return gradients(dict(layer.named_parameters()), X)["weight"], X[:, None].expand(2, 2, 3)


def autograd_function():
    class Twice(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return 2 * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, gradient):
            return 2 * gradient

    def total(x):
        return Twice.apply(x).sum()

    return torch.func.vmap(torch.func.grad(total))(X), torch.full_like(X, 2)


def parametrize():
    layer = nn.utils.parametrizations.orthogonal(nn.Linear(3, 3).double())
    return layer.weight @ layer.weight.mT, torch.eye(3, dtype=torch.float64)


# Graphs


def symbolic_trace():
    return torch.fx.symbolic_trace(f)(X), f(X)


def make_fx():
    from torch.fx.experimental.proxy_tensor import make_fx

    return make_fx(f)(X)(X), f(X)


def export():
    layer = nn.Linear(3, 2).double()
    return torch.export.export(layer, (X,)).module()(X), layer(X)


def script():
    return torch.jit.script(nn.GELU())(X), F.gelu(X)


def cond():
    """It goes through torch.compile, with a backend that compiles nothing."""
    chosen = torch.cond(torch.tensor(True), lambda x: x + 1, lambda x: x - 1, (X,))
    return chosen, X + 1


# Late imports


def distributions():
    from torch.distributions import MultivariateNormal, kl_divergence

    normal = MultivariateNormal(X[0], torch.eye(3, dtype=torch.float64))
    return kl_divergence(normal, normal), torch.tensor(0.0, dtype=torch.float64)


def pruning():
    from torch.nn.utils import prune

    layer = prune.l1_unstructured(nn.Linear(3, 2).double(), "weight", amount=2)
    return (layer.weight == 0).sum(), torch.tensor(2)


def counting():
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counted:
        X @ X.mT
    return torch.tensor(counted.get_total_flops()), torch.tensor(2 * 2 * 2 * 3)


def dynamo():
    import torch._dynamo

    return torch._dynamo.is_compiling() + X, X


# Sources of libraries: the first line of each


def sources():
    return [inspect.getsource(part) for part in (F.softmax, np.linalg.norm, json.dumps, f)]


def opened():
    lines = []
    for module in (torch, np, json):
        with open(module.__file__) as stream:
            lines.append(len(stream.readlines()) == len(linecache.getlines(module.__file__)) > 0)
    return [*lines, importlib.resources.files("json").joinpath("decoder.py").is_file()]


def tracebacks():
    texts = []
    for action in (lambda: json.loads("?"), lambda: F.one_hot(X), lambda: F.relu(None)):
        try:
            action()
        except (ValueError, RuntimeError, TypeError):
            texts.append(traceback.format_exc())
    return texts
