"""Tests of memory by the kernel's count: of the student's process, and of nothing else."""

from common.testing.resident_memory import resident_peak

MEGABYTE = 2**20


def test_the_most_that_a_call_takes_is_seen(faces):
    with faces["isolated"].open("1.1") as student:
        for megabytes in (100, 50, 70):  # a peak ends with its call
            result, added = resident_peak(student, lambda size=megabytes: student.fill(size))
            assert result == megabytes << 17
            assert 0.9 * megabytes < added / MEGABYTE < megabytes + 20
        result, added = resident_peak(student, lambda: student.same(3))
        assert result == 3 and added < 10 * MEGABYTE


def test_memory_of_the_tests_own_process_does_not_count(faces):
    with faces["isolated"].open("1.1") as student:
        student.same(3)
        _, added = resident_peak(student, lambda: bytearray(50 * MEGABYTE))
        assert added < 10 * MEGABYTE


def test_in_the_tests_own_process_nothing_is_said(faces):
    with faces["direct"].open("1.1") as student:
        assert resident_peak(student, lambda: student.fill(50)) == (50 << 17, None)
