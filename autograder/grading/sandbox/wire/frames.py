"""Sends and receives length-prefixed frames over a socket, with deadline and size limit."""

import select
import socket
import struct
import time
from collections.abc import Iterable

MAX_FRAME = 256 * 1024 * 1024
NOTHING_SECONDS = 0.001
CHUNK = 1 << 16  # more would be mapped and unmapped for each answer, however short
HEADER = struct.Struct("<Q")


class ChannelClosed(Exception):
    """The other side is gone."""


class ChannelTimeout(Exception):
    """The other side didn't answer in time."""


class FrameTooLarge(Exception):
    """The other side sends more bytes than are allowed."""


def send_frame(sock: socket.socket, data: bytes) -> None:
    """Send one frame, within the socket's timeout if it has one."""
    send_all(sock, HEADER.pack(len(data)) + data)


def send_all(sock: socket.socket, data: bytes | memoryview) -> None:
    """Send these bytes, within the socket's timeout if it has one."""
    try:
        sock.sendall(data)
    except TimeoutError:
        raise ChannelTimeout from None
    except OSError:
        raise ChannelClosed from None


def send_frame_until(sock: socket.socket, data: bytes, deadline: float) -> None:
    """Send one frame by a socket that has no timeout; ChannelTimeout once the deadline has passed.

    A timeout costs two more system calls, so a socket gets one only while its buffer is full.
    """
    frame = HEADER.pack(len(data)) + data
    try:
        sent = sock.send(frame, socket.MSG_DONTWAIT)
    except BlockingIOError:
        sent = 0
    except OSError:
        raise ChannelClosed from None
    if sent < len(frame):
        sock.settimeout(seconds_left(deadline))
        send_all(sock, memoryview(frame)[sent:])
        sock.settimeout(None)


def receive_frame(sock: socket.socket, limit: int = MAX_FRAME) -> bytes:
    """Wait for one frame, for as long as it takes."""
    (length,) = HEADER.unpack(receive_exactly(sock, HEADER.size))
    if length > limit:
        raise FrameTooLarge
    return receive_exactly(sock, length)


def receive_exactly(sock: socket.socket, count: int) -> bytes:
    """That many bytes."""
    data = bytearray()
    while len(data) < count:
        chunk = sock.recv(min(count - len(data), 1 << 20))
        if not chunk:
            raise ChannelClosed
        data += chunk
    return bytes(data)


class FrameReader:
    """Reads frames from a socket piece by piece, so that other descriptors can be watched too."""

    def __init__(self, sock: socket.socket, limit: int = MAX_FRAME) -> None:
        self.sock = sock
        self.limit = limit
        self.data = bytearray()

    def wait(self) -> bytes:
        """The next frame, for as long as it takes."""
        while (frame := self.take()) is None:
            self.feed(wait=True)
        return frame

    def feed(self, wait: bool = False) -> None:
        """Read what is there now, if anything is: out-of-band data looks readable, and isn't."""
        try:
            chunk = self.sock.recv(CHUNK, 0 if wait else socket.MSG_DONTWAIT)
        except BlockingIOError:
            time.sleep(NOTHING_SECONDS)  # or a caller who polls again would spin
            return
        except OSError:
            chunk = b""
        if not chunk:
            raise ChannelClosed
        self.data += chunk
        if len(self.data) >= HEADER.size and HEADER.unpack_from(self.data)[0] > self.limit:
            raise FrameTooLarge

    def take(self) -> bytes | None:
        """The next whole frame, if it has arrived."""
        if len(self.data) < HEADER.size:
            return None
        (length,) = HEADER.unpack_from(self.data)
        if len(self.data) < HEADER.size + length:
            return None
        with memoryview(self.data) as view:
            frame = bytes(view[HEADER.size : HEADER.size + length])
        del self.data[: HEADER.size + length]
        return frame

    def nothing_waits(self) -> bool:
        """Whether the other side has said nothing that it wasn't asked for, and is still there."""
        if not self.data and readable([self.sock.fileno()], 0):
            self.feed()
        return not self.data


def readable(descriptors: Iterable[int], seconds: float) -> set[int]:
    """Which descriptors can be read, after waiting for one of them for some time at most.

    They are looked at in their order: what was written to a later one before the first became
    readable is seen with it.
    """
    poll = select.poll()  # select() knows no descriptor above 1023
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return {
        descriptor for descriptor, _ in poll.poll(max(0, int(1000 * seconds) + 1) if seconds else 0)
    }


def seconds_left(deadline: float) -> float:
    """The time until a deadline; ChannelTimeout once it has passed."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise ChannelTimeout
    return left
