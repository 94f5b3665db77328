"""Process 1 of a pid namespace: runs a command, and reports what it left running.

Run as `python namespace_init.py SECONDS COMMAND...` in a pid namespace with a /proc of its own,
where it is process 1: when it ends, so does everything in there. It needs nothing but Python.
"""

import json
import os
import signal
import subprocess
import sys
import time

SETTLE = 1.5  # seconds for a process that was left behind to show what it is up to


def others() -> list[int]:
    """All processes but this one."""
    return [
        int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()
    ]


def main() -> None:
    seconds, command = float(sys.argv[1]), sys.argv[2:]
    if os.getpid() != 1:
        sys.exit("not in a pid namespace")
    process = subprocess.Popen(command, start_new_session=True)
    end, timed_out = time.monotonic() + seconds, False
    while process.poll() is None:
        if time.monotonic() > end:
            timed_out = True
            break
        time.sleep(0.02)
    left = others() if not timed_out else []
    if left:
        time.sleep(SETTLE)
    for pid in others():
        os.kill(pid, signal.SIGKILL)
    print("\n" + json.dumps({"timed_out": timed_out, "left": len(left)}))


if __name__ == "__main__":
    main()
