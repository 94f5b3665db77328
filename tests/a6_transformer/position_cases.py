"""How the tests of exercise 6.1 check what tells places apart."""

import torch

from common.testing.checks import check_normal, check_refused
from common.testing.compare import assert_close, check
from common.testing.remote.operations import call_each
from common.testing.remote.torch_modules import load_parameters, new_module, parameters_of, vjp
from tests.a6_transformer.cases import draw_vectors

PLACE_AXES = ("place", "feature")


def check_encoding(student, oracle, length, d_model):
    """The vectors of all places are sines and cosines, in float64."""
    result = student.sinusoidal_encoding(length, d_model)
    expected = oracle.sinusoidal_encoding(length, d_model)
    assert_close(result, expected, what="the encoding", axes=PLACE_AXES)


def check_encodings_stay_apart(student, oracle, *sizes):
    """Results of several calls don't share memory, and come out the same again."""
    results = call_each(student.sinusoidal_encoding, [*sizes, *sizes])
    for size, result in zip((*sizes, *sizes), results, strict=True):
        expected = oracle.sinusoidal_encoding(*size)
        assert_close(result, expected, what="the encoding (several calls in a row)")


def check_shift(student, oracle, k, d_model, *, places, situation):
    """The matrix moves the vectors of all these places by k, from wherever they start."""
    matrix = student.shift_matrix(k, d_model)
    wanted = torch.zeros(d_model, d_model, dtype=torch.float64)
    check(matrix is not None, "shift_matrix returned None.", help="Is the return missing?")
    fits = isinstance(matrix, torch.Tensor) and matrix.shape == wanted.shape
    check(fits, "shift_matrix must return a matrix of (d_model, d_model).")
    check(matrix.dtype == wanted.dtype, "shift_matrix must return float64.")
    first = max(0, -k)
    vectors = oracle.sinusoidal_encoding(first + places + abs(k), d_model)
    moved = vectors[first : first + places] @ matrix.mT
    expected = vectors[first + k : first + k + places]
    assert_close(moved, expected, what=f"shift_matrix @ encoding ({situation})", axes=PLACE_AXES)


def check_learned(student, rng, max_length, d_model, *, lengths, dtype=torch.float64):
    """The first rows of weight come out, and gradients go into them alone."""
    module = new_module(student, "LearnedPositions", max_length, d_model)
    if dtype == torch.float64:
        module.double()
    weight = draw_vectors(rng, max_length, d_model, dtype=dtype)
    load_parameters(module, {"weight": weight})
    for length in lengths:
        upstream = draw_vectors(rng, length, d_model, dtype=dtype)
        outputs, _, parameters = vjp(module, (length,), [upstream])
        assert_close(outputs[0], weight[:length], what="the vectors", axes=PLACE_AXES)
        check("weight" in parameters, "weight must be a parameter that learns.")
        gradient = torch.zeros_like(weight)
        gradient[:length] = upstream
        assert_close(parameters["weight"], gradient, "the gradient of weight", PLACE_AXES)
    for length in (0, -1, max_length + 1):
        check_refused("places that were never learned", module, length)
    for sizes in ((0, d_model), (-1, d_model), (max_length, 0)):
        check_refused("a size below 1", student.LearnedPositions, *sizes)


def check_first_positions(student, max_length, d_model):
    """A new module's weight is drawn from the standard normal distribution, each time anew."""
    drawn = []
    for _ in range(2):
        module = new_module(student, "LearnedPositions", max_length, d_model)
        values = parameters_of(module)
        load_parameters(module, {"weight": torch.zeros(max_length, d_model)})
        check_normal(values["weight"], 1.0, "weight")
        drawn.append(values["weight"])
    check(not torch.equal(*drawn), "Two new modules must not have the same first values.")
