"""Appends a batch's events to log.jsonl, one JSON object per line."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from common.visible_text import visible_json

LOG = "log.jsonl"


class Log:
    """Appends to a batch's log. A line is written in one piece, so a kill leaves no half of one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self.descriptor = os.open(folder / LOG, flags, 0o644)

    def add(self, event: str, **facts: Any) -> None:
        """Write down that something happened."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = visible_json(json.dumps({"time": now, "event": event, **facts}))
        os.write(self.descriptor, line.encode() + b"\n")

    def close(self) -> None:
        """No more events."""
        os.close(self.descriptor)
