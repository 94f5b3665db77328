"""How the tests of exercise 3.7 check a language model, its training and its samples."""

import math

import numpy as np

from common.data import load_shakespeare
from common.student_code.values import Handle
from common.testing.checks import check_float
from common.testing.compare import assert_close, check, kind_of, unpack
from common.testing.remote.operations import write_into
from tests.a3_recurrent.cases import check_array, check_distribution, check_uniform, compare_arrays

PARAMETERS = ("embedding", "w_x", "w_h", "b", "w_out", "b_out")


def parameter_shapes(vocab_size, embedding_size, hidden_size):
    """The shape of each parameter of a model, in the order of PARAMETERS."""
    return {
        "embedding": (vocab_size, embedding_size),
        "w_x": (embedding_size, 4 * hidden_size),
        "w_h": (hidden_size, 4 * hidden_size),
        "b": (4 * hidden_size,),
        "w_out": (hidden_size, vocab_size),
        "b_out": (vocab_size,),
    }


def draw_parameters(rng, *sizes, dtype=np.float64, scale=1.0):
    """Random parameters. sizes: vocab_size, embedding_size and hidden_size."""
    return {
        name: rng.normal(scale=scale, size=shape).astype(dtype)
        for name, shape in parameter_shapes(*sizes).items()
    }


def new_model(student, parameters, seed=0):
    """The student's CharLM with these parameters."""
    sizes = (*parameters["embedding"].shape, len(parameters["w_h"]))
    dtype, generator = str(parameters["b"].dtype), np.random.default_rng(seed)
    model = student.CharLM(generator, *sizes, dtype)
    check_model(model)
    made = read_parameters(model)
    for name in PARAMETERS:
        check_array(made[name], parameters[name].shape, dtype, name)
    write_into(model, "parameters", parameters)
    return model


def check_model(model):
    """CharLM(...) made an object."""
    check(isinstance(model, Handle), "CharLM(...) must return a model.")


def read_parameters(model):
    """The model's parameters, if they are a dict with the right names."""
    parameters = model.parameters
    check(
        isinstance(parameters, dict) and set(parameters) == set(PARAMETERS),
        "model.parameters must be a dict with the names in the docstring.",
        f"They are {', '.join(PARAMETERS)}.",
    )
    return parameters


def check_initial_parameters(model, *sizes, dtype):
    """A new model's parameters have the right shapes, dtype and distributions."""
    check_model(model)
    parameters, shapes = read_parameters(model), parameter_shapes(*sizes)
    m = sizes[2]
    b = np.zeros(shapes.pop("b"), dtype=dtype)
    b[m : 2 * m] = 1
    assert_close(parameters["b"], b, what="b", axes=("column",))
    assert_close(parameters["b_out"], np.zeros(shapes.pop("b_out"), dtype=dtype), what="b_out")
    for name, shape in shapes.items():
        check_array(parameters[name], shape, dtype, name)
        if name == "embedding":
            cdf = np.vectorize(lambda z: (1 + math.erf(z / math.sqrt(2))) / 2)
            check_distribution(parameters[name], cdf, name, "standard normal")
        else:
            check_uniform(parameters[name], 1 / math.sqrt(m), name, "1 / sqrt(hidden_size)")


def unpack_forward(result):
    """The logits, h and c that a model's forward returned."""
    logits, state = unpack(result, 2, "forward")
    return logits, *unpack(state, 2, "The state of forward")


def compare_forward(result, expected, situation):
    """Logits and state are the expected ones."""
    compare_arrays(("logits", "h", "c"), unpack_forward(result), expected, situation)


def compare_loss_and_gradients(result, expected, situation, *, state=None):
    """Loss and gradients are the expected ones, and the state if one is named."""
    actual, gradients, after = unpack(result, 3, "loss_and_gradients")
    loss, *expected = expected
    check_float(actual, "loss")
    # Stricter than usual in float32: the errors of some mistakes are small.
    tolerance = 5e-5 if expected[0].dtype == np.float32 else None
    assert_close(actual, float(loss), what=f"loss ({situation})", tolerance=tolerance)
    check(
        isinstance(gradients, dict) and set(gradients) == set(PARAMETERS),
        "The gradients must be a dict with the names of the parameters.",
    )
    for name, wanted in zip(PARAMETERS, expected, strict=True):
        what = f"the gradient of {name} ({situation})"
        assert_close(gradients[name], wanted, what=what, tolerance=tolerance)
    if state:
        after = unpack(after, 2, "The state of loss_and_gradients")
        for name, part, wanted in zip(("h", "c"), after, state, strict=True):
            assert_close(
                part, wanted, f"{name} ({situation})", ("sequence", "unit"), tolerance=tolerance
            )


HISTORY = ("loss", "bits", "norm", "learning_rate")


def read_history(history, steps):
    """The lists of a history as arrays, each with one entry per step."""
    check(isinstance(history, dict), f"train must return a dict, got {kind_of(history)}.")
    missing = [name for name in (*HISTORY, "state") if name not in history]
    check(not missing, f"The history must have the entries {', '.join(missing)}.")
    for name in HISTORY:
        check(isinstance(history[name], list), f'history["{name}"] must be a list.')
        check(
            len(history[name]) == steps,
            f'history["{name}"] must have one entry for each step of the call.',
            f"got {len(history[name])} entries, expected {steps}",
        )
        check(
            all(isinstance(entry, float) for entry in history[name]),
            f'history["{name}"] must hold floats.',
        )
    return {name: np.array(history[name], dtype=np.float64) for name in HISTORY}


def compare_training(history, model, expected, config, *, situation):
    """Every loss and norm, and the parameters at the end, are the expected ones."""
    losses, norms, *last = expected
    history = read_history(history, config["steps"])
    steps = np.arange(1, config["steps"] + 1)
    rates = config["learning_rate"] * config["decay"] ** (steps - 1)
    for name, wanted in zip(HISTORY, (losses, losses / math.log(2), norms, rates), strict=True):
        what = f'history["{name}"] ({situation})'
        assert_close(history[name], wanted, what=what, axes=("index",))
    trained = read_parameters(model)
    for name, wanted in zip(PARAMETERS, last, strict=True):
        assert_close(trained[name], wanted, what=f"{name} at the end ({situation})")


def plain_copy(value):
    """The same plain data in new containers, so that it is passed by value."""
    if isinstance(value, dict):
        return {key: plain_copy(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return (tuple if isinstance(value, tuple) else list)(map(plain_copy, value))
    check(
        value is None or isinstance(value, bool | int | float | str | np.ndarray | np.generic),
        'history["state"] must be plain data: containers of arrays, numbers, strings and None.',
        f"It contains {kind_of(value)}.",
    )
    return value


def check_resumed(student, parameters, text, config, *, first):
    """A run resumed after `first` steps gives exactly the results of an uninterrupted one."""

    def config_to(steps):
        return student.TrainConfig(**config | {"steps": steps})

    def other_model(seed):
        others = {name: array + seed for name, array in parameters.items()}
        return new_model(student, others, seed)

    steps = config["steps"]
    whole = new_model(student, parameters)
    expected = read_history(student.train(whole, text, config_to(steps)), steps)
    model = new_model(student, parameters)
    start = student.train(model, text, config_to(first))
    before = read_history(start, first)
    state = start["state"]
    is_data = isinstance(state, dict | list | tuple)
    check(is_data, f'history["state"] must be plain data, got {kind_of(state)}.')
    by_value = plain_copy(state)
    # Further training of the model must not change the state.
    student.train(model, text, config_to(2))
    for situation, resumed, checkpoint in (
        ("the same model", model, state),
        ("a new model", other_model(1), state),
        ("a new model, and a state that was used before", other_model(2), state),
        ("a new model, and a state from a file", other_model(3), by_value),
    ):
        after = student.train(resumed, text, config_to(steps), checkpoint)
        after = read_history(after, steps - first)
        for name in HISTORY:
            joined = np.concatenate([before[name], after[name]])
            check(
                np.array_equal(joined, expected[name]),
                f'history["{name}"] differs from that of an uninterrupted run ({situation}).',
                f"got {joined}, expected {expected[name]}",
            )
        wanted, trained = read_parameters(whole), read_parameters(resumed)
        for name in PARAMETERS:
            check(
                np.array_equal(trained[name], wanted[name]),
                f"{name} at the end differs from that of an uninterrupted run ({situation}).",
            )


TRAINING = {
    "steps": 300,
    "batch_size": 32,
    "context_length": 32,
    "learning_rate": 0.02,
    "decay": 0.9975,
}
# By how many bits per character a trained model must beat a bigram model. On these texts, guessing
# needs 6.1 bits, a unigram model 4.8 and a bigram model 3.7; over eight parts of the text and
# seeds, a correct model beat bigrams by 0.68 to 0.76, with a spread of 0.04.
AHEAD_OF_BIGRAMS = 0.4


def draw_texts(rng, start):
    """200,000 characters of Shakespeare to train on, and 40 passages of held-out plays."""
    text = load_shakespeare()
    train, held_out = text.encode(text.train[start : start + 200_000]), text.encode(text.validation)
    length = 120
    starts = rng.integers(0, len(held_out) - length - 1, size=40)
    return train, held_out[starts[:, None] + np.arange(length + 1)], len(text.vocabulary)


def check_trained_model(model, history, train, passages):
    """The model needs clearly fewer bits for the passages than a bigram model."""
    read_history(history, TRAINING["steps"])
    vocab_size = len(load_shakespeare().vocabulary)
    bits = bits_one_by_one(model, passages, vocab_size)
    # A bigram model: counts in the training text, plus 0.1.
    counts = np.full((vocab_size, vocab_size), 0.1)
    np.add.at(counts, (train[:-1], train[1:]), 1)
    probabilities = counts / counts.sum(axis=1, keepdims=True)
    bigrams = float(-np.log2(probabilities[passages[:, :-1], passages[:, 1:]]).mean())
    check(
        bits <= bigrams - AHEAD_OF_BIGRAMS,
        "The trained model needs too many bits per character on held-out text.",
        f"got {bits:.2f}, expected at most {bigrams - AHEAD_OF_BIGRAMS:.2f}. Guessing needs "
        f"{math.log2(vocab_size):.2f}, and a bigram model {bigrams:.2f}.",
    )


def bits_one_by_one(model, ids, vocab_size):
    """The mean bits of all characters but the first; the model never sees the next character."""
    start, total = (), 0.0
    for step in range(ids.shape[1] - 1):
        logits, state = unpack(model.forward(ids[:, step : step + 1], *start), 2, "forward")
        start = (state,)
        check_array(logits, (len(ids), 1, vocab_size), "float32", "logits")
        probabilities = softmax(logits[:, 0].astype(np.float64))
        following = probabilities[np.arange(len(ids)), ids[:, step + 1]]
        total -= float(np.mean(np.log2(np.maximum(following, 1e-30))))
    return total / (ids.shape[1] - 1)


def softmax(logits):
    """The probability of each id, along the last axis."""
    p = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def check_ids(ids, length):
    """The new ids are an int64 array of that length."""
    check_array(ids, (length,), "int64", "sample's result")


def draw_clear_model(rng, oracle, vocab_size, prompt, *, length):
    """A model whose most likely ids are clear, differ, and depend on the whole prompt."""
    while True:
        parameters = draw_parameters(rng, vocab_size, 3, 4, scale=2.0)
        ids, margin = oracle.most_likely(prompt, length, *parameters.values())
        others, _ = oracle.most_likely(prompt[-1:], length, *parameters.values())
        whole = len(prompt) == 1 or not np.array_equal(ids, others)
        # At temperature 1e-6 the second most likely id has at most exp(-1000) of the probability.
        if margin > 1e-3 and whole and np.ptp(ids):
            return parameters, ids


# The probability that correct draws are rejected, in each check below.
DRAWS_ERROR = 1e-8
VOCAB_SIZE = 4  # of the models in these checks


def check_draws(model, prompt, ids, temperature):
    """Each id follows each other id as often as softmax(logits / temperature) says.

    For each pair of ids, the sum over all draws of (1 if this pair occurred, else 0) minus its
    probability at that step is a martingale whose increments have a range of at most 1. By the
    Azuma-Hoeffding inequality its mean is further from 0 than `allowed` with a probability of at
    most DRAWS_ERROR for all pairs together, however the ids are drawn from the random numbers.
    """
    check_ids(ids, 2000)
    known = ids.min() >= 0 and ids.max() < VOCAB_SIZE
    check(known, "sample draws ids that are not in the vocabulary.")
    text = np.concatenate([prompt, ids])
    logits, _, _ = unpack_forward(model.forward(text[None, :-1]))
    probabilities = softmax(logits[0, len(prompt) - 1 :].astype(np.float64) / temperature)
    drawn = np.eye(VOCAB_SIZE)[ids]
    previous = np.eye(VOCAB_SIZE)[text[len(prompt) - 1 : -1]]
    deviation = previous.T @ (drawn - probabilities) / len(ids)
    allowed = math.sqrt(math.log(2 * VOCAB_SIZE**2 / DRAWS_ERROR) / (2 * len(ids)))
    worst = np.unravel_index(int(np.abs(deviation).argmax()), deviation.shape)
    check(
        abs(deviation[worst]) <= allowed,
        "The ids don't follow the distribution softmax(logits / temperature).",
        f"At temperature {temperature}, the frequency of the pair {int(worst[0])}, {int(worst[1])} "
        f"is off by {deviation[worst]:+.3f}; random draws explain at most {allowed:.3f}.",
    )


def check_uniform_draws(ids, length):
    """All ids are equally frequent, up to random variation."""
    check_ids(ids, length)
    counts = np.bincount(np.clip(ids, 0, VOCAB_SIZE), minlength=VOCAB_SIZE + 1)
    shares = counts[:VOCAB_SIZE] / length
    # Hoeffding's inequality, for all ids together.
    allowed = math.sqrt(math.log(2 * VOCAB_SIZE / DRAWS_ERROR) / (2 * length))
    check(
        bool(np.all(np.abs(shares - 1 / VOCAB_SIZE) <= allowed)),
        "At a very high temperature, all ids must be equally frequent.",
        f"Their frequencies are {shares.round(3)}; random draws explain a deviation of at most "
        f"{allowed:.3f}.",
    )
