"""Submits a zip of 100,000 files, with the one that counts at the end.

As: convolution.py
Earns: nothing
"""

import struct

COUNT = 100_000


def make(folder, honest):
    """Written by hand: zipfile would take longer than the grading."""
    body, listing = bytearray(), bytearray()
    names = [b"f/%d" % number for number in range(COUNT)] + [b"convolution.py"]
    for name in names:
        head = struct.pack("<HHHHHIIIHH", 20, 0, 0, 0, 33, 0, 0, 0, len(name), 0)
        listing += b"PK\x01\x02" + struct.pack("<H", 20) + head
        listing += struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + name
        body += b"PK\x03\x04" + head + name
    end = struct.pack("<HHHHIIH", 0, 0, 0xFFFF, 0xFFFF, len(listing), len(body), 0)
    place = folder / "submission.zip"
    place.write_bytes(body + listing + b"PK\x05\x06" + end)
    return place
