"""The public tests of assignment 3: recurrent networks in NumPy."""

import math
import re

import numpy as np
from gradescope_utils.autograder_utils.decorators import number, tags, weight

from common.data import load_shakespeare
from common.labs.answer_checks import check_number
from common.student_text import contains_pattern
from common.testing.battery.promise_checks import check_promises
from common.testing.checks import check_float, check_refused, sliced, transposed
from common.testing.compare import assert_close, assert_equal, check, unpack
from common.testing.remote.operations import call_each, call_with_held, fetch, hold, write_into
from tests.a3_recurrent import cases, model_cases
from tests.a3_recurrent.battery_cases import CASES
from tests.a3_recurrent.cases import Passes, compare_gradients, compare_outputs, draw_inputs
from tests.a3_recurrent.model_cases import draw_parameters, new_model
from tests.a3_recurrent.speed_cases import check_lstm_speed


@weight(1)
@number("3.1")
def test_rnn_step_forward_takes_one_step(student, rng, oracle):
    """h_next is the tanh of x @ w_xh + h @ w_hh + b_h, also for sizes of 1."""
    for n, d, m in ((3, 2, 4), (2, 5, 3), (1, 1, 1)):
        inputs = draw_inputs(rng, "rnn_step", (n, d), m)
        result = student.rnn_step_forward(*inputs)
        compare_outputs("rnn_step", result, oracle.rnn_step(*inputs), f"n {n}, d {d}, m {m}")


@weight(1)
@number("3.1")
def test_rnn_step_backward_gives_the_five_gradients_of_a_step(student, rng, oracle):
    """dx, dh, dw_xh, dw_hh and db_h are PyTorch's, under a random dh_next."""
    for n, d, m in ((3, 2, 4), (1, 3, 2)):
        inputs, (dh_next,) = cases.draw_with_upstream(rng, "rnn_step", (n, d), m)
        _, cache = unpack(student.rnn_step_forward(*inputs), 2, "rnn_step_forward")
        result = student.rnn_step_backward(dh_next, cache)
        expected = oracle.rnn_step_gradients(*inputs, dh_next)
        compare_gradients("rnn_step", result, expected, f"n {n}, d {d}, m {m}")


@weight(1)
@number("3.1")
def test_rnn_forward_carries_the_state_from_step_to_step(student, rng, oracle):
    """Each h[:, s] is PyTorch's, from an initial state that is not zero; one step, one sequence."""
    for n, t, d, m in ((3, 5, 2, 4), (2, 1, 3, 2), (1, 4, 1, 3)):
        inputs = draw_inputs(rng, "rnn", (n, t, d), m)
        result = student.rnn_forward(*inputs)
        compare_outputs("rnn", result, oracle.rnn(*inputs), f"n {n}, t {t}, d {d}, m {m}")


@weight(1)
@number("3.1")
def test_rnn_backward_sends_gradients_back_through_all_steps(student, rng, oracle):
    """dx, dh0 and the weights' gradients are PyTorch's: states also act through later states."""
    for n, t, d, m in ((3, 5, 2, 4), (2, 1, 3, 2), (1, 4, 1, 3)):
        inputs, (dh,) = cases.draw_with_upstream(rng, "rnn", (n, t, d), m)
        _, cache = unpack(student.rnn_forward(*inputs), 2, "rnn_forward")
        result = student.rnn_backward(dh, cache)
        expected = oracle.rnn_gradients(*inputs, dh)
        compare_gradients("rnn", result, expected, f"n {n}, t {t}, d {d}, m {m}")


@weight(1)
@number("3.1")
def test_rnn_forward_carries_the_state_over_masked_steps(student, rng, oracle):
    """Padding before, between and after real steps leaves the state unchanged, whatever x holds."""
    mask = cases.draw_mask(rng, 4, 5)
    inputs = draw_inputs(rng, "rnn", (4, 5, 2), 3)
    large = (np.where(mask[:, :, None], inputs[0], 1e4), *inputs[1:])
    for situation, arrays, real in (
        ("padding anywhere", inputs, mask),
        ("large numbers in the padding", large, mask),
        ("a mask that is True everywhere", large, np.ones((4, 5), dtype=bool)),
    ):
        result = student.rnn_forward(*arrays, real)
        compare_outputs("rnn", result, oracle.rnn(*arrays, mask=real), situation)


@weight(1)
@number("3.1")
def test_rnn_backward_passes_the_gradient_through_masked_steps(student, rng, oracle):
    """A masked step passes the state's gradient on, and gives x and the weights none."""
    mask = cases.draw_mask(rng, 4, 5)
    inputs, (dh,) = cases.draw_with_upstream(rng, "rnn", (4, 5, 2), 3)
    inputs[0][~mask] = 9
    _, cache = unpack(student.rnn_forward(*inputs, mask), 2, "rnn_forward")
    result = student.rnn_backward(dh, cache)
    expected = oracle.rnn_gradients(*inputs, dh, mask=mask)
    compare_gradients("rnn", result, expected, "padding anywhere")
    mask = np.zeros((2, 3), dtype=bool)
    inputs, (dh,) = cases.draw_with_upstream(rng, "rnn", (2, 3, 3), 2)
    _, cache = unpack(student.rnn_forward(*inputs, mask), 2, "rnn_forward")
    result = student.rnn_backward(dh, cache)
    expected = oracle.rnn_gradients(*inputs, dh, mask=mask)
    compare_gradients("rnn", result, expected, "only padding")


@weight(1)
@number("3.1")
def test_rnn_keeps_float32_and_takes_views(student, rng, oracle):
    """float32 in gives float32 out in all four functions; non-contiguous views work too."""
    step = Passes("rnn_step", student.rnn_step_forward, student.rnn_step_backward)
    whole = Passes("rnn", student.rnn_forward, student.rnn_backward)
    case = cases.draw_with_upstream(rng, "rnn_step", (3, 2), 4, dtype=np.float32)
    cases.check_both_passes(step, oracle, case, "a step in float32")
    mask = cases.draw_mask(rng, 3, 5)
    case = cases.draw_with_upstream(rng, "rnn", (3, 5, 2), 4, dtype=np.float32)
    cases.check_both_passes(whole, oracle, case, "float32", mask=mask)
    for passes, x_shape in ((step, (2, 3)), (whole, (2, 3, 3))):
        inputs, upstream = cases.draw_with_upstream(rng, passes.layer, x_shape, 2)
        case = cases.seen_as(inputs, sliced, transposed), cases.seen_as(upstream, transposed)
        cases.check_both_passes(passes, oracle, case, "views")


@weight(1)
@number("3.1")
def test_rnn_leaves_inputs_alone_and_calls_do_not_disturb_each_other(student, rng):
    """Inputs are unchanged, each backward pass uses its own cache, bad input raises ValueError."""
    check_promises(student, rng, CASES["3.1"])
    inputs = draw_inputs(rng, "rnn", (4, 5, 2), 3)
    cases.check_layer_refuses(student.rnn_forward, inputs)


@weight(1)
@number("3.2")
def test_lstm_parameters_draws_weights_and_sets_the_forget_bias(student, rng):
    """Weights are uniform on [-1 / sqrt(m), 1 / sqrt(m)]; only the forget gate has a bias."""
    result = student.lstm_parameters(cases.new_generator(rng), 40, 30)
    cases.check_lstm_parameters(result, 40, 30, forget_bias=1.0, dtype="float32")
    result = student.lstm_parameters(cases.new_generator(rng), 60, 20, 2.5, "float64")
    cases.check_lstm_parameters(result, 60, 20, forget_bias=2.5, dtype="float64")
    first, again, other = call_each(
        student.lstm_parameters, [(np.random.default_rng(seed), 2, 3) for seed in (5, 5, 6)]
    )
    check(np.array_equal(first[0], again[0]), "Equal generators must give equal weights.")
    check(
        not np.array_equal(first[0], other[0]), "Different generators must give different weights."
    )


@weight(1)
@number("3.2")
def test_lstm_step_forward_takes_one_step(student, rng, oracle):
    """h_next and c_next are PyTorch's, with the gates in the order i, f, o, g."""
    for n, d, m in ((3, 2, 4), (2, 4, 3), (1, 1, 1)):
        inputs = draw_inputs(rng, "lstm_step", (n, d), m)
        result = student.lstm_step_forward(*inputs)
        compare_outputs("lstm_step", result, oracle.lstm_step(*inputs), f"n {n}, d {d}, m {m}")


@weight(1)
@number("3.2")
def test_lstm_step_backward_gives_the_six_gradients_of_a_step(student, rng, oracle):
    """dx, dh, dc, dw_x, dw_h and db are PyTorch's, under random dh_next and dc_next."""
    for n, d, m in ((3, 2, 4), (1, 3, 2)):
        inputs, (dh_next, dc_next) = cases.draw_with_upstream(rng, "lstm_step", (n, d), m)
        _, _, cache = unpack(student.lstm_step_forward(*inputs), 3, "lstm_step_forward")
        result = student.lstm_step_backward(dh_next, dc_next, cache)
        expected = oracle.lstm_step_gradients(*inputs, dh_next, dc_next)
        compare_gradients("lstm_step", result, expected, f"n {n}, d {d}, m {m}")


@weight(1)
@number("3.2")
def test_lstm_forward_carries_both_states_from_step_to_step(student, rng, oracle):
    """Each h[:, s] and c_last are PyTorch's, from initial states that are not zero."""
    for n, t, d, m in ((3, 5, 2, 4), (2, 1, 3, 2), (1, 4, 1, 3)):
        inputs = draw_inputs(rng, "lstm", (n, t, d), m)
        result = student.lstm_forward(*inputs)
        compare_outputs("lstm", result, oracle.lstm(*inputs), f"n {n}, t {t}, d {d}, m {m}")


@weight(1)
@number("3.2")
def test_lstm_backward_sends_gradients_back_through_all_steps(student, rng, oracle):
    """All six gradients are PyTorch's: h and c both carry them back, and c's start is dc_last."""
    for n, t, d, m in ((3, 5, 2, 4), (2, 1, 3, 2), (1, 4, 1, 3)):
        inputs, (dh, dc_last) = cases.draw_with_upstream(rng, "lstm", (n, t, d), m)
        _, _, cache = unpack(student.lstm_forward(*inputs), 3, "lstm_forward")
        result = student.lstm_backward(dh, dc_last, cache)
        expected = oracle.lstm_gradients(*inputs, dh, dc_last)
        compare_gradients("lstm", result, expected, f"n {n}, t {t}, d {d}, m {m}")


@weight(1)
@number("3.2")
def test_lstm_forward_carries_both_states_over_masked_steps(student, rng, oracle):
    """Padding before, between and after real steps leaves h and c unchanged."""
    mask = cases.draw_mask(rng, 4, 5)
    inputs = draw_inputs(rng, "lstm", (4, 5, 2), 3)
    large = (np.where(mask[:, :, None], inputs[0], 1e4), *inputs[1:])
    for situation, arrays, real in (
        ("padding anywhere", inputs, mask),
        ("large numbers in the padding", large, mask),
        ("a mask that is True everywhere", large, np.ones((4, 5), dtype=bool)),
    ):
        result = student.lstm_forward(*arrays, real)
        compare_outputs("lstm", result, oracle.lstm(*arrays, mask=real), situation)


@weight(1)
@number("3.2")
def test_lstm_backward_passes_both_gradients_through_masked_steps(student, rng, oracle):
    """A masked step passes dh and dc on, and gives x and the weights no gradient."""
    mask = cases.draw_mask(rng, 4, 5)
    inputs, (dh, dc_last) = cases.draw_with_upstream(rng, "lstm", (4, 5, 2), 3)
    inputs[0][~mask] = 9
    _, _, cache = unpack(student.lstm_forward(*inputs, mask), 3, "lstm_forward")
    result = student.lstm_backward(dh, dc_last, cache)
    expected = oracle.lstm_gradients(*inputs, dh, dc_last, mask=mask)
    compare_gradients("lstm", result, expected, "padding anywhere")
    mask = np.zeros((2, 3), dtype=bool)
    inputs, (dh, dc_last) = cases.draw_with_upstream(rng, "lstm", (2, 3, 3), 2)
    _, _, cache = unpack(student.lstm_forward(*inputs, mask), 3, "lstm_forward")
    result = student.lstm_backward(dh, dc_last, cache)
    expected = oracle.lstm_gradients(*inputs, dh, dc_last, mask=mask)
    compare_gradients("lstm", result, expected, "only padding")


@weight(1)
@number("3.2")
def test_lstm_keeps_float32_and_takes_views(student, rng, oracle):
    """float32 in gives float32 out in all four functions; non-contiguous views work too."""
    step = Passes("lstm_step", student.lstm_step_forward, student.lstm_step_backward)
    whole = Passes("lstm", student.lstm_forward, student.lstm_backward)
    case = cases.draw_with_upstream(rng, "lstm_step", (3, 2), 2, dtype=np.float32)
    cases.check_both_passes(step, oracle, case, "a step in float32")
    mask = cases.draw_mask(rng, 3, 5)
    case = cases.draw_with_upstream(rng, "lstm", (3, 5, 2), 2, dtype=np.float32)
    cases.check_both_passes(whole, oracle, case, "float32", mask=mask)
    for passes, x_shape in ((step, (2, 3)), (whole, (2, 3, 3))):
        inputs, upstream = cases.draw_with_upstream(rng, passes.layer, x_shape, 2)
        case = cases.seen_as(inputs, sliced, transposed), cases.seen_as(upstream, transposed)
        cases.check_both_passes(passes, oracle, case, "views")


@weight(1)
@number("3.2")
def test_lstm_leaves_inputs_alone_and_calls_do_not_disturb_each_other(student, rng):
    """Inputs are unchanged, each backward pass uses its own cache, bad input raises ValueError."""
    check_promises(student, rng, CASES["3.2"])
    inputs = draw_inputs(rng, "lstm", (4, 5, 2), 3)
    cases.check_layer_refuses(student.lstm_forward, inputs)


@weight(1)
@number("3.2")
@tags("timing")
def test_lstm_is_not_much_slower_than_its_matrix_products(student, rng, oracle):
    """Both passes together take at most 7 times as long as their matrix products.

    That is a bit more than 5 times PyTorch's time; the docstring asks for 4.
    """
    check_lstm_speed(student, oracle, rng)


@weight(1)
@number("3.3")
def test_gru_step_forward_takes_one_step(student, rng, oracle):
    """h_next is PyTorch's: reset after the product, and an update gate of 1 keeps the state."""
    for n, d, m in ((3, 2, 4), (2, 4, 3), (1, 1, 1)):
        inputs = draw_inputs(rng, "gru_step", (n, d), m)
        result = student.gru_step_forward(*inputs)
        compare_outputs("gru_step", result, oracle.gru_step(*inputs), f"n {n}, d {d}, m {m}")
    x, h, w_x, w_h, b_x, b_h = draw_inputs(rng, "gru_step", (3, 2), 4)
    b_x[4:8] = 50
    result = student.gru_step_forward(x, h, w_x, w_h, b_x, b_h)
    compare_outputs("gru_step", result, h, "an update gate of 1")


@weight(1)
@number("3.3")
def test_gru_step_backward_gives_the_gradients_of_the_input_side(student, rng, oracle):
    """dx, dw_x and db_x are PyTorch's, under a random dh_next."""
    inputs, (dh_next,) = cases.draw_with_upstream(rng, "gru_step", (3, 2), 4)
    _, cache = unpack(student.gru_step_forward(*inputs), 2, "gru_step_forward")
    gradients = unpack(student.gru_step_backward(dh_next, cache), 6, "gru_step_backward")
    expected = oracle.gru_step_gradients(*inputs, dh_next)
    cases.compare_arrays(("dx", "dw_x", "db_x"), gradients[::2], expected[::2], "n 3, d 2, m 4")


@weight(1)
@number("3.3")
def test_gru_step_backward_gives_the_gradients_of_the_recurrent_side(student, rng, oracle):
    """dh, dw_h and db_h are PyTorch's: the candidate's part goes through the reset gate."""
    for n, d, m in ((3, 2, 4), (1, 3, 2)):
        inputs, (dh_next,) = cases.draw_with_upstream(rng, "gru_step", (n, d), m)
        _, cache = unpack(student.gru_step_forward(*inputs), 2, "gru_step_forward")
        gradients = unpack(student.gru_step_backward(dh_next, cache), 6, "gru_step_backward")
        expected = oracle.gru_step_gradients(*inputs, dh_next)
        names, situation = ("dh", "dw_h", "db_h"), f"n {n}, d {d}, m {m}"
        cases.compare_arrays(names, gradients[1::2], expected[1::2], situation)


@weight(1)
@number("3.3")
def test_gru_step_keeps_float32_takes_views_and_leaves_inputs_alone(student, rng, oracle):
    """dtypes, views, unchanged inputs, separate caches, ValueError for mismatched shapes."""
    passes = Passes("gru_step", student.gru_step_forward, student.gru_step_backward)
    case = cases.draw_with_upstream(rng, "gru_step", (3, 2), 2, dtype=np.float32)
    cases.check_both_passes(passes, oracle, case, "float32")
    inputs, upstream = cases.draw_with_upstream(rng, "gru_step", (2, 3), 2)
    case = cases.seen_as(inputs, sliced, transposed), cases.seen_as(upstream, transposed)
    cases.check_both_passes(passes, oracle, case, "views")
    check_promises(student, rng, CASES["3.3"])
    x, h, *weights = draw_inputs(rng, "gru_step", (2, 3), 2)
    check_refused("an x with too few features", student.gru_step_forward, x[:, :-1], h, *weights)
    check_refused("a state with too few units", student.gru_step_forward, x, h[:, :-1], *weights)


@weight(1)
@number("3.4")
def test_embedding_forward_looks_up_a_vector_for_each_id(student, rng):
    """out[i, s] is table[ids[i, s]], for every integer dtype; bad ids raise ValueError."""
    table = rng.normal(size=(5, 3))
    for dtype in (np.int64, np.int32, np.uint8):
        ids = rng.integers(0, 5, size=(2, 4)).astype(dtype)
        expected = np.stack([[table[int(at)] for at in row] for row in ids])
        out, _ = unpack(student.embedding_forward(ids, table), 2, "embedding_forward")
        assert_close(out, expected, what="out", axes=("sequence", "step", "feature"))
    for situation, bad in (
        ("an id equal to the vocabulary size", np.array([[1, 5]])),
        ("an id below 0", np.array([[-1, 2]])),
        ("ids that are floats", np.array([[1.0, 2.0]])),
        ("ids with one axis", np.array([1, 2])),
    ):
        check_refused(situation, student.embedding_forward, bad, table)


@weight(1)
@number("3.4")
def test_embedding_backward_adds_up_where_an_id_occurs_more_than_once(student, rng, oracle):
    """Each row of dtable is the sum of dout over all positions of its id, or zero."""
    for ids in (np.array([[2, 0, 2], [4, 2, 0]]), np.array([[1]]), np.full((3, 4), 5)):
        table, dout = rng.normal(size=(6, 2)), rng.normal(size=(*ids.shape, 2))
        expected = oracle.embedding_gradient(ids, table, dout)
        _, cache = unpack(student.embedding_forward(ids, table), 2, "embedding_forward")
        dtable = student.embedding_backward(dout, cache)
        assert_close(dtable, expected, what="dtable", axes=("id", "feature"))


@weight(1)
@number("3.4")
def test_embedding_keeps_types_and_caches_apart(student, rng, oracle):
    """out has the dtype of the table, dtable that of dout; views work; calls are independent."""
    for dtype in (np.float32, np.float64):
        ids, table = rng.integers(0, 4, size=(2, 3)), rng.normal(size=(4, 2)).astype(dtype)
        dout = rng.normal(size=(2, 3, 2)).astype(dtype)
        out, cache = unpack(
            student.embedding_forward(ids, transposed(table)), 2, "embedding_forward"
        )
        assert_close(out, table[ids], what="out")
        dtable = student.embedding_backward(sliced(dout), cache)
        expected = oracle.embedding_gradient(ids, table, dout)
        assert_close(dtable, expected, what="dtable", axes=("id", "feature"))
    check_promises(student, rng, CASES["3.4"])


@weight(1)
@number("3.4")
def test_temporal_cross_entropy_is_the_mean_over_all_positions(student, rng, oracle):
    """loss and dlogits are PyTorch's, also for one sequence, one step and one id."""
    for n, t, v in ((2, 3, 4), (3, 1, 5), (1, 4, 2), (2, 2, 1)):
        logits, targets = rng.normal(scale=2, size=(n, t, v)), rng.integers(0, v, size=(n, t))
        result = student.temporal_cross_entropy(logits, targets)
        expected = oracle.cross_entropy(logits, targets)
        cases.compare_cross_entropy(result, expected, f"n {n}, t {t}, {v} ids")
    logits, targets = np.zeros((2, 3, 8)), np.array([[0, 7, 3], [1, 1, 2]])
    result = student.temporal_cross_entropy(logits, targets)
    dlogits = (0.125 - np.eye(8)[targets]) / 6
    cases.compare_cross_entropy(result, (3 * math.log(2), dlogits), "equal logits")


@weight(1)
@number("3.4")
def test_temporal_cross_entropy_leaves_masked_positions_out(student, rng, oracle):
    """Unmasked positions have equal weight; masked targets may be -1; all masked gives 0."""
    mask = np.array([[True, True, True, False], [False, True, False, False]])
    logits, targets = rng.normal(scale=2, size=(2, 4, 3)), rng.integers(0, 3, size=(2, 4))
    result = student.temporal_cross_entropy(logits, targets, mask)
    expected = oracle.cross_entropy(logits, targets, mask=mask)
    cases.compare_cross_entropy(result, expected, "padding anywhere")
    targets[~mask] = -1
    result = student.temporal_cross_entropy(logits, targets, mask)
    expected = oracle.cross_entropy(logits, targets, mask=mask)
    cases.compare_cross_entropy(result, expected, "targets of -1 in the padding")
    result = student.temporal_cross_entropy(logits, targets, np.zeros((2, 4), dtype=bool))
    cases.compare_cross_entropy(result, (0.0, np.zeros((2, 4, 3))), "only padding")


@weight(1)
@number("3.4")
def test_temporal_cross_entropy_is_stable_for_large_logits(student, rng, oracle):
    """Logits of 1e4 don't overflow, and a target of probability 0 still has the right loss."""
    large = rng.integers(-3, 4, size=(2, 3, 4)) * 1e4
    targets = rng.integers(0, 4, size=(2, 3))
    for situation, logits in (
        ("logits of 1e4", large),
        # Right code may take logits minus the log of a sum: more would be too coarse for float32.
        ("logits of 300 in float32", (large / 100).astype(np.float32)),
        ("logits near -1e4", rng.normal(size=(2, 3, 4)) - 1e4),
    ):
        result = student.temporal_cross_entropy(logits, targets)
        cases.compare_cross_entropy(result, oracle.cross_entropy(logits, targets), situation)


@weight(1)
@number("3.4")
def test_temporal_cross_entropy_keeps_float32_and_leaves_inputs_alone(student, rng, oracle):
    """dlogits has the dtype of the logits, the loss is a float, bad input raises ValueError."""
    logits, targets = rng.normal(scale=2, size=(3, 2, 4)), rng.integers(0, 4, size=(3, 2))
    mask = np.array([[True, False], [True, True], [False, True]])
    for situation, *arguments, real in (
        ("float32", logits.astype(np.float32), targets.astype(np.int32), mask),
        ("views", transposed(logits), sliced(targets), transposed(mask)),
    ):
        result = student.temporal_cross_entropy(*arguments, real)
        cases.compare_cross_entropy(result, oracle.cross_entropy(*arguments, mask=real), situation)
    function = student.temporal_cross_entropy
    for situation, arguments in (
        ("a target out of range", (logits, targets + 4)),
        ("a target of -1 that is not masked", (logits, np.full((3, 2), -1))),
        ("targets that are floats", (logits, targets.astype(np.float64))),
        ("targets of another shape", (logits, targets.T)),
        ("a mask of integers", (logits, targets, mask.astype(np.int64))),
    ):
        check_refused(situation, function, *arguments)


@weight(1)
@number("3.5")
def test_clip_by_global_norm_shrinks_all_gradients_by_one_factor(student, rng, oracle):
    """The norm is that of all arrays together, and afterwards it is max_norm."""
    gradients = {"a": np.array([[3.0, 0.0], [0.0, 4.0]]), "b": np.array([0.0, 12.0, 0.0])}
    result = student.clip_by_global_norm(gradients, 6.5)
    expected = (13.0, *(array / 2 for array in gradients.values()))
    cases.compare_clipped(result, gradients, expected, "a norm of 13 and a max_norm of 6.5")
    gradients = {"w": rng.normal(size=(2, 3, 2)), "b": 5 * rng.normal(size=4)}
    result = student.clip_by_global_norm(gradients, 0.25)
    expected = oracle.clip(0.25, *gradients.values())
    cases.compare_clipped(result, gradients, expected, "random gradients")


@weight(1)
@number("3.5")
def test_clip_by_global_norm_leaves_small_gradients_and_its_input_alone(student, rng):
    """At or below max_norm nothing changes; the input gradients are never written to."""
    gradients = {"a": np.array([2.0, -3.0]), "b": np.array([[6.0]])}
    for max_norm in (7.0, 7.5, 1000):
        result = student.clip_by_global_norm(gradients, max_norm)
        expected = (7.0, *gradients.values())
        cases.compare_clipped(result, gradients, expected, "a norm up to max_norm")
    zeros = {"a": np.zeros(3)}
    result = student.clip_by_global_norm(zeros, 1.0)
    cases.compare_clipped(result, zeros, (0.0, np.zeros(3)), "gradients of zero")


@weight(1)
@number("3.5")
def test_clip_by_global_norm_sums_in_float64_and_refuses_what_makes_no_sense(student):
    """float32 gradients of 1e30 have a norm; max_norm 0, NaN and infinity raise ValueError."""
    gradients = {"a": np.array([3e30, 0], dtype=np.float32), "b": np.array([4e30], np.float32)}
    result = student.clip_by_global_norm(gradients, 2.0)
    norm = np.hypot(*(array.astype(np.float64)[0] for array in gradients.values()))
    clipped = ((array * (2.0 / 5e30)).astype(np.float32) for array in gradients.values())
    cases.compare_clipped(result, gradients, (norm, *clipped), "large numbers in float32")
    clip = student.clip_by_global_norm
    for max_norm in (0.0, -1.0):
        check_refused("a max_norm that is not above 0", clip, gradients, max_norm)
    for value in (np.nan, np.inf, -np.inf):
        bad = {"a": np.array([1.0, value])}
        check_refused("a norm that is not finite", clip, bad, 1.0)


@weight(1)
@number("3.5")
def test_make_windows_splits_streams_that_continue_from_window_to_window(student, rng, oracle):
    """Each stream is a contiguous part of the text, and the targets are the next ids."""
    inputs = np.array(
        [
            [[100, 101, 102, 103], [112, 113, 114, 115]],
            [[104, 105, 106, 107], [116, 117, 118, 119]],
            [[108, 109, 110, 111], [120, 121, 122, 123]],
        ]
    )
    result = student.make_windows(np.arange(100, 125), 2, 4)
    cases.compare_windows(result, (inputs, inputs + 1), "25 ids")
    for length, batch_size, context_length in ((61, 3, 4), (40, 1, 5), (30, 4, 1)):
        ids = rng.integers(0, 99, size=length)
        result = student.make_windows(ids, batch_size, context_length)
        situation = f"{length} ids, batch_size {batch_size}, context_length {context_length}"
        cases.compare_windows(result, oracle.windows(ids, batch_size, context_length), situation)


@weight(1)
@number("3.5")
def test_make_windows_drops_the_rest_and_refuses_short_texts(student, rng, oracle):
    """One id too few for another window, all dtypes of ids, and texts too short for a window."""
    for dtype, length in ((np.int64, 24), (np.int32, 25), (np.uint8, 26), (np.int64, 13)):
        ids = rng.integers(0, 99, size=length).astype(dtype)
        result = student.make_windows(sliced(ids), 3, 4)
        cases.compare_windows(result, oracle.windows(ids, 3, 4), f"{length} ids")
    for situation, arguments in (
        ("a text one id too short", (ids[:12], 3, 4)),
        ("a text of no ids", (ids[:0], 3, 4)),
        ("a batch_size of 0", (ids, 0, 4)),
        ("a context_length of 0", (ids, 3, 0)),
        ("ids that are floats", (ids.astype(np.float64), 3, 4)),
    ):
        check_refused(situation, student.make_windows, *arguments)


@weight(1)
@number("3.5")
def test_truncated_bptt_carries_the_state_but_no_gradient_across_windows(student, rng, oracle):
    """h equals that of the whole sequence; gradients stay in their window; the last is shorter."""
    for t, context_length in ((7, 3), (6, 2), (4, 1), (3, 3), (3, 50)):
        (x, *others), (dh,) = cases.draw_with_upstream(rng, "rnn", (2, t, 3), 4)
        result = student.truncated_bptt(x, dh, *others, context_length)
        expected = oracle.truncated_bptt(x, dh, *others, context_length)
        cases.compare_truncated(result, expected, f"{t} steps in windows of {context_length}")
    inputs, (dh,) = cases.draw_with_upstream(rng, "rnn", (3, 5, 2), 2, dtype=np.float32)
    x, *others = cases.seen_as(inputs, transposed)
    result = student.truncated_bptt(x, dh, *others, 2)
    cases.compare_truncated(result, oracle.truncated_bptt(x, dh, *others, 2), "float32")
    check_promises(student, rng, CASES["3.5"])
    check_refused("a context_length of 0", student.truncated_bptt, x, dh, *others, 0)


@weight(1)
@number("3.6")
def test_gradient_norms_shrink_and_grow_with_the_recurrent_weights(student, rng):
    """At the zero state without input, r times an orthogonal w_hh gives norms of r**(t - s)."""
    for t, m, factor in ((6, 3, 0.5), (5, 4, 1.0), (4, 2, 1.5), (1, 1, 0.8)):
        x, state = np.zeros((t, 2)), (np.zeros(m),)
        weights = (rng.normal(size=(2, m)), factor * cases.orthogonal(rng, m), np.zeros(m))
        norms = student.gradient_norms_through_time("rnn", x, state, weights)
        expected = factor ** np.arange(t, -1.0, -1.0)
        assert_close(norms, expected, what=f"norms (a factor of {factor})", axes=("step",))


@weight(1)
@number("3.6")
def test_gradient_norms_of_an_rnn_are_those_of_its_jacobians(student, rng, oracle):
    """The largest singular value of the Jacobian at each step is PyTorch's."""
    for t, d, m in ((5, 2, 3), (1, 3, 4), (3, 1, 1)):
        x, state, weights = cases.draw_cell(rng, "rnn", (t, d), m)
        norms = student.gradient_norms_through_time("rnn", x, state, weights)
        expected = oracle.rnn_norms(x, *state, *weights)
        assert_close(norms, expected, what=f"norms (t {t}, m {m})", axes=("step",))


@weight(1)
@number("3.6")
def test_gradient_norms_of_an_lstm_hold_the_cell_fixed(student, rng, oracle):
    """The Jacobians are PyTorch's with c_s held fixed; paths through later cells count."""
    for t, d, m in ((5, 2, 3), (1, 3, 4), (3, 1, 1)):
        x, state, weights = cases.draw_cell(rng, "lstm", (t, d), m)
        norms = student.gradient_norms_through_time("lstm", x, state, weights)
        expected = oracle.lstm_norms(x, *state, *weights)
        assert_close(norms, expected, what=f"norms (t {t}, m {m})", axes=("step",))
    x, state, (w_x, w_h, b) = cases.draw_cell(rng, "lstm", (4, 2), 3)
    norms = student.gradient_norms_through_time("lstm", x, state, (w_x, 0 * w_h, b))
    expected = np.array([0.0, 0, 0, 0, 1])
    assert_close(norms, expected, what="norms (an LSTM with w_h = 0)", axes=("step",))


@weight(1)
@number("3.6")
def test_gradient_norms_keep_float32_and_inputs_and_refuse_other_cells(student, rng, oracle):
    """float32, views, unchanged inputs; other cells, wrong states or weights raise ValueError."""
    function = student.gradient_norms_through_time
    for kind, other, jacobian_norms in (
        ("rnn", "lstm", oracle.rnn_norms),
        ("lstm", "rnn", oracle.lstm_norms),
    ):
        single = cases.draw_cell(rng, kind, (3, 2), 4, dtype=np.float32)
        double, *others = cases.draw_cell(rng, kind, (4, 3), 2)
        view = (transposed(double), *others)
        for situation, (x, state, weights) in (("float32", single), ("a view", view)):
            norms = student.gradient_norms_through_time(kind, x, state, weights)
            expected = jacobian_norms(x, *state, *weights)
            assert_close(norms, expected, what=f"norms ({situation})", axes=("step",))
        x, state, weights = cases.draw_cell(rng, kind, (3, 2), 4)
        check_refused("the states of another cell", function, other, x, state, weights)
        check_refused("an unknown cell", function, "gru", x, state, weights)
        check_refused("too few weights", function, kind, x, state, weights[:2])
    check_promises(student, rng, CASES["3.6"])


@weight(1)
@number("3.7")
def test_char_lm_starts_with_the_parameters_of_its_docstring(student, rng):
    """Names, shapes, dtypes and distributions; equal generators give equal models."""
    model = student.CharLM(cases.new_generator(rng), 70, 40, 25)
    model_cases.check_initial_parameters(model, 70, 40, 25, dtype="float32")
    model = student.CharLM(cases.new_generator(rng), 50, 60, 30, "float64")
    model_cases.check_initial_parameters(model, 50, 60, 30, dtype="float64")
    models = [student.CharLM(np.random.default_rng(seed), 4, 3, 2) for seed in (5, 5, 6)]
    for model in models:
        model_cases.check_model(model)
    first, again, other = (model_cases.read_parameters(model)["w_out"] for model in models)
    check(np.array_equal(first, again), "Equal generators must give equal parameters.")
    check(not np.array_equal(first, other), "Different generators must give different parameters.")


@weight(1)
@number("3.7")
def test_char_lm_forward_gives_logits_and_the_state(student, rng, oracle):
    """PyTorch's logits and state, from the zero state and from another state; also in float32."""
    for n, t, dtype in ((2, 4, np.float64), (1, 1, np.float64), (3, 2, np.float32)):
        parameters = draw_parameters(rng, 5, 2, 3, dtype=dtype)
        ids = rng.integers(0, 5, size=(n, t))
        result = new_model(student, parameters).forward(ids)
        expected = oracle.char_lm(ids, *parameters.values())
        model_cases.compare_forward(result, expected, "from the zero state")
        state = tuple(rng.normal(size=(n, 3)).astype(dtype) for _ in range(2))
        result = new_model(student, parameters).forward(ids, state)
        expected = oracle.char_lm(ids, *parameters.values(), *state)
        model_cases.compare_forward(result, expected, "from a state")


@weight(1)
@number("3.7")
def test_char_lm_forward_is_causal_and_independent_of_other_texts(student, rng, oracle):
    """Later ids change no earlier logits; a text in two parts, or alone, gives the same logits."""
    parameters = draw_parameters(rng, 6, 3, 4)
    ids = rng.integers(0, 6, size=(3, 7))
    logits, h, c = oracle.char_lm(ids, *parameters.values())
    model = new_model(student, parameters)
    for cut in (1, 3, 6):
        changed = ids.copy()
        changed[:, cut:] = (ids[:, cut:] + 1) % 6
        before, _, _ = model_cases.unpack_forward(model.forward(changed))
        situation = f"after a change of the ids from step {cut} on"
        check(before.shape == logits.shape, "logits has the wrong shape.")
        assert_close(before[:, :cut], logits[:, :cut], what=f"earlier logits ({situation})")
        _, state = unpack(model.forward(ids[:, :cut]), 2, "forward")
        rest = model.forward(ids[:, cut:], state)
        situation = f"the second part, from step {cut} on"
        model_cases.compare_forward(rest, (logits[:, cut:], h, c), situation)
    alone = model.forward(ids[1:2])
    model_cases.compare_forward(alone, (logits[1:2], h[1:2], c[1:2]), "one text alone")


@weight(1)
@number("3.7")
def test_char_lm_gives_its_loss_and_the_gradients_of_all_parameters(student, rng, oracle):
    """PyTorch's loss, six gradients and state, from the zero state and from another state."""
    for n, t, dtype in ((2, 5, np.float64), (3, 1, np.float32)):
        parameters = draw_parameters(rng, 5, 2, 3, dtype=dtype)
        ids, targets = rng.integers(0, 5, size=(2, n, t))
        state = tuple(rng.normal(size=(n, 3)).astype(dtype) for _ in range(2))
        for start, situation in (((), "from the zero state"), (state, "from a state")):
            arguments = (ids, targets, start) if start else (ids, targets)
            result = new_model(student, parameters).loss_and_gradients(*arguments)
            expected = oracle.char_lm_gradients(ids, targets, *parameters.values(), *start)
            _, *after = oracle.char_lm(ids, *parameters.values(), *start)
            model_cases.compare_loss_and_gradients(result, expected, situation, state=after)


@weight(1)
@number("3.7")
def test_char_lm_reads_its_parameters_at_each_call_and_keeps_nothing_else(student, rng, oracle):
    """Changed parameters take effect at once; calls change neither them nor the state."""
    first, second = (draw_parameters(rng, 5, 2, 3) for _ in range(2))
    ids, targets = rng.integers(0, 5, size=(2, 2, 4))
    model, situation = new_model(student, first), "after a change of the parameters"
    for parameters in (first, second, second, first):
        write_into(model, "parameters", parameters)
        expected = oracle.char_lm(ids, *parameters.values())
        model_cases.compare_forward(model.forward(ids), expected, situation)
        expected = oracle.char_lm_gradients(ids, targets, *parameters.values())
        result = model.loss_and_gradients(ids, targets)
        model_cases.compare_loss_and_gradients(result, expected, situation)
        after = model_cases.read_parameters(model)
        for name in parameters:
            check(np.array_equal(after[name], parameters[name]), f"A call changes {name}.")
    check_promises(student, rng, CASES["3.7"])


@weight(1)
@number("3.7")
def test_train_takes_the_steps_of_its_docstring(student, rng, oracle):
    """Losses, bits, norms, rates and parameters are those of PyTorch's Adam, clipped or not."""
    parameters = draw_parameters(rng, 5, 2, 3)
    text = rng.integers(0, 5, size=27)
    config = {"steps": 8, "batch_size": 2, "context_length": 4}
    config |= {"learning_rate": 0.05, "decay": 0.9}
    for max_norm, situation in ((100.0, "nothing to clip"), (0.1, "every step clipped")):
        config["max_norm"] = max_norm
        model = new_model(student, parameters)
        history = student.train(model, text, student.TrainConfig(**config))
        expected = oracle.char_lm_training(text, *parameters.values(), **config)
        model_cases.compare_training(history, model, expected, config, situation=situation)


@weight(1)
@number("3.7")
def test_train_resumes_exactly_where_it_stopped(student, rng):
    """4 steps and then 5 give exactly the results of 9, also with a new model and a used state."""
    parameters = draw_parameters(rng, 5, 2, 3, dtype=np.float32)
    text = rng.integers(0, 5, size=27)
    config = {"steps": 9, "batch_size": 2, "context_length": 4, "max_norm": 0.5}
    model_cases.check_resumed(student, parameters, text, config, first=4)


@weight(1)
@number("3.7")
def test_train_stops_when_the_loss_is_not_finite_and_refuses_other_states(student, rng):
    """A loss that is not finite raises ValueError with the step; so do other models' states."""
    parameters = draw_parameters(rng, 5, 2, 3, dtype=np.float32)
    text = rng.integers(0, 5, size=60)
    config = {"batch_size": 2, "context_length": 4}
    student.train(new_model(student, parameters), text, student.TrainConfig(steps=4, **config))
    broken = {"b_out": np.full(5, np.nan, dtype=np.float32)}
    for step, weights, options in (
        (1, parameters | broken, {}),
        # The first update is practically infinite, so the next loss is not finite.
        (2, parameters, {"learning_rate": 1e300}),
    ):
        model, long = new_model(student, weights), student.TrainConfig(steps=4, **config, **options)
        message = check_refused("a loss that is not finite", student.train, model, text, long)
        check(
            contains_pattern(message, rf"step\D*(?<!-){step}\b", re.IGNORECASE),
            "The ValueError for a loss that is not finite must name the step, counted from 1.",
            f"expected step {step}, got the message: {message}",
        )
    one, two = (student.TrainConfig(steps=steps, **config) for steps in (1, 2))
    small = draw_parameters(rng, 5, 2, 3)
    state = student.train(new_model(student, small), text, one)["state"]
    student.train(new_model(student, small), text, two, state)
    large = new_model(student, draw_parameters(rng, 5, 2, 4))
    check_refused("the state of a model with other sizes", student.train, large, text, two, state)


@weight(1)
@number("3.7")
def test_bits_per_character_reads_the_text_as_one_stream(student, rng, oracle):
    """PyTorch's mean of -log2 p over all characters but the first; 8 equal logits need 3 bits."""
    for length, dtype in ((2, np.int64), (9, np.uint8), (2001, np.int64)):
        parameters = draw_parameters(rng, 5, 2, 3)
        ids = rng.integers(0, 5, size=length).astype(dtype)
        expected = oracle.bits_per_character(ids, *parameters.values())
        bits = student.bits_per_character(new_model(student, parameters), ids)
        check_float(bits, "bits_per_character's result")
        assert_close(bits, expected, what=f"the bits ({length} ids)")
    parameters = draw_parameters(rng, 8, 2, 3)
    parameters |= {"w_out": np.zeros((3, 8)), "b_out": np.zeros(8)}
    model, ids = new_model(student, parameters), rng.integers(0, 8, size=20)
    assert_close(student.bits_per_character(model, ids), 3.0, what="the bits (equal logits)")
    for bad in (ids[:1], ids[:0], ids[None]):
        check_refused("a text of fewer than 2 ids", student.bits_per_character, model, bad)


@weight(1)
@number("3.7")
def test_sample_takes_the_most_likely_id_at_temperature_zero(student, rng, oracle):
    """At 0 and 1e-6 each id has the highest logit; at 0 a tie goes to the lowest id."""
    for prompt in (np.array([1]), np.array([3, 0, 2, 2])):
        parameters, expected = model_cases.draw_clear_model(rng, oracle, 6, prompt, length=12)
        model, generator = new_model(student, parameters), np.random.default_rng(3)
        for temperature in (0.0, 0, 1e-6):
            ids = student.sample(model, prompt, 12, temperature, generator)
            model_cases.check_ids(ids, 12)
            what = f"sample's result at temperature {temperature}"
            assert_close(ids, expected, what=what, axes=("position",))
    held = hold(student, np.random.default_rng(3))
    call_with_held(student.sample, new_model(student, parameters), prompt, 5, 0.0, held)
    following, unused = fetch(held).random(), np.random.default_rng(3).random()
    assert_equal(following, unused, what="What rng draws after sampling at temperature 0")
    ties = {"w_out": np.zeros((4, 6)), "b_out": np.array([0.0, 2, -1, 2, 2, 1])}
    model = new_model(student, parameters | ties)
    ids = student.sample(model, prompt, 4, 0.0, np.random.default_rng(3))
    model_cases.check_ids(ids, 4)
    assert_equal(ids.tolist(), [1, 1, 1, 1], what="the ids when 1, 3 and 4 are tied")


@weight(1)
@number("3.7")
def test_sample_draws_from_the_softmax_of_logits_and_temperature(student, rng):
    """Ids follow the softmax at temperatures 0.5 and 2, and are uniform at a million."""
    parameters, prompt = draw_parameters(rng, 4, 3, 4, scale=1.5), np.array([2, 0])
    for temperature in (0.5, 2.0):
        model = new_model(student, parameters)
        ids = student.sample(model, prompt, 2000, temperature, np.random.default_rng(11))
        model_cases.check_draws(model, prompt, ids, temperature)
    model = new_model(student, parameters)
    ids = student.sample(model, prompt, 2000, 1e6, np.random.default_rng(12))
    model_cases.check_uniform_draws(ids, 2000)
    model = new_model(student, parameters)
    first, again, other = (
        student.sample(model, prompt, 60, 1e3, np.random.default_rng(seed)) for seed in (5, 5, 6)
    )
    check(np.array_equal(first, again), "Equal generators must give equal ids.")
    check(not np.array_equal(first, other), "Different generators must give different ids.")


@weight(1)
@number("3.7")
def test_sample_takes_any_length_and_refuses_what_makes_no_sense(student, rng):
    """Length 0 gives an empty int64 array; invalid arguments raise ValueError."""
    model = new_model(student, draw_parameters(rng, 4, 3, 2, dtype=np.float32))
    prompt, generator = np.array([2, 0], dtype=np.uint8), np.random.default_rng(5)
    for length in (0, 1, 3):
        for temperature in (0.0, 0.7):
            ids = student.sample(model, prompt, length, temperature, generator)
            model_cases.check_ids(ids, length)
    for situation, arguments in (
        ("an empty prompt", (prompt[:0], 3, 1.0)),
        ("an id out of the vocabulary", (np.array([2, 4]), 3, 1.0)),
        ("such an id with a length of 0", (np.array([4]), 0, 1.0)),
        ("a length below 0", (prompt, -1, 1.0)),
        ("a temperature below 0", (prompt, 3, -0.5)),
        ("an infinite temperature", (prompt, 3, np.inf)),
        ("a temperature of NaN", (prompt, 3, np.nan)),
    ):
        check_refused(situation, student.sample, model, *arguments, generator)


@weight(1)
@number("3.7")
@tags("training")
def test_a_trained_model_beats_a_bigram_model(student, rng):
    """300 steps on a part of Shakespeare, then bits per character on held-out plays."""
    train, passages, vocab_size = model_cases.draw_texts(rng, 0)
    model = student.CharLM(cases.new_generator(rng), vocab_size, 32, 64)
    model_cases.check_model(model)
    history = student.train(model, train, student.TrainConfig(**model_cases.TRAINING))
    model_cases.check_trained_model(model, history, train, passages)


@weight(2)
@number("3.8")
def test_q1_the_distance_at_which_a_gradient_has_vanished_is_found(lab):
    """Lab, question 1: the smallest distance with less than a thousandth left, at radius 0.9."""
    steps = next(k for k in range(1000) if 0.9**k < 1e-3)
    check_number(lab, "q1_steps", steps)


@weight(2)
@number("3.8")
def test_q3_the_gradient_shrinks_at_the_fixed_point(lab):
    """Lab, question 3: the weight times the slope of tanh where h = tanh(2 h)."""
    h = 1.0
    for _ in range(100):  # each step brings h about 6 times closer
        h = math.tanh(2 * h)
    check_number(lab, "q3_factor", 2 * (1 - h**2), tolerance=1e-3)


@weight(1)
@number("3.8")
def test_q4_clipping_each_entry_rotates_the_gradient(lab):
    """Lab, question 4: the angle between (4, 1) and (1, 1), in degrees."""
    cosine = (4 * 1 + 1 * 1) / (math.hypot(4, 1) * math.hypot(1, 1))
    check_number(lab, "q4_degrees", math.degrees(math.acos(cosine)), tolerance=0.1)


@weight(2)
@number("3.9")
def test_q8_the_bigram_model_needs_the_right_number_of_bits(lab):
    """Lab, question 8: the mean surprisal over all bigrams of the text."""
    plays = load_shakespeare()
    ids = plays.encode(plays.train[:200_000])
    counts = np.zeros((len(plays.vocabulary), len(plays.vocabulary)))
    np.add.at(counts, (ids[:-1], ids[1:]), 1)
    probabilities = counts[ids[:-1], ids[1:]] / counts.sum(axis=1)[ids[:-1]]
    check_number(lab, "q8_bits", float(-np.log2(probabilities).mean()), tolerance=0.01)


@weight(1)
@number("3.9")
def test_q9_the_temperature_gives_the_right_ratio(lab):
    """Lab, question 9: with logits 3 and 1 the first is 10 times as likely as the second."""
    check_number(lab, "q9_temperature", (3 - 1) / math.log(10), tolerance=0.01)
