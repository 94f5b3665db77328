"""Remote operations on PyTorch modules: gradients (vjp), parameters, optimizer steps."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from common.check_log import check
from common.student_code.values import Handle, is_tensor, kind_of
from common.testing.compare import assert_close


def vjp(
    function: Handle, inputs: Sequence[Any], cotangents: Sequence[Any], **kwargs: Any
) -> tuple[list[Any], list[Any], dict[str, Any]]:
    """Call a function or a module, and run backward from what it returns.

    inputs: the positional arguments; those of a float type get gradients.
    cotangents: the gradient of each tensor that is returned, in order; None for one without.
    Returns (outputs, gradients of the inputs, gradients of a module's parameters by name). What an
    output doesn't depend on has a gradient of zeros; an input that is not a float has None.
    """
    details = (function, list(inputs), list(cotangents), kwargs)
    outputs, inner, parameters = function._face.operate("vjp", function._label, details, {})
    return outputs, inner, parameters


def compare_gradient(
    actual: Any, right: Any, largest: float, what: str, *, tolerance: float | None
) -> None:
    """An error counts as a part of the gradient's largest entry, or of the largest of all.

    All gradients come from the same sums. One that is small compared to the others, or 0 but for
    rounding as that of the keys' bias, has rounding errors of their size.
    """
    import torch

    if float(right.abs().max()) < 0.1 * largest and actual.shape == right.shape:
        beside = torch.tensor([largest], dtype=right.dtype)
        actual, right = (torch.cat([values.flatten(), beside]) for values in (actual, right))
    assert_close(actual, right, what, tolerance=tolerance)


def compare_gradients(
    gradients: Mapping[str, Any],
    wanted: Mapping[str, Any],
    situation: str,
    *,
    tolerance: float | None = None,
    more: Mapping[str, tuple[Any, Any]] | None = None,
) -> None:
    """The gradients of parameters by name, and more pairs of an actual and a right one."""
    pairs = dict(more or {})
    for name, right in wanted.items():
        check(
            name in gradients,
            f"{name} has no gradient.",
            help="Does it have requires_grad=False?",
        )
        pairs[name] = gradients[name], right
    largest = max(float(right.abs().max()) for _, right in pairs.values())
    for name, (actual, right) in pairs.items():
        what = f"the gradient of {name} ({situation})"
        compare_gradient(actual, right, largest, what, tolerance=tolerance)


def parameters_of(module: Handle) -> dict[str, Any]:
    """The values of a module's parameters, by name."""
    return module._face.operate("parameters_of", module._label, (module,), {})


def new_module(student: Handle, kind: str, *sizes: Any, **settings: Any) -> Handle:
    """A new module of the student's class of that name."""
    module = getattr(student, kind)(*sizes, **settings)
    check(
        isinstance(module, Handle),
        f"{kind} must be a subclass of nn.Module, but calling it returned {kind_of(module)}.",
    )
    return module


def check_same_weights(module: Handle, values: dict[str, Any], what: str) -> None:
    """The module still has the weights that it was given."""
    found = parameters_of(module)
    for name, value in values.items():
        same = name in found and value.equal(found[name])
        check(same, f"{what} modifies the parameters: {name} differs afterwards.")


def load_parameters(module: Handle, values: dict[str, Any], what: str = "") -> None:
    """Give a module's parameters these values. Names and shapes must be the ones that it has.

    what: how failures name the module, where the name of its class doesn't say enough.
    """
    present = parameters_of(module)
    what = what or module._label
    check_registered(module, present, values)
    for name, value in values.items():
        check(
            name in present,
            f"{what} has no parameter named {name}.",
            f"It has {', '.join(map(str, present)) or 'none'}.",
            "Keep the stub's parameter names: the tests set parameters by name.",
        )
        check(
            present[name].shape == value.shape,
            f"The parameter {name} of {what} has the wrong shape.",
            f"got {tuple(present[name].shape)}, expected {tuple(value.shape)}",
            "The stub's docstring gives the shape of every parameter.",
        )
    extra = [name for name in present if name not in values]
    check(not extra, f"{what} has unexpected parameters.", f"{', '.join(map(str, extra))}.")
    module._face.operate("load_parameters", module._label, (module, values), {})


def check_registered(module: Handle, present: dict[str, Any], names: Iterable[str]) -> None:
    """Modules in a Python list or dict are there, but PyTorch doesn't see them."""
    for container in sorted({name.partition(".")[0] for name in names if name not in present}):
        kind = module._face.operate("kind_of_attribute", module._label, (module, container), {})
        for unseen, proper in (("list", "nn.ModuleList"), ("dict", "nn.ModuleDict")):
            check(
                kind != unseen,
                f"{module._label}.{container} is a Python {unseen}: "
                "PyTorch doesn't see modules in it.",
                help=f"Use {proper}: otherwise its parameters aren't trained.",
            )


def stored_gradients(module: Handle) -> dict[str, Any]:
    """What lies in the .grad of a module's parameters, by name. Those without one are left out."""
    return module._face.operate("stored_gradients", module._label, (module,), {})


def gradients_left(function: Handle, *inputs: Any) -> list[Any]:
    """Call the function with inputs that ask for gradients; what lies in the .grad of each then.

    Those of a float type ask. None for an input that has no .grad afterwards.
    """
    return function._face.operate("gradients_left", function._label, (function, inputs), {})


def seed_torch(student: Handle, seed: int) -> None:
    """Seed PyTorch's random numbers in the student's process, whatever its code imports."""
    student._face.operate("seed_torch", "seed_torch", (seed,), {})


def loss_gradients(module: Handle, loss: Handle, *args: Any) -> tuple[Any, dict[str, Any] | None]:
    """Call loss, and run backward from the number that it returns.

    Returns (that number, the gradients of the module's parameters by name). What the number
    doesn't depend on has a gradient of zeros. Where there is nothing to run backward from, such as
    a tensor of another shape or one that needs no gradient, the gradients are None.
    """
    return module._face.operate("loss_gradients", loss._label, (module, loss, args), {})


def step_with_gradients(module: Handle, optimizer: Handle, gradients: dict[str, Any]) -> None:
    """Set the .grad of a module's parameters by name, and let the optimizer take a step.

    A parameter that isn't named has no gradient.
    """
    details = (module, optimizer, gradients)
    module._face.operate("step_with_gradients", optimizer._label, details, {})


def hooks_of(module: Handle) -> int:
    """How many hooks are on a module and on the modules in it, of any kind."""
    return module._face.operate("hooks_of", module._label, (module,), {})


def tracked_entries(function: Handle, *args: Any) -> list[str]:
    """Call a function that returns a dict, and name the tensors in it that have gradients."""
    return function._face.operate("tracked_entries", function._label, (function, args), {})


def _vjp(
    function: Callable[..., Any], inputs: list[Any], cotangents: list[Any], kwargs: dict[str, Any]
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
            # The test reports outputs of another type or shape: it compares them first.
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


def _kind_of_attribute(owner: Any, name: str) -> str:
    return type(getattr(owner, name, None)).__name__


def _stored_gradients(module: Any) -> dict[str, Any]:
    return {name: p.grad for name, p in module.named_parameters() if p.grad is not None}


def _load_parameters(module: Any, values: dict[str, Any]) -> None:
    import torch

    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(values[name])


def _gradients_left(function: Callable[..., Any], inputs: tuple[Any, ...]) -> list[Any]:
    floats = [is_tensor(value) and value.is_floating_point() for value in inputs]
    for value, yes in zip(inputs, floats, strict=True):
        if yes:
            value.requires_grad_()
    function(*inputs)
    return [value.grad if yes else None for value, yes in zip(inputs, floats, strict=True)]


def _seed_torch(seed: int) -> None:
    import torch

    torch.manual_seed(seed)


def _step_with_gradients(module: Any, optimizer: Any, gradients: dict[str, Any]) -> None:
    for name, parameter in module.named_parameters():
        value = gradients.get(name)
        parameter.grad = None if value is None else value.to(parameter.device)
    optimizer.step()


def _hooks_of(module: Any) -> int:
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return sum(len(getattr(part, kind)) for part in module.modules() for kind in kinds)


def _tracked_entries(function: Callable[..., Any], args: tuple[Any, ...]) -> list[str]:
    import torch

    with torch.enable_grad():
        found = function(*args)
    entries = found.items() if isinstance(found, dict) else ()
    return [str(name) for name, value in entries if is_tensor(value) and value.requires_grad]


def _loss_gradients(
    module: Any, loss: Callable[..., Any], args: tuple[Any, ...]
) -> tuple[Any, dict[str, Any] | None]:
    import torch

    value = loss(*args)
    if not is_tensor(value) or value.ndim > 0 or not value.requires_grad:
        return value, None
    named = dict(module.named_parameters())
    wanted = {name: parameter for name, parameter in named.items() if parameter.requires_grad}
    found = torch.autograd.grad(value, list(wanted.values()), allow_unused=True)
    gradients = {name: torch.zeros_like(parameter) for name, parameter in named.items()}
    pairs = zip(wanted, found, strict=True)
    return value, gradients | {name: part for name, part in pairs if part is not None}


MODULE_OPERATIONS: dict[str, Callable[..., Any]] = {
    "vjp": _vjp,
    "parameters_of": _parameters_of,
    "kind_of_attribute": _kind_of_attribute,
    "stored_gradients": _stored_gradients,
    "load_parameters": _load_parameters,
    "gradients_left": _gradients_left,
    "seed_torch": _seed_torch,
    "step_with_gradients": _step_with_gradients,
    "hooks_of": _hooks_of,
    "tracked_entries": _tracked_entries,
    "loss_gradients": _loss_gradients,
}
