"""Submits a zip whose names are damaged: no UTF-8, NUL bytes, endless.

As: convolution.py
Earns: nothing
"""

import zipfile


def make(folder, honest):
    place = folder / "submission.zip"
    with zipfile.ZipFile(place, "w") as archive:
        archive.writestr("work/convolution.py", honest)
        for name in ("x" * 60_000, "NULL", "\u202egnitfihs.py", "caf\u00e9.py"):
            archive.writestr(name, "raise SystemExit\n")
    data = place.read_bytes().replace(b"NULL", b"N\0LL")
    place.write_bytes(data.replace("caf\u00e9".encode(), b"caf\xff\xfe"))
    return place
