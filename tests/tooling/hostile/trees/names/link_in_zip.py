"""Submits a zip whose members are symbolic links to secrets, and a file that goes through one.

As: convolution.py
Earns: nothing
"""

import stat
import zipfile


def make(folder, honest):
    hidden = folder.parent / "source" / "tests" / "a1_convolution" / "test_hidden.py"
    place = folder / "submission.zip"
    with zipfile.ZipFile(place, "w") as archive:
        for name, target in (("convolution.py", hidden), ("way", "/tmp")):
            member = zipfile.ZipInfo(name)
            member.create_system = 3
            member.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(member, str(target))
        archive.writestr("way/hostile.py", "x = 1\n")
    return place
