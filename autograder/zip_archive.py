"""Writes reproducible zips, and unpacks our own."""

import stat
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

from common.atomic_write import write_atomically

DATE = (1980, 1, 1, 0, 0, 0)  # the earliest date that a zip can store


def zip_bytes(members: Mapping[str, bytes]) -> bytes:
    """The members as a zip. A script, known by its first two bytes, may be executed."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(members):
            member = zipfile.ZipInfo(name, DATE)
            member.create_system = 3  # Unix, wherever this runs
            mode = 0o755 if members[name].startswith(b"#!") else 0o644
            member.external_attr = (stat.S_IFREG | mode) << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, members[name])
    return buffer.getvalue()


def write_if_changed(file: Path, content: bytes) -> bool:
    """Put content into a file in one step; whether that changed anything."""
    if file.is_file() and file.read_bytes() == content:
        return False
    write_atomically(file, content)
    return True


def unpack(archive: Path, folder: Path) -> None:
    """Unpack one of our own zips, with the modes of its files."""
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            target = Path(opened.extract(member, folder))
            target.chmod(member.external_attr >> 16 & 0o777)
