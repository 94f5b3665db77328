"""Tests of what a machine offers for grading, and a container on it."""

import os
from pathlib import Path

import pytest

from autograder.batch.engines.machine_resources import available_megabytes, cores

MANY = 64
GB = 2**30


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with many cores and 100 GB; a function that gives it control groups."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(MANY)))
    (tmp_path / "meminfo").write_text("MemTotal: 1 kB\nMemAvailable: 104857600 kB\n")

    def with_groups(version: int, files: dict[str, str]) -> Path:
        proc, root = tmp_path / "proc", tmp_path / "cgroup"
        proc.mkdir()
        kinds = ["cgroup2"] if version == 2 else ["cpu", "memory"]
        mounts, lines = [], []
        for place, kind in enumerate(kinds):
            folder = root if version == 2 else root / kind
            (folder / "job" / "step").mkdir(parents=True)
            for inside in (folder, folder / "job", folder / "job" / "step"):
                (inside / "cgroup.procs").touch()
                (inside / "cgroup.controllers").write_text("cpu memory")
            fstype, options = ("cgroup2", "rw") if version == 2 else ("cgroup", f"rw,{kind}")
            mounts.append(f"3{place} 1 0:1 / {folder} rw - {fstype} {fstype} {options}")
            lines.append(f"{place}:{'' if version == 2 else kind}:/job/step")
        (proc / "mountinfo").write_text("\n".join(mounts))
        (proc / "cgroup").write_text("\n".join(lines))
        for name, content in files.items():
            (root / name).write_text(content)
        return proc

    return with_groups, tmp_path / "meminfo"


def test_without_bounds_all_of_the_machine_is_there(machine, tmp_path):
    with_groups, meminfo = machine
    proc = with_groups(2, {"job/cpu.max": "max 100000", "job/memory.max": "max"})
    assert (cores(proc), available_megabytes(meminfo, proc)) == (MANY, 102400)
    assert (cores(tmp_path), available_megabytes(meminfo, tmp_path)) == (MANY, 102400)


def test_the_bounds_of_a_container_count_wherever_they_lie(machine):
    with_groups, meminfo = machine
    proc = with_groups(
        2,
        {
            "job/cpu.max": "150000 100000",
            "job/step/cpu.max": "400000 100000",
            "job/memory.max": str(8 * GB),
            "job/memory.current": str(5 * GB),
            "job/memory.stat": f"anon 1\ninactive_file {GB}\n",
            "cpu.max": "max",
            "job/step/memory.max": "max",
            "job/step/memory.current": str(GB),
        },
    )
    assert (cores(proc), available_megabytes(meminfo, proc)) == (2, 4096)


def test_so_do_those_of_older_control_groups(machine):
    with_groups, meminfo = machine
    proc = with_groups(
        1,
        {
            "cpu/cpu.cfs_quota_us": "-1",
            "cpu/cpu.cfs_period_us": "100000",
            "cpu/job/cpu.cfs_quota_us": "300000",
            "cpu/job/cpu.cfs_period_us": "100000",
            "memory/memory.limit_in_bytes": "9223372036854771712",
            "memory/memory.usage_in_bytes": str(GB),
            "memory/job/step/memory.limit_in_bytes": str(6 * GB),
            "memory/job/step/memory.usage_in_bytes": str(2 * GB),
            "memory/job/step/memory.stat": "inactive_file 0\ntotal_inactive_file 1048576\n",
        },
    )
    assert (cores(proc), available_megabytes(meminfo, proc)) == (3, 4097)


def test_there_is_one_core_at_least_and_no_memory_below_nothing(machine):
    with_groups, meminfo = machine
    proc = with_groups(
        2,
        {
            "job/cpu.max": "1000 100000",
            "job/memory.max": str(GB),
            "job/memory.current": str(2 * GB),
        },
    )
    assert (cores(proc), available_megabytes(meminfo, proc)) == (1, 0)
