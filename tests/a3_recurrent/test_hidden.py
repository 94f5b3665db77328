"""The hidden tests of assignment 3: what the public tests check, on other shapes and inputs."""

import math

import numpy as np
from gradescope_utils.autograder_utils.decorators import number, tags, weight

from common.labs.answer_checks import check_choice, check_number
from common.testing.battery.promise_checks import check_promises
from common.testing.checks import check_float, check_refused, sliced, transposed
from common.testing.compare import assert_close, assert_equal, check, unpack
from tests.a3_recurrent import cases, model_cases
from tests.a3_recurrent.battery_cases import CASES
from tests.a3_recurrent.cases import Passes, compare_outputs, draw_inputs
from tests.a3_recurrent.model_cases import draw_parameters, new_model
from tests.a3_recurrent.speed_cases import check_lstm_speed


def check_types_and_views(passes, oracle, rng, *steps):
    """float32 and views, forward and backward."""
    case = cases.draw_with_upstream(rng, passes.layer, (3, *steps, 4), 2, dtype=np.float32)
    cases.check_both_passes(passes, oracle, case, "float32")
    inputs, upstream = cases.draw_with_upstream(rng, passes.layer, (2, *steps, 4), 3)
    case = cases.seen_as(inputs, transposed, sliced), cases.seen_as(upstream, sliced)
    cases.check_both_passes(passes, oracle, case, "views")


@weight(1)
@number("3.1")
def test_rnn_steps_are_right_for_other_sizes(student, rng, oracle):
    """One step forward and backward is PyTorch's on other shapes."""
    passes = Passes("rnn_step", student.rnn_step_forward, student.rnn_step_backward)
    for n, d, m in ((4, 3, 2), (2, 6, 5), (1, 2, 1)):
        case = cases.draw_with_upstream(rng, "rnn_step", (n, d), m)
        cases.check_both_passes(passes, oracle, case, "a step")


@weight(1)
@number("3.1")
def test_rnn_forward_is_right_for_other_sizes(student, rng, oracle):
    """The states are PyTorch's on other shapes, with and without padding."""
    for n, t, d, m in ((4, 7, 3, 5), (1, 9, 2, 2), (5, 1, 4, 1)):
        inputs = draw_inputs(rng, "rnn", (n, t, d), m)
        result = student.rnn_forward(*inputs)
        compare_outputs("rnn", result, oracle.rnn(*inputs), "whole sequences")
    mask = cases.draw_mask(rng, 6, 7)
    inputs = draw_inputs(rng, "rnn", (6, 7, 3), 4)
    inputs[0][~mask] *= 1e3
    result = student.rnn_forward(*inputs, mask)
    compare_outputs("rnn", result, oracle.rnn(*inputs, mask=mask), "padding anywhere")


@weight(1)
@number("3.1")
def test_rnn_backward_is_right_for_other_sizes(student, rng, oracle):
    """All gradients are PyTorch's on other shapes."""
    passes = Passes("rnn", student.rnn_forward, student.rnn_backward)
    for n, t, d, m in ((4, 7, 3, 5), (1, 9, 2, 2), (5, 1, 4, 1)):
        case = cases.draw_with_upstream(rng, "rnn", (n, t, d), m)
        cases.check_gradients(passes, oracle, case, "whole sequences")


@weight(1)
@number("3.1")
def test_rnn_backward_is_right_for_other_masks(student, rng, oracle):
    """All gradients are PyTorch's with padding anywhere."""
    passes = Passes("rnn", student.rnn_forward, student.rnn_backward)
    for n, t, d, m in ((6, 7, 3, 4), (3, 4, 2, 5)):
        mask = cases.draw_mask(rng, n, t)
        inputs, upstream = cases.draw_with_upstream(rng, "rnn", (n, t, d), m)
        inputs[0][~mask] *= 100
        cases.check_gradients(passes, oracle, (inputs, upstream), "padding anywhere", mask=mask)


@weight(1)
@number("3.1")
def test_rnn_keeps_types_and_has_no_side_effects(student, rng, oracle):
    """float32, views, unchanged inputs, separate caches and invalid input, on other shapes."""
    step = Passes("rnn_step", student.rnn_step_forward, student.rnn_step_backward)
    whole = Passes("rnn", student.rnn_forward, student.rnn_backward)
    check_types_and_views(step, oracle, rng)
    check_types_and_views(whole, oracle, rng, 4)
    inputs = draw_inputs(rng, "rnn", (3, 4, 5), 2)
    cases.check_layer_refuses(student.rnn_forward, inputs)
    check_promises(student, rng, CASES["3.1"])


@weight(1)
@number("3.2")
def test_lstm_parameters_are_right_for_other_sizes(student, rng):
    """Shapes, dtypes, biases and the uniform distribution of the weights."""
    result = student.lstm_parameters(cases.new_generator(rng), 50, 25)
    cases.check_lstm_parameters(result, 50, 25, forget_bias=1.0, dtype="float32")
    result = student.lstm_parameters(cases.new_generator(rng), 25, 35, -1.5, "float64")
    cases.check_lstm_parameters(result, 25, 35, forget_bias=-1.5, dtype="float64")


@weight(1)
@number("3.2")
def test_lstm_step_forward_is_right_for_other_sizes(student, rng, oracle):
    """h_next and c_next are PyTorch's on other shapes."""
    for n, d, m in ((4, 3, 2), (2, 6, 5), (1, 2, 1)):
        inputs = draw_inputs(rng, "lstm_step", (n, d), m)
        result = student.lstm_step_forward(*inputs)
        compare_outputs("lstm_step", result, oracle.lstm_step(*inputs), "a step")


@weight(1)
@number("3.2")
def test_lstm_step_backward_is_right_for_other_sizes(student, rng, oracle):
    """The gradients of one step are PyTorch's on other shapes."""
    passes = Passes("lstm_step", student.lstm_step_forward, student.lstm_step_backward)
    for n, d, m in ((4, 3, 2), (2, 6, 5), (1, 2, 1)):
        case = cases.draw_with_upstream(rng, "lstm_step", (n, d), m)
        cases.check_gradients(passes, oracle, case, "a step")


@weight(1)
@number("3.2")
def test_lstm_forward_is_right_for_other_sizes(student, rng, oracle):
    """h and c_last are PyTorch's on other shapes, with and without padding."""
    for n, t, d, m in ((4, 7, 3, 5), (1, 9, 2, 2), (5, 1, 4, 1)):
        inputs = draw_inputs(rng, "lstm", (n, t, d), m)
        result = student.lstm_forward(*inputs)
        compare_outputs("lstm", result, oracle.lstm(*inputs), "whole sequences")
    mask = cases.draw_mask(rng, 6, 7)
    inputs = draw_inputs(rng, "lstm", (6, 7, 3), 4)
    inputs[0][~mask] *= 1e3
    result = student.lstm_forward(*inputs, mask)
    compare_outputs("lstm", result, oracle.lstm(*inputs, mask=mask), "padding anywhere")


@weight(1)
@number("3.2")
def test_lstm_backward_is_right_for_other_sizes(student, rng, oracle):
    """All six gradients are PyTorch's on other shapes."""
    passes = Passes("lstm", student.lstm_forward, student.lstm_backward)
    for n, t, d, m in ((4, 7, 3, 5), (1, 9, 2, 2), (5, 1, 4, 1)):
        case = cases.draw_with_upstream(rng, "lstm", (n, t, d), m)
        cases.check_gradients(passes, oracle, case, "whole sequences")


@weight(1)
@number("3.2")
def test_lstm_backward_is_right_for_other_masks(student, rng, oracle):
    """All six gradients are PyTorch's with padding anywhere."""
    passes = Passes("lstm", student.lstm_forward, student.lstm_backward)
    for n, t, d, m in ((6, 7, 3, 4), (3, 4, 2, 5)):
        mask = cases.draw_mask(rng, n, t)
        inputs, upstream = cases.draw_with_upstream(rng, "lstm", (n, t, d), m)
        inputs[0][~mask] *= 100
        cases.check_gradients(passes, oracle, (inputs, upstream), "padding anywhere", mask=mask)


@weight(1)
@number("3.2")
def test_lstm_keeps_types_and_has_no_side_effects(student, rng, oracle):
    """float32, views, unchanged inputs, separate caches and invalid input, on other shapes."""
    step = Passes("lstm_step", student.lstm_step_forward, student.lstm_step_backward)
    whole = Passes("lstm", student.lstm_forward, student.lstm_backward)
    check_types_and_views(step, oracle, rng)
    check_types_and_views(whole, oracle, rng, 4)
    inputs = draw_inputs(rng, "lstm", (3, 4, 5), 2)
    cases.check_layer_refuses(student.lstm_forward, inputs)
    check_promises(student, rng, CASES["3.2"])


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
        inputs = draw_inputs(rng, "gru_step", (n, d), m)
        result = student.gru_step_forward(*inputs)
        compare_outputs("gru_step", result, oracle.gru_step(*inputs), "a step")


@weight(1)
@number("3.3")
def test_gru_step_backward_is_right_for_other_sizes(student, rng, oracle):
    """All six gradients are PyTorch's on other shapes."""
    passes = Passes("gru_step", student.gru_step_forward, student.gru_step_backward)
    for n, d, m in ((4, 3, 2), (2, 6, 5), (1, 2, 1)):
        case = cases.draw_with_upstream(rng, "gru_step", (n, d), m)
        cases.check_gradients(passes, oracle, case, "a step")


@weight(1)
@number("3.3")
def test_gru_step_keeps_types_and_has_no_side_effects(student, rng, oracle):
    """float32, views, unchanged inputs, separate caches and invalid input, on other shapes."""
    passes = Passes("gru_step", student.gru_step_forward, student.gru_step_backward)
    check_types_and_views(passes, oracle, rng)
    check_promises(student, rng, CASES["3.3"])
    x, h, *weights = draw_inputs(rng, "gru_step", (3, 2), 5)
    check_refused("another number of sequences", student.gru_step_forward, x[1:], h, *weights)


@weight(1)
@number("3.4")
def test_embedding_is_right_for_other_ids(student, rng, oracle):
    """Embeddings and their gradients are PyTorch's; dtypes are kept, and calls independent."""
    for n, t, v, e, dtype in (
        (1, 1, 1, 1, np.float64),
        (2, 9, 3, 4, np.float32),
        (3, 5, 7, 2, np.float64),
    ):
        ids = rng.integers(0, v, size=(n, t)).astype(rng.choice([np.int16, np.int64]))
        table = transposed(rng.normal(size=(v, e)).astype(dtype))
        dout = rng.normal(size=(n, t, e)).astype(dtype)
        out, cache = unpack(student.embedding_forward(sliced(ids), table), 2, "embedding_forward")
        expected = oracle.embedding(ids, table)
        assert_close(out, expected, what="out", axes=("sequence", "step", "feature"))
        dtable = student.embedding_backward(transposed(dout), cache)
        expected = oracle.embedding_gradient(ids, table, dout)
        assert_close(dtable, expected, what="dtable", axes=("id", "feature"))
    check_promises(student, rng, CASES["3.4"])
    check_refused("ids out of range", student.embedding_forward, ids + 7, table)
    check_refused("ids out of range", student.embedding_forward, ids - 7, table)


@weight(1)
@number("3.4")
def test_temporal_cross_entropy_is_right_for_other_sizes(student, rng, oracle):
    """loss and dlogits are PyTorch's on other shapes, also for logits of 1e4."""
    for n, t, v in ((4, 3, 6), (1, 7, 2), (5, 1, 3)):
        small, targets = rng.normal(scale=3, size=(n, t, v)), rng.integers(0, v, size=(n, t))
        large = rng.integers(-5, 6, size=(n, t, v)) * 1e4
        for logits, situation in ((small, "small logits"), (large, "large logits")):
            result = student.temporal_cross_entropy(logits, targets)
            cases.compare_cross_entropy(result, oracle.cross_entropy(logits, targets), situation)


@weight(1)
@number("3.4")
def test_temporal_cross_entropy_is_right_for_other_masks(student, rng, oracle):
    """Masked positions don't count, whatever their targets are; all masked gives 0."""
    for n, t, v in ((4, 5, 6), (3, 4, 2)):
        logits, targets = rng.normal(scale=3, size=(n, t, v)), rng.integers(0, v, size=(n, t))
        mask = cases.draw_mask(rng, n, t)
        targets[~mask] = rng.choice([-100, -1, 99], size=int((~mask).sum()))
        result = student.temporal_cross_entropy(logits, targets, mask)
        expected = oracle.cross_entropy(logits, targets, mask=mask)
        cases.compare_cross_entropy(result, expected, "padding anywhere")
        result = student.temporal_cross_entropy(logits, targets, np.zeros((n, t), dtype=bool))
        cases.compare_cross_entropy(result, (0.0, np.zeros((n, t, v))), "only padding")


@weight(1)
@number("3.4")
def test_temporal_cross_entropy_keeps_types_and_has_no_side_effects(student, rng, oracle):
    """float32, views, unchanged inputs and invalid input, on other shapes."""
    logits, targets = rng.normal(scale=3, size=(4, 3, 5)), rng.integers(0, 5, size=(4, 3))
    mask = cases.draw_mask(rng, 4, 5)[:, 1:4]
    single = logits.astype(np.float32)
    for situation, *arguments in (
        ("float32", single, targets.astype(np.uint8)),
        ("float32 with padding", single, targets, mask),
        ("views", sliced(logits), transposed(targets), mask),
    ):
        result = student.temporal_cross_entropy(*arguments)
        cases.compare_cross_entropy(result, oracle.cross_entropy(*arguments), situation)
    function = student.temporal_cross_entropy
    check_refused("targets out of range", function, logits, targets + 5)
    check_refused("a mask that is not boolean", function, logits, targets, mask.astype(np.uint8))


@weight(1)
@number("3.5")
def test_clip_by_global_norm_is_right_for_other_gradients(student, rng, oracle):
    """Large gradients shrink by one factor, small ones stay, and the input is unchanged."""
    for dtype in (np.float64, np.float32):
        sizes = {"w": (1, (3, 4)), "b": (20, (5,)), "table": (0.01, (2, 1, 3))}
        gradients = {name: (a * rng.normal(size=s)).astype(dtype) for name, (a, s) in sizes.items()}
        for max_norm, situation in ((0.5, "a norm above max_norm"), (1e4, "a norm below max_norm")):
            result = student.clip_by_global_norm(gradients, max_norm)
            expected = oracle.clip(max_norm, *gradients.values())
            cases.compare_clipped(result, gradients, expected, situation)
    large = {name: (array * 1e25).astype(np.float32) for name, array in gradients.items()}
    result = student.clip_by_global_norm(large, 3.0)
    expected = oracle.clip(3.0, *large.values())
    cases.compare_clipped(result, large, expected, "large numbers in float32")
    clip = student.clip_by_global_norm
    check_refused("a max_norm that is not above 0", clip, gradients, -0.5)
    bad = gradients | {"b": np.array([np.inf, 1.0])}
    check_refused("a norm that is not finite", clip, bad, 1.0)


@weight(1)
@number("3.5")
def test_make_windows_is_right_for_other_texts(student, rng, oracle):
    """Streams, windows, targets, dropped ids, dtypes, and texts that are too short."""
    for *sizes, length in ((2, 5, 47), (4, 3, 61), (1, 7, 8), (6, 1, 20), (3, 4, 48)):
        ids = rng.integers(0, 90, size=length).astype(rng.choice([np.uint8, np.int32, np.int64]))
        result = student.make_windows(ids, *sizes)
        cases.compare_windows(result, oracle.windows(ids, *sizes), "another text")
        short = ids[: math.prod(sizes)]
        check_refused("a text that is too short", student.make_windows, short, *sizes)


@weight(1)
@number("3.5")
def test_truncated_bptt_is_right_for_other_windows(student, rng, oracle):
    """The state is carried on, the gradient isn't, for every context_length; float32 and views."""
    for n, t, d, m, length in ((3, 8, 2, 4, 3), (2, 9, 3, 2, 4), (1, 5, 1, 3, 1), (2, 4, 3, 2, 4)):
        (x, *others), (dh,) = cases.draw_with_upstream(rng, "rnn", (n, t, d), m)
        result = student.truncated_bptt(x, dh, *others, length)
        cases.compare_truncated(result, oracle.truncated_bptt(x, dh, *others, length), "windows")
    inputs, (dh,) = cases.draw_with_upstream(rng, "rnn", (2, 6, 3), 4, dtype=np.float32)
    x, *others = cases.seen_as(inputs, sliced, transposed)
    result = student.truncated_bptt(x, dh, *others, 4)
    cases.compare_truncated(result, oracle.truncated_bptt(x, dh, *others, 4), "float32")
    check_promises(student, rng, CASES["3.5"])
    check_refused("a context_length below 1", student.truncated_bptt, x, dh, *others, -1)


@weight(1)
@number("3.6")
def test_gradient_norms_of_other_rnns_are_right(student, rng, oracle):
    """Norms are PyTorch's, and powers of a factor if w_hh is orthogonal up to that factor."""
    for t, d, m in ((7, 3, 4), (2, 2, 5)):
        x, state, weights = cases.draw_cell(rng, "rnn", (t, d), m)
        norms = student.gradient_norms_through_time("rnn", x, state, weights)
        expected = oracle.rnn_norms(x, *state, *weights)
        assert_close(norms, expected, what="norms (other sizes)", axes=("step",))
        factor, x, state = rng.uniform(0.5, 1.5), np.zeros((t, d)), (np.zeros(m),)
        weights = (rng.normal(size=(d, m)), factor * cases.orthogonal(rng, m), np.zeros(m))
        norms = student.gradient_norms_through_time("rnn", x, state, weights)
        expected = factor ** np.arange(t, -1.0, -1.0)
        assert_close(norms, expected, what="norms (a scaled orthogonal matrix)", axes=("step",))


@weight(1)
@number("3.6")
def test_gradient_norms_of_other_lstms_are_right(student, rng, oracle):
    """Norms are PyTorch's with c_s held fixed; with w_h = 0 nothing depends on earlier h."""
    for t, d, m in ((7, 3, 4), (2, 2, 5)):
        x, state, weights = cases.draw_cell(rng, "lstm", (t, d), m)
        norms = student.gradient_norms_through_time("lstm", x, state, weights)
        expected = oracle.lstm_norms(x, *state, *weights)
        assert_close(norms, expected, what="norms (other sizes)", axes=("step",))
        w_x, w_h, b = weights
        norms = student.gradient_norms_through_time("lstm", x, state, (w_x, 0 * w_h, b))
        expected = np.zeros(t + 1)
        expected[-1] = 1
        assert_close(norms, expected, what="norms (an LSTM with w_h = 0)", axes=("step",))
    check_promises(student, rng, CASES["3.6"])
    check_refused("another cell", student.gradient_norms_through_time, "gru", x, state, weights)


@weight(1)
@number("3.7")
def test_char_lm_is_right_for_other_sizes(student, rng, oracle):
    """Initial parameters, logits and states; a text in two parts gives the same as in one."""
    model = student.CharLM(cases.new_generator(rng), 60, 50, 20)
    model_cases.check_initial_parameters(model, 60, 50, 20, dtype="float32")
    parameters = draw_parameters(rng, 7, 4, 5)
    ids = rng.integers(0, 7, size=(3, 6))
    state = tuple(rng.normal(size=(3, 5)) for _ in range(2))
    logits, h, c = oracle.char_lm(ids, *parameters.values())
    result = new_model(student, parameters).forward(ids)
    model_cases.compare_forward(result, (logits, h, c), "from the zero state")
    result = new_model(student, parameters).forward(ids, state)
    expected = oracle.char_lm(ids, *parameters.values(), *state)
    model_cases.compare_forward(result, expected, "from a state")
    single = {name: array.astype(np.float32) for name, array in parameters.items()}
    result = new_model(student, single).forward(ids)
    model_cases.compare_forward(result, oracle.char_lm(ids, *single.values()), "float32")
    model, cut = new_model(student, parameters), int(rng.integers(1, 6))
    _, after = unpack(model.forward(ids[:, :cut]), 2, "forward")
    rest = model.forward(ids[:, cut:], after)
    model_cases.compare_forward(rest, (logits[:, cut:], h, c), "the second part of a text")
    changed = ids.copy()
    changed[:, cut:] = (ids[:, cut:] + rng.integers(1, 7, size=(3, 6 - cut))) % 7
    before, _, _ = model_cases.unpack_forward(model.forward(changed))
    check(before.shape == logits.shape, "logits has the wrong shape.")
    assert_close(before[:, :cut], logits[:, :cut], what="logits before a changed id")


@weight(1)
@number("3.7")
def test_char_lm_gradients_are_right_for_other_sizes(student, rng, oracle):
    """Loss, six gradients and state are PyTorch's, from the zero state and from another state."""
    for v, e, m, n, t, dtype in (
        (7, 4, 5, 3, 6, np.float64),
        (3, 5, 2, 2, 9, np.float32),
        (4, 1, 3, 1, 1, np.float64),
    ):
        parameters = draw_parameters(rng, v, e, m, dtype=dtype)
        ids, targets = rng.integers(0, v, size=(2, n, t))
        state = tuple(rng.normal(size=(n, m)).astype(dtype) for _ in range(2))
        for start, situation in (((), "from the zero state"), (state, "from a state")):
            arguments = (ids, targets, start) if start else (ids, targets)
            result = new_model(student, parameters).loss_and_gradients(*arguments)
            expected = oracle.char_lm_gradients(ids, targets, *parameters.values(), *start)
            _, *after = oracle.char_lm(ids, *parameters.values(), *start)
            model_cases.compare_loss_and_gradients(result, expected, situation, state=after)


@weight(1)
@number("3.7")
def test_train_takes_the_right_steps_on_other_texts(student, rng, oracle):
    """Losses, bits, norms, rates and parameters are those of PyTorch's Adam, clipped or not."""
    for batch_size, context_length, length, rate in ((3, 3, 40, 0.03), (1, 5, 13, 0.1)):
        parameters = draw_parameters(rng, 6, 3, 4)
        text = rng.integers(0, 6, size=length)
        for max_norm, situation in ((50.0, "nothing to clip"), (0.05, "every step clipped")):
            config = {"steps": 10, "batch_size": batch_size, "context_length": context_length}
            config |= {"learning_rate": rate, "decay": 0.95, "max_norm": max_norm}
            model = new_model(student, parameters)
            history = student.train(model, text, student.TrainConfig(**config))
            expected = oracle.char_lm_training(text, *parameters.values(), **config)
            model_cases.compare_training(history, model, expected, config, situation=situation)


@weight(1)
@number("3.7")
def test_train_resumes_exactly_where_it_stopped_on_other_texts(student, rng):
    """A resumed run gives exactly the results of an uninterrupted one."""
    parameters = draw_parameters(rng, 6, 3, 4)
    text = rng.integers(0, 6, size=40)
    config = {"steps": 11, "batch_size": 3, "context_length": 3, "max_norm": 0.3, "decay": 0.9}
    for first in (1, 6):
        model_cases.check_resumed(student, parameters, text, config, first=first)


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
    check_promises(student, rng, CASES["3.7"])
    check_refused("a text of one id", student.bits_per_character, model, ids[:1])


@weight(1)
@number("3.7")
def test_sample_takes_the_most_likely_id_of_other_models(student, rng, oracle):
    """At temperature 0 and 1e-6 each id has the highest logit; at 0 a tie goes to the lowest id."""
    for p in (1, 5):
        prompt = rng.integers(0, 7, size=p)
        parameters, expected = model_cases.draw_clear_model(rng, oracle, 7, prompt, length=10)
        model, generator = new_model(student, parameters), cases.new_generator(rng)
        for temperature in (0.0, 0, 1e-6):
            ids = student.sample(model, prompt, 10, temperature, generator)
            model_cases.check_ids(ids, 10)
            what = f"sample's result at temperature {temperature}"
            assert_close(ids, expected, what=what, axes=("position",))
    tied = rng.choice(7, size=3, replace=False)
    b_out = rng.normal(size=7)
    b_out[tied] = 9.0
    model = new_model(student, parameters | {"w_out": np.zeros((4, 7)), "b_out": b_out})
    ids = student.sample(model, prompt, 3, 0.0, cases.new_generator(rng))
    model_cases.check_ids(ids, 3)
    assert_equal(ids.tolist(), [int(tied.min())] * 3, what="the ids when some are tied")
    generator = cases.new_generator(rng)
    check_refused("a temperature below 0", student.sample, model, prompt, 3, -1.0, generator)


@weight(1)
@number("3.7")
def test_sample_draws_from_the_softmax_of_other_models(student, rng):
    """Ids follow softmax(logits / temperature), up to random variation."""
    parameters, prompt = draw_parameters(rng, 4, 3, 5, scale=1.5), rng.integers(0, 4, size=3)
    for temperature in (0.4, 1.7):
        model = new_model(student, parameters)
        ids = student.sample(model, prompt, 2000, temperature, cases.new_generator(rng))
        model_cases.check_draws(model, prompt, ids, temperature)
    model = new_model(student, parameters)
    ids = student.sample(model, prompt, 1000, 1e6, cases.new_generator(rng))
    model_cases.check_uniform_draws(ids, 1000)


@weight(1)
@number("3.7")
@tags("training")
def test_a_model_trained_on_another_part_beats_a_bigram_model(student, rng):
    """300 steps on another part of Shakespeare, then other passages of held-out plays."""
    train, passages, vocab_size = model_cases.draw_texts(rng, int(rng.integers(0, 3_900_000)))
    model = student.CharLM(cases.new_generator(rng), vocab_size, 32, 64)
    model_cases.check_model(model)
    history = student.train(model, train, student.TrainConfig(**model_cases.TRAINING))
    model_cases.check_trained_model(model, history, train, passages)


@weight(2)
@number("3.8")
def test_q2_the_peak_of_the_sheared_gradient_is_found(lab):
    """Lab, question 2: the power of the shear matrix with the largest singular value."""
    shear = np.array([[0.85, 3.0], [0.0, 0.85]])
    norms = [np.linalg.svd(np.linalg.matrix_power(shear, k))[1].max() for k in range(61)]
    check_number(lab, "q2_peak", int(np.argmax(norms)))


@weight(2)
@number("3.9")
def test_q6_the_forget_bias_for_a_long_distance_is_found(lab):
    """Lab, question 6: sigmoid(bias) ** 1000 is a half."""
    keep = 0.5 ** (1 / 1000)
    check_number(lab, "q6_bias", math.log(keep) - math.log1p(-keep), tolerance=0.01)


@weight(1)
@number("3.9")
def test_q7_why_the_first_step_back_loses_most(lab):
    """Lab, question 7: what is carried, and what isn't."""
    check_choice(lab, "q7_why", "b", ("a", "b", "c", "d"))


@weight(2)
@number("3.9")
def test_q10_the_period_of_the_greedy_text_is_found(lab):
    """Lab, question 10: after how many characters the text at temperature 0 repeats."""
    check_number(lab, "q10_period", len("the spart "))  # measured: it repeats these
