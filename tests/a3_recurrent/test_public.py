"""The public tests of assignment 3: recurrent networks in NumPy."""

import math

import numpy as np
from gradescope_utils.autograder_utils.decorators import number, tags, weight

from common.labs.answer_checks import check_number
from common.testing.checks import check_float, check_refused, check_unchanged, sliced, transposed
from common.testing.compare import assert_close, assert_equal, check, unpack
from common.testing.remote.operations import call_each, write_into
from tests.a3_recurrent.cases import (
    GRU_STEP,
    LN2,
    LSTM,
    LSTM_STEP,
    RNN,
    RNN_STEP,
    Case,
    check_clipped,
    check_container_kept,
    check_cross_entropy,
    check_gradients,
    check_layer_changes_nothing,
    check_layer_refuses,
    check_lstm_parameters,
    check_norms,
    check_outputs,
    check_stays_apart,
    check_truncated,
    check_windows,
    compare_cross_entropy,
    draw_case,
    draw_cell,
    draw_mask,
    orthogonal,
)
from tests.a3_recurrent.lab_cases import bits_of_pairs, settled
from tests.a3_recurrent.model_cases import (
    check_draws,
    check_even_draws,
    check_first_parameters,
    check_forward,
    check_generator_not_used,
    check_generators_decide,
    check_ids,
    check_loss_and_gradients,
    check_most_likely,
    check_names_step,
    check_resumed,
    check_strange_state,
    check_trained_model,
    check_training,
    compare_forward,
    compare_loss_and_gradients,
    draw_clear_model,
    draw_parameters,
    first_model,
    new_model,
    read,
    read_parameters,
)
from tests.a3_recurrent.speed_cases import check_lstm_speed

# Exercise 3.1


@weight(1)
@number("3.1")
def test_rnn_step_forward_takes_one_step(student, rng, oracle):
    """h_next is the tanh of x @ w_xh + h @ w_hh + b_h, also for sizes of 1."""
    for n, d, m in ((3, 2, 4), (2, 5, 3), (1, 1, 1)):
        case = draw_case(rng, RNN_STEP, n, d, m=m)
        check_outputs(student, oracle, case, f"n {n}, d {d}, m {m}")


@weight(1)
@number("3.1")
def test_rnn_step_backward_gives_the_five_gradients_of_a_step(student, rng, oracle):
    """dx, dh, dw_xh, dw_hh and db_h are PyTorch's, under a random dh_next."""
    for n, d, m in ((3, 2, 4), (1, 3, 2)):
        case = draw_case(rng, RNN_STEP, n, d, m=m)
        check_gradients(student, oracle, rng, case, situation=f"n {n}, d {d}, m {m}")


@weight(1)
@number("3.1")
def test_rnn_forward_carries_the_state_from_step_to_step(student, rng, oracle):
    """Each h[:, s] is PyTorch's, from a first state that is not zero; one step, one sequence."""
    for n, t, d, m in ((3, 5, 2, 4), (2, 1, 3, 2), (1, 4, 1, 3)):
        case = draw_case(rng, RNN, n, d, m=m, t=t)
        check_outputs(student, oracle, case, f"n {n}, t {t}, d {d}, m {m}")


@weight(1)
@number("3.1")
def test_rnn_backward_sends_gradients_back_through_all_steps(student, rng, oracle):
    """dx, dh0 and the weights' gradients are PyTorch's: each state also acts through later ones."""
    for n, t, d, m in ((3, 5, 2, 4), (2, 1, 3, 2), (1, 4, 1, 3)):
        case = draw_case(rng, RNN, n, d, m=m, t=t)
        check_gradients(student, oracle, rng, case, situation=f"n {n}, t {t}, d {d}, m {m}")


@weight(1)
@number("3.1")
def test_rnn_forward_carries_the_state_over_masked_steps(student, rng, oracle):
    """Padding before, between and after real steps leaves the state as it is, whatever x holds."""
    mask = draw_mask(rng, 4, 5)
    case = draw_case(rng, RNN, 4, 2, m=3, t=5, mask=mask)
    check_outputs(student, oracle, case, "padding anywhere")
    case.inputs[0][~mask] = 1e4
    check_outputs(student, oracle, case, "large numbers in the padding")
    case = Case(RNN, case.inputs, np.ones((4, 5), dtype=bool))
    check_outputs(student, oracle, case, "a mask that is True everywhere")


@weight(1)
@number("3.1")
def test_rnn_backward_passes_the_gradient_through_masked_steps(student, rng, oracle):
    """A masked step hands the state's gradient on, gives x zeros, and adds nothing to weights."""
    mask = draw_mask(rng, 4, 5)
    case = draw_case(rng, RNN, 4, 2, m=3, t=5, mask=mask)
    case.inputs[0][~mask] = 9
    check_gradients(student, oracle, rng, case, situation="padding anywhere")
    case = draw_case(rng, RNN, 2, 3, m=2, t=3, mask=np.zeros((2, 3), dtype=bool))
    check_gradients(student, oracle, rng, case, situation="nothing but padding")


@weight(1)
@number("3.1")
def test_rnn_keeps_float32_and_takes_views(student, rng, oracle):
    """float32 in gives float32 out in all four functions; views with gaps are nothing special."""
    case = draw_case(rng, RNN_STEP, 3, 2, m=4, dtype=np.float32)
    check_outputs(student, oracle, case, "a step in float32")
    check_gradients(student, oracle, rng, case, situation="a step in float32")
    case = draw_case(rng, RNN, 3, 2, m=4, t=5, dtype=np.float32, mask=draw_mask(rng, 3, 5))
    check_outputs(student, oracle, case, "float32")
    check_gradients(student, oracle, rng, case, situation="float32")
    for layer, t in ((RNN_STEP, None), (RNN, 3)):
        case = draw_case(rng, layer, 2, 3, m=2, t=t).seen_as(sliced, transposed)
        check_outputs(student, oracle, case, "views")
        check_gradients(student, oracle, rng, case, situation="views", view=transposed)


@weight(1)
@number("3.1")
def test_rnn_leaves_inputs_alone_and_calls_do_not_disturb_each_other(student, rng, oracle):
    """Inputs stay, each backward pass uses the cache it is given, bad shapes and masks refused."""
    for layer, t in ((RNN_STEP, None), (RNN, 3)):
        first, second = (draw_case(rng, layer, 2, 3, m=4, t=t) for _ in range(2))
        check_stays_apart(student, oracle, rng, first, second=second)
        check_layer_changes_nothing(student, rng, first)
    case = draw_case(rng, RNN, 4, 2, m=3, t=5)
    check_layer_changes_nothing(student, rng, Case(RNN, case.inputs, draw_mask(rng, 4, 5)))
    check_layer_refuses(student, case)


# Exercise 3.2


@weight(1)
@number("3.2")
def test_lstm_parameters_draws_weights_and_sets_the_forget_bias(student, rng):
    """Weights spread evenly between -1 / sqrt(m) and 1 / sqrt(m); only the forget gate's bias."""
    check_lstm_parameters(student, rng, 40, 30, forget_bias=None, dtype="float32")
    check_lstm_parameters(student, rng, 60, 20, forget_bias=2.5, dtype="float64")
    first, again, other = call_each(
        student.lstm_parameters, [(np.random.default_rng(seed), 2, 3) for seed in (5, 5, 6)]
    )
    check(np.array_equal(first[0], again[0]), "Equal generators must give equal weights.")
    check(not np.array_equal(first[0], other[0]), "Other generators must give other weights.")


@weight(1)
@number("3.2")
def test_lstm_step_forward_takes_one_step(student, rng, oracle):
    """h_next and c_next are PyTorch's, with the gates in the order i, f, o, g."""
    for n, d, m in ((3, 2, 4), (2, 4, 3), (1, 1, 1)):
        case = draw_case(rng, LSTM_STEP, n, d, m=m)
        check_outputs(student, oracle, case, f"n {n}, d {d}, m {m}")


@weight(1)
@number("3.2")
def test_lstm_step_backward_gives_the_six_gradients_of_a_step(student, rng, oracle):
    """dx, dh, dc, dw_x, dw_h and db are PyTorch's, under random dh_next and dc_next."""
    for n, d, m in ((3, 2, 4), (1, 3, 2)):
        case = draw_case(rng, LSTM_STEP, n, d, m=m)
        check_gradients(student, oracle, rng, case, situation=f"n {n}, d {d}, m {m}")


@weight(1)
@number("3.2")
def test_lstm_forward_carries_both_states_from_step_to_step(student, rng, oracle):
    """Each h[:, s] and c_last are PyTorch's, from first states that are not zero."""
    for n, t, d, m in ((3, 5, 2, 4), (2, 1, 3, 2), (1, 4, 1, 3)):
        case = draw_case(rng, LSTM, n, d, m=m, t=t)
        check_outputs(student, oracle, case, f"n {n}, t {t}, d {d}, m {m}")


@weight(1)
@number("3.2")
def test_lstm_backward_sends_gradients_back_through_all_steps(student, rng, oracle):
    """All six gradients are PyTorch's: both h and c carry them back, and dc_last is where c's
    begins."""
    for n, t, d, m in ((3, 5, 2, 4), (2, 1, 3, 2), (1, 4, 1, 3)):
        case = draw_case(rng, LSTM, n, d, m=m, t=t)
        check_gradients(student, oracle, rng, case, situation=f"n {n}, t {t}, d {d}, m {m}")


@weight(1)
@number("3.2")
def test_lstm_forward_carries_both_states_over_masked_steps(student, rng, oracle):
    """Padding before, between and after real steps leaves h and c as they are."""
    mask = draw_mask(rng, 4, 5)
    case = draw_case(rng, LSTM, 4, 2, m=3, t=5, mask=mask)
    check_outputs(student, oracle, case, "padding anywhere")
    case.inputs[0][~mask] = 1e4
    check_outputs(student, oracle, case, "large numbers in the padding")
    case = Case(LSTM, case.inputs, np.ones((4, 5), dtype=bool))
    check_outputs(student, oracle, case, "a mask that is True everywhere")


@weight(1)
@number("3.2")
def test_lstm_backward_passes_both_gradients_through_masked_steps(student, rng, oracle):
    """A masked step hands dh and dc on, gives x zeros, and adds nothing to the weights."""
    mask = draw_mask(rng, 4, 5)
    case = draw_case(rng, LSTM, 4, 2, m=3, t=5, mask=mask)
    case.inputs[0][~mask] = 9
    check_gradients(student, oracle, rng, case, situation="padding anywhere")
    case = draw_case(rng, LSTM, 2, 3, m=2, t=3, mask=np.zeros((2, 3), dtype=bool))
    check_gradients(student, oracle, rng, case, situation="nothing but padding")


@weight(1)
@number("3.2")
def test_lstm_keeps_float32_and_takes_views(student, rng, oracle):
    """float32 in gives float32 out in all four functions; views with gaps are nothing special."""
    case = draw_case(rng, LSTM_STEP, 3, 2, m=2, dtype=np.float32)
    check_outputs(student, oracle, case, "a step in float32")
    check_gradients(student, oracle, rng, case, situation="a step in float32")
    case = draw_case(rng, LSTM, 3, 2, m=2, t=5, dtype=np.float32, mask=draw_mask(rng, 3, 5))
    check_outputs(student, oracle, case, "float32")
    check_gradients(student, oracle, rng, case, situation="float32")
    for layer, t in ((LSTM_STEP, None), (LSTM, 3)):
        case = draw_case(rng, layer, 2, 3, m=2, t=t).seen_as(sliced, transposed)
        check_outputs(student, oracle, case, "views")
        check_gradients(student, oracle, rng, case, situation="views", view=transposed)


@weight(1)
@number("3.2")
def test_lstm_leaves_inputs_alone_and_calls_do_not_disturb_each_other(student, rng, oracle):
    """Inputs stay, each backward pass uses the cache it is given, bad shapes and masks refused."""
    for layer, t in ((LSTM_STEP, None), (LSTM, 3)):
        first, second = (draw_case(rng, layer, 2, 3, m=2, t=t) for _ in range(2))
        check_stays_apart(student, oracle, rng, first, second=second)
        check_layer_changes_nothing(student, rng, first)
    case = draw_case(rng, LSTM, 4, 2, m=3, t=5)
    check_layer_changes_nothing(student, rng, Case(LSTM, case.inputs, draw_mask(rng, 4, 5)))
    check_layer_refuses(student, case)


@weight(1)
@number("3.2")
@tags("timing")
def test_lstm_is_not_much_slower_than_its_matrix_products(student, rng, oracle):
    """Both passes together take at most 7 times as long as the matrix products in them.

    That is a bit more than what 5 times PyTorch's time comes to; the docstring asks for 4.
    """
    check_lstm_speed(student, oracle, rng)


# Exercise 3.3


@weight(1)
@number("3.3")
def test_gru_step_forward_takes_one_step(student, rng, oracle):
    """h_next is PyTorch's: reset after the product, and an update gate of 1 keeps the state."""
    for n, d, m in ((3, 2, 4), (2, 4, 3), (1, 1, 1)):
        case = draw_case(rng, GRU_STEP, n, d, m=m)
        check_outputs(student, oracle, case, f"n {n}, d {d}, m {m}")
    x, h, w_x, w_h, b_x, b_h = draw_case(rng, GRU_STEP, 3, 2, m=4).inputs
    b_x[4:8] = 50
    h_next, _ = unpack(student.gru_step_forward(x, h, w_x, w_h, b_x, b_h), 2, "gru_step_forward")
    assert_close(h_next, h, what="h_next (an update gate of 1)", axes=("sequence", "unit"))


@weight(1)
@number("3.3")
def test_gru_step_backward_gives_the_gradients_on_the_side_of_x(student, rng, oracle):
    """dx, dw_x and db_x are PyTorch's, under a random dh_next."""
    case = draw_case(rng, GRU_STEP, 3, 2, m=4)
    check_gradients(
        student, oracle, rng, case, situation="n 3, d 2, m 4", only=("dx", "dw_x", "db_x")
    )


@weight(1)
@number("3.3")
def test_gru_step_backward_gives_the_gradients_on_the_side_of_h(student, rng, oracle):
    """dh, dw_h and db_h are PyTorch's: the candidate's part goes through the reset gate."""
    for n, d, m in ((3, 2, 4), (1, 3, 2)):
        case = draw_case(rng, GRU_STEP, n, d, m=m)
        situation, only = f"n {n}, d {d}, m {m}", ("dh", "dw_h", "db_h")
        check_gradients(student, oracle, rng, case, situation=situation, only=only)


@weight(1)
@number("3.3")
def test_gru_step_keeps_float32_takes_views_and_leaves_inputs_alone(student, rng, oracle):
    """Types, views, inputs that stay, caches apart, and a ValueError for shapes that don't fit."""
    case = draw_case(rng, GRU_STEP, 3, 2, m=2, dtype=np.float32)
    check_outputs(student, oracle, case, "float32")
    check_gradients(student, oracle, rng, case, situation="float32")
    case = draw_case(rng, GRU_STEP, 2, 3, m=2).seen_as(sliced, transposed)
    check_outputs(student, oracle, case, "views")
    check_gradients(student, oracle, rng, case, situation="views", view=transposed)
    first, second = (draw_case(rng, GRU_STEP, 2, 3, m=2) for _ in range(2))
    check_stays_apart(student, oracle, rng, first, second=second)
    check_layer_changes_nothing(student, rng, first)
    x, h, *weights = first.inputs
    check_refused("an x of another width", student.gru_step_forward, x[:, :-1], h, *weights)
    check_refused("a state of another width", student.gru_step_forward, x, h[:, :-1], *weights)


# Exercise 3.4


@weight(1)
@number("3.4")
def test_embedding_forward_looks_up_a_vector_for_each_id(student, rng):
    """out[i, s] is table[ids[i, s]], whatever the type of the ids; bad ids raise ValueError."""
    table = rng.normal(size=(5, 3))
    for dtype in (np.int64, np.int32, np.uint8):
        ids = rng.integers(0, 5, size=(2, 4)).astype(dtype)
        expected = np.stack([[table[int(at)] for at in row] for row in ids])
        out, _ = unpack(student.embedding_forward(ids, table), 2, "embedding_forward")
        assert_close(out, expected, what="out", axes=("sequence", "step", "feature"))
    check_unchanged("embedding_forward", student.embedding_forward, ids, table)
    for situation, bad in (
        ("an id as large as the vocabulary", np.array([[1, 5]])),
        ("an id below 0", np.array([[-1, 2]])),
        ("ids that are floats", np.array([[1.0, 2.0]])),
        ("ids with one axis", np.array([1, 2])),
    ):
        check_refused(situation, student.embedding_forward, bad, table)


@weight(1)
@number("3.4")
def test_embedding_backward_adds_up_where_an_id_occurs_more_than_once(student, rng, oracle):
    """dtable holds the sum of dout over all places of an id, and zeros for ids that don't occur."""
    for ids in (np.array([[2, 0, 2], [4, 2, 0]]), np.array([[1]]), np.full((3, 4), 5)):
        table, dout = rng.normal(size=(6, 2)), rng.normal(size=(*ids.shape, 2))
        expected = oracle.embedding_gradient(ids, table, dout)
        _, cache = unpack(student.embedding_forward(ids, table), 2, "embedding_forward")
        dtable = student.embedding_backward(dout, cache)
        assert_close(dtable, expected, what="dtable", axes=("id", "feature"))


@weight(1)
@number("3.4")
def test_embedding_keeps_types_and_caches_apart(student, rng, oracle):
    """out has the type of the table, dtable that of dout; views, and calls don't disturb."""
    cases = [
        (rng.integers(0, 4, size=(2, 3)), transposed(rng.normal(size=(4, 2)).astype(dtype)))
        for dtype in (np.float32, np.float64)
    ]
    douts = [rng.normal(size=(2, 3, 2)).astype(table.dtype) for _, table in cases]
    expected = [oracle.embedding_gradient(*c, d) for c, d in zip(cases, douts, strict=True)]
    results = call_each(student.embedding_forward, cases)
    for result, (ids, table) in zip(results, cases, strict=True):
        assert_close(unpack(result, 2, "embedding_forward")[0], table[ids], what="out")
    order = (0, 1, 0)
    calls = [(sliced(douts[i]), results[i][1]) for i in order]
    for i, dtable in zip(order, call_each(student.embedding_backward, calls), strict=True):
        assert_close(dtable, expected[i], what="dtable", axes=("id", "feature"))
    check_unchanged("embedding_backward", student.embedding_backward, *calls[0])


@weight(1)
@number("3.4")
def test_temporal_cross_entropy_is_the_mean_over_all_positions(student, rng, oracle):
    """loss and dlogits are PyTorch's, also for one sequence, one step and one id."""
    for n, t, v in ((2, 3, 4), (3, 1, 5), (1, 4, 2), (2, 2, 1)):
        logits, targets = rng.normal(scale=2, size=(n, t, v)), rng.integers(0, v, size=(n, t))
        check_cross_entropy(student, oracle, logits, targets, None, f"n {n}, t {t}, {v} ids")
    logits, targets = np.zeros((2, 3, 8)), np.array([[0, 7, 3], [1, 1, 2]])
    dlogits = (0.125 - np.eye(8)[targets]) / 6
    compare_cross_entropy(student, (logits, targets), 3 * LN2, dlogits, situation="equal logits")


@weight(1)
@number("3.4")
def test_temporal_cross_entropy_leaves_masked_positions_out(student, rng, oracle):
    """Every real position counts the same; targets in the padding may be -1; all masked gives 0."""
    mask = np.array([[True, True, True, False], [False, True, False, False]])
    logits, targets = rng.normal(scale=2, size=(2, 4, 3)), rng.integers(0, 3, size=(2, 4))
    check_cross_entropy(student, oracle, logits, targets, mask, "padding anywhere")
    targets[~mask] = -1
    check_cross_entropy(student, oracle, logits, targets, mask, "targets of -1 in the padding")
    arguments = (logits, targets, np.zeros((2, 4), dtype=bool))
    compare_cross_entropy(
        student, arguments, 0.0, np.zeros((2, 4, 3)), situation="nothing but padding"
    )


@weight(1)
@number("3.4")
def test_temporal_cross_entropy_is_stable_for_large_logits(student, rng, oracle):
    """Logits of 1e4 overflow nothing, and a target without a chance still has the right loss."""
    logits = rng.integers(-3, 4, size=(2, 3, 4)) * 1e4
    targets = rng.integers(0, 4, size=(2, 3))
    check_cross_entropy(student, oracle, logits, targets, None, "logits of 1e4")
    single = logits.astype(np.float32)
    check_cross_entropy(student, oracle, single, targets, None, "logits of 1e4 in float32")
    shifted = rng.normal(size=(2, 3, 4)) - 1e4
    check_cross_entropy(student, oracle, shifted, targets, None, "logits near -1e4")


@weight(1)
@number("3.4")
def test_temporal_cross_entropy_keeps_float32_and_leaves_inputs_alone(student, rng, oracle):
    """dlogits has the type of the logits, the loss is a float, views work, bad input is refused."""
    logits, targets = rng.normal(scale=2, size=(3, 2, 4)), rng.integers(0, 4, size=(3, 2))
    mask = np.array([[True, False], [True, True], [False, True]])
    single = logits.astype(np.float32)
    check_cross_entropy(student, oracle, single, targets.astype(np.int32), mask, "float32")
    view = (transposed(logits), sliced(targets), transposed(mask))
    check_cross_entropy(student, oracle, *view, "views")
    function = student.temporal_cross_entropy
    check_unchanged("temporal_cross_entropy", function, logits, targets, mask)
    for situation, arguments in (
        ("a target out of range", (logits, targets + 4)),
        ("a target of -1 that is not masked", (logits, np.full((3, 2), -1))),
        ("targets that are floats", (logits, targets.astype(np.float64))),
        ("targets of another shape", (logits, targets.T)),
        ("a mask of integers", (logits, targets, mask.astype(np.int64))),
    ):
        check_refused(situation, function, *arguments)


# Exercise 3.5


@weight(1)
@number("3.5")
def test_clip_by_global_norm_shrinks_all_gradients_by_one_factor(student, rng, oracle):
    """The norm is that of all arrays together, and afterwards it is max_norm."""
    gradients = {"a": np.array([[3.0, 0.0], [0.0, 4.0]]), "b": np.array([0.0, 12.0, 0.0])}
    expected = {name: array / 2 for name, array in gradients.items()}
    check_clipped(
        student,
        gradients,
        6.5,
        13.0,
        expected=expected,
        situation="a norm of 13 and a max_norm of 6.5",
    )
    gradients = {"w": rng.normal(size=(2, 3, 2)), "b": 5 * rng.normal(size=4)}
    norm, *clipped = oracle.clip(0.25, *gradients.values())
    expected = dict(zip(gradients, clipped, strict=True))
    check_clipped(
        student, gradients, 0.25, float(norm), expected=expected, situation="random gradients"
    )


@weight(1)
@number("3.5")
def test_clip_by_global_norm_leaves_small_gradients_and_its_input_alone(student, rng):
    """At or below max_norm nothing changes; the gradients that come in are never written to."""
    gradients = {"a": np.array([2.0, -3.0]), "b": np.array([[6.0]])}
    for max_norm in (7.0, 7.5, 1000):
        check_clipped(
            student, gradients, max_norm, 7.0, expected=gradients, situation="a norm up to max_norm"
        )
    zeros = {"a": np.zeros(3)}
    check_clipped(student, zeros, 1.0, 0.0, expected=zeros, situation="gradients of zero")
    for max_norm in (1.0, 100.0):
        check_container_kept(
            student,
            student.clip_by_global_norm,
            gradients,
            lambda held, max_norm=max_norm: (held, max_norm),
            what="The dict of gradients",
        )


@weight(1)
@number("3.5")
def test_clip_by_global_norm_sums_in_float64_and_refuses_what_makes_no_sense(student):
    """float32 gradients of 1e30 have a norm; a max_norm of 0, NaN and infinity are refused."""
    gradients = {"a": np.array([3e30, 0], dtype=np.float32), "b": np.array([4e30], np.float32)}
    big = [array.astype(np.float64) for array in gradients.values()]
    norm = float(np.hypot(big[0][0], big[1][0]))
    expected = {
        name: (array * (2.0 / 5e30)).astype(np.float32) for name, array in gradients.items()
    }
    check_clipped(
        student, gradients, 2.0, norm, expected=expected, situation="large numbers in float32"
    )
    clip = student.clip_by_global_norm
    for max_norm in (0.0, -1.0):
        check_refused("a max_norm that is not above 0", clip, gradients, max_norm)
    for value in (np.nan, np.inf, -np.inf):
        bad = {"a": np.array([1.0, value])}
        check_refused("a norm that is not finite", clip, bad, 1.0)


@weight(1)
@number("3.5")
def test_make_windows_cuts_streams_that_go_on_from_window_to_window(student, rng, oracle):
    """Each stream is one stretch of the text, and the targets are the ids one place further on."""
    ids = np.arange(100, 125)
    inputs, targets = unpack(student.make_windows(ids, 2, 4), 2, "make_windows")
    expected = np.array(
        [
            [[100, 101, 102, 103], [112, 113, 114, 115]],
            [[104, 105, 106, 107], [116, 117, 118, 119]],
            [[108, 109, 110, 111], [120, 121, 122, 123]],
        ]
    )
    axes = ("window", "stream", "step")
    assert_close(inputs, expected, what="inputs (of 25 ids)", axes=axes)
    assert_close(targets, expected + 1, what="targets (of 25 ids)", axes=axes)
    for length, batch, window in ((61, 3, 4), (40, 1, 5), (30, 4, 1)):
        ids = rng.integers(0, 99, size=length)
        check_windows(
            student,
            oracle,
            ids,
            batch,
            window=window,
            situation=f"{length} ids, {batch} streams of {window}",
        )


@weight(1)
@number("3.5")
def test_make_windows_leaves_the_rest_out_and_refuses_short_texts(student, rng, oracle):
    """One id too few for a further window, the types of ids, and texts that give no window."""
    for dtype, length in ((np.int64, 24), (np.int32, 25), (np.uint8, 26), (np.int64, 13)):
        ids = rng.integers(0, 99, size=length).astype(dtype)
        check_windows(student, oracle, sliced(ids), 3, window=4, situation=f"{length} ids")
    check_unchanged("make_windows", student.make_windows, ids, 3, 4)
    for situation, arguments in (
        ("a text one id too short", (ids[:12], 3, 4)),
        ("a text of no ids", (ids[:0], 3, 4)),
        ("a batch of 0", (ids, 0, 4)),
        ("a window of 0", (ids, 3, 0)),
        ("ids that are floats", (ids.astype(np.float64), 3, 4)),
    ):
        check_refused(situation, student.make_windows, *arguments)


@weight(1)
@number("3.5")
def test_truncated_bptt_carries_the_state_but_no_gradient_across_windows(student, rng, oracle):
    """h is that of the whole sequence; gradients stay within their window, the last one shorter."""
    for t, window in ((7, 3), (6, 2), (4, 1), (3, 3), (3, 50)):
        case = draw_case(rng, RNN, 2, 3, m=4, t=t)
        check_truncated(
            student, oracle, rng, case, window=window, situation=f"{t} steps in windows of {window}"
        )
    case = draw_case(rng, RNN, 3, 2, m=2, t=5, dtype=np.float32).seen_as(transposed)
    check_truncated(student, oracle, rng, case, window=2, situation="float32")
    x, *others = draw_case(rng, RNN, 2, 3, m=4, t=5).inputs
    dh = rng.normal(size=(2, 5, 4))
    check_unchanged("truncated_bptt", student.truncated_bptt, x, dh, *others, 2)
    check_refused("a window of 0", student.truncated_bptt, x, dh, *others, 0)


# Exercise 3.6


@weight(1)
@number("3.6")
def test_gradient_norms_shrink_and_grow_with_the_recurrent_weights(student, rng):
    """From the zero state without input, weights of r times a rotation give norms of r**(t - s)."""
    for t, m, factor in ((6, 3, 0.5), (5, 4, 1.0), (4, 2, 1.5), (1, 1, 0.8)):
        weights = (rng.normal(size=(2, m)), factor * orthogonal(rng, m), np.zeros(m))
        arguments = ("rnn", np.zeros((t, 2)), (np.zeros(m),), weights)
        norms = student.gradient_norms_through_time(*arguments)
        expected = factor ** np.arange(t, -1.0, -1.0)
        assert_close(norms, expected, what=f"norms (a factor of {factor})", axes=("step",))


@weight(1)
@number("3.6")
def test_gradient_norms_of_an_rnn_are_those_of_its_jacobians(student, rng, oracle):
    """The largest singular value of the Jacobian at every step is PyTorch's."""
    for t, d, m in ((5, 2, 3), (1, 3, 4), (3, 1, 1)):
        check_norms(student, oracle, "rnn", *draw_cell(rng, "rnn", t, d, m=m), f"t {t}, m {m}")


@weight(1)
@number("3.6")
def test_gradient_norms_of_an_lstm_move_h_alone(student, rng, oracle):
    """The Jacobians are PyTorch's with c_s held fixed; what h_s does to later cells counts."""
    for t, d, m in ((5, 2, 3), (1, 3, 4), (3, 1, 1)):
        check_norms(student, oracle, "lstm", *draw_cell(rng, "lstm", t, d, m=m), f"t {t}, m {m}")
    x, state, (w_x, w_h, b) = draw_cell(rng, "lstm", 4, 2, m=3)
    norms = student.gradient_norms_through_time("lstm", x, state, (w_x, 0 * w_h, b))
    expected = np.array([0.0, 0, 0, 0, 1])
    assert_close(norms, expected, what="norms (an LSTM that never reads h)", axes=("step",))


@weight(1)
@number("3.6")
def test_gradient_norms_keep_float32_and_inputs_and_refuse_other_cells(student, rng, oracle):
    """float32, views, inputs that stay; another cell, wrong states or weights: ValueError."""
    function = student.gradient_norms_through_time
    for kind in ("rnn", "lstm"):
        single = draw_cell(rng, kind, 3, 2, m=4, dtype=np.float32)
        check_norms(student, oracle, kind, *single, "float32")
        x, state, weights = draw_cell(rng, kind, 4, 3, m=2)
        check_norms(student, oracle, kind, transposed(x), state, weights, "a view")
        x, state, weights = draw_cell(rng, kind, 3, 2, m=4)
        results = call_each(function, [(kind, x, state, weights)] * 2)
        again = "norms (the same call again)"
        assert_close(results[1], results[0], what=again, axes=("step",), tolerance=0.0)
        check_unchanged("gradient_norms_through_time", function, kind, x, state, weights)
        for name, container, call in (
            ("state", state, lambda held: (kind, x, held, weights)),  # noqa: B023
            ("weights", weights, lambda held: (kind, x, state, held)),  # noqa: B023
        ):
            check_container_kept(student, function, container, call, what=f"An array of {name}")
        other = {"rnn": "lstm", "lstm": "rnn"}[kind]
        check_refused("the states of another cell", function, other, x, state, weights)
        check_refused("a cell of another name", function, "gru", x, state, weights)
        check_refused("too few weights", function, kind, x, state, weights[:2])


# Exercise 3.7


@weight(1)
@number("3.7")
def test_char_lm_starts_with_the_parameters_of_its_docstring(student, rng):
    """Names, shapes, types and distributions; equal generators give equal models."""
    check_first_parameters(student, rng, 70, 40, hidden=25)
    check_first_parameters(student, rng, 50, 60, hidden=30, dtype="float64")
    models = [first_model(student, np.random.default_rng(seed), 4, 3, 2) for seed in (5, 5, 6)]
    first, again, other = (read_parameters(model)["w_out"] for model in models)
    check(np.array_equal(first, again), "Equal generators must give equal parameters.")
    check(not np.array_equal(first, other), "Other generators must give other parameters.")


@weight(1)
@number("3.7")
def test_char_lm_forward_gives_logits_and_the_state(student, rng, oracle):
    """PyTorch's logits and state, from the zero state and from another one; float32 too."""
    for n, t, dtype in ((2, 4, np.float64), (1, 1, np.float64), (3, 2, np.float32)):
        parameters = draw_parameters(rng, 5, 2, 3, dtype=dtype)
        ids = rng.integers(0, 5, size=(n, t))
        check_forward(student, oracle, parameters, ids, state=None, situation="from the zero state")
        state = tuple(rng.normal(size=(n, 3)).astype(dtype) for _ in range(2))
        check_forward(student, oracle, parameters, ids, state=state, situation="from a state")


@weight(1)
@number("3.7")
def test_char_lm_forward_knows_nothing_of_later_characters_or_other_texts(student, rng, oracle):
    """A later id changes no earlier logit; a text in two parts, or by itself, is read the same."""
    parameters = draw_parameters(rng, 6, 3, 4)
    ids = rng.integers(0, 6, size=(3, 7))
    logits, h, c = oracle.char_lm(ids, *parameters.values())
    model = new_model(student, parameters)
    for cut in (1, 3, 6):
        changed = ids.copy()
        changed[:, cut:] = (ids[:, cut:] + 1) % 6
        before, _, _ = read(model, changed)
        situation = f"the ids from step {cut} on are changed"
        check(before.shape == logits.shape, "logits has the wrong shape.")
        assert_close(before[:, :cut], logits[:, :cut], what=f"earlier logits ({situation})")
        _, state = unpack(model.forward(ids[:, :cut]), 2, "forward")
        rest = read(model, ids[:, cut:], state)
        compare_forward(rest, (logits[:, cut:], h, c), f"the second part, from step {cut} on")
    alone = read(model, ids[1:2])
    compare_forward(alone, (logits[1:2], h[1:2], c[1:2]), "one text alone")


@weight(1)
@number("3.7")
def test_char_lm_gives_its_loss_and_the_gradients_of_all_parameters(student, rng, oracle):
    """PyTorch's loss, six gradients and state, from the zero state and from another one."""
    for n, t, dtype in ((2, 5, np.float64), (3, 1, np.float32)):
        parameters = draw_parameters(rng, 5, 2, 3, dtype=dtype)
        ids, targets = rng.integers(0, 5, size=(2, n, t))
        state = tuple(rng.normal(size=(n, 3)).astype(dtype) for _ in range(2))
        for start, situation in ((None, "from the zero state"), (state, "from a state")):
            check_loss_and_gradients(
                student, oracle, parameters, ids, targets=targets, state=start, situation=situation
            )


@weight(1)
@number("3.7")
def test_char_lm_uses_its_parameters_as_they_are_and_keeps_nothing_else(student, rng, oracle):
    """A change of the parameters shows at once; calls change neither them nor the state."""
    first, second = (draw_parameters(rng, 5, 2, 3) for _ in range(2))
    ids, targets = rng.integers(0, 5, size=(2, 2, 4))
    state = tuple(rng.normal(size=(2, 3)) for _ in range(2))
    model = new_model(student, first)
    for parameters in (first, second, second, first):
        write_into(model, "parameters", parameters)
        expected = oracle.char_lm(ids, *parameters.values())
        compare_forward(read(model, ids), expected, "after a change of the parameters")
        loss, *gradients = oracle.char_lm_gradients(ids, targets, *parameters.values())
        result = unpack(model.loss_and_gradients(ids, targets), 3, "loss_and_gradients")
        situation = "after a change of the parameters"
        compare_loss_and_gradients(result[:2], loss, gradients, situation)
        for name, array in read_parameters(model).items():
            check(np.array_equal(array, parameters[name]), f"{name} is changed by a call.")
    check_container_kept(student, model.forward, state, lambda s: (ids, s), what="The state")
    check_container_kept(
        student, model.loss_and_gradients, state, lambda s: (ids, targets, s), what="The state"
    )


@weight(1)
@number("3.7")
def test_train_takes_the_steps_of_its_docstring(student, rng, oracle):
    """Losses, bits, norms, rates and parameters are those of PyTorch's Adam, clipped or not."""
    parameters = draw_parameters(rng, 5, 2, 3)
    text = rng.integers(0, 5, size=27)
    config = {"steps": 8, "batch": 2, "window": 4, "learning_rate": 0.05, "decay": 0.9}
    for max_norm, situation in ((100.0, "nothing to clip"), (0.1, "every step clipped")):
        settings = config | {"max_norm": max_norm}
        check_training(student, oracle, parameters, text, config=settings, situation=situation)
    model, config = new_model(student, parameters), student.Config(steps=2, batch=2, window=4)
    check_unchanged("train", student.train, model, text, config)


@weight(1)
@number("3.7")
def test_train_goes_on_exactly_where_it_stopped(student, rng):
    """4 steps and then 5 give every number of 9 in one go, with a fresh model and a used state."""
    parameters = draw_parameters(rng, 5, 2, 3, dtype=np.float32)
    text = rng.integers(0, 5, size=27)
    config = {"steps": 9, "batch": 2, "window": 4, "max_norm": 0.5}
    check_resumed(student, parameters, text, config, first=4)


@weight(1)
@number("3.7")
def test_train_stops_when_the_loss_is_not_finite_and_refuses_strange_states(student, rng):
    """A loss of NaN raises ValueError that names the step; so does a state of another model."""
    parameters = draw_parameters(rng, 5, 2, 3, dtype=np.float32)
    text = rng.integers(0, 5, size=60)
    config = {"steps": 4, "batch": 2, "window": 4}
    student.train(new_model(student, parameters), text, student.Config(**config))
    broken = new_model(student, parameters | {"b_out": np.full(5, np.nan, dtype=np.float32)})
    situation = "a loss that is not finite"
    message = check_refused(situation, student.train, broken, text, student.Config(**config))
    check_names_step(message, 0)
    model = new_model(student, parameters)
    # The first update moves every weight by as good as infinity, so the next loss is no number.
    config = student.Config(**config, learning_rate=1e300)
    message = check_refused(situation, student.train, model, text, config)
    check_names_step(message, 1)
    check_strange_state(student, rng, text)


@weight(1)
@number("3.7")
def test_bits_per_character_reads_the_text_as_one_stream(student, rng, oracle):
    """PyTorch's mean of -log2 p over all characters but the first; equal logits give log2 of 8."""
    for length, dtype in ((2, np.int64), (9, np.uint8), (2001, np.int64)):
        parameters = draw_parameters(rng, 5, 2, 3)
        ids = rng.integers(0, 5, size=length).astype(dtype)
        expected = oracle.bits_per_character(ids, *parameters.values())
        bits = student.bits_per_character(new_model(student, parameters), ids)
        check_float(bits, "bits_per_character's result")
        assert_close(bits, expected, what=f"the bits (of {length} ids)")
    parameters = draw_parameters(rng, 8, 2, 3)
    parameters |= {"w_out": np.zeros((3, 8)), "b_out": np.zeros(8)}
    model, ids = new_model(student, parameters), rng.integers(0, 8, size=20)
    assert_close(student.bits_per_character(model, ids), 3.0, what="the bits (equal logits)")
    for bad in (ids[:1], ids[:0], ids[None]):
        check_refused("a text of fewer than 2 ids", student.bits_per_character, model, bad)


@weight(1)
@number("3.7")
def test_sample_takes_the_most_likely_id_at_temperature_zero(student, rng, oracle):
    """At 0, and as good as at 1e-6, each id is the one with the highest logit; ties: the lowest."""
    for prime in (np.array([1]), np.array([3, 0, 2, 2])):
        parameters = draw_clear_model(rng, oracle, 6, prime, length=12)
        check_most_likely(
            student, oracle, parameters, prime, length=12, rng=np.random.default_rng(3)
        )
    model = new_model(student, parameters)
    check_generator_not_used(student, model, prime, 3)
    ties = {"w_out": np.zeros((4, 6)), "b_out": np.array([0.0, 2, -1, 2, 2, 1])}
    model = new_model(student, parameters | ties)
    ids = student.sample(model, prime, 4, 0.0, np.random.default_rng(3))
    check_ids(ids, 4)
    assert_equal(ids.tolist(), [1, 1, 1, 1], what="the ids where 1, 3 and 4 are tied")


@weight(1)
@number("3.7")
def test_sample_draws_from_the_softmax_of_logits_and_temperature(student, rng):
    """Ids come as often as they should at 0.5 and 2, and equally often at a million."""
    parameters, prime = draw_parameters(rng, 4, 3, 4, scale=1.5), np.array([2, 0])
    for temperature in (0.5, 2.0):
        generator = np.random.default_rng(11)
        check_draws(student, parameters, prime, 2000, temperature=temperature, rng=generator)
    check_even_draws(student, parameters, prime, 2000, rng=np.random.default_rng(12))
    check_generators_decide(student, parameters, prime)


@weight(1)
@number("3.7")
def test_sample_takes_any_length_and_refuses_what_makes_no_sense(student, rng):
    """0 ids are an empty array of int64; empty primes, odd lengths and temperatures: ValueError."""
    model = new_model(student, draw_parameters(rng, 4, 3, 2, dtype=np.float32))
    prime, generator = np.array([2, 0], dtype=np.uint8), np.random.default_rng(5)
    for length in (0, 1, 3):
        for temperature in (0.0, 0.7):
            check_ids(student.sample(model, prime, length, temperature, generator), length)
    check_unchanged("sample", student.sample, model, prime, 3, 1.0, generator)
    for situation, arguments in (
        ("an empty prime", (prime[:0], 3, 1.0)),
        ("an id that the model doesn't know", (np.array([2, 4]), 3, 1.0)),
        ("such an id with a length of 0", (np.array([4]), 0, 1.0)),
        ("a length below 0", (prime, -1, 1.0)),
        ("a temperature below 0", (prime, 3, -0.5)),
        ("a temperature of infinity", (prime, 3, np.inf)),
        ("a temperature that is not a number", (prime, 3, np.nan)),
    ):
        check_refused(situation, student.sample, model, *arguments, generator)


@weight(1)
@number("3.7")
@tags("training")
def test_a_trained_model_knows_more_than_pairs_of_characters(student, rng):
    """300 steps on a part of Shakespeare, then bits per character on plays it has not read."""
    check_trained_model(student, rng, 0, 40)


@weight(2)
@number("3.8")
def test_q1_the_distance_at_which_a_gradient_has_vanished_is_found(lab):
    """Lab, question 1: the smallest distance with less than a thousandth left, at radius 0.9."""
    steps = next(k for k in range(1000) if 0.9**k < 1e-3)
    check_number(lab, "q1_steps", steps)


@weight(2)
@number("3.8")
def test_q3_a_settled_state_makes_the_gradient_shrink(lab):
    """Lab, question 3: the weight times the slope of tanh where h = tanh(2 h)."""
    check_number(lab, "q3_factor", 2 * (1 - settled(2.0) ** 2), tolerance=1e-3)


@weight(1)
@number("3.8")
def test_q4_clipping_each_entry_turns_the_gradient(lab):
    """Lab, question 4: the angle between (4, 1) and (1, 1), in degrees."""
    cosine = (4 * 1 + 1 * 1) / (math.hypot(4, 1) * math.hypot(1, 1))
    check_number(lab, "q4_degrees", math.degrees(math.acos(cosine)), tolerance=0.1)


@weight(2)
@number("3.9")
def test_q8_the_table_of_pairs_needs_the_right_number_of_bits(lab):
    """Lab, question 8: the mean surprise over all pairs of neighbours in the text."""
    check_number(lab, "q8_bits", bits_of_pairs(), tolerance=0.01)


@weight(1)
@number("3.9")
def test_q9_the_temperature_gives_the_right_ratio(lab):
    """Lab, question 9: logits 3 and 1, and the first is 10 times as likely as the second."""
    check_number(lab, "q9_temperature", (3 - 1) / math.log(10), tolerance=0.01)
