"""Submits honest work with the line ends of Windows, and of old Macs in a comment.

As: attention.py
Earns: 5.4
"""


def make(folder, honest):
    text = honest.replace("\n", "\r\n") + "# old\r# older\r\n"
    (folder / "attention.py").write_bytes(text.encode())
