"""How the tests of exercise 3.7 check a character model, its training and its samples."""

import math
import re

import numpy as np

from common.data import load_shakespeare
from common.student_code.values import Handle
from common.testing.checks import check_float, check_refused
from common.testing.compare import assert_close, assert_equal, check, kind_of, unpack
from common.testing.remote.operations import call_each_held, fetch, hold, write_into
from tests.a3_recurrent.cases import (
    LN2,
    check_array,
    check_even,
    check_normal,
)

PARAMETERS = ("embedding", "w_x", "w_h", "b", "w_out", "b_out")


def draw_parameters(rng, vocabulary, embedding, hidden, *, dtype=np.float64, scale=1.0):
    """Weights of a character model, biases included, under their names."""
    shapes = (
        (vocabulary, embedding),
        (embedding, 4 * hidden),
        (hidden, 4 * hidden),
        (4 * hidden,),
        (hidden, vocabulary),
        (vocabulary,),
    )
    return {
        name: rng.normal(scale=scale, size=shape).astype(dtype)
        for name, shape in zip(PARAMETERS, shapes, strict=True)
    }


def new_model(student, parameters, seed=0):
    """A character model of the student's with these weights."""
    (vocabulary, embedding), hidden = parameters["embedding"].shape, len(parameters["w_h"])
    dtype = str(parameters["b"].dtype)
    model = first_model(student, np.random.default_rng(seed), vocabulary, embedding, hidden, dtype)
    for name, array in read_parameters(model).items():
        check_array(array, parameters[name].shape, dtype, name)
    write_into(model, "parameters", parameters)
    return model


def first_model(student, *arguments):
    """A character model as the student's code makes it."""
    model = student.CharLM(*arguments)
    check(isinstance(model, Handle), "CharLM(...) must make a model.")
    return model


def read_parameters(model):
    """What the model has in its parameters, if it is a dict with the right names."""
    parameters = model.parameters
    check(
        isinstance(parameters, dict) and set(parameters) == set(PARAMETERS),
        "model.parameters must be a dict with the names of the docstring.",
        f"Those are {', '.join(PARAMETERS)}.",
    )
    return parameters


def check_first_parameters(student, rng, vocabulary, embedding, *, hidden, dtype=None):
    """A new model's parameters have the right shapes, type and distributions."""
    shapes = {
        "embedding": (vocabulary, embedding),
        "w_x": (embedding, 4 * hidden),
        "w_h": (hidden, 4 * hidden),
        "w_out": (hidden, vocabulary),
    }
    generator = np.random.default_rng(rng.integers(2**32))
    options = () if dtype is None else (dtype,)
    model = first_model(student, generator, vocabulary, embedding, hidden, *options)
    dtype, parameters = dtype or "float32", read_parameters(model)
    b = np.zeros(4 * hidden, dtype=dtype)
    b[hidden : 2 * hidden] = 1
    assert_close(parameters["b"], b, what="b", axes=("column",))
    assert_close(parameters["b_out"], np.zeros(vocabulary, dtype=dtype), what="b_out")
    for name, shape in shapes.items():
        check_array(parameters[name], shape, dtype, name)
        if name == "embedding":
            check_normal(parameters[name], name)
        else:
            check_even(parameters[name], 1 / math.sqrt(hidden), name, "1 / sqrt(hidden)")


def check_forward(student, oracle, parameters, ids, *, state, situation):
    """Logits and state of a model are PyTorch's."""
    expected = oracle.char_lm(ids, *parameters.values(), *(state or ()))
    model = new_model(student, parameters)
    compare_forward(read(model, ids, state), expected, situation)


def read(model, ids, state=None):
    """The logits, and the two parts of the state, after the model has read the ids."""
    result = model.forward(ids) if state is None else model.forward(ids, state)
    logits, state = unpack(result, 2, "forward")
    return logits, *unpack(state, 2, "The state of forward")


def compare_forward(result, expected, situation):
    axes = (("sequence", "step", "id"), ("sequence", "unit"), ("sequence", "unit"))
    for name, actual, wanted, names in zip(
        ("logits", "h", "c"), result, expected, axes, strict=True
    ):
        assert_close(actual, wanted, what=f"{name} ({situation})", axes=names)


def check_loss_and_gradients(student, oracle, parameters, ids, *, targets, state, situation):
    """Loss, gradients and state of one window are PyTorch's."""
    loss, *gradients = oracle.char_lm_gradients(ids, targets, *parameters.values(), *(state or ()))
    _, h, c = oracle.char_lm(ids, *parameters.values(), *(state or ()))
    model = new_model(student, parameters)
    arguments = (ids, targets) if state is None else (ids, targets, state)
    result = unpack(model.loss_and_gradients(*arguments), 3, "loss_and_gradients")
    compare_loss_and_gradients(result[:2], loss, gradients, situation)
    after = unpack(result[2], 2, "The state of loss_and_gradients")
    for name, actual, wanted in zip(("h", "c"), after, (h, c), strict=True):
        what = f"{name} ({situation})"
        tolerance = 5e-5 if wanted.dtype == np.float32 else None  # a few steps hide much
        assert_close(actual, wanted, what, ("sequence", "unit"), tolerance)


def compare_loss_and_gradients(result, loss, expected, situation):
    actual, gradients = result
    check_float(actual, "loss")
    # Finer than usual in float32: some mistakes are off by little.
    tolerance = 5e-5 if expected[0].dtype == np.float32 else None
    assert_close(actual, float(loss), what=f"loss ({situation})", tolerance=tolerance)
    check(
        isinstance(gradients, dict) and set(gradients) == set(PARAMETERS),
        "The gradients must be a dict with the names of the parameters.",
    )
    for name, wanted in zip(PARAMETERS, expected, strict=True):
        what = f"the gradient of {name} ({situation})"
        assert_close(gradients[name], wanted, what=what, tolerance=tolerance)


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


def check_training(student, oracle, parameters, text, *, config, situation):
    """Every loss and norm, and the parameters at the end, are those of PyTorch's Adam."""
    losses, norms, *last = oracle.char_lm_training(text, *parameters.values(), **config)
    model = new_model(student, parameters)
    history = read_history(student.train(model, text, student.Config(**config)), config["steps"])
    rates = config["learning_rate"] * config["decay"] ** np.arange(config["steps"])
    expected = {"loss": losses, "bits": losses / LN2, "norm": norms, "learning_rate": rates}
    for name, wanted in expected.items():
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
    for situation, goes_on, begin in (
        ("the same model", model, state),
        ("a fresh model", fresh(1), state),
        ("a fresh model, and a state that was used twice", fresh(2), state),
        ("a fresh model, and a state from a file", fresh(3), by_value),
    ):
        after = student.train(goes_on, text, config_to(steps), begin)
        after = read_history(after, steps - first)
        for name in HISTORY:
            joined = np.concatenate([before[name], after[name]])
            check(
                np.array_equal(joined, expected[name]),
                f'history["{name}"] differs from that of a run in one go ({situation}).',
                f"got {joined}, expected {expected[name]}",
            )
        wanted, trained = read_parameters(whole), read_parameters(goes_on)
        for name in PARAMETERS:
            check(
                np.array_equal(trained[name], wanted[name]),
                f"{name} at the end differs from that of a run in one go ({situation}).",
            )


def check_names_step(message, step):
    """An error's message names the step."""
    check(
        re.search(rf"step\D*(?<!-){step}\b", message, re.IGNORECASE) is not None,
        "The ValueError for a loss that is not finite must name the step, counted from 0.",
        f"It is step {step}, and the message is: {message}",
    )


def check_strange_state(student, rng, text):
    """A state whose arrays don't fit the model is refused, one that fits isn't."""
    config = {"batch": 2, "window": 4}
    small = draw_parameters(rng, 5, 2, 3)
    state = student.train(new_model(student, small), text, student.Config(steps=1, **config))[
        "state"
    ]
    more = student.Config(steps=2, **config)
    student.train(new_model(student, small), text, more, state)
    large = new_model(student, draw_parameters(rng, 5, 2, 4))
    check_refused("the state of a model with other sizes", student.train, large, text, more, state)


TRAINING_CHARACTERS = 200_000
TRAINING = {"steps": 300, "batch": 32, "window": 32, "learning_rate": 0.02, "decay": 0.9975}
# By how many bits per character a trained model must beat a model of pairs of characters. On these
# texts, chance needs 6.1 bits, single characters 4.8 and pairs 3.7; over eight parts of the text
# and seeds, a right model was ahead of pairs by 0.68 to 0.76, with a spread of 0.04.
AHEAD_OF_PAIRS = 0.4


def check_trained_model(student, rng, begin, places):
    """Train a small model on a part of Shakespeare, and count its bits on plays it has not read.

    The judge counts them itself: it hands in one character of each of some places at a time,
    takes the logits, and only then looks at the character that follows. So the model can't see
    what it is asked for.
    """
    text = load_shakespeare()
    size = len(text.vocabulary)
    train = text.encode(text.train[begin : begin + TRAINING_CHARACTERS])
    held_out = text.encode(text.validation)
    length = 120
    begins = rng.integers(0, len(held_out) - length - 1, size=places)
    ids = held_out[begins[:, None] + np.arange(length + 1)]
    model = first_model(student, np.random.default_rng(rng.integers(2**32)), size, 32, 64)
    read_history(student.train(model, train, student.Config(**TRAINING)), TRAINING["steps"])
    bits = bits_one_by_one(model, ids, size)
    pairs = bits_of_pairs(train, ids, size)
    check(
        bits <= pairs - AHEAD_OF_PAIRS,
        "The trained model needs too many bits for each character of a text it has not read.",
        f"It needs {bits:.2f}. Chance alone needs {math.log2(size):.2f}, a model that knows how "
        f"often each character follows each other one needs {pairs:.2f}, and yours should need "
        f"at most {pairs - AHEAD_OF_PAIRS:.2f}.",
    )


def bits_one_by_one(model, ids, vocabulary):
    """The mean bits of each character but the first, read one by one from the zero state."""
    state, total = None, 0.0
    for step in range(ids.shape[1] - 1):
        now = ids[:, step : step + 1]
        result = model.forward(now) if state is None else model.forward(now, state)
        logits, state = unpack(result, 2, "forward")
        check_array(logits, (len(ids), 1, vocabulary), "float32", "logits")
        probabilities = softmax(logits[:, 0].astype(np.float64))
        following = probabilities[np.arange(len(ids)), ids[:, step + 1]]
        total -= float(np.mean(np.log2(np.maximum(following, 1e-30))))
    return total / (ids.shape[1] - 1)


def bits_of_pairs(train, ids, vocabulary):
    """The same for a model that counts pairs in the training text, and adds 0.1 to each count."""
    counts = np.full((vocabulary, vocabulary), 0.1)
    np.add.at(counts, (train[:-1], train[1:]), 1)
    chances = counts / counts.sum(axis=1, keepdims=True)
    return float(-np.log2(chances[ids[:, :-1], ids[:, 1:]]).mean())


def softmax(logits):
    scores = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return scores / scores.sum(axis=-1, keepdims=True)


def check_ids(ids, length, what="sample's result"):
    """New ids are an array of int64 of that length."""
    check_array(ids, (length,), "int64", what)


def draw_clear_model(rng, oracle, vocabulary, prime, *, length):
    """A model whose most likely ids are clear, differ, and depend on the whole prime."""
    while True:
        parameters = draw_parameters(rng, vocabulary, 3, 4, scale=2.0)
        ids, distance = oracle.most_likely(prime, length, *parameters.values())
        others, _ = oracle.most_likely(prime[-1:], length, *parameters.values())
        whole = len(prime) == 1 or not np.array_equal(ids, others)
        if distance > 1e-3 and whole and np.ptp(ids):
            return parameters


def check_most_likely(student, oracle, parameters, prime, *, length, rng):
    """Temperature 0, and one just above it, take the id with the highest logit."""
    # The distance of draw_clear_model puts exp(-1000) between the first and the second at 1e-6.
    expected, _ = oracle.most_likely(prime, length, *parameters.values())
    model = new_model(student, parameters)
    for temperature in (0.0, 0, 1e-6):
        ids = student.sample(model, prime, length, temperature, rng)
        check_ids(ids, length)
        assert_close(
            ids, expected, what=f"sample's result at temperature {temperature}", axes=("place",)
        )


# How often right draws are called wrong, in each check below.
DRAWS_CHANCE = 1e-8


def check_draws(student, parameters, prime, length, *, temperature, rng):
    """How often each id follows each other one is what softmax(logits / temperature) says.

    For each pair of ids, the sum over all draws of (1 if this pair came, else 0) minus its
    probability at that moment is a martingale with steps of a range of at most 1. By Azuma's and
    Hoeffding's inequality its mean is further from 0 than `allowed` with a chance of at most
    DRAWS_CHANCE for all pairs together, however the ids are drawn from the random numbers.
    """
    model = new_model(student, parameters)
    ids = student.sample(model, prime, length, temperature, rng)
    check_ids(ids, length)
    size = len(parameters["embedding"])
    check(ids.min() >= 0 and ids.max() < size, "sample draws ids that are not in the vocabulary.")
    text = np.concatenate([prime, ids])
    logits, _, _ = read(model, text[None, :-1])
    chances = softmax(logits[0, len(prime) - 1 :].astype(np.float64) / temperature)
    came = np.eye(size)[ids]
    before = np.eye(size)[text[len(prime) - 1 : -1]]
    deviation = before.T @ (came - chances) / length
    allowed = math.sqrt(math.log(2 * size**2 / DRAWS_CHANCE) / (2 * length))
    worst = np.unravel_index(int(np.abs(deviation).argmax()), deviation.shape)
    check(
        abs(deviation[worst]) <= allowed,
        "The ids don't come as often as softmax(logits / temperature) says.",
        f"At temperature {temperature}, the pair {int(worst[0])}, {int(worst[1])} has a share of "
        f"the draws that is off by {deviation[worst]:+.3f}; chance explains {allowed:.3f}.",
    )
    return ids


def check_even_draws(student, parameters, prime, length, *, rng):
    """At a very high temperature every id comes equally often, up to chance."""
    size = len(parameters["embedding"])
    ids = student.sample(new_model(student, parameters), prime, length, 1e6, rng)
    check_ids(ids, length)
    shares = np.bincount(np.clip(ids, 0, size), minlength=size + 1)[:size] / length
    # Hoeffding's inequality, for all ids together.
    allowed = math.sqrt(math.log(2 * size / DRAWS_CHANCE) / (2 * length))
    check(
        bool(np.all(np.abs(shares - 1 / size) <= allowed)),
        "At a very high temperature, the ids don't come equally often.",
        f"The shares are {shares.round(3)}; chance explains a distance of {allowed:.3f}.",
    )


def check_generators_decide(student, parameters, prime):
    """Equal generators give equal ids, other generators others."""
    model = new_model(student, parameters)
    first, again, other = (
        student.sample(model, prime, 60, 1e3, np.random.default_rng(seed)) for seed in (5, 5, 6)
    )
    check(np.array_equal(first, again), "Equal generators must give equal ids.")
    check(not np.array_equal(first, other), "Other generators must give other ids.")


def check_generator_not_used(student, model, prime, seed):
    """At temperature 0, the random generator is left as it was."""
    held = hold(student, np.random.default_rng(seed))
    call_each_held(student.sample, [(model, prime, 5, 0.0, held)])
    following = fetch(held).random()
    assert_equal(
        following,
        np.random.default_rng(seed).random(),
        what="What rng draws after sampling at temperature 0",
    )
