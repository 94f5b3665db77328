"""Runs on Ray workers: unpacks the zip, keeps a warm judge, grades one submission per task.

Sent to the workers as a whole, so that a node needs no checkout: it imports nothing of ours before
the assignment's zip, which carries the rest, is unpacked.
"""

import os
import shutil
import stat
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

KEPT: dict[tuple[str, ...], Any] = {}  # the judge, by the zip's hash, its options and its GPU
STARTED = b"started:"  # no answer begins so
DIED = b"died:"  # and then the last line that it printed; no answer begins so


def grade_on_node(
    archive: bytes, fingerprint: str, options: str, reply_timeout: float, question: bytes
) -> Iterator[bytes]:
    """That this task no longer waits for a node; then a warm judge's answer, or that it died."""
    yield STARTED
    kind = (fingerprint, options, os.environ.get("CUDA_VISIBLE_DEVICES", ""))
    if kind not in KEPT:
        close_judge()
        KEPT[kind] = start(archive, fingerprint, options, reply_timeout)
    try:
        answer = KEPT[kind].exchange(question)
    except Exception:  # whatever it is, a new judge for the next attempt is the answer
        judge = KEPT[kind]
        close_judge()
        answer = DIED + judge.last_line().encode()
    yield answer


def close_judge() -> None:
    """End the judge that is kept, if there is one."""
    while KEPT:
        KEPT.popitem()[1].close()


def start(archive: bytes, fingerprint: str, options: str, reply_timeout: float) -> Any:
    """A warm judge in the unpacked zip."""
    source = unpacked(archive, fingerprint)
    sys.path.insert(0, str(source))
    try:
        from autograder.grading.warm.judge_client import JudgeClient
        from autograder.grading.warm.judge_messages import JudgeOptions
    finally:
        sys.path.remove(str(source))
    return JudgeClient(source, JudgeOptions.from_json(options), reply_timeout=reply_timeout)


def unpacked(archive: bytes, fingerprint: str) -> Path:
    """The zip, unpacked once on this node, where nobody else can read it."""
    home = own_folder()
    source = home / fingerprint
    if not source.is_dir():
        beside = Path(tempfile.mkdtemp(dir=home))
        with zipfile.ZipFile(BytesIO(archive)) as opened:
            opened.extractall(beside)
        try:
            beside.rename(source)
        except OSError:  # another worker was faster
            shutil.rmtree(beside)
    return source


def own_folder() -> Path:
    """A folder of ours on this node."""
    home = Path(tempfile.gettempdir()) / f"conv2gpt-node-{os.getuid()}"
    home.mkdir(mode=0o700, exist_ok=True)
    found = home.lstat()
    private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
    if found.st_uid != os.getuid() or not private:
        raise PermissionError(f"other users can access {home}")
    return home


def clean_up(fingerprint: str) -> None:
    """Leave no zip behind on this node."""
    close_judge()
    shutil.rmtree(own_folder() / fingerprint, ignore_errors=True)
