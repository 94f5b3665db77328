"""Stand-ins do what the assignments ask that they stand for."""

import msgspec
import pytest

from common.assignment import ROOT, STANDINS, load_all, load_assignment
from common.direct import DirectFace
from common.plugin import FACE, run_graded_tests
from common.roster import TIMING

PACKAGES = sorted(folder.name for folder in STANDINS.glob("a*"))


class Outcomes:
    """Runs tests on a stand-in, and hears which failed."""

    def __init__(self, package: str) -> None:
        # What students may not use is what a stand-in is made of.
        assignment = msgspec.structs.replace(load_assignment(package), forbidden=())
        self.face = DirectFace(assignment, {package: STANDINS / package}, assignment.standins)
        self.passed: list[str] = []
        self.failed: dict[str, str] = {}

    def pytest_configure(self, config: pytest.Config) -> None:
        config.stash[FACE] = lambda assignment: self.face

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """How fast a stand-in is doesn't matter."""
        items[:] = [item for item in items if TIMING not in getattr(item.obj, "__tags__", ())]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed[report.nodeid] = str(report.longrepr)
        elif report.when == "call":
            self.passed.append(report.nodeid)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_stand_in_gets_every_point_of_its_assignment(package):
    outcomes = Outcomes(package)
    folder = ROOT / "tests" / package
    run_graded_tests([folder / "test_public.py", folder / "test_hidden.py"], outcomes)
    assert outcomes.failed == {}
    assert len(outcomes.passed) > 10


def test_every_prerequisite_has_a_stand_in():
    needed = {name for assignment in load_all() for name in assignment.prerequisites}
    assert needed <= set(PACKAGES)
