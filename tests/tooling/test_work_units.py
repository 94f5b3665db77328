"""Tests of how `make test` distributes tests to workers."""

from common.assignment import ROOT
from tests.tooling.conftest import work_unit
from tests.tooling.scratch_copies import python

PLUGIN = """
import json, os
from pathlib import Path

def pytest_runtest_logreport(report):
    if report.when == "call" and "PYTEST_XDIST_WORKER" in os.environ:
        file = Path(os.environ["SEEN"]) / os.environ["PYTEST_XDIST_WORKER"]
        with file.open("a") as out:
            out.write(report.nodeid.partition("::")[0] + chr(10))
"""
FILES = [f"tests/tooling/common/test_{name}.py" for name in ("visible_text", "student_text")]


def test_a_file_s_tests_stay_together_but_those_of_different_ledgers():
    assert work_unit("tests/a/test_x.py::test_one[a]") == work_unit("tests/a/test_x.py::test_two")
    assert work_unit("tests/a/test_x.py::test_one") != work_unit("tests/b/test_x.py::test_one")
    ledgers = "tests/tooling/proving/test_committed_ledgers.py::test_it"
    assert len({work_unit(f"{ledgers}[{end}]") for end in ("a1", "a2", "edited")}) == 3
    hostile = "tests/tooling/proving/hostile/test_hostile_corpus.py::test_it[x]"
    assert work_unit(hostile) == work_unit("tests/tooling/benchmarks/test_other_graders.py::test_y")


def test_two_workers_get_whole_files(tmp_path):
    (tmp_path / "noted_workers.py").write_text(PLUGIN)
    seen = tmp_path / "seen"
    seen.mkdir()
    finished = python(
        *("-m", "pytest", "-q", "-p", "noted_workers", "-p", "xdist", "-n", "2"),
        *("--dist", "loadscope", "--no-loadscope-reorder", "-o", "python_files=test_*.py", *FILES),
        cwd=ROOT,
        env={"PYTHONPATH": str(tmp_path), "SEEN": str(seen)},
    )
    assert finished.returncode == 0, finished.stdout
    files = [{*file.read_text().split()} for file in seen.iterdir()]
    assert sorted(map(len, files)) == [1, 1] and files[0] | files[1] == {*FILES}
