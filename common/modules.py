"""What tests ask of PyTorch code: its gradients, and its weights by their names."""

from collections.abc import Callable, Sequence
from typing import Any

from common.comparison import check
from common.values import Handle, is_tensor


def vjp(
    function: Handle, inputs: Sequence[Any], cotangents: Sequence[Any], **kwargs: Any
) -> tuple[list[Any], list[Any], dict[str, Any]]:
    """Call a function or a module, and run backward from what it returns.

    inputs: the positional arguments; those of a float type get gradients.
    cotangents: the gradient of each tensor that is returned, in order; None for one without.
    Returns (outputs, gradients of the inputs, gradients of a module's parameters by name). What an
    output doesn't depend on has a gradient of zeros; an input that is no float has None.
    """
    details = (function, list(inputs), list(cotangents), kwargs)
    outputs, inner, parameters = function._face.operate("vjp", function._label, details, {})
    return outputs, inner, parameters


def parameters_of(module: Handle) -> dict[str, Any]:
    """The values of a module's parameters, by name."""
    return module._face.operate("parameters_of", module._label, (module,), {})


def load_parameters(module: Handle, values: dict[str, Any]) -> None:
    """Give a module's parameters these values. Names and shapes must be the ones that it has."""
    present = parameters_of(module)
    what = module._label
    for name, value in values.items():
        check(
            name in present,
            f"{what} has no parameter called {name}.",
            f"It has {', '.join(present) or 'none'}.",
            "Keep the names that the stub gives: weights are copied in by name.",
        )
        check(
            present[name].shape == value.shape,
            f"The parameter {name} of {what} has a wrong shape.",
            f"got {tuple(present[name].shape)}, expected {tuple(value.shape)}",
            "The stub's docstring gives the shape of every parameter.",
        )
    extra = [name for name in present if name not in values]
    check(not extra, f"{what} has parameters that the stub doesn't name: {', '.join(extra)}.")
    module._face.operate("load_parameters", what, (module, values), {})


def _vjp(
    function: Callable, inputs: list[Any], cotangents: list[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], list[Any], dict[str, Any]]:
    import torch

    is_float = [is_tensor(value) and value.is_floating_point() for value in inputs]
    wanted = [value.requires_grad_() for value, yes in zip(inputs, is_float, strict=True) if yes]
    parameters = {}
    if isinstance(function, torch.nn.Module):
        parameters = {name: p for name, p in function.named_parameters() if p.requires_grad}
    with torch.enable_grad():
        result = function(*inputs, **kwargs)
        outputs = list(result) if isinstance(result, tuple | list) else [result]
        pairs = [
            (out, cotangent)
            for out, cotangent in zip(outputs, cotangents, strict=False)
            if cotangent is not None
        ]
        for out, cotangent in pairs:
            # Outputs of another kind or shape are told by the test, which compares them first.
            if not is_tensor(out) or out.shape != cotangent.shape:
                return outputs, [], {}
        sources = [*wanted, *parameters.values()]
        if all(out.requires_grad for out, _ in pairs):
            found = torch.autograd.grad(
                [out for out, _ in pairs],
                sources,
                [cotangent.to(out.dtype) for out, cotangent in pairs],
                allow_unused=True,
            )
        else:
            found = (None,) * len(sources)
    gradients = [
        torch.zeros_like(source) if gradient is None else gradient
        for source, gradient in zip(sources, found, strict=True)
    ]
    inner = iter(gradients[: len(wanted)])
    return (
        outputs,
        [next(inner) if yes else None for yes in is_float],
        dict(zip(parameters, gradients[len(wanted) :], strict=True)),
    )


def _parameters_of(module: Any) -> dict[str, Any]:
    return dict(module.named_parameters())


def _load_parameters(module: Any, values: dict[str, Any]) -> None:
    import torch

    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(values[name])


MODULE_OPERATIONS: dict[str, Callable] = {
    "vjp": _vjp,
    "parameters_of": _parameters_of,
    "load_parameters": _load_parameters,
}
