"""Tests of the battery: each broken promise has its own sentence, through both faces."""

import numpy as np
import pytest

from common.errors import Failure
from common.testing.battery import Case, check_promises

CODE = b"""
import random
import warnings

import numpy as np

kept, ids, buffer, last = {}, {}, np.zeros(3), []


def double(x):
    return 2 * x


def in_place(x):
    x *= 2
    return x.copy()


def reshaped(x):
    x.shape = (1, 3)
    return 2 * x


def sorted_keys(weights):
    items = sorted(weights.items())
    weights.clear()
    weights.update(items)
    return sum(weights.values()).copy()


def nested(arrays):
    arrays[0] += 1
    return arrays[0] * 2


def into_buffer(x):
    buffer[:] = 2 * x
    return buffer


def memo(x):
    return kept.setdefault(x.tobytes(), 2 * x)


def of_list(x):
    return kept.setdefault(x.tobytes(), [float(each) for each in x])


def by_id(x):
    return ids.setdefault(id(x), (x, 2 * x))[1].copy()


def view(x):
    return x[::-1]


def of_the_last(x):
    last.append(x.copy())
    return 2 * x + last[-2 if len(last) > 1 else -1]


def constant(x):
    return np.ones(3)


def nothing(x):
    return None


def silenced(x):
    np.seterr(divide="ignore")
    return 2 * x


def filtered(x):
    warnings.simplefilter("ignore")
    return 2 * x


def seeded(x):
    np.random.seed(0)
    return 2 * x


def shuffled(x):
    random.random()
    return 2 * x


def with_cache(x):
    return 2 * x, {"x": x}


def backward(dout, cache):
    return dout * cache["x"]


def popping(dout, cache):
    return dout * cache.pop("x", 0)


class Counter:
    def __init__(self):
        self.count = 0

    def add(self, x):
        self.count += 1
        return x + self.count

    def double(self, x):
        return 2 * x


def draw(x):
    return x + np.random.normal()
"""


def draw(student, rng):
    return (rng.normal(size=3),)


def failure_of(student, function, inputs="x", draw=draw, **settings):
    """What the battery says about one function; "" if all is well."""
    try:
        check_promises(
            student, np.random.default_rng(3), [Case(function, inputs, draw, **settings)]
        )
    except Failure as failure:
        return failure.explanation.sentence
    return ""


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        ("double", ""),
        ("in_place", "in_place changes the values of its input x."),
        ("reshaped", "reshaped changes the values of its input x."),
        ("into_buffer", "A call of into_buffer changes what an earlier call returned."),
        ("memo", "Writing into what memo returned changes what it returns later."),
        ("of_list", "Writing into what of_list returned changes what it returns later."),
        ("by_id", "by_id doesn't notice that the caller has changed an input in place"),
        ("view", "Writing into what view returned changes its input x: it is a view of it."),
        ("of_the_last", "of_the_last remembers something"),
        ("constant", "constant returns the same for different inputs."),
        ("nothing", "nothing returned None."),
        ("silenced", "silenced changes NumPy's error handling (np.seterr)."),
        ("filtered", "filtered changes the filters of warnings."),
        ("seeded", "seeded changes NumPy's global random state."),
        ("shuffled", "shuffled changes the random state of Python's random."),
    ],
)
def test_each_broken_promise_has_its_sentence(student, function, sentence):
    said = failure_of(student, function)
    assert said.startswith(sentence) and bool(said) == bool(sentence)


def test_arrays_in_containers_and_the_order_of_keys_are_inputs_too(student):
    def two(student, rng):
        return ([rng.normal(size=3), rng.normal(size=2)],)

    def weights(student, rng):
        return ({"w": rng.normal(size=2), "b": rng.normal(size=2)},)

    nested = failure_of(student, "nested", "arrays", two)
    assert nested == "nested changes the values of its input arrays."
    keys = failure_of(student, "sorted_keys", "weights", weights)
    assert keys.startswith("sorted_keys changes") and "keys or their order" in keys


def test_a_cache_is_no_input_of_the_caller_but_must_serve_twice(student):
    def with_cache(student, rng):
        _, cache = student.with_cache(rng.normal(size=3))
        return rng.normal(size=3), cache

    assert failure_of(student, "with_cache", returns=1) == ""
    assert failure_of(student, "backward", "dout cache", with_cache) == ""
    assert failure_of(student, "popping", "dout cache", with_cache).startswith("popping remembers")


def test_methods_are_called_on_a_new_object(student):
    def owner(student, rng):
        return student.Counter()

    assert failure_of(student, "Counter.double", owner=owner) == ""
    said = failure_of(student, "Counter.add", owner=owner)
    assert said.startswith("Counter.add remembers something")


def test_exemptions_allow_what_they_name_and_nothing_else(student):
    def exempt(function, *names):
        return failure_of(student, function, exempt=dict.fromkeys(names, "a reason"))

    assert exempt("view", "views") == ""
    assert exempt("of_the_last", "memory") == ""
    assert exempt("constant", "differs") == ""
    assert exempt("in_place", "x") == ""
    assert exempt("draw", "memory", "draws") == ""
    assert exempt("silenced", "views", "memory", "differs", "draws", "x").startswith("silenced")
    with pytest.raises(ValueError, match="no exemption is called 'y'"):
        exempt("double", "y")
