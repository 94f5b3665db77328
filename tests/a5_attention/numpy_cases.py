"""How the tests of exercises 5.1 and 5.2 check softmax and attention in NumPy."""

import numpy as np

from common.testing.checks import check_refused, check_unchanged
from common.testing.compare import assert_close, check, unpack
from common.testing.remote.operations import call_each, warnings_of
from tests.a5_attention.cases import (
    check_exactly_zero,
    compare_gradients,
    compare_outputs,
    draw_like,
)

# Exercise 5.1


def axis_in_words(axis):
    return "no axis given" if axis is None else f"axis {axis}"


def check_softmax(student, oracle, x, axis, *, situation):
    """softmax is PyTorch's, and gives no warning; None leaves the axis out."""
    arguments = (x,) if axis is None else (x, axis)
    expected = oracle.softmax(*arguments)
    out = student.attention_numpy.softmax(*arguments)
    assert_close(out, expected, what=f"out ({situation})")
    check_quiet(student, *arguments)


def check_quiet(student, *arguments):
    """softmax gives no warning."""
    heard = warnings_of(student.attention_numpy.softmax, *arguments)
    check(not heard, "softmax gives a warning.", "; ".join(heard))


def check_softmax_of_nothing(student, oracle, x, axis, *, dead):
    """Where x is -inf, out is exactly 0, also where nothing else is there (dead, an index)."""
    finite = x.copy()
    finite[dead] = 0
    expected = oracle.softmax(finite, axis)
    expected[dead] = 0
    out = student.attention_numpy.softmax(x, axis)
    assert_close(out, expected, what="out (with entries of -inf)")
    check(not out[np.isneginf(x)].any(), "An entry of -inf must get exactly 0.")
    check_quiet(student, x, axis)


def check_softmax_gradient(student, oracle, rng, x, *, axis, situation, dead=None, view=np.asarray):
    """dx is PyTorch's under a random dout; zeros where out is all zeros (dead, an index)."""
    arguments = () if axis is None else (axis,)
    out, dout = oracle.softmax(x, *arguments), draw_like(rng, x.shape, x)
    expected = oracle.softmax_gradient(x, dout, *arguments)
    if dead is not None:
        out[dead] = expected[dead] = 0
    dx = student.attention_numpy.softmax_backward(view(dout), view(out), *arguments)
    assert_close(dx, expected, what=f"dx ({situation})")


def check_softmax_stays_apart(student, oracle, rng, first, second):
    """Inputs stay as they are, and a result survives further calls."""
    code, xs = student.attention_numpy, (first, second, first)
    outs = [oracle.softmax(x, 1) for x in xs]
    douts = [draw_like(rng, x.shape, x) for x in xs]
    for out, expected in zip(call_each(code.softmax, [(x, 1) for x in xs]), outs, strict=True):
        assert_close(out, expected, what="out (several calls in a row)")
    calls = [(dout, out, 1) for dout, out in zip(douts, outs, strict=True)]
    results = call_each(code.softmax_backward, calls)
    for x, dout, dx in zip(xs, douts, results, strict=True):
        expected = oracle.softmax_gradient(x, dout, 1)
        assert_close(dx, expected, what="dx (several calls in a row)")
    check_unchanged("softmax", code.softmax, first, 1)
    check_unchanged("softmax_backward", code.softmax_backward, *calls[0])


# Exercise 5.2


def check_loops(student, oracle, case, situation):
    """attention_loops gives PyTorch's out and weights."""
    result = student.attention_numpy.attention_loops(*case.inputs)
    results = unpack(result, 2, "attention_loops")
    compare_outputs(results, oracle.attention(*case.inputs), situation)


def check_forward(student, oracle, case, situation):
    """attention_forward gives PyTorch's out and weights."""
    result = student.attention_numpy.attention_forward(*case.arguments)
    *results, _ = unpack(result, 3, "attention_forward")
    compare_outputs(results, oracle.attention(*case.arguments), situation)
    if case.mask is not None:
        check_exactly_zero(results[1], case.mask)


def check_backward(student, oracle, rng, case, *, situation, view=np.asarray):
    """attention_backward gives PyTorch's gradients under a random dout."""
    code = student.attention_numpy
    dout = draw_like(rng, case.out_shape, case.q)
    expected = oracle.attention_gradients(*case.inputs, dout, mask=case.mask)
    result = code.attention_forward(*case.arguments)
    cache = unpack(result, 3, "attention_forward")[2]
    results = unpack(code.attention_backward(view(dout), cache), 3, "attention_backward")
    compare_gradients(results, expected, situation)


def check_stays_apart(student, oracle, rng, first, *, second):
    """All forward calls, then all backward calls; the first case once more at the end of each.

    The first cache is handed in once more after all others, so it must have stayed as it was.
    Outputs and gradients are read at the very end, so none may lie in memory that is used again.
    """
    code, order, situation = student.attention_numpy, (0, 1, 0), "several calls in a row"
    cases = (first, second)
    douts = [draw_like(rng, case.out_shape, case.q) for case in cases]
    results = call_each(code.attention_forward, [cases[i].arguments for i in order])
    results = [unpack(result, 3, "attention_forward") for result in results]
    for i, result in zip(order, results, strict=True):
        compare_outputs(result[:2], oracle.attention(*cases[i].arguments), situation)
    calls = [(douts[i], result[2]) for i, result in zip(order, results, strict=True)]
    results = call_each(code.attention_backward, [*calls, calls[0]])
    for i, result in zip((*order, order[0]), results, strict=True):
        expected = oracle.attention_gradients(*cases[i].inputs, douts[i], mask=cases[i].mask)
        compare_gradients(unpack(result, 3, "attention_backward"), expected, situation)
    check_unchanged("attention_loops", code.attention_loops, *(a[0] for a in first.inputs))
    check_unchanged("attention_forward", code.attention_forward, *first.arguments)
    check_unchanged("attention_backward", code.attention_backward, *calls[0])


def check_backward_refuses(student, rng, case):
    """A dout of another shape than out raises ValueError, also one that would broadcast.

    The case has one axis in front, two sequences and two queries or more.
    """
    code, dout = student.attention_numpy, draw_like(rng, case.out_shape, case.q)
    result = code.attention_forward(*case.arguments)
    cache = unpack(result, 3, "attention_forward")[2]
    for situation, wrong in (
        ("a dout of one sequence where there are more", dout[:1]),
        ("a dout of one query where there are more", dout[:, :1]),
        ("a dout with an axis too many", dout[None]),
    ):
        check_refused(situation, code.attention_backward, wrong, cache)
