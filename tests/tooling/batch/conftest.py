"""Fixtures of the batch tests."""

from types import SimpleNamespace

import pytest

from autograder.batch import batch_run, work_queue
from autograder.batch.batch_run import Order
from tests.tooling.batch.pretended_engine import A1, NAMES


@pytest.fixture
def order(tmp_path, monkeypatch) -> Order:
    """Three submissions, and a batch to come; without waiting between attempts, or for a zip."""
    monkeypatch.setattr(work_queue, "PAUSES", (0.01, 0.02, 0.03))
    (tmp_path / "grader.zip").write_bytes(b"a zip")
    built = SimpleNamespace(autograder=tmp_path / "grader.zip")
    monkeypatch.setattr(batch_run, "build", lambda assignment: built)
    for name in NAMES:
        (tmp_path / "class" / name).mkdir(parents=True)
        (tmp_path / "class" / name / "convolution.py").write_text(f"name = {name!r}\n")
    return Order(A1, tmp_path / "class", tmp_path / "out")
