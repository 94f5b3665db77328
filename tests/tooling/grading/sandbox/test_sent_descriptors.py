"""Tests that the judge takes in no descriptor that comes with a reply."""

import os

import numpy as np
import pytest

from tests.tooling.grading_fixtures import both_faces
from tests.tooling.weakened_sandbox import NO_FILTER, weakened

CODE = b"""
import array, socket, struct, sys

sent = []


def same(x):
    return x


def send_descriptors(count):
    '''Sends so many descriptors with each reply from now on.'''
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [1] * count))

    def send_frame(sock, data):
        frame = struct.pack("<Q", len(data)) + data
        sent.append(sock.sendmsg([frame], [rights]) == len(frame))

    sys.modules["autograder.grading.sandbox.child"].send_frame = send_frame


def replies_sent():
    return len(sent), all(sent)
"""


@pytest.mark.parametrize("count", [0, 200])
def test_descriptors_that_come_with_replies_are_dropped(tmp_path, count):
    """The filter allows no child to send one. Without it, they don't add up in the judge."""
    before = len(os.listdir("/proc/self/fd"))
    with (
        weakened(tmp_path / "weak", NO_FILTER),
        both_faces(tmp_path / "package", CODE) as faces,
    ):
        with faces["isolated"].open("1.1") as student:
            opened = len(os.listdir("/proc/self/fd"))
            student.send_descriptors(count)
            for _ in range(5):
                assert np.array_equal(student.same(np.ones(3)), np.ones(3))
            replies, whole = student.replies_sent()
            assert replies > 5 and whole
            assert len(os.listdir("/proc/self/fd")) == opened
        with faces["isolated"].open("1.1") as student:
            assert student.same(np.ones(3)).sum() == 3
    assert len(os.listdir("/proc/self/fd")) == before
