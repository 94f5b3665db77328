"""Blocks dangerous system calls with a seccomp BPF filter: network, exec, ptrace, mounts.

The filter is written here as BPF and set with prctl, not made by libseccomp (pyseccomp): that
library is not on every machine, and a list of numbers with three questions about arguments needs no
compiler. It denies what is named and allows the rest, since NumPy, PyTorch and the C library make
calls that differ from version to version. Files, signals and other processes are for Landlock, the
uid and the namespaces; this filter takes away the network, other programs, memory that outlives a
process, parts of the kernel where holes have been found, and what two submissions could talk by
through a file that both can only read: notifications, locks, futexes, pages in memory. Of files it
takes what Landlock leaves and a uid of its own would not: to change the modes, owners and times of
another's.
"""

import ctypes
import errno
import platform
import struct
from functools import cache
from typing import Any

from autograder.grading.sandbox.kernel.syscalls import PR_SET_PDEATHSIG, PR_SET_SECCOMP, prctl

FILTER_MODE = 2
RETURN_ALLOW = 0x7FFF0000
RETURN_ERROR = 0x00050000 | errno.EPERM
RETURN_AGAIN = 0x00050000 | errno.EAGAIN
RETURN_UNKNOWN = 0x00050000 | errno.ENOSYS
RETURN_KILL = 0x80000000
LOAD, RETURN = 0x20, 0x06
JUMP_IF_EQUAL, JUMP_IF_ABOVE, JUMP_IF_ANY_BIT = 0x15, 0x35, 0x45
SYSCALL_OFFSET, ARCHITECTURE_OFFSET, ARGUMENTS_OFFSET = 0, 4, 16
X32_BIT = 0x40000000
NEW_NAMESPACES = 0x7E020000  # the flags of clone that make namespaces
PROCESSORS = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}

# name: (number on x86_64, number on aarch64)
NETWORK = {
    "socket": (41, 198),
    # A pair of sockets is allowed, as a pipe is; these would give one of them an address.
    "bind": (49, 200),
    "connect": (42, 203),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
}
PROGRAMS = {
    "execve": (59, 221),
    "execveat": (322, 281),
}
OTHER_PROCESSES = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
}
# What would outlive a test, or hold memory that no limit counts.
SHARED_MEMORY = {
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "memfd_secret": (447, 447),
}
MEMORY_FILES = {
    "memfd_create": (319, 279),
}
# What a user may do to all files that are the user's. Where aarch64 has no such call, there stands
# the one that does its work.
ATTRIBUTES = {
    "chmod": (90, 53),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, 54),
    "lchown": (94, 54),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "utime": (132, 88),
    "utimes": (235, 88),
    "futimesat": (261, 88),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    "truncate": (76, 45),  # which Landlock knows from version 3 on
}
# What shows one process what another does with a file that both can read, or with the machine.
NEIGHBORS = {
    "inotify_init": (253, 26),
    "inotify_init1": (294, 26),
    "inotify_add_watch": (254, 27),
    "flock": (73, 32),
    # Which pages of a file are in memory: to remove them, bring them back, and ask.
    "fadvise64": (221, 223),
    "readahead": (187, 213),
    "preadv2": (327, 286),
    "pwritev2": (328, 287),
    "mincore": (27, 232),
    "cachestat": (451, 451),
    "sync": (162, 81),
    "syncfs": (306, 267),
    "io_setup": (206, 0),  # the machine has a fixed number of these
    "statmount": (457, 457),  # mounts are numbered as they are made
    "listmount": (458, 458),
    "futex_waitv": (449, 449),
    "futex_wait": (455, 455),
}
MACHINE_LOAD = {
    "sysinfo": (99, 179),
}
PLACES = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
}
KERNEL = {
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "syslog": (103, 116),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "lookup_dcookie": (212, 18),
    "vhangup": (153, 58),
}
DENIED = {
    **{**NETWORK, **PROGRAMS, **OTHER_PROCESSES, **SHARED_MEMORY},
    **{**NEIGHBORS, **PLACES, **KERNEL},
}
# Allowed with a GPU: what its drivers need.
DRIVERS = {**MEMORY_FILES, **MACHINE_LOAD}
CLONE, CLONE3, PRCTL, SENDTO = (56, 220), (435, 435), (157, 167), (44, 206)
ANY_BIT = 0xFFFFFFFF
FCNTL, FUTEX = (72, 25), (202, 98)
# Descriptors, their flags, pipes' sizes and seals. Not: locks, leases, notifications.
FCNTL_COMMANDS = (0, 1, 2, 3, 4, 1027, 1030, 1031, 1032, 1033, 1034)
# FUTEX_WAIT, FUTEX_WAIT_BITSET and FUTEX_WAIT_REQUEUE_PI at an address that processes share, by
# either clock: the kernel knows it by file and offset, so that another submission could end it.
SHARED_WAITS = (0, 9, 11, 0x100, 0x109, 0x10B)


def supported() -> bool:
    """Whether the numbers above are known for this machine's processor."""
    return platform.machine() in PROCESSORS


def number_of(name: str) -> int:
    """The number of a denied call on this machine."""
    return {**DENIED, **DRIVERS, **ATTRIBUTES}[name][PROCESSORS[platform.machine()][1]]


def program(drivers: bool = False, attributes: bool = True) -> bytes:
    """The filter, one instruction of 8 bytes after the other.

    drivers: whether what drivers of GPUs need is allowed. CUDA shares memory through memory files.
    attributes: whether a file's mode, owner and times may be changed. With a uid of its own, a
    child has no files but those that it has made.
    """
    architecture, column = PROCESSORS[platform.machine()]
    denied = {
        **DENIED,
        **({} if drivers else DRIVERS),
        **({} if attributes else ATTRIBUTES),
    }
    numbers = sorted({entry[column] for entry in denied.values()})

    def instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
        return struct.pack("=HBBI", code, if_true, if_false, value)

    def by_argument(call: int, argument: int, code: int, value: int) -> list[bytes]:
        """Deny a call by one of its arguments; allow it otherwise."""
        return [
            instruction(JUMP_IF_EQUAL, call, if_false=4),
            instruction(LOAD, ARGUMENTS_OFFSET + 8 * argument),
            instruction(code, value, if_false=1),
            instruction(RETURN, RETURN_ERROR),
            instruction(RETURN, RETURN_ALLOW),
        ]

    def by_values(
        call: int, argument: int, values: tuple[int, ...], among: int, otherwise: int
    ) -> list[bytes]:
        """Answer a call by whether one of its arguments is among some values."""
        count = len(values)
        return [
            instruction(JUMP_IF_EQUAL, call, if_false=count + 3),
            instruction(LOAD, ARGUMENTS_OFFSET + 8 * argument),
            *(
                instruction(JUMP_IF_EQUAL, value, if_true=count - index)
                for index, value in enumerate(values)
            ),
            instruction(RETURN, otherwise),
            instruction(RETURN, among),
        ]

    lines = [
        instruction(LOAD, ARCHITECTURE_OFFSET),
        instruction(JUMP_IF_EQUAL, architecture, if_true=1),
        instruction(RETURN, RETURN_KILL),
        instruction(LOAD, SYSCALL_OFFSET),
        instruction(JUMP_IF_ABOVE, X32_BIT, if_false=1),
        instruction(RETURN, RETURN_ERROR),
        *by_argument(CLONE[column], 0, JUMP_IF_ANY_BIT, NEW_NAMESPACES),
        # A child that unset this could outlive a fork server that is killed.
        *by_argument(PRCTL[column], 0, JUMP_IF_EQUAL, PR_SET_PDEATHSIG),
        # To the other end only: an address has a length.
        *by_argument(SENDTO[column], 5, JUMP_IF_ANY_BIT, ANY_BIT),
        *by_values(FCNTL[column], 1, FCNTL_COMMANDS, RETURN_ALLOW, RETURN_ERROR),
        # The C library then looks at once whether what it waits for has come, and asks again.
        *by_values(FUTEX[column], 1, SHARED_WAITS, RETURN_AGAIN, RETURN_ALLOW),
        # Its flags lie in memory, where a filter can't look; the C library then uses clone.
        instruction(JUMP_IF_EQUAL, CLONE3[column], if_false=1),
        instruction(RETURN, RETURN_UNKNOWN),
    ]
    for index, number in enumerate(numbers):
        lines.append(instruction(JUMP_IF_EQUAL, number, if_true=len(numbers) - index))
    lines += [instruction(RETURN, RETURN_ALLOW), instruction(RETURN, RETURN_ERROR)]
    return b"".join(lines)


@cache
def in_memory(drivers: bool, attributes: bool) -> tuple[ctypes.Array[Any], ctypes.Array[Any]]:
    """The header that prctl takes, and the filter that it points to: made once, for all forks."""
    code = ctypes.create_string_buffer(program(drivers, attributes))
    header = struct.pack("@HP", (len(code) - 1) // 8, ctypes.addressof(code))
    return ctypes.create_string_buffer(header), code


def restrict(drivers: bool, attributes: bool) -> None:
    """Set the filter for this process and all that it starts. Needs no_new_privs."""
    header, _ = in_memory(drivers, attributes)
    prctl(PR_SET_SECCOMP, FILTER_MODE, ctypes.c_void_p(ctypes.addressof(header)))
