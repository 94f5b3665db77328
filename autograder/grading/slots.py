"""User ids for student code, one per grader that runs at the same time on this machine."""

import fcntl
import os
from pathlib import Path

from common.errors import CourseError

FIRST_UID = 61_000
COUNT = 64
FOLDER = Path("/run/conv2gpt-slots")


class Slot:
    """A uid that no other grader on this machine uses, until it is released. Root only."""

    def __init__(self) -> None:
        FOLDER.mkdir(mode=0o700, exist_ok=True)
        for number in range(COUNT):
            descriptor = os.open(FOLDER / str(number), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                continue
            self.descriptor = descriptor
            self.uid = FIRST_UID + number
            return
        raise CourseError(f"{COUNT} graders run on this machine already; wait for one to finish.")

    def release(self) -> None:
        """Let others have the uid."""
        os.close(self.descriptor)
