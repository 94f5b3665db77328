"""PyTorch code and assignments of several files, behind both faces of `student`."""

import time
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.grading.sandbox.sandbox import Sandbox
from common.assignment import load_assignment
from common.student_code.direct_face import DirectFace
from common.testing.compare import assert_close
from common.testing.feedback.failure import Failure, explain
from common.testing.remote.operations import (
    calls_during,
    changed_inputs,
    fetch,
    hold,
    hold_on,
    paced_function,
    peak_memory_held,
    vjp_each_held,
)
from common.testing.remote.scratch_files import scratch_bytes, scratch_path, write_scratch
from common.testing.remote.torch_modules import (
    gradients_left,
    hooks_of,
    load_parameters,
    loss_gradients,
    parameters_of,
    seed_torch,
    step_with_gradients,
    stored_gradients,
    tracked_entries,
    vjp,
)
from tests.tooling.grading_fixtures import code_in

LAYERS = """
import os
import tempfile

import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.unused = nn.Parameter(torch.ones(2))

    def forward(self, x, shift=0.0):
        return x * self.weight + shift, x.detach()


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [Scale(3)]


def same(x):
    return x


def layout(x):
    return x.stride(), str(x.dtype)


def in_place(x, y):
    return x.add_(y)


def half():
    return torch.zeros(2, dtype=torch.bfloat16)


def constant(x):
    return torch.zeros(3)


def total(module, x, cut=False):
    out = module(x)[0].sum()
    return out.detach() if cut else out


def learn(module, x):
    module(x)[0].sum().backward()


def draw(count):
    return torch.rand(count)


def watch(module):
    inner = nn.Sequential(module)
    inner.register_forward_hook(print)
    module.register_forward_pre_hook(print)
    module.register_full_backward_hook(print)
    return inner


def both(module, x):
    return {"kept": module(x)[0], "cut": module(x)[1], "number": 3}


def twice(x):
    return same(same(x))


def twice_by_itself(x):
    return x


def save(path, content):
    with open(path, "wb") as file:
        file.write(content)


def load(path):
    with open(path, "rb") as file:
        return file.read()


def make_folder():
    with tempfile.TemporaryDirectory() as folder:
        return os.path.isdir(folder)


def remove(path):
    os.remove(path)


def descend(module, rate):
    return torch.optim.SGD(module.parameters(), lr=rate)


def call(function, times):
    for _ in range(times):
        function()
"""
WRONG = "def broken(:\n"
CODE = {"layers.py": LAYERS, "wrong.py": WRONG}
ASSIGNMENT = msgspec.structs.replace(
    load_assignment("a1"), files=tuple(CODE), libraries=("numpy", "torch"), forbidden=()
)


@pytest.fixture(scope="module")
def faces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("code") / ASSIGNMENT.name
    folder.mkdir()
    for name, source in CODE.items():
        (folder / name).write_text(source)
    packages = {ASSIGNMENT.name: folder}
    with Sandbox(ASSIGNMENT) as sandbox:
        sandbox.admit(code_in(packages))
        yield {"direct": DirectFace(ASSIGNMENT, packages), "isolated": IsolatedFace(sandbox)}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bool])
def test_tensors_cross_by_value(student, dtype):
    given = torch.tensor([[0, 1, 2], [3, 4, 5]]).to(dtype)
    got = student.layers.same(given)
    assert type(got) is torch.Tensor
    assert got.dtype == dtype
    assert torch.equal(got, given)
    assert got.data_ptr() != given.data_ptr()
    assert not torch.equal(student.layers.same(given), given + 1)


def test_a_tensor_keeps_its_layout(student):
    stride, dtype = student.layers.layout(torch.zeros(4, 6).T[::2])
    assert stride == (2, 6)
    assert dtype == "torch.float32"


def test_a_tensor_that_numpy_does_not_know_is_refused_or_copied(student, request):
    if "isolated" in request.node.name:
        with pytest.raises(Failure, match="can't be read"):
            student.layers.half()
    else:
        assert student.layers.half().dtype == torch.bfloat16


def test_changed_inputs_sees_tensors(student):
    assert changed_inputs(student.layers.in_place, torch.ones(2), torch.ones(2)) == ["x"]
    assert changed_inputs(student.layers.same, torch.ones(2)) == []


def test_gradients_of_inputs_and_parameters(student):
    module = student.layers.Scale(3)
    weight = torch.tensor([1.0, 2.0, 3.0])
    load_parameters(module, {"weight": weight, "unused": torch.zeros(2)})
    x, dout = torch.rand(4, 3), torch.rand(4, 3)
    outputs, (dx,), parameters = vjp(module, (x,), (dout, None), shift=1.0)
    assert_close(outputs[0], x * weight + 1)
    assert_close(dx, dout * weight)
    assert_close(parameters["weight"], (dout * x).sum(0))
    assert_close(parameters["unused"], torch.zeros(2))
    assert_close(parameters_of(module)["weight"], weight)


def test_an_output_without_history_has_gradients_of_zero(student):
    _, (dx,), _ = vjp(student.layers.constant, (torch.ones(2),), (torch.ones(3),))
    assert_close(dx, torch.zeros(2))


def test_gradients_are_left_beside_the_code_until_they_are_fetched(student):
    module = student.layers.Scale(3)
    xs, dout = torch.rand(2, 4, 3), torch.rand(4, 3)
    upstream = hold(student, [dout, None])
    left = vjp_each_held(module, [(hold(student, [x]), upstream) for x in xs])
    for x, (outputs, (dx,), parameters) in zip(xs, fetch(left), strict=True):
        assert_close(outputs[0], x)
        assert_close(dx, dout)
        assert_close(parameters["weight"], (dout * x).sum(0))


def test_what_is_held_on_a_device_keeps_its_containers(student):
    x = torch.rand(3)
    held = hold_on(student, [(x, 2), {"a": x}], "cpu")
    (pair, named) = fetch(held)
    assert torch.equal(pair[0], x) and pair[1] == 2 and torch.equal(named["a"], x)


def test_peak_memory_is_counted_beside_the_code(student):
    held = hold(student, torch.ones(1000))
    assert peak_memory_held(student.layers.same, (held,), "cpu") == 0
    assert peak_memory_held(student.layers.draw, (1000,), "cpu") == 4000
    assert peak_memory_held(student.layers.constant, (held,), "cpu") == 12


def test_what_is_left_in_grad_can_be_seen(student):
    module, x = student.layers.Scale(3), torch.rand(4, 3)
    vjp(module, (x,), (x, None))
    assert stored_gradients(module) == {}
    student.layers.learn(module, x)
    (stored,) = stored_gradients(module).items()
    assert stored[0] == "weight"
    assert_close(stored[1], x.sum(0))


def test_what_is_left_in_the_grad_of_an_input_can_be_seen(student):
    module, x = student.layers.Scale(3), torch.rand(4, 3)
    assert gradients_left(student.layers.same, x) == [None]
    assert gradients_left(student.layers.same, torch.tensor([1, 2])) == [None]
    nothing, left = gradients_left(student.layers.learn, module, x)
    assert nothing is None
    assert_close(left, torch.ones(4, 3))


def test_a_seed_beside_the_code_decides_what_is_drawn_there(student):
    drawn = []
    for seed in (1, 2, 1):
        seed_torch(student, seed)
        drawn.append(student.layers.draw(3))
    assert torch.equal(drawn[0], drawn[2])
    assert not torch.equal(drawn[0], drawn[1])


def test_hooks_of_all_kinds_are_counted(student):
    module = student.layers.Scale(3)
    assert hooks_of(module) == 0
    assert hooks_of(student.layers.watch(module)) == 3
    assert hooks_of(module) == 2


def test_tensors_with_gradients_are_named(student):
    module = student.layers.Scale(3)
    assert tracked_entries(student.layers.both, module, torch.ones(3)) == ["kept"]
    assert tracked_entries(student.layers.draw, 3) == []


def test_calls_of_a_neighbour_are_counted_while_a_function_runs(student):
    for _ in range(2):
        assert calls_during(student.layers.twice, "same", torch.ones(2)) == 2
    assert calls_during(student.layers.twice_by_itself, "same", torch.ones(2)) == 0
    assert calls_during(student.layers.twice, "nobody", torch.ones(2)) == 0


def test_the_gradients_of_a_loss_come_by_name(student):
    module, x = student.layers.Scale(3), torch.rand(4, 3)
    value, gradients = loss_gradients(module, student.layers.total, module, x)
    assert_close(value, x.sum())
    assert_close(gradients["weight"], x.sum(0))
    assert_close(gradients["unused"], torch.zeros(2))
    value, gradients = loss_gradients(module, student.layers.total, module, x, True)
    assert_close(value, x.sum())
    assert gradients is None
    _, gradients = loss_gradients(module, student.layers.same, x)
    assert gradients is None


def test_a_step_with_given_gradients_changes_the_parameters(student):
    module = student.layers.Scale(3)
    optimizer = student.layers.descend(module, 0.5)
    student.layers.learn(module, torch.rand(4, 3))  # leaves gradients that must not count
    for _ in range(2):
        step_with_gradients(module, optimizer, {"weight": torch.tensor([1.0, 2.0, -4.0])})
    assert_close(parameters_of(module)["weight"], torch.tensor([0.0, -1.0, 5.0]))
    assert_close(parameters_of(module)["unused"], torch.ones(2))
    step_with_gradients(module, optimizer, {"unused": torch.ones(2)})
    assert_close(parameters_of(module)["weight"], torch.tensor([0.0, -1.0, 5.0]))
    assert_close(parameters_of(module)["unused"], torch.full((2,), 0.5))


def test_a_paced_function_takes_its_time_and_counts_its_calls(student):
    function = paced_function(student, [150, 0, 30])
    assert function.calls == 0
    start = time.perf_counter()
    student.layers.call(function, 2)
    seconds = time.perf_counter() - start
    assert function.calls == 2
    assert seconds >= 0.15
    start = time.perf_counter()
    student.layers.call(function, 5)
    assert function.calls == 7
    assert time.perf_counter() - start >= 5 * 0.03


def test_what_the_code_saves_can_be_read_and_what_it_loads_written(student):
    path = scratch_path(student, "saved.bin")
    assert scratch_path(student, "saved.bin") == path != scratch_path(student, "other.bin")
    student.layers.save(path, b"abc")
    assert scratch_bytes(student, path, 3) == b"abc"
    with pytest.raises(Failure, match="larger than the 2 bytes"):
        scratch_bytes(student, path, 2)
    write_scratch(student, path, bytes(range(256)))
    assert student.layers.load(path) == bytes(range(256))
    student.layers.remove(path)
    with pytest.raises(Failure, match=r"saved\.bin was not written"):
        scratch_bytes(student, path, 3)


def test_code_may_make_temporary_folders_of_its_own(student):
    assert student.layers.make_folder() is True


@pytest.mark.parametrize("kind", ["direct", "isolated"])
def test_the_scratch_folder_is_private_to_one_test_and_gone_after_it(faces, kind):
    paths = []
    for _ in range(2):
        with faces[kind].open("1.1") as code:
            paths.append(scratch_path(code, "saved.bin"))
            code.layers.save(paths[-1], b"abc")
            assert scratch_bytes(code, paths[-1], 3) == b"abc"
            if paths[0] != paths[-1]:
                with pytest.raises(Failure, match="was not written"):
                    scratch_bytes(code, paths[0], 3)
        assert not Path(paths[-1]).parent.exists()
    assert paths[0] != paths[1]


def test_weights_with_other_names_or_shapes_are_told(student):
    module = student.layers.Scale(3)
    for values, sentence in (
        ({"w": torch.ones(3)}, "Scale has no parameter called w."),
        ({"weight": torch.ones(4)}, "The parameter weight of Scale has a wrong shape."),
        ({"weight": torch.ones(3)}, "Scale has parameters that don't belong there: unused."),
    ):
        with pytest.raises(Failure) as raised:
            load_parameters(module, values)
        assert explain(raised.value).sentence == sentence
        with pytest.raises(Failure) as raised:
            load_parameters(module, values, what="Scale (of another kind)")
        assert "Scale (of another kind)" in explain(raised.value).sentence
    with pytest.raises(Failure) as raised:
        load_parameters(student.layers.Stack(), {"layers.0.weight": torch.ones(3)})
    told = explain(raised.value)
    assert told.sentence == "Stack.layers is a Python list: PyTorch doesn't see modules in it."
    assert "nn.ModuleList" in told.help


def test_a_file_that_does_not_parse_leaves_the_others_alone(student):
    with pytest.raises(Failure) as raised:
        _ = student.wrong.broken
    assert explain(raised.value).sentence == "wrong.py is not valid Python."
    with pytest.raises(Failure) as raised:
        _ = student.layers.missing
    assert explain(raised.value).sentence == "layers.py has no missing."


def test_a_tensor_is_compared_with_tensors_only():
    with pytest.raises(Failure, match="must be a PyTorch tensor, but it is a NumPy array"):
        assert_close(np.ones(2), torch.ones(2))
    with pytest.raises(Failure, match="must be a NumPy array, but it is a PyTorch tensor"):
        assert_close(torch.ones(2), np.ones(2))


def test_code_without_a_seed_of_its_own_draws_the_same_in_both_faces(faces):
    drawn = []
    for face in ("direct", "isolated", "direct"):
        with faces[face].open("1.1") as code:
            drawn.append(code.layers.draw(3))
    assert torch.equal(drawn[0], drawn[1])
    assert torch.equal(drawn[0], drawn[2])
