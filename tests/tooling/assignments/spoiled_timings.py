"""Spoils each timed result in turn, and notes which of these the timing tests don't notice.

Run as `python -m tests.tooling.assignments.spoiled_timings a1_convolution test_...`: prints for
each of these tests how many results were spoiled, which of them it missed, and how it ended.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from common.assignment import ROOT
from common.check_log import LOG
from common.errors import Failure
from common.student_code.values import is_tensor
from common.testing import speed_ratio
from common.testing.fixtures import run_graded_tests
from common.testing.graded_tests import HIDDEN_FILE, PUBLIC_FILE
from tests.tooling import sampling

SALT = "timed results"  # not the handout's, so that oracles answer live
FAR = 1000  # times the largest entry: no tolerance is as wide
# Shifts all scores of a query alike: its gradient is 0 but for rounding, and saves no work.
WITHOUT_WORK = "key.bias"

MOST = 8  # results of a test that are spoiled in turn, one of each kind at least

Path = tuple[Any, ...]  # keys and indices that lead to a result


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Where the arrays and numbers are in what a timed run returned."""
    if isinstance(value, dict | list | tuple):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from paths(item, (*path, key))
    elif isinstance(value, np.ndarray) or is_tensor(value):
        if 0 not in value.shape:
            yield path
    elif isinstance(value, int | float):
        yield path


def spoiled(value: Any, path: Path) -> Any:
    """A copy in which the last entry of one result is wrong."""
    if path:
        key, *rest = path
        items = dict(value) if isinstance(value, dict) else list(value)
        items[key] = spoiled(items[key], tuple(rest))
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, int | float):
        return value + far(value)
    wrong = value.clone() if is_tensor(value) else value.copy()
    last = (-1,) * wrong.ndim
    wrong[last] = wrong[last] + far(wrong[last] if "int" in str(wrong.dtype) else abs(wrong).max())
    return wrong


def far(size: Any) -> Any:
    """What to add to a number, so that it is wrong beyond any tolerance."""
    return FAR * (1 + abs(float(size))) if "int" not in str(getattr(size, "dtype", "")) else 1


def kind_of(path: Path) -> tuple[Any, ...]:
    """What a result is, whichever call it is of and whichever parameter's."""
    return len(path), tuple(part for part in path[1:] if not isinstance(part, str))


class SpoiledTimings:
    """Stands for the clock of each timing test, and counts what its verification misses."""

    def __init__(self, assignment: str, wanted: Sequence[str]) -> None:
        self.assignment = assignment
        self.wanted = wanted
        self.tests: dict[str, dict[str, Any]] = {}
        self.test: dict[str, Any] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave all other tests out."""
        items[:] = [item for item in items if item.name in self.wanted]

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Count for this test from now on."""
        self.test = {"results": 0, "missed": [], "ended": "passed"}
        self.tests[item.name] = self.test

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[None]:
        """Note what ended a test."""
        yield
        if call.excinfo:
            self.test["ended"] = repr(call.excinfo.value)

    def check_speed(
        self, prepare: Callable[[], speed_ratio.Try | None], *, sentence: str, **rules: Any
    ) -> None:
        """Verify one try as it is, and then with each result spoiled."""
        attempt = prepare()
        assert attempt is not None
        found = attempt.candidate()
        right = None if rules.get("part") else attempt.baseline()
        attempt.verify(found, right)
        assert not LOG.failures
        what = f"timed results of {self.assignment}"
        compared = [path for path in paths(found) if WITHOUT_WORK not in path]
        chosen = sampling.sample(what, compared, MOST, kind_of)
        self.test["results"] += len(chosen)
        for path in chosen:
            if not fails(attempt.verify, spoiled(found, path), right):
                self.test["missed"].append(f"{'.'.join(map(str, path))}: {sentence}")


def fails(verify: Callable[[Any, Any], None], found: Any, right: Any) -> bool:
    """Whether a verification fails, at once or at the test's end."""
    try:
        verify(found, right)
        return bool(LOG.failures)
    except Failure:
        return True
    finally:
        LOG.clear()


def main() -> None:
    """Run timing tests of an assignment on its reference."""
    name, *wanted = sys.argv[1:]
    plugin = SpoiledTimings(name, wanted)
    speed_ratio.check_speed = plugin.check_speed  # before the tests import it
    files = [ROOT / "tests" / name / file for file in (PUBLIC_FILE, HIDDEN_FILE)]
    run_graded_tests(files, plugin, "--impl=solutions", f"--salt={SALT}")
    print(json.dumps({"tests": plugin.tests, "sampled": sampling.TAKEN}))


if __name__ == "__main__":
    main()
