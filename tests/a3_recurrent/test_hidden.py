"""The hidden tests of assignment 3: what the public tests check, on other shapes and inputs."""

import math

import numpy as np
from gradescope_utils.autograder_utils.decorators import number, tags, weight

from common.labs.answer_checks import check_choice, check_number
from common.testing.checks import check_float, check_refused, check_unchanged, sliced, transposed
from common.testing.compare import assert_close, assert_equal, check, unpack
from common.testing.remote.operations import call_each
from tests.a3_recurrent.cases import (
    GRU_STEP,
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
from tests.a3_recurrent.model_cases import (
    check_draws,
    check_even_draws,
    check_first_parameters,
    check_forward,
    check_ids,
    check_loss_and_gradients,
    check_most_likely,
    check_resumed,
    check_trained_model,
    check_training,
    compare_forward,
    draw_clear_model,
    draw_parameters,
    new_model,
    read,
)
from tests.a3_recurrent.speed_cases import check_lstm_speed


def new_generator(rng):
    """A generator to hand in; the test's own would go on in a copy."""
    return np.random.default_rng(rng.integers(2**32))


@weight(1)
@number("3.1")
def test_rnn_steps_are_right_for_other_sizes(student, rng, oracle):
    """One step forward and backward is PyTorch's on other shapes."""
    for n, d, m in ((4, 3, 2), (2, 6, 5), (1, 2, 1)):
        case = draw_case(rng, RNN_STEP, n, d, m=m)
        check_outputs(student, oracle, case, "a step")
        check_gradients(student, oracle, rng, case, situation="a step")


@weight(1)
@number("3.1")
def test_rnn_forward_is_right_for_other_sizes(student, rng, oracle):
    """The states are PyTorch's on other shapes, with and without padding."""
    for n, t, d, m in ((4, 7, 3, 5), (1, 9, 2, 2), (5, 1, 4, 1)):
        case = draw_case(rng, RNN, n, d, m=m, t=t)
        check_outputs(student, oracle, case, "whole sequences")
    mask = draw_mask(rng, 6, 7)
    case = draw_case(rng, RNN, 6, 3, m=4, t=7, mask=mask)
    case.inputs[0][~mask] *= 1e3
    check_outputs(student, oracle, case, "padding anywhere")


@weight(1)
@number("3.1")
def test_rnn_backward_is_right_for_other_sizes(student, rng, oracle):
    """All gradients are PyTorch's on other shapes."""
    for n, t, d, m in ((4, 7, 3, 5), (1, 9, 2, 2), (5, 1, 4, 1)):
        case = draw_case(rng, RNN, n, d, m=m, t=t)
        check_gradients(student, oracle, rng, case, situation="whole sequences")


@weight(1)
@number("3.1")
def test_rnn_backward_is_right_for_other_masks(student, rng, oracle):
    """All gradients are PyTorch's where padding stands anywhere."""
    for n, t, d, m in ((6, 7, 3, 4), (3, 4, 2, 5)):
        mask = draw_mask(rng, n, t)
        case = draw_case(rng, RNN, n, d, m=m, t=t, mask=mask)
        case.inputs[0][~mask] *= 100
        check_gradients(student, oracle, rng, case, situation="padding anywhere")


@weight(1)
@number("3.1")
def test_rnn_keeps_types_and_has_no_side_effects(student, rng, oracle):
    """float32, views, inputs that stay, caches apart and refused input, on other shapes."""
    for layer, t in ((RNN_STEP, None), (RNN, 4)):
        case = draw_case(rng, layer, 3, 4, m=2, t=t, dtype=np.float32)
        check_outputs(student, oracle, case, "float32")
        check_gradients(student, oracle, rng, case, situation="float32")
        case = draw_case(rng, layer, 2, 4, m=3, t=t).seen_as(transposed, sliced)
        check_outputs(student, oracle, case, "views")
        check_gradients(student, oracle, rng, case, situation="views", view=sliced)
        first, second = (draw_case(rng, layer, 3, 2, m=5, t=t) for _ in range(2))
        check_stays_apart(student, oracle, rng, first, second=second)
        check_layer_changes_nothing(student, rng, second)
    check_layer_refuses(student, draw_case(rng, RNN, 3, 5, m=2, t=4))


@weight(1)
@number("3.2")
def test_lstm_parameters_are_right_for_other_sizes(student, rng):
    """Shapes, types, biases and the even distribution of the weights."""
    check_lstm_parameters(student, rng, 50, 25, forget_bias=None, dtype="float32")
    check_lstm_parameters(student, rng, 25, 35, forget_bias=-1.5, dtype="float64")


@weight(1)
@number("3.2")
def test_lstm_step_forward_is_right_for_other_sizes(student, rng, oracle):
    """h_next and c_next are PyTorch's on other shapes."""
    for n, d, m in ((4, 3, 2), (2, 6, 5), (1, 2, 1)):
        check_outputs(student, oracle, draw_case(rng, LSTM_STEP, n, d, m=m), "a step")


@weight(1)
@number("3.2")
def test_lstm_step_backward_is_right_for_other_sizes(student, rng, oracle):
    """The gradients of one step are PyTorch's on other shapes."""
    for n, d, m in ((4, 3, 2), (2, 6, 5), (1, 2, 1)):
        check_gradients(
            student, oracle, rng, draw_case(rng, LSTM_STEP, n, d, m=m), situation="a step"
        )


@weight(1)
@number("3.2")
def test_lstm_forward_is_right_for_other_sizes(student, rng, oracle):
    """States and last cells are PyTorch's on other shapes, with and without padding."""
    for n, t, d, m in ((4, 7, 3, 5), (1, 9, 2, 2), (5, 1, 4, 1)):
        check_outputs(student, oracle, draw_case(rng, LSTM, n, d, m=m, t=t), "whole sequences")
    mask = draw_mask(rng, 6, 7)
    case = draw_case(rng, LSTM, 6, 3, m=4, t=7, mask=mask)
    case.inputs[0][~mask] *= 1e3
    check_outputs(student, oracle, case, "padding anywhere")


@weight(1)
@number("3.2")
def test_lstm_backward_is_right_for_other_sizes(student, rng, oracle):
    """All six gradients are PyTorch's on other shapes."""
    for n, t, d, m in ((4, 7, 3, 5), (1, 9, 2, 2), (5, 1, 4, 1)):
        case = draw_case(rng, LSTM, n, d, m=m, t=t)
        check_gradients(student, oracle, rng, case, situation="whole sequences")


@weight(1)
@number("3.2")
def test_lstm_backward_is_right_for_other_masks(student, rng, oracle):
    """All six gradients are PyTorch's where padding stands anywhere."""
    for n, t, d, m in ((6, 7, 3, 4), (3, 4, 2, 5)):
        mask = draw_mask(rng, n, t)
        case = draw_case(rng, LSTM, n, d, m=m, t=t, mask=mask)
        case.inputs[0][~mask] *= 100
        check_gradients(student, oracle, rng, case, situation="padding anywhere")


@weight(1)
@number("3.2")
def test_lstm_keeps_types_and_has_no_side_effects(student, rng, oracle):
    """float32, views, inputs that stay, caches apart and refused input, on other shapes."""
    for layer, t in ((LSTM_STEP, None), (LSTM, 4)):
        case = draw_case(rng, layer, 3, 4, m=2, t=t, dtype=np.float32)
        check_outputs(student, oracle, case, "float32")
        check_gradients(student, oracle, rng, case, situation="float32")
        case = draw_case(rng, layer, 2, 4, m=3, t=t).seen_as(transposed, sliced)
        check_outputs(student, oracle, case, "views")
        check_gradients(student, oracle, rng, case, situation="views", view=sliced)
        first, second = (draw_case(rng, layer, 3, 2, m=5, t=t) for _ in range(2))
        check_stays_apart(student, oracle, rng, first, second=second)
        check_layer_changes_nothing(student, rng, second)
    case = draw_case(rng, LSTM, 3, 5, m=2, t=4)
    check_layer_refuses(student, case)
    check_layer_changes_nothing(student, rng, Case(LSTM, case.inputs, draw_mask(rng, 3, 4)))


@weight(1)
@number("3.2")
@tags("timing")
def test_lstm_is_not_much_slower_than_pytorch(student, rng, oracle):
    """Both passes together take at most 5 times as long as nn.LSTM on one thread."""
    check_lstm_speed(student, oracle, rng, oracle.lstm_baseline)


@weight(1)
@number("3.3")
def test_gru_step_forward_is_right_for_other_sizes(student, rng, oracle):
    """h_next is PyTorch's on other shapes."""
    for n, d, m in ((4, 3, 2), (2, 6, 5), (1, 2, 1)):
        check_outputs(student, oracle, draw_case(rng, GRU_STEP, n, d, m=m), "a step")


@weight(1)
@number("3.3")
def test_gru_step_backward_is_right_for_other_sizes(student, rng, oracle):
    """All six gradients are PyTorch's on other shapes."""
    for n, d, m in ((4, 3, 2), (2, 6, 5), (1, 2, 1)):
        check_gradients(
            student, oracle, rng, draw_case(rng, GRU_STEP, n, d, m=m), situation="a step"
        )


@weight(1)
@number("3.3")
def test_gru_step_keeps_types_and_has_no_side_effects(student, rng, oracle):
    """float32, views, inputs that stay, caches apart and refused input, on other shapes."""
    case = draw_case(rng, GRU_STEP, 3, 4, m=2, dtype=np.float32)
    check_outputs(student, oracle, case, "float32")
    check_gradients(student, oracle, rng, case, situation="float32")
    case = draw_case(rng, GRU_STEP, 2, 4, m=3).seen_as(transposed, sliced)
    check_outputs(student, oracle, case, "views")
    check_gradients(student, oracle, rng, case, situation="views", view=sliced)
    first, second = (draw_case(rng, GRU_STEP, 3, 2, m=5) for _ in range(2))
    check_stays_apart(student, oracle, rng, first, second=second)
    check_layer_changes_nothing(student, rng, second)
    x, h, *weights = first.inputs
    check_refused("another number of sequences", student.gru_step_forward, x[1:], h, *weights)


@weight(1)
@number("3.4")
def test_embedding_is_right_for_other_ids(student, rng, oracle):
    """Look-ups and their gradients are PyTorch's; types stay, and calls don't disturb."""
    cases, douts = [], []
    for n, t, v, e, dtype in (
        (3, 5, 7, 2, np.float64),
        (2, 9, 3, 4, np.float32),
        (1, 1, 1, 1, np.float64),
    ):
        ids = rng.integers(0, v, size=(n, t)).astype(rng.choice([np.int16, np.int64]))
        cases.append((sliced(ids), transposed(rng.normal(size=(v, e)).astype(dtype))))
        douts.append(rng.normal(size=(n, t, e)).astype(dtype))
    results = call_each(student.embedding_forward, cases)
    for result, case in zip(results, cases, strict=True):
        out, _ = unpack(result, 2, "embedding_forward")
        assert_close(out, oracle.embedding(*case), what="out", axes=("sequence", "step", "feature"))
    order = (0, 1, 2, 0)
    calls = [(transposed(douts[i]), results[i][1]) for i in order]
    for i, dtable in zip(order, call_each(student.embedding_backward, calls), strict=True):
        expected = oracle.embedding_gradient(*cases[i], douts[i])
        assert_close(dtable, expected, what="dtable", axes=("id", "feature"))
    ids, table = cases[0]
    check_unchanged("embedding_forward", student.embedding_forward, ids, table)
    check_unchanged("embedding_backward", student.embedding_backward, *calls[0])
    check_refused("ids out of range", student.embedding_forward, ids + 7, table)
    check_refused("ids out of range", student.embedding_forward, ids - 7, table)


@weight(1)
@number("3.4")
def test_temporal_cross_entropy_is_right_for_other_sizes(student, rng, oracle):
    """loss and dlogits are PyTorch's on other shapes, also for logits of 1e4."""
    for n, t, v in ((4, 3, 6), (1, 7, 2), (5, 1, 3)):
        logits, targets = rng.normal(scale=3, size=(n, t, v)), rng.integers(0, v, size=(n, t))
        check_cross_entropy(student, oracle, logits, targets, None, "every position counts")
        large = rng.integers(-5, 6, size=(n, t, v)) * 1e4
        check_cross_entropy(student, oracle, large, targets, None, "large logits")


@weight(1)
@number("3.4")
def test_temporal_cross_entropy_is_right_for_other_masks(student, rng, oracle):
    """Masked positions count for nothing, whatever their targets are; all masked gives 0."""
    for n, t, v in ((4, 5, 6), (3, 4, 2)):
        logits, targets = rng.normal(scale=3, size=(n, t, v)), rng.integers(0, v, size=(n, t))
        mask = draw_mask(rng, n, t)
        targets[~mask] = rng.choice([-100, -1, 99], size=int((~mask).sum()))
        check_cross_entropy(student, oracle, logits, targets, mask, "padding anywhere")
        nothing = (logits, targets, np.zeros((n, t), dtype=bool))
        expected = np.zeros((n, t, v))
        compare_cross_entropy(student, nothing, 0.0, expected, situation="nothing but padding")


@weight(1)
@number("3.4")
def test_temporal_cross_entropy_keeps_types_and_has_no_side_effects(student, rng, oracle):
    """float32, views, inputs that stay and refused input, on other shapes."""
    logits, targets = rng.normal(scale=3, size=(4, 3, 5)), rng.integers(0, 5, size=(4, 3))
    mask = draw_mask(rng, 4, 5)[:, 1:4]
    single = logits.astype(np.float32)
    check_cross_entropy(student, oracle, single, targets.astype(np.uint8), None, "float32")
    check_cross_entropy(student, oracle, single, targets, mask, "float32 with padding")
    check_cross_entropy(student, oracle, sliced(logits), transposed(targets), mask, "views")
    function = student.temporal_cross_entropy
    check_unchanged("temporal_cross_entropy", function, logits, targets, mask)
    check_unchanged("temporal_cross_entropy", function, single, targets)
    check_refused("targets out of range", function, logits, targets + 5)
    check_refused("a mask that is not of bool", function, logits, targets, mask.astype(np.uint8))


@weight(1)
@number("3.5")
def test_clip_by_global_norm_is_right_for_other_gradients(student, rng, oracle):
    """Large gradients shrink by one factor, small ones stay, and nothing is written to."""
    for dtype in (np.float64, np.float32):
        sizes = {"w": (1, (3, 4)), "b": (20, (5,)), "table": (0.01, (2, 1, 3))}
        gradients = {name: (a * rng.normal(size=s)).astype(dtype) for name, (a, s) in sizes.items()}
        for max_norm in (0.5, 1e4):
            norm, *clipped = oracle.clip(max_norm, *gradients.values())
            expected = dict(zip(gradients, clipped, strict=True))
            situation = "a norm above max_norm" if max_norm < 1 else "a norm below max_norm"
            check_clipped(
                student, gradients, max_norm, float(norm), expected=expected, situation=situation
            )
            check_container_kept(
                student,
                student.clip_by_global_norm,
                gradients,
                lambda held, max_norm=max_norm: (held, max_norm),
                what="The dict of gradients",
            )
    large = {name: (array * 1e25).astype(np.float32) for name, array in gradients.items()}
    norm, *clipped = oracle.clip(3.0, *large.values())
    expected = dict(zip(large, clipped, strict=True))
    check_clipped(
        student, large, 3.0, float(norm), expected=expected, situation="large numbers in float32"
    )
    clip = student.clip_by_global_norm
    check_refused("a max_norm that is not above 0", clip, gradients, -0.5)
    bad = gradients | {"b": np.array([np.inf, 1.0])}
    check_refused("a norm that is not finite", clip, bad, 1.0)


@weight(1)
@number("3.5")
def test_make_windows_is_right_for_other_texts(student, rng, oracle):
    """Streams, windows, targets, what is left over, types of ids, and texts that are too short."""
    for batch, window, length in ((2, 5, 47), (4, 3, 61), (1, 7, 8), (6, 1, 20), (3, 4, 48)):
        ids = rng.integers(0, 90, size=length).astype(rng.choice([np.uint8, np.int32, np.int64]))
        check_windows(student, oracle, ids, batch, window=window, situation="another text")
        check_unchanged("make_windows", student.make_windows, ids, batch, window)
        short = ids[: batch * window]
        check_refused("a text that is too short", student.make_windows, short, batch, window)


@weight(1)
@number("3.5")
def test_truncated_bptt_is_right_for_other_windows(student, rng, oracle):
    """The state goes on and the gradient doesn't, whatever the window; float32 and views."""
    for n, t, d, m, window in ((3, 8, 2, 4, 3), (2, 9, 3, 2, 4), (1, 5, 1, 3, 1), (2, 4, 3, 2, 4)):
        case = draw_case(rng, RNN, n, d, m=m, t=t)
        check_truncated(student, oracle, rng, case, window=window, situation="windows")
    case = draw_case(rng, RNN, 2, 3, m=4, t=6, dtype=np.float32).seen_as(sliced, transposed)
    check_truncated(student, oracle, rng, case, window=4, situation="float32")
    x, *others = case.inputs
    dh = rng.normal(size=(2, 6, 4)).astype(np.float32)
    check_unchanged("truncated_bptt", student.truncated_bptt, x, dh, *others, 4)
    check_refused("a window below 1", student.truncated_bptt, x, dh, *others, -1)


@weight(1)
@number("3.6")
def test_gradient_norms_of_other_rnns_are_right(student, rng, oracle):
    """Norms are PyTorch's, and powers of a factor where the recurrent weights only rotate."""
    for t, d, m in ((7, 3, 4), (2, 2, 5)):
        check_norms(student, oracle, "rnn", *draw_cell(rng, "rnn", t, d, m=m), "other sizes")
        factor = rng.uniform(0.5, 1.5)
        weights = (rng.normal(size=(d, m)), factor * orthogonal(rng, m), np.zeros(m))
        arguments = ("rnn", np.zeros((t, d)), (np.zeros(m),), weights)
        norms = student.gradient_norms_through_time(*arguments)
        expected = factor ** np.arange(t, -1.0, -1.0)
        assert_close(norms, expected, what="norms (a scaled rotation)", axes=("step",))


@weight(1)
@number("3.6")
def test_gradient_norms_of_other_lstms_are_right(student, rng, oracle):
    """Norms are PyTorch's with c_s held fixed; an LSTM that never reads h forgets it at once."""
    for t, d, m in ((7, 3, 4), (2, 2, 5)):
        x, state, weights = draw_cell(rng, "lstm", t, d, m=m)
        check_norms(student, oracle, "lstm", x, state, weights, "other sizes")
        w_x, w_h, b = weights
        norms = student.gradient_norms_through_time("lstm", x, state, (w_x, 0 * w_h, b))
        expected = np.zeros(t + 1)
        expected[-1] = 1
        assert_close(norms, expected, what="norms (an LSTM that never reads h)", axes=("step",))
    check_refused("another cell", student.gradient_norms_through_time, "gru", x, state, weights)


@weight(1)
@number("3.7")
def test_char_lm_is_right_for_other_sizes(student, rng, oracle):
    """First parameters, logits and states; a text in two parts is read like one."""
    check_first_parameters(student, rng, 60, 50, hidden=20)
    parameters = draw_parameters(rng, 7, 4, 5)
    ids = rng.integers(0, 7, size=(3, 6))
    state = tuple(rng.normal(size=(3, 5)) for _ in range(2))
    check_forward(student, oracle, parameters, ids, state=None, situation="from the zero state")
    check_forward(student, oracle, parameters, ids, state=state, situation="from a state")
    single = {name: array.astype(np.float32) for name, array in parameters.items()}
    check_forward(student, oracle, single, ids, state=None, situation="float32")
    logits, h, c = oracle.char_lm(ids, *parameters.values())
    model, cut = new_model(student, parameters), int(rng.integers(1, 6))
    _, after = unpack(model.forward(ids[:, :cut]), 2, "forward")
    rest = read(model, ids[:, cut:], after)
    compare_forward(rest, (logits[:, cut:], h, c), "the second part of a text")
    changed = ids.copy()
    changed[:, cut:] = (ids[:, cut:] + rng.integers(1, 7, size=(3, 6 - cut))) % 7
    before, _, _ = read(model, changed)
    check(before.shape == logits.shape, "logits has the wrong shape.")
    assert_close(before[:, :cut], logits[:, :cut], what="logits before a changed id")


@weight(1)
@number("3.7")
def test_char_lm_gradients_are_right_for_other_sizes(student, rng, oracle):
    """Loss, six gradients and state are PyTorch's, from the zero state and from another one."""
    for v, e, m, n, t, dtype in (
        (7, 4, 5, 3, 6, np.float64),
        (3, 5, 2, 2, 9, np.float32),
        (4, 1, 3, 1, 1, np.float64),
    ):
        parameters = draw_parameters(rng, v, e, m, dtype=dtype)
        ids, targets = rng.integers(0, v, size=(2, n, t))
        state = tuple(rng.normal(size=(n, m)).astype(dtype) for _ in range(2))
        for start, situation in ((None, "from the zero state"), (state, "from a state")):
            check_loss_and_gradients(
                student, oracle, parameters, ids, targets=targets, state=start, situation=situation
            )


@weight(1)
@number("3.7")
def test_train_takes_the_right_steps_on_other_texts(student, rng, oracle):
    """Losses, bits, norms, rates and parameters are those of PyTorch's Adam, clipped or not."""
    for batch, window, length, rate in ((3, 3, 40, 0.03), (1, 5, 13, 0.1)):
        parameters = draw_parameters(rng, 6, 3, 4)
        text = rng.integers(0, 6, size=length)
        for max_norm, situation in ((50.0, "nothing to clip"), (0.05, "every step clipped")):
            config = {"steps": 10, "batch": batch, "window": window, "learning_rate": rate}
            config |= {"decay": 0.95, "max_norm": max_norm}
            check_training(student, oracle, parameters, text, config=config, situation=situation)


@weight(1)
@number("3.7")
def test_train_goes_on_exactly_where_it_stopped_on_other_texts(student, rng):
    """A run in two parts gives exactly the numbers of one that was never interrupted."""
    parameters = draw_parameters(rng, 6, 3, 4)
    text = rng.integers(0, 6, size=40)
    config = {"steps": 11, "batch": 3, "window": 3, "max_norm": 0.3, "decay": 0.9}
    for first in (1, 6):
        check_resumed(student, parameters, text, config, first=first)


@weight(1)
@number("3.7")
def test_bits_per_character_is_right_for_other_texts(student, rng, oracle):
    """PyTorch's mean of -log2 p, for short and long texts, and a ValueError for one character."""
    for length in (2, 30, 2001):
        parameters = draw_parameters(rng, 7, 3, 2)
        ids = rng.integers(0, 7, size=length)
        expected = oracle.bits_per_character(ids, *parameters.values())
        model = new_model(student, parameters)
        bits = student.bits_per_character(model, ids)
        check_float(bits, "bits_per_character's result")
        assert_close(bits, expected, what="the bits")
    check_refused("a text of one id", student.bits_per_character, model, ids[:1])


@weight(1)
@number("3.7")
def test_sample_takes_the_most_likely_id_of_other_models(student, rng, oracle):
    """At temperature 0 and just above it, the highest logit wins, and of ties the lowest id."""
    for p in (1, 5):
        prime = rng.integers(0, 7, size=p)
        parameters = draw_clear_model(rng, oracle, 7, prime, length=10)
        check_most_likely(student, oracle, parameters, prime, length=10, rng=new_generator(rng))
    tied = rng.choice(7, size=3, replace=False)
    b_out = rng.normal(size=7)
    b_out[tied] = 9.0
    model = new_model(student, parameters | {"w_out": np.zeros((4, 7)), "b_out": b_out})
    ids = student.sample(model, prime, 3, 0.0, new_generator(rng))
    check_ids(ids, 3)
    assert_equal(ids.tolist(), [int(tied.min())] * 3, what="the ids where some are tied")
    check_refused(
        "a temperature below 0", student.sample, model, prime, 3, -1.0, new_generator(rng)
    )


@weight(1)
@number("3.7")
def test_sample_draws_right_from_other_models(student, rng):
    """Ids come as often as softmax(logits / temperature) says, up to chance."""
    parameters, prime = draw_parameters(rng, 4, 3, 5, scale=1.5), rng.integers(0, 4, size=3)
    for temperature in (0.4, 1.7):
        check_draws(
            student, parameters, prime, 2000, temperature=temperature, rng=new_generator(rng)
        )
    check_even_draws(student, parameters, prime, 1000, rng=new_generator(rng))


@weight(1)
@number("3.7")
@tags("training")
def test_a_model_trained_on_another_part_knows_more_than_pairs_of_characters(student, rng):
    """A model trained on another part of Shakespeare, asked for other places of unread plays."""
    check_trained_model(student, rng, int(rng.integers(0, 3_900_000)), 40)


@weight(2)
@number("3.8")
def test_q2_the_peak_of_a_sheared_gradient_is_found(lab):
    """Lab, question 2: the power of the sheared matrix whose largest singular value is highest."""
    shear = np.array([[0.85, 3.0], [0.0, 0.85]])
    norms = [np.linalg.svd(np.linalg.matrix_power(shear, k))[1].max() for k in range(61)]
    check_number(lab, "q2_peak", int(np.argmax(norms)))


@weight(2)
@number("3.9")
def test_q6_the_forget_bias_for_a_long_way_is_found(lab):
    """Lab, question 6: sigmoid(bias) ** 1000 is a half."""
    keep = 0.5 ** (1 / 1000)
    check_number(lab, "q6_bias", math.log(keep) - math.log1p(-keep), tolerance=0.01)


@weight(1)
@number("3.9")
def test_q7_why_the_first_step_back_costs_most(lab):
    """Lab, question 7: what is carried, and what isn't."""
    check_choice(lab, "q7_why", "b", ("a", "b", "c", "d"))


@weight(2)
@number("3.9")
def test_q10_the_period_of_the_cold_text_is_found(lab):
    """Lab, question 10: after how many characters the text at temperature 0 repeats itself."""
    check_number(lab, "q10_period", len("the spart "))  # measured: it goes on so
