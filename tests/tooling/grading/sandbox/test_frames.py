"""Tests of frames: deadlines hold even if the other side doesn't read."""

import os
import resource
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from autograder.grading.sandbox.wire.frames import (
    ChannelClosed,
    ChannelTimeout,
    FrameReader,
    readable,
    send_frame,
    send_frame_until,
)


def test_a_child_that_does_not_read_is_too_slow_and_not_gone():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(0.05)
        with pytest.raises(ChannelTimeout):
            send_frame(ours, bytes(10_000_000))
        ours.settimeout(None)
        with pytest.raises(ChannelTimeout):
            send_frame_until(ours, bytes(10_000_000), time.monotonic() + 0.05)


def test_a_frame_larger_than_any_buffer_arrives_whole_and_the_socket_waits_as_before():
    ours, theirs = socket.socketpair()
    frame = os.urandom(10_000_000)
    with ours, theirs, ThreadPoolExecutor(1) as pool:
        received = pool.submit(FrameReader(theirs).wait)
        send_frame_until(ours, frame, time.monotonic() + 60)
        assert received.result() == frame
        assert ours.gettimeout() is None
        theirs.close()
        with pytest.raises(ChannelClosed):
            send_frame_until(ours, frame, time.monotonic() + 60)


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
