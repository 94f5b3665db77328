"""Tests of the battery: each broken promise has its own sentence, through both faces."""

import msgspec
import numpy as np
import pytest
import torch

from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.grading.sandbox.sandbox import Sandbox
from common.assignment import load_assignment
from common.errors import Failure
from common.testing.battery.battery_case import Case
from common.testing.battery.promise_checks import check_promises
from common.testing.direct_face import DirectFace
from tests.tooling.grading_fixtures import FACES, code_in

CODE = b"""
import random
import warnings

import numpy as np

kept, ids, buffer, last = {}, {}, np.zeros(3), []


def double(x):
    return 2 * x


def in_place(x):
    x *= 2
    return x.copy()


def reshaped(x):
    x.shape = (1, 3)
    return 2 * x


def sorted_keys(weights):
    items = sorted(weights.items())
    weights.clear()
    weights.update(items)
    return sum(weights.values()).copy()


def nested(arrays):
    arrays[0] += 1
    return arrays[0] * 2


def into_buffer(x):
    buffer[:] = 2 * x
    return buffer


def memo(x):
    return kept.setdefault(x.tobytes(), 2 * x)


def of_list(x):
    return kept.setdefault(x.tobytes(), [float(each) for each in x])


def by_id(x):
    return ids.setdefault(id(x), (x, 2 * x))[1].copy()


def view(x):
    return x[::-1]


def of_the_last(x):
    last.append(x.copy())
    return 2 * x + last[-2 if len(last) > 1 else -1]


def constant(x):
    return np.ones(3)


def nothing(x):
    return None


def silenced(x):
    np.seterr(divide="ignore")
    return 2 * x


def filtered(x):
    warnings.simplefilter("ignore")
    return 2 * x


def seeded(x):
    np.random.seed(0)
    return 2 * x


def shuffled(x):
    random.random()
    return 2 * x


def with_cache(x):
    return 2 * x, {"x": x}


def backward(dout, cache):
    return dout * cache["x"]


def popping(dout, cache):
    return dout * cache.pop("x", 0)


class Counter:
    def __init__(self):
        self.count = 0

    def add(self, x):
        self.count += 1
        return x + self.count

    def double(self, x):
        return 2 * x


def draw(x):
    return x + np.random.normal()
"""


def draw(student, rng):
    return (rng.normal(size=3),)


def failure_of(student, function, inputs="x", draw=draw, **settings):
    """What the battery says about one function; "" if all is well."""
    try:
        check_promises(
            student, np.random.default_rng(3), [Case(function, inputs, draw, **settings)]
        )
    except Failure as failure:
        return failure.explanation.sentence
    return ""


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        ("double", ""),
        ("in_place", "in_place changes the values of its input x."),
        ("reshaped", "reshaped changes the values of its input x."),
        ("into_buffer", "A call of into_buffer changes what an earlier call returned."),
        ("memo", "Writing into what memo returned changes what it returns later."),
        ("of_list", "Writing into what of_list returned changes what it returns later."),
        ("by_id", "by_id doesn't notice that the caller has changed an input in place"),
        ("view", "Writing into what view returned changes its input x: it is a view of it."),
        ("of_the_last", "of_the_last remembers something"),
        ("constant", "constant returns the same for different inputs."),
        ("nothing", "nothing returned None."),
        ("silenced", "silenced changes NumPy's error handling (np.seterr)."),
        ("filtered", "filtered changes the filters of warnings."),
        ("seeded", "seeded changes NumPy's global random state."),
        ("shuffled", "shuffled changes the random state of Python's random."),
    ],
)
def test_each_broken_promise_has_its_sentence(student, function, sentence):
    said = failure_of(student, function)
    assert said.startswith(sentence) and bool(said) == bool(sentence)


def test_arrays_in_containers_and_the_order_of_keys_are_inputs_too(student):
    def two(student, rng):
        return ([rng.normal(size=3), rng.normal(size=2)],)

    def weights(student, rng):
        return ({"w": rng.normal(size=2), "b": rng.normal(size=2)},)

    nested = failure_of(student, "nested", "arrays", two)
    assert nested == "nested changes the values of its input arrays."
    keys = failure_of(student, "sorted_keys", "weights", weights)
    assert keys.startswith("sorted_keys changes") and "keys or their order" in keys


def test_a_cache_is_no_input_of_the_caller_but_must_serve_twice(student):
    def with_cache(student, rng):
        _, cache = student.with_cache(rng.normal(size=3))
        return rng.normal(size=3), cache

    assert failure_of(student, "with_cache", returns=1) == ""
    assert failure_of(student, "backward", "dout cache", with_cache) == ""
    assert failure_of(student, "popping", "dout cache", with_cache).startswith("popping remembers")


def test_methods_are_called_on_a_new_object(student):
    def owner(student, rng):
        return student.Counter()

    assert failure_of(student, "Counter.double", owner=owner) == ""
    said = failure_of(student, "Counter.add", owner=owner)
    assert said.startswith("Counter.add remembers something")


def test_exemptions_allow_what_they_name_and_nothing_else(student):
    def exempt(function, *names):
        return failure_of(student, function, exempt=dict.fromkeys(names, "a reason"))

    assert exempt("view", "views") == ""
    assert exempt("of_the_last", "memory") == ""
    assert exempt("constant", "differs") == ""
    assert exempt("in_place", "x") == ""
    assert exempt("draw", "memory", "draws") == ""
    assert exempt("silenced", "views", "memory", "differs", "draws", "x").startswith("silenced")
    with pytest.raises(ValueError, match="no exemption is called 'y'"):
        exempt("double", "y")


TORCH = """
import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(size))

    def forward(self, x):
        return x * self.weight


class Evaluates(Scale):
    def forward(self, x):
        self.eval()
        return super().forward(x)


class Freezes(Scale):
    def forward(self, x):
        self.weight.requires_grad_(False)
        return super().forward(x)


class Watches(Scale):
    def forward(self, x):
        self.register_forward_hook(lambda *details: None)
        return super().forward(x)


class Returns(Scale):
    def forward(self, x):
        out = super().forward(x)
        self.weight.data = out.data
        return out


class Noisy(Scale):
    def forward(self, x):
        return super().forward(x) + self.training * torch.rand(3)


def requires(x):
    return 2 * x.requires_grad_()


def without_graph(x):
    torch.set_grad_enabled(False)
    return 2 * x


def doubles(x):
    torch.set_default_dtype(torch.float64)
    return 2 * x


def loss(module, x):
    module(x).sum().backward()
    return 2 * x
"""


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        ("Scale.forward", ""),
        ("Evaluates.forward", "Evaluates.forward changes the training mode of its own module."),
        ("Freezes.forward", "Freezes.forward changes requires_grad of its own module."),
        ("Watches.forward", "Watches.forward changes the hooks of its own module."),
        ("Returns.forward", "Returns.forward changes the values of its own module."),
        ("Noisy.forward", "Noisy.forward changes PyTorch's global random state."),
        ("requires", "requires changes requires_grad of its input x."),
        ("without_graph", "without_graph changes PyTorch's grad mode."),
        ("doubles", "doubles changes PyTorch's default dtype."),
    ],
)
def test_modules_are_called_in_both_modes_and_keep_theirs(promising_modules, function, sentence):
    kind, _, method = function.partition(".")
    module = {"owner": lambda student, rng: getattr(student, kind)(3), "in_both_modes": True}
    settings = module if method else {}
    said = failure_of(promising_modules, function, draw=draw_tensor, **settings)
    assert said.startswith(sentence) and bool(said) == bool(sentence)


def test_a_module_that_is_an_input_keeps_its_gradients(promising_modules):
    def inputs(student, rng):
        return student.Scale(3), *draw_tensor(student, rng)

    said = failure_of(promising_modules, "loss", "module x", inputs)
    assert said == "loss changes the .grad of its input module."
    exempt = {"module": "it fills the gradients"}
    assert failure_of(promising_modules, "loss", "module x", inputs, exempt=exempt) == ""


def draw_tensor(student, rng):
    return (torch.from_numpy(rng.normal(size=3)),)


@pytest.fixture(scope="module")
def module_faces(tmp_path_factory):
    assignment = msgspec.structs.replace(
        load_assignment("a1"), libraries=("numpy", "torch"), forbidden=()
    )
    folder = tmp_path_factory.mktemp("torch") / assignment.name
    folder.mkdir()
    (folder / "convolution.py").write_text(TORCH)
    packages = {assignment.name: folder}
    with Sandbox(assignment) as sandbox:
        sandbox.admit(code_in(packages))
        yield {"direct": DirectFace(assignment, packages), "isolated": IsolatedFace(sandbox)}


@pytest.fixture(params=FACES)
def promising_modules(request, module_faces):
    with module_faces[request.param].open("1.1") as code:
        yield code
