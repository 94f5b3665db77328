"""A submission in NumPy that both faces of `student` call. Tests read this file as text."""

import os
import tempfile
import warnings
from collections import namedtuple

import numpy as np

Cache = namedtuple("Cache", "x factor")
CONSTANT = (1, [2.5, "three"])


class Layer:
    def __init__(self, factor):
        self.factor = factor
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return self.factor * x

    @property
    def broken(self):
        raise KeyError("broken")


class Network:
    def __init__(self, rng):
        self.parameters = {"w": rng.normal(size=3), "b": np.zeros(1)}

    def forward(self, x):
        return x @ self.parameters["w"] + self.parameters["b"]


class TooBig(ValueError):
    pass


class Vector(np.ndarray):
    pass


shared = {}
buffer = np.zeros(3)
calls = 0


def same(x):
    return x


def layout(x):
    return x.strides, x.flags.c_contiguous, x.flags.writeable, x.dtype.str


def with_object(x):
    return 2 * x, Layer(x)


def with_namedtuple(x):
    return 2 * x, Cache(x, 3)


def with_dict(x):
    shared["x"] = x
    return 2 * x, shared


def of_namedtuple(cache):
    return cache.factor * cache.x, type(cache).__name__


def of_dict(cache):
    return cache["x"], cache is shared


def backward_of_dict(dout, cache):
    return dout * cache["x"]


def with_list(x):
    kept = [x, (x,)]
    shared["kept"] = kept
    return kept


def is_same_list(cache):
    return cache is shared["kept"], cache[1] is shared["kept"][1], cache[0] is shared["kept"][0]


def into_buffer(x):
    buffer[:] = x
    return buffer


def three():
    return [1, 2, 3]


def double(x):
    return 2 * x


def pair(x, count):
    return x, count


def fill(megabytes):
    return float(np.ones(megabytes << 17).sum())


def second_twice(x, count):
    return sum(pair(x, count)[1] for _ in range(2))


def given(function):
    return function()


def count():
    global calls
    calls += 1
    return calls


def spoil(x, y, z=None):
    x += 1
    if z is not None:
        z[0] = 5
    return x


def subclass(x):
    return x.view(Vector)


def nothing_plain():
    return [np.str_("a"), np.datetime64("2024-01-01"), {1}, 3 + 4j, np.float32(0.5), 2**100]


def big_endian():
    return np.arange(3, dtype=">i4")


def deep():
    value = []
    value.append(value)
    return value


def fail(kind):
    if kind == "own":
        raise TooBig("too big")
    if kind == "exit":
        raise SystemExit(3)
    if kind == "unicode":
        b"\xff".decode()
    if kind == "division":
        return 1 / 0
    if kind == "attribute":
        return [].shape
    raise {"value": ValueError, "key": KeyError, "none": NotImplementedError}[kind]("so")


def divide(x, y):
    warnings.warn("divided", stacklevel=2)
    return x / y


def save(path, content):
    with open(path, "wb") as file:
        file.write(content)


def load(path):
    with open(path, "rb") as file:
        return file.read()


def make_folder():
    with tempfile.TemporaryDirectory() as folder:
        return os.path.isdir(folder)


def remove(path):
    os.remove(path)


def call(function, times):
    for _ in range(times):
        function()
