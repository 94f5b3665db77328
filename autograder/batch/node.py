"""What a Ray worker runs: it keeps a warm judge, and has it grade one submission for each task.

Sent to the workers as a whole, so that a node needs no checkout: it imports nothing of ours before
the assignment's zip, which carries the rest, is unpacked.
"""

import os
import sys
import tempfile
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

KEPT: dict[tuple[str, ...], Any] = {}  # the judge, by the zip's hash, its arguments and its GPU
DIED = b""


def grade_on_node(
    archive: bytes, fingerprint: str, arguments: tuple[str, ...], silence: float, question: bytes
) -> bytes:
    """A warm judge's answer; none if it died."""
    kind = (fingerprint, *arguments, os.environ.get("CUDA_VISIBLE_DEVICES", ""))
    if kind not in KEPT:
        let_go()
        KEPT[kind] = start(archive, arguments, silence)
    try:
        return KEPT[kind].exchange(question)
    except Exception:  # whatever it is, a new judge for the next attempt is the answer
        let_go()
        return DIED


def let_go() -> None:
    """End the judge that is kept, if there is one."""
    while KEPT:
        KEPT.popitem()[1].close()


def start(archive: bytes, arguments: tuple[str, ...], silence: float) -> Any:
    """A warm judge in the unpacked zip, which it removes when it ends."""
    source = Path(tempfile.mkdtemp(prefix="conv2gpt-node-")) / "source"
    with zipfile.ZipFile(BytesIO(archive)) as opened:
        opened.extractall(source)
    sys.path.insert(0, str(source))
    try:
        from autograder.grading.processes import ClassJudge
    finally:
        sys.path.remove(str(source))
    return ClassJudge(source, *arguments, "temporary", silence=silence)
