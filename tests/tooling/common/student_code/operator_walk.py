"""Calls all that PyTorch offers where an exercise's forbidden operators are removed.

Run as `python -m tests.tooling.common.student_code.operator_walk a6 6.3`: prints what was refused,
which calls reached a removed operator, and which returned its result. All happens in forks.
"""

import contextlib
import inspect
import itertools
import json
import os
import signal
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch._dynamo
import torch.nn.functional as F
from torch.autograd.profiler import profile

from common.assignment import load_assignment
from common.errors import ForbiddenCall
from common.student_code.forbidden_calls import Guard

Answers = dict[str, list[torch.Tensor]]

SECONDS = 2  # of processor time for one callable; what takes longer or waits is ended
# What waits, reads or writes files, or brings PyTorch down where it is given such arguments.
LEFT_OUT = (
    *("load", "save", "from_file", "abort", "crash", "exit", "wait", "barrier", "set_num"),
    *("_fft_r2c", "nnpack", "lstm_cell_backward", "cudnn_batch_norm_b", "miopen_batch_norm_b"),
)
SHAPES = ((2, 3, 4, 8), (4, 8))
CHUNK = 200  # so many callables are profiled at once
# Values of arguments, by their names in schemas; shapes stand for tensors.
BY_NAME: dict[str, Any] = {
    **dict.fromkeys(("weight", "norm_weight_1", "norm_weight_2", "running_var"), torch.ones(8)),
    **dict.fromkeys(("bias", "norm_bias_1", "norm_bias_2", "running_mean"), torch.zeros(8)),
    **dict.fromkeys(("proj_bias", "ffn_bias_1", "ffn_bias_2"), torch.zeros(8)),
    **dict.fromkeys(("proj_weight", "ffn_weight_1", "ffn_weight_2"), torch.eye(8)),
    **{"qkv_weight": torch.eye(8).repeat(3, 1), "qkv_bias": torch.zeros(24)},
    **{"embed_dim": 8, "num_heads": 2, "num_head": 2, "eps": 1e-5, "momentum": 0.1},
    **{"N": 2, "C": 3, "HxW": 32, "group": 1, "num_groups": 1, "groups": 1},
    **{"dropout_p": 0.0, "is_causal": False, "p": 0.0, "dim": -1},
}
BY_TYPE = {"int": 1, "SymInt": 1, "float": 0.5, "bool": True, "number": 1.0, "Scalar": 1.0}


def inputs() -> list[torch.Tensor]:
    """The tensors that everything is called with."""
    torch.manual_seed(0)
    return [torch.randn(shape) for shape in SHAPES]


def answers() -> Answers:
    """What the forbidden operators make of the inputs."""
    targets = torch.arange(4)
    return {
        "layer norm": [F.layer_norm(x, (8,)) for x in inputs()],
        "attention": [F.scaled_dot_product_attention(x, x, x) for x in inputs()],
        "cross entropy": [F.cross_entropy(inputs()[-1], targets)],
    }


def value(argument: Any, x: torch.Tensor, full: bool) -> Any:
    """A value for an argument of a schema."""
    kind = str(argument.type)
    if kind.startswith("Optional") and not full:
        return None
    if argument.name in BY_NAME and "List" not in kind:
        return BY_NAME[argument.name]
    if argument.has_default_value() and not full:
        return argument.default_value
    if argument.name == "target":
        return torch.arange(4)
    if "List[Tensor]" in kind or "List[Optional[Tensor]]" in kind:
        return [x, x]
    if "Tensor" in kind:
        return x
    if "List" in kind:
        return [8]
    return next((BY_TYPE[name] for name in BY_TYPE if name in kind), None)


def schema_calls(overload: Any) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Arguments that an overload may take."""
    for x, full in itertools.product(inputs(), (False, True)):
        args, options = [], {}
        for argument in overload._schema.arguments:
            if argument.kwarg_only:
                options[argument.name] = value(argument, x, full)
            else:
                args.append(value(argument, x, full))
        yield args, options
        optional = any("Optional[Tensor]" in str(kind.type) for kind in overload._schema.arguments)
        if optional and not full:
            yield [BY_NAME["weight"] if arg is None else arg for arg in args], options


def plain_calls() -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Arguments for whatever has no schema."""
    one, zero = BY_NAME["weight"], BY_NAME["bias"]
    for x in inputs():
        for more in ([], [x], [x, x], [[8]], [1], [-1], [[8], one, zero, 1e-5], [[-1], 1e-5]):
            yield [x, *more], {}
    yield [inputs()[-1], torch.arange(4)], {}
    rows = inputs()[-1][None]
    yield [rows, None, None, None, None, True, 0.0, 1e-5], {}
    yield [rows, None, None, None, None, True, 0.0, 1e-5, True], {}


def module_calls(kind: type) -> Iterator[Callable[[], Any]]:
    """Modules of a class, called."""
    for sizes in ((), (8,), (3,), (8, 8), (8, 2), (1, 8), (1, 3), (8, 2, 8)):
        with contextlib.suppress(Exception):
            module = kind(*sizes).eval()
            for x, times in itertools.product(inputs(), (1, 2, 3)):
                yield lambda module=module, given=[x] * times: module(*given)
            yield lambda module=module: module(inputs()[-1], torch.arange(4))


def packets() -> dict[str, list[Any]]:
    """All overloads of PyTorch's operators, by the operator's name."""
    found: dict[str, list[Any]] = {}
    for name in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = name.partition("::")
        operator, _, overload = rest.partition(".")
        if namespace in ("aten", "prims", "quantized"):
            packet = getattr(getattr(torch.ops, namespace), operator)
            found.setdefault(operator, []).append(getattr(packet, overload or "default"))
    return found


def callables() -> Iterator[tuple[str, list[Callable[[], Any]]]]:
    """Everything that can be called: its name, and calls of it."""
    overloads = packets()
    for found in overloads.values():
        for overload in found:
            calls = [
                lambda f=overload, a=args, o=options: f(*a, **o)
                for args, options in schema_calls(overload)
            ]
            yield str(overload), calls
    places: list[tuple[str, Any, str]] = [
        *(("torch", torch, ""), ("torch.nn.functional", F, ""), ("torch.Tensor", torch.Tensor, "")),
        *(("torch._VF", torch._C._VariableFunctions, ""), ("torch._C._nn", torch._C._nn, "")),
        *(("torch.special", torch.special, "special_"), ("torch.fft", torch.fft, "fft_")),
        *(("torch.linalg", torch.linalg, "linalg_"), ("torch.func", torch.func, "")),
        *(("torch._refs", torch._refs, ""), ("torch._refs.nn.functional", F_REFS, "")),
        ("torch._decomp.decompositions", torch._decomp.decompositions, ""),
        ("torch.ao.nn.quantized.functional", torch.ao.nn.quantized.functional, ""),
    ]
    for place, holder, prefix in places:
        for name in dir(holder):
            function = getattr(holder, name, None)
            if inspect.isclass(function) or isinstance(function, types.ModuleType):
                continue
            if callable(function) and not name.startswith("__"):
                given = [
                    call
                    for overload in overloads.get(prefix + name, ())
                    for call in schema_calls(overload)
                ]
                calls = [
                    lambda f=function, a=args, o=options: f(*a, **o)
                    for args, options in given or plain_calls()
                ]
                yield f"{place}.{name}", calls
    for name in dir(torch.nn):
        kind = getattr(torch.nn, name)
        if isinstance(kind, type) and issubclass(kind, torch.nn.Module):
            yield f"torch.nn.{name}", list(module_calls(kind))


F_REFS = torch._refs.nn.functional


def tensors_in(found: Any, depth: int = 3) -> Iterator[torch.Tensor]:
    """The tensors in what a call returned."""
    if isinstance(found, torch.Tensor):
        yield found
    elif isinstance(found, tuple | list) and depth:
        for part in found[:4]:
            yield from tensors_in(part, depth - 1)


def matches(found: Any, expected: torch.Tensor) -> bool:
    """Whether a call returned that answer, in whatever shape."""
    return any(
        tensor.dtype == torch.float32
        and tensor.layout == torch.strided
        and tensor.numel() == expected.numel()
        and torch.allclose(tensor.detach().reshape(expected.shape), expected, atol=1e-4)
        for tensor in tensors_in(found)
    )


def walk(first: int, wanted: set[str], answers: Answers, report: Callable[..., None]) -> None:
    """Call everything from that number on, and report on each callable."""
    returned: list[Callable[[], Any]] = []
    for number, (name, calls) in enumerate(callables()):
        if number < first or any(part in name for part in LEFT_OUT):
            continue
        report("begin", number, name)
        limit(SECONDS)
        refused, done = False, []
        for call in calls:
            try:
                found = call()
                done.append(call)
                for what, values in answers.items():
                    if any(matches(found, one) for one in values):
                        report("returned", number, what)
            except (Exception, SystemExit) as error:
                refused |= isinstance(error, ForbiddenCall)
        limit(0)
        report("end", number, bool(done), refused)
        returned += done[:2]
        if number % CHUNK == 0:
            report("reached", number, operators_reached(returned, wanted))
            returned.clear()
    report("reached", number, operators_reached(returned, wanted))


def limit(seconds: int) -> None:
    """End this process when it has worked for so long, or waited ten times as long."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(10 * seconds)


def operators_reached(calls: list[Callable[[], Any]], wanted: set[str]) -> list[str]:
    """Those of the operators that calls reach which return."""
    limit(10 * SECONDS)
    with profile() as events:
        for call in calls:
            with contextlib.suppress(Exception):
                call()
    limit(0)
    return sorted({event.name for event in events.function_events} & wanted)


def walk_in_forks(remove: Callable[[], None], wanted: set[str]) -> dict[str, Any]:
    """Walk in a fork, and in another one from where the last one broke off."""
    expected = answers()
    result: dict[str, Any] = {
        **{"called": 0, "broke": []},
        **{"refused": [], "returned": [], "reached": []},
    }
    first, finished = 0, False
    while not finished:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            with open(writing, "w", buffering=1) as pipe:
                remove()
                walk(first, wanted, expected, lambda *line: print(json.dumps(line), file=pipe))
            os._exit(0)
        os.close(writing)
        name = ""
        with open(reading) as pipe:
            for kind, number, *rest in map(json.loads, pipe):
                match kind:
                    case "begin":
                        first, name = number + 1, rest[0]
                    case "returned":
                        result["returned"].append((name, rest[0]))
                    case "reached":
                        result["reached"] += rest[0]
                    case _:
                        result["called"] += rest[0]
                        result["refused"] += [name] * rest[1]
        finished = os.waitpid(pid, 0)[1] == 0
        if not finished:
            result["broke"].append(name)
    return result


def main() -> None:
    """Walk, and print the result."""
    short, exercise = sys.argv[1:]
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    assignment = load_assignment(short)
    forbidden = assignment.forbidden_in(exercise)
    guard = Guard(assignment.forbidden)
    wanted = {operator for entry in forbidden for operator in entry.operators}

    def remove() -> None:
        guard.forbid(forbidden)
        guard.__enter__()
        guard.remove()

    print(json.dumps(walk_in_forks(remove, wanted)))


if __name__ == "__main__":
    main()
