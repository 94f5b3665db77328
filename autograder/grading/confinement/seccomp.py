"""seccomp: system calls that student code never needs answer "not permitted".

The filter is written as BPF and set with prctl, since libseccomp is not on every machine.
"""

import ctypes
import errno
import platform
import struct

from autograder.grading.confinement.kernel import PR_SET_SECCOMP, prctl

FILTER_MODE = 2
RETURN_ALLOW = 0x7FFF0000
RETURN_ERROR = 0x00050000 | errno.EPERM
RETURN_KILL = 0x80000000
LOAD, JUMP_IF_EQUAL, JUMP_IF_ABOVE, RETURN = 0x20, 0x15, 0x35, 0x06
SYSCALL_OFFSET, ARCHITECTURE_OFFSET = 0, 4
X32_BIT = 0x40000000

# name: (number on x86_64, number on aarch64)
DENIED = {
    "socket": (41, 198),
    "execve": (59, 221),
    "execveat": (322, 281),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "open_by_handle_at": (304, 265),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
}
ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}


def supported() -> bool:
    """Whether the numbers above are known for this machine's processor."""
    return platform.machine() in ARCHITECTURES


def program() -> bytes:
    """The filter, one instruction of 8 bytes after the other."""
    architecture, column = ARCHITECTURES[platform.machine()]
    numbers = sorted(entry[column] for entry in DENIED.values())

    def instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
        return struct.pack("=HBBI", code, if_true, if_false, value)

    lines = [
        instruction(LOAD, ARCHITECTURE_OFFSET),
        instruction(JUMP_IF_EQUAL, architecture, if_true=1),
        instruction(RETURN, RETURN_KILL),
        instruction(LOAD, SYSCALL_OFFSET),
        instruction(JUMP_IF_ABOVE, X32_BIT, if_true=len(numbers) + 1),
    ]
    for index, number in enumerate(numbers):
        lines.append(instruction(JUMP_IF_EQUAL, number, if_true=len(numbers) - index))
    lines += [instruction(RETURN, RETURN_ALLOW), instruction(RETURN, RETURN_ERROR)]
    return b"".join(lines)


def restrict() -> None:
    """Set the filter for this process and all that it starts. Needs no_new_privs."""
    code = ctypes.create_string_buffer(program())
    header = ctypes.create_string_buffer(
        struct.pack("@HP", (len(code) - 1) // 8, ctypes.addressof(code))
    )
    prctl(PR_SET_SECCOMP, FILTER_MODE, ctypes.c_void_p(ctypes.addressof(header)))
