"""Tests of slots: how many a machine has, and which GPUs they use."""

import os

import pytest

from autograder.batch.engines import judge_settings, parallel_slots
from autograder.grading.sandbox.user_ids import COUNT
from tests.tooling.batch.pretended_engine import A1


@pytest.mark.parametrize(
    ("gpus", "seen"),
    (
        (0.5, ["4", "4", "6", "6"]),
        (0.4, ["4", "4", "6", "6"]),
        (1.0, ["4", "6"]),
        (2.0, ["4,6"]),
    ),
)
def test_slots_share_gpus_or_have_their_own(gpus, seen, monkeypatch):
    monkeypatch.setattr(parallel_slots, "available_megabytes", lambda: 10**9)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    monkeypatch.setattr(parallel_slots, "gpu_count", lambda: 2)
    monkeypatch.setattr(parallel_slots, "cores", lambda: 16)
    assert parallel_slots.slots_for(A1, 16, gpus) == len(seen)
    assert [parallel_slots.gpus_of(slot, gpus) for slot in range(1, len(seen) + 1)] == seen


def test_there_are_no_more_slots_than_uids_for_them(monkeypatch):
    monkeypatch.setattr(parallel_slots, "available_megabytes", lambda: 10**9)
    monkeypatch.setattr(os, "getuid", lambda: 0)
    monkeypatch.setattr(parallel_slots, "cores", lambda: 256)
    assert parallel_slots.slots_for(A1, 256, 0.0) == COUNT >= 128


def test_slots_fit_into_the_memory(monkeypatch):
    each = judge_settings.JUDGE_MB + A1.limits.memory_mb
    monkeypatch.setattr(parallel_slots, "available_megabytes", lambda: 3 * each + 5)
    monkeypatch.setattr(parallel_slots, "cores", lambda: 8)
    assert [parallel_slots.slots_for(A1, jobs, 0.0) for jobs in (1, 3, 8)] == [1, 3, 3]
    monkeypatch.setattr(parallel_slots, "available_megabytes", lambda: 10)
    assert parallel_slots.slots_for(A1, 8, 0.0) == 1


def test_there_are_no_more_slots_than_cores(monkeypatch):
    """Time limits follow a clock: with half a core, correct code would miss them."""
    monkeypatch.setattr(parallel_slots, "available_megabytes", lambda: 10**9)
    monkeypatch.setattr(parallel_slots, "cores", lambda: 4)
    assert [parallel_slots.slots_for(A1, jobs, 0.0) for jobs in (None, 3, 64)] == [4, 3, 4]
