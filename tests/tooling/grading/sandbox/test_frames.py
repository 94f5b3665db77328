"""Frames: who doesn't read is waited for no longer than is allowed, on any descriptor."""

import os
import resource
import socket

import pytest

from autograder.grading.sandbox.wire.frames import ChannelTimeout, readable, send_frame


def test_a_child_that_does_not_read_is_too_slow_and_not_gone():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(0.05)
        with pytest.raises(ChannelTimeout):
            send_frame(ours, bytes(10_000_000))


def test_descriptors_above_1023_can_be_waited_for():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    reading, writing = os.pipe()
    high = os.dup2(reading, 2000)
    try:
        assert readable([high], 0) == set()
        os.write(writing, b"x")
        assert readable([high], 1) == {high}
    finally:
        for descriptor in (reading, writing, high):
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
