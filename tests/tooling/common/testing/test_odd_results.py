"""Whatever student code returns, an assertion fails in words, and converts nothing large.

Each assertion meets each odd value: no pair of them is a case of its own.
"""

import math
import tracemalloc
import warnings

import numpy as np
import pytest
import torch

from common.errors import Evidence, Failure
from common.student_code.values import kind_of
from common.student_text import StudentBytes, StudentText
from common.testing.checks import check_float
from common.testing.compare import assert_close, assert_equal, unpack
from common.testing.feedback.failure import explain
from common.testing.feedback.hints import fingerprint

MANY = 20 << 20  # numbers of one byte each
GROWTH = 64 << 20  # of memory: as float64, they would take 160 MB
VALUES = {
    "nothing": None,
    "bool": True,
    "digits": 10**9000,
    "negative digits": -(10**9000),
    "beyond int64": 2**65,
    "nan": math.nan,
    "infinity": -math.inf,
    "complex": complex(math.inf, math.nan),
    "string": StudentText("x" * 10**6),
    "bytes": StudentBytes(b"x" * 10**6),
    "list": [1] * 50_000,
    "list of digits": [10**9000] * 100,
    "nested": ((((((1,),),),),),),
    "dict": {StudentText("a"): 10**9000, math.nan: (1,)},
    "small integers": np.ones(MANY, np.int8),
    "bools in a row": np.zeros((1, MANY), bool),
    "halves": np.ones((2, MANY // 8), np.float16),
    "small tensor entries": torch.ones(MANY, dtype=torch.int8),
    "long doubles": np.full((2, 3), np.longdouble("1e4000")),
    "long complex": np.ones((2, 3), np.clongdouble),
    "other byte order": np.zeros((2, 3), ">f8"),
    "no entries": np.zeros((2**40, 0)),
    "many axes": np.zeros((1,) * 64),
    "large": np.full((2, 3), -1.7e308),
    "nans": np.full((2, 3), np.nan),
    "unsigned": np.full((2, 3), 2**64 - 1, np.uint64),
    "scalar": np.uint64(2**64 - 1),
    "long scalar": np.longdouble("1e4000"),
    "half scalar": np.float16(3),
    "bfloat16": torch.ones(2, 3, dtype=torch.bfloat16),
    "complex tensor": torch.ones(2, 3, dtype=torch.complex64),
    "tensor with many axes": torch.zeros((1,) * 60),
}
EXPECTED = {
    "number": 1.5,
    "integer": 3,
    "scalar": np.float64(3),
    "array": np.arange(6.0).reshape(2, 3),
    "float32": np.ones((2, 3), np.float32),
    "integers": np.ones((2, 3), np.int64),
    "small": np.ones((2, 3), np.uint8),
    "bools": np.ones((2, 3), bool),
    "complex": np.ones((2, 3), complex),
    "none": np.zeros((0, 5)),
    "tensor": torch.ones(2, 3),
}
CALLS = {
    **{f"close to {name}": (assert_close, value) for name, value in EXPECTED.items()},
    **{f"equal to {value!r}": (assert_equal, value) for value in (1, 1.5, "a", (1, 2), True, b"a")},
    "unpack": (unpack, 2),
}


@pytest.mark.parametrize("name", VALUES)
def test_an_odd_result_fails_in_words_and_costs_little(name):
    value = VALUES[name]
    assert kind_of(value)
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for assertion, expected in CALLS.values():
                with pytest.raises(Failure) as caught:
                    assertion(value, expected, "out")
                    raise Failure("It passes.")
                said = explain(caught.value)
                assert len(said.text(hidden=False)) < 20_000 and said.sentence
            fingerprint(Evidence(1, value, ""))  # what hints are found by
            with pytest.raises(Failure):
                check_float(value, "out")
                raise Failure("It passes.")
        assert tracemalloc.get_traced_memory()[1] < GROWTH
    finally:
        tracemalloc.stop()
