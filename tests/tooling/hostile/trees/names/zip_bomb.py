"""Submits a zip of 300 KB that unpacks to 300 MB, and zips within zips.

As: convolution.py
Earns: nothing
"""

import io
import zipfile


def make(folder, honest):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb", bytes(30 << 20))
    place = folder / "submission.zip"
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("convolution.py", "w") as stream:
            for _ in range(300):
                stream.write(bytes(1 << 20))
        for number in range(100):
            archive.writestr(f"{number}.zip", inner.getvalue())
    return place
