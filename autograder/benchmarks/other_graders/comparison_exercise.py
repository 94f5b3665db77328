"""One small exercise, written as tests for gradescope-utils and for otter-grader."""

# Nobody who wasn't shown a hidden test knows this number.
HIDDEN_SIZE = 97531
HEAD = f"""
import numpy as np

PUBLIC = {{(7, 3, 1, 0): 5, (5, 1, 1, 0): 5, (9, 3, 2, 0): 4, (28, 5, 1, 2): 28}}
HIDDEN = {{({HIDDEN_SIZE}, 4, 3, 1): 32510, (64, 7, 2, 3): 32}}


def reference_forward(x, w, b, stride=1, padding=0):
    out_h, out_w = x.shape[2] - w.shape[2] + 1, x.shape[3] - w.shape[3] + 1
    out = np.empty((len(x), len(w), out_h, out_w))
    for i, k, r, s in np.ndindex(out.shape):
        out[i, k, r, s] = np.sum(x[i, :, r : r + w.shape[2], s : s + w.shape[3]] * w[k]) + b[k]
    return out


def case(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(2, 3, 6, 7)), rng.normal(size=(4, 3, 3, 2)), rng.normal(size=4)
"""
UNITTEST = (
    HEAD
    + """

import unittest

import convolution
from gradescope_utils.autograder_utils.decorators import visibility, weight


class TestExercise(unittest.TestCase):
    @weight(1)
    def test_sizes(self):
        for sizes, expected in PUBLIC.items():
            self.assertEqual(convolution.conv_output_size(*sizes), expected)

    @weight(1)
    @visibility("after_published")
    def test_hidden_sizes(self):
        for sizes, expected in HIDDEN.items():
            self.assertEqual(convolution.conv_output_size(*sizes), expected)

    @weight(1)
    def test_forward(self):
        x, w, b = case(1)
        expected = reference_forward(x, w, b)
        out, _ = convolution.conv2d_forward(x, w, b)
        np.testing.assert_allclose(out, expected)

    @weight(1)
    @visibility("after_published")
    def test_hidden_forward(self):
        x, w, b = case(2)
        expected = reference_forward(x, w, b)
        out, _ = convolution.conv2d_forward(x, w, b)
        np.testing.assert_allclose(out, expected)


SECRET = "@canary@"
"""
)
# As in gradescope-utils' own example.
RUN_TESTS = """
import unittest

from gradescope_utils.autograder_utils.json_test_runner import JSONTestRunner

if __name__ == "__main__":
    suite = unittest.defaultTestLoader.discover("tests")
    with open("../results/results.json", "w") as stream:
        JSONTestRunner(visibility="visible", stream=stream).run(suite)
"""
RUN_AUTOGRADER = """#!/bin/sh
cp submission/convolution.py source/convolution.py
cd source
@python@ run_tests.py
"""
OTTER_TEST = (
    HEAD
    + """

from otter.test_files import test_case

OK_FORMAT = False
name = "convolution"
points = None


@test_case(points=1, hidden=False)
def test_sizes(conv_output_size):
    for sizes, expected in PUBLIC.items():
        assert conv_output_size(*sizes) == expected


@test_case(points=1, hidden=True)
def test_hidden_sizes(conv_output_size):
    for sizes, expected in HIDDEN.items():
        assert conv_output_size(*sizes) == expected


@test_case(points=1, hidden=False)
def test_forward(conv2d_forward):
    x, w, b = case(1)
    expected = reference_forward(x, w, b)
    out, _ = conv2d_forward(x, w, b)
    np.testing.assert_allclose(out, expected)


@test_case(points=1, hidden=True)
def test_hidden_forward(conv2d_forward):
    x, w, b = case(2)
    expected = reference_forward(x, w, b)
    out, _ = conv2d_forward(x, w, b)
    np.testing.assert_allclose(out, expected)


SECRET = "@canary@"
"""
)
