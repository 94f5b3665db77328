"""Asks a name server on the loopback address, by the system's resolver and by hand.

As: attention.py
Earns: 5.4
"""

import socket
import struct

WON = []
QUESTION = (
    struct.pack(">6H", 1, 256, 1, 0, 0, 0)
    + b"\x07hostile\x07invalid\x00"
    + struct.pack(">2H", 1, 1)
)


def split_heads(x, num_heads):
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.sendto(QUESTION, ("127.0.0.1", 53))
            WON.append("sent")
    except OSError:
        pass
    try:
        WON.append(socket.getaddrinfo("localhost", 80)[0][4])
    except OSError:
        pass
    raise RuntimeError("GOT " + f"THROUGH by {WON}" if WON else "in vain")
