"""Reserves a user id (uid) for student code: one per concurrent grader on this machine."""

import fcntl
import os
from pathlib import Path

from common.errors import CourseError

FIRST_UID = 61_000
COUNT = 184  # up to 61,183: those above belong to systemd's services
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
        raise CourseError(f"{COUNT} graders are already running here; wait for one to finish.")

    def usable(self, folder: Path) -> bool:
        """Whether files can be given to the uid: not where root is root of few uids only."""
        try:
            os.chown(folder, self.uid, self.uid)
            os.chown(folder, 0, 0)
        except OSError:
            return False
        return True

    def release(self) -> None:
        """Let others have the uid."""
        os.close(self.descriptor)


def free_slot(folder: Path) -> Slot | None:
    """A uid for student code, where we are root and may give files to others."""
    if os.getuid() != 0:
        return None
    try:
        slot = Slot()
    except OSError:  # a /run that can't be written to
        return None
    if slot.usable(folder):
        return slot
    slot.release()
    return None
