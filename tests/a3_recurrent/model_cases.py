"""How the tests of exercise 3.7 check a character model, its training and its samples."""

import math

import numpy as np

from common.data import load_shakespeare
from common.student_code.values import Handle
from common.testing.checks import check_float
from common.testing.compare import assert_close, check, kind_of, unpack
from common.testing.remote.operations import write_into
from tests.a3_recurrent.cases import check_array, check_distribution, check_even, compare_arrays

PARAMETERS = ("embedding", "w_x", "w_h", "b", "w_out", "b_out")


def parameter_shapes(vocabulary, embedding, hidden):
    """The shape of each parameter of a character model, in the order of PARAMETERS."""
    return {
        "embedding": (vocabulary, embedding),
        "w_x": (embedding, 4 * hidden),
        "w_h": (hidden, 4 * hidden),
        "b": (4 * hidden,),
        "w_out": (hidden, vocabulary),
        "b_out": (vocabulary,),
    }


def draw_parameters(rng, *sizes, dtype=np.float64, scale=1.0):
    """Weights of a character model, biases included. sizes: vocabulary, embedding and hidden."""
    return {
        name: rng.normal(scale=scale, size=shape).astype(dtype)
        for name, shape in parameter_shapes(*sizes).items()
    }


def new_model(student, parameters, seed=0):
    """A character model of the student's with these weights."""
    (vocabulary, embedding), hidden = parameters["embedding"].shape, len(parameters["w_h"])
    dtype, generator = str(parameters["b"].dtype), np.random.default_rng(seed)
    model = student.CharLM(generator, vocabulary, embedding, hidden, dtype)
    check_model(model)
    for name, array in read_parameters(model).items():
        check_array(array, parameters[name].shape, dtype, name)
    write_into(model, "parameters", parameters)
    return model


def check_model(model):
    """CharLM(...) made an object."""
    check(isinstance(model, Handle), "CharLM(...) must make a model.")


def read_parameters(model):
    """What the model has in its parameters, if it is a dict with the right names."""
    parameters = model.parameters
    check(
        isinstance(parameters, dict) and set(parameters) == set(PARAMETERS),
        "model.parameters must be a dict with the names of the docstring.",
        f"Those are {', '.join(PARAMETERS)}.",
    )
    return parameters


def check_initial_parameters(model, *sizes, dtype):
    """A new model's parameters have the right shapes, type and distributions."""
    check_model(model)
    parameters, shapes = read_parameters(model), parameter_shapes(*sizes)
    hidden = sizes[2]
    b = np.zeros(shapes.pop("b"), dtype=dtype)
    b[hidden : 2 * hidden] = 1
    assert_close(parameters["b"], b, what="b", axes=("column",))
    assert_close(parameters["b_out"], np.zeros(shapes.pop("b_out"), dtype=dtype), what="b_out")
    for name, shape in shapes.items():
        check_array(parameters[name], shape, dtype, name)
        if name == "embedding":
            cdf = np.vectorize(lambda z: (1 + math.erf(z / math.sqrt(2))) / 2)
            check_distribution(parameters[name], cdf, name, "the normal one")
        else:
            check_even(parameters[name], 1 / math.sqrt(hidden), name, "1 / sqrt(hidden)")


def unpack_forward(result):
    """The logits, and the two parts of the state, that a model's forward returned."""
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
    # Finer than usual in float32: some mistakes are off by little, and a few steps hide much.
    tolerance = 5e-5 if expected[0].dtype == np.float32 else None
    assert_close(actual, float(loss), what=f"loss ({situation})", tolerance=tolerance)
    check(
        isinstance(gradients, dict) and set(gradients) == set(PARAMETERS),
        "The gradients must be a dict with the names of the parameters.",
    )
    for name, wanted in zip(PARAMETERS, expected, strict=True):
        what = f"the gradient of {name} ({situation})"
        assert_close(gradients[name], wanted, what=what, tolerance=tolerance)
    if state is not None:
        after = unpack(after, 2, "The state of loss_and_gradients")
        for name, part, wanted in zip(("h", "c"), after, state, strict=True):
            assert_close(part, wanted, f"{name} ({situation})", ("sequence", "unit"), tolerance)


HISTORY = ("loss", "bits", "norm", "learning_rate")


def read_history(history, steps):
    """The lists of a history as arrays, each with an entry for each step."""
    check(isinstance(history, dict), f"train must return a dict, not {kind_of(history)}.")
    missing = [name for name in (*HISTORY, "state") if name not in history]
    check(not missing, f"The history has no entry {', '.join(missing)}.")
    for name in HISTORY:
        check(isinstance(history[name], list), f'history["{name}"] must be a list.')
        check(
            len(history[name]) == steps,
            f'history["{name}"] must have one entry for each step of the call.',
            f"It has {len(history[name])} entries after {steps} steps.",
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
    rates = config["learning_rate"] * config["decay"] ** np.arange(config["steps"])
    for name, wanted in zip(HISTORY, (losses, losses / math.log(2), norms, rates), strict=True):
        what = f'history["{name}"] ({situation})'
        assert_close(history[name], wanted, what=what, axes=("step",))
    trained = read_parameters(model)
    for name, wanted in zip(PARAMETERS, last, strict=True):
        assert_close(trained[name], wanted, what=f"{name} at the end ({situation})")


def plain_copy(value):
    """The same plain data in new containers, so that it crosses by value."""
    if isinstance(value, dict):
        return {key: plain_copy(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return (tuple if isinstance(value, tuple) else list)(map(plain_copy, value))
    check(
        value is None or isinstance(value, bool | int | float | str | np.ndarray | np.generic),
        'history["state"] must be plain data: containers of arrays, numbers, strings and None.',
        f"It holds {kind_of(value)}.",
    )
    return value


def check_resumed(student, parameters, text, config, *, first):
    """`first` steps and then the others give exactly what all steps in one go give."""

    def config_to(steps):
        return student.Config(**config | {"steps": steps})

    def fresh(seed):
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
    check(is_data, f'history["state"] must be plain data, but it is {kind_of(state)}.')
    by_value = plain_copy(state)
    # Further training of the model must not reach into the state.
    student.train(model, text, config_to(2))
    for situation, resumed, begin in (
        ("the same model", model, state),
        ("a fresh model", fresh(1), state),
        ("a fresh model, and a state that was used twice", fresh(2), state),
        ("a fresh model, and a state from a file", fresh(3), by_value),
    ):
        after = student.train(resumed, text, config_to(steps), begin)
        after = read_history(after, steps - first)
        for name in HISTORY:
            joined = np.concatenate([before[name], after[name]])
            check(
                np.array_equal(joined, expected[name]),
                f'history["{name}"] differs from that of a run in one go ({situation}).',
                f"got {joined}, expected {expected[name]}",
            )
        wanted, trained = read_parameters(whole), read_parameters(resumed)
        for name in PARAMETERS:
            check(
                np.array_equal(trained[name], wanted[name]),
                f"{name} at the end differs from that of a run in one go ({situation}).",
            )


TRAINING = {"steps": 300, "batch": 32, "window": 32, "learning_rate": 0.02, "decay": 0.9975}
# By how many bits per character a trained model must beat a model of pairs of characters. On these
# texts, chance needs 6.1 bits, single characters 4.8 and pairs 3.7; over eight parts of the text
# and seeds, a right model was ahead of pairs by 0.68 to 0.76, with a spread of 0.04.
AHEAD_OF_PAIRS = 0.4


def draw_texts(rng, begin):
    """200,000 characters of Shakespeare to train on, and 40 passages of plays not among them."""
    text = load_shakespeare()
    train, held_out = text.encode(text.train[begin : begin + 200_000]), text.encode(text.validation)
    length = 120
    begins = rng.integers(0, len(held_out) - length - 1, size=40)
    return train, held_out[begins[:, None] + np.arange(length + 1)], len(text.vocabulary)


def check_trained_model(model, history, train, passages):
    """The model needs clearly fewer bits for the passages than a table of pairs does."""
    read_history(history, TRAINING["steps"])
    vocabulary = len(load_shakespeare().vocabulary)
    bits = bits_one_by_one(model, passages, vocabulary)
    # A model that counts pairs in the training text, and adds 0.1 to each count.
    counts = np.full((vocabulary, vocabulary), 0.1)
    np.add.at(counts, (train[:-1], train[1:]), 1)
    chances = counts / counts.sum(axis=1, keepdims=True)
    pairs = float(-np.log2(chances[passages[:, :-1], passages[:, 1:]]).mean())
    check(
        bits <= pairs - AHEAD_OF_PAIRS,
        "The trained model needs too many bits for each character of a text it has not read.",
        f"It needs {bits:.2f}. Chance alone needs {math.log2(vocabulary):.2f}, a model that knows "
        f"how often each character follows each other one needs {pairs:.2f}, and yours should "
        f"need at most {pairs - AHEAD_OF_PAIRS:.2f}.",
    )


def bits_one_by_one(model, ids, vocabulary):
    """The mean bits of each character but the first; the model never sees what it is asked for."""
    start, total = (), 0.0
    for step in range(ids.shape[1] - 1):
        logits, state = unpack(model.forward(ids[:, step : step + 1], *start), 2, "forward")
        start = (state,)
        check_array(logits, (len(ids), 1, vocabulary), "float32", "logits")
        probabilities = softmax(logits[:, 0].astype(np.float64))
        following = probabilities[np.arange(len(ids)), ids[:, step + 1]]
        total -= float(np.mean(np.log2(np.maximum(following, 1e-30))))
    return total / (ids.shape[1] - 1)


def softmax(logits):
    """The chance of each id, along the last axis."""
    scores = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return scores / scores.sum(axis=-1, keepdims=True)


def check_ids(ids, length):
    """New ids are an array of int64 of that length."""
    check_array(ids, (length,), "int64", "sample's result")


def draw_clear_model(rng, oracle, vocabulary, prime, *, length):
    """A model whose most likely ids are clear, differ, and depend on the whole prime."""
    while True:
        parameters = draw_parameters(rng, vocabulary, 3, 4, scale=2.0)
        ids, distance = oracle.most_likely(prime, length, *parameters.values())
        others, _ = oracle.most_likely(prime[-1:], length, *parameters.values())
        whole = len(prime) == 1 or not np.array_equal(ids, others)
        # At a temperature of 1e-6, exp(-1000) is between the most likely id and the next.
        if distance > 1e-3 and whole and np.ptp(ids):
            return parameters, ids


# How often right draws are called wrong, in each check below.
DRAWS_CHANCE = 1e-8
VOCABULARY = 4  # of the models in these checks


def check_draws(model, prime, ids, temperature):
    """How often each id follows each other one is what softmax(logits / temperature) says.

    For each pair of ids, the sum over all draws of (1 if this pair came, else 0) minus its
    probability at that moment is a martingale with steps of a range of at most 1. By Azuma's and
    Hoeffding's inequality its mean is further from 0 than `allowed` with a chance of at most
    DRAWS_CHANCE for all pairs together, however the ids are drawn from the random numbers.
    """
    check_ids(ids, 2000)
    known = ids.min() >= 0 and ids.max() < VOCABULARY
    check(known, "sample draws ids that are not in the vocabulary.")
    text = np.concatenate([prime, ids])
    logits, _, _ = unpack_forward(model.forward(text[None, :-1]))
    chances = softmax(logits[0, len(prime) - 1 :].astype(np.float64) / temperature)
    came = np.eye(VOCABULARY)[ids]
    before = np.eye(VOCABULARY)[text[len(prime) - 1 : -1]]
    deviation = before.T @ (came - chances) / len(ids)
    allowed = math.sqrt(math.log(2 * VOCABULARY**2 / DRAWS_CHANCE) / (2 * len(ids)))
    worst = np.unravel_index(int(np.abs(deviation).argmax()), deviation.shape)
    check(
        abs(deviation[worst]) <= allowed,
        "The ids don't come as often as softmax(logits / temperature) says.",
        f"At temperature {temperature}, the pair {int(worst[0])}, {int(worst[1])} has a share of "
        f"the draws that is off by {deviation[worst]:+.3f}; chance explains {allowed:.3f}.",
    )


def check_even_draws(ids, length):
    """Every id came equally often, up to chance."""
    check_ids(ids, length)
    counts = np.bincount(np.clip(ids, 0, VOCABULARY), minlength=VOCABULARY + 1)
    shares = counts[:VOCABULARY] / length
    # Hoeffding's inequality, for all ids together.
    allowed = math.sqrt(math.log(2 * VOCABULARY / DRAWS_CHANCE) / (2 * length))
    check(
        bool(np.all(np.abs(shares - 1 / VOCABULARY) <= allowed)),
        "At a very high temperature, the ids don't come equally often.",
        f"The shares are {shares.round(3)}; chance explains a distance of {allowed:.3f}.",
    )
