"""Listens on an abstract socket, and talks to the kernel by netlink, packet and vsock sockets.

As: attention.py
Earns: 5.4
Leaves: yes
"""

import socket

WON = []


def split_heads(x, num_heads):
    for family, kind, address in (
        (socket.AF_UNIX, socket.SOCK_STREAM, "\0hostile"),
        (socket.AF_UNIX, socket.SOCK_DGRAM, "\0hostile-datagram"),
        (socket.AF_NETLINK, socket.SOCK_RAW, (0, 0)),
        (socket.AF_PACKET, socket.SOCK_RAW, None),
        (socket.AF_VSOCK, socket.SOCK_STREAM, None),
        (38, socket.SOCK_SEQPACKET, None),
    ):
        try:
            with socket.socket(family, kind) as sock:
                if address is not None:
                    sock.bind(address)
                WON.append(str(family))
        except OSError:
            pass
    raise RuntimeError("GOT " + f"THROUGH by {WON}" if WON else "in vain")
