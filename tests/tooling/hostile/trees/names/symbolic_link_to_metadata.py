"""Submits links to the metadata, to a device that never ends and to the folder above.

As: attention.py
Earns: nothing
"""


def make(folder, honest):
    (folder / "attention.py").symlink_to("../submission_metadata.json")
    (folder / "attention_numpy.py").symlink_to("/dev/zero")
    (folder / "up").symlink_to("..")
