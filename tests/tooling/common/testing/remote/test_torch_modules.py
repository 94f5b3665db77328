"""Tests of remote PyTorch modules: gradients, parameters, hooks, steps and memory."""

import pytest
import torch

from common.errors import Failure
from common.testing.compare import assert_close
from common.testing.feedback.failure import explain
from common.testing.remote.operations import peak_memory_of
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


def test_gradients_of_inputs_and_parameters(torch_student):
    module = torch_student.layers.Scale(3)
    weight = torch.tensor([1.0, 2.0, 3.0])
    load_parameters(module, {"weight": weight, "unused": torch.zeros(2)})
    x, dout = torch.rand(4, 3), torch.rand(4, 3)
    outputs, (dx,), parameters = vjp(module, (x,), (dout, None), shift=1.0)
    assert_close(outputs[0], x * weight + 1)
    assert_close(dx, dout * weight)
    assert_close(parameters["weight"], (dout * x).sum(0))
    assert_close(parameters["unused"], torch.zeros(2))
    assert_close(parameters_of(module)["weight"], weight)


def test_an_output_without_history_has_gradients_of_zero(torch_student):
    _, (dx,), _ = vjp(torch_student.layers.constant, (torch.ones(2),), (torch.ones(3),))
    assert_close(dx, torch.zeros(2))


def test_peak_memory_is_counted_beside_the_code(torch_student):
    x = torch.ones(1000)
    assert peak_memory_of(torch_student.layers.same, (x,), "cpu") == 0
    assert peak_memory_of(torch_student.layers.draw, (1000,), "cpu") == 4000
    assert peak_memory_of(torch_student.layers.constant, (x,), "cpu") == 12


def test_what_is_left_in_grad_can_be_seen(torch_student):
    module, x = torch_student.layers.Scale(3), torch.rand(4, 3)
    vjp(module, (x,), (x, None))
    assert stored_gradients(module) == {}
    torch_student.layers.learn(module, x)
    (stored,) = stored_gradients(module).items()
    assert stored[0] == "weight"
    assert_close(stored[1], x.sum(0))


def test_what_is_left_in_the_grad_of_an_input_can_be_seen(torch_student):
    module, x = torch_student.layers.Scale(3), torch.rand(4, 3)
    assert gradients_left(torch_student.layers.same, x) == [None]
    assert gradients_left(torch_student.layers.same, torch.tensor([1, 2])) == [None]
    nothing, left = gradients_left(torch_student.layers.learn, module, x)
    assert nothing is None
    assert_close(left, torch.ones(4, 3))


def test_a_seed_beside_the_code_decides_what_is_drawn_there(torch_student):
    drawn = []
    for seed in (1, 2, 1):
        seed_torch(torch_student, seed)
        drawn.append(torch_student.layers.draw(3))
    assert torch.equal(drawn[0], drawn[2])
    assert not torch.equal(drawn[0], drawn[1])


def test_hooks_of_all_kinds_are_counted(torch_student):
    module = torch_student.layers.Scale(3)
    assert hooks_of(module) == 0
    assert hooks_of(torch_student.layers.watch(module)) == 3
    assert hooks_of(module) == 2


def test_tensors_with_gradients_are_named(torch_student):
    module = torch_student.layers.Scale(3)
    assert tracked_entries(torch_student.layers.both, module, torch.ones(3)) == ["kept"]
    assert tracked_entries(torch_student.layers.draw, 3) == []


def test_the_gradients_of_a_loss_come_by_name(torch_student):
    module, x = torch_student.layers.Scale(3), torch.rand(4, 3)
    value, gradients = loss_gradients(module, torch_student.layers.total, module, x)
    assert_close(value, x.sum())
    assert_close(gradients["weight"], x.sum(0))
    assert_close(gradients["unused"], torch.zeros(2))
    value, gradients = loss_gradients(module, torch_student.layers.total, module, x, True)
    assert_close(value, x.sum())
    assert gradients is None
    _, gradients = loss_gradients(module, torch_student.layers.same, x)
    assert gradients is None


def test_a_step_with_given_gradients_changes_the_parameters(torch_student):
    module = torch_student.layers.Scale(3)
    optimizer = torch_student.layers.descend(module, 0.5)
    torch_student.layers.learn(module, torch.rand(4, 3))  # leaves gradients that must not count
    for _ in range(2):
        step_with_gradients(module, optimizer, {"weight": torch.tensor([1.0, 2.0, -4.0])})
    assert_close(parameters_of(module)["weight"], torch.tensor([0.0, -1.0, 5.0]))
    assert_close(parameters_of(module)["unused"], torch.ones(2))
    step_with_gradients(module, optimizer, {"unused": torch.ones(2)})
    assert_close(parameters_of(module)["weight"], torch.tensor([0.0, -1.0, 5.0]))
    assert_close(parameters_of(module)["unused"], torch.full((2,), 0.5))


def test_weights_with_other_names_or_shapes_are_reported(torch_student):
    module = torch_student.layers.Scale(3)
    for values, sentence in (
        ({"w": torch.ones(3)}, "Scale has no parameter named w."),
        ({"weight": torch.ones(4)}, "The parameter weight of Scale has the wrong shape."),
        ({"weight": torch.ones(3)}, "Scale has unexpected parameters."),
    ):
        with pytest.raises(Failure) as raised:
            load_parameters(module, values)
        assert explain(raised.value).sentence == sentence
        with pytest.raises(Failure) as raised:
            load_parameters(module, values, what="Scale (of another kind)")
        assert "Scale (of another kind)" in explain(raised.value).sentence
    with pytest.raises(Failure) as raised:
        load_parameters(torch_student.layers.Stack(), {"layers.0.weight": torch.ones(3)})
    reported = explain(raised.value)
    assert reported.sentence == "Stack.layers is a Python list: PyTorch doesn't see modules in it."
    assert "nn.ModuleList" in reported.help
