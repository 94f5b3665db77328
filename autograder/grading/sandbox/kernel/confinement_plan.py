"""Messages between judge and fork server: what a child may use, what the kernel provides."""

import msgspec

from common.assignment import Forbidden, Limits, Record
from common.exercise_needs import Replacement


class Plan(Record, frozen=True):
    """Everything that decides how a child is confined. It holds no secret."""

    package: str  # "a1_convolution"
    modules: list[str]
    packages: dict[str, str]  # where `import assignments.X` finds X
    standins: list[str]  # modules in its memory that replace earlier assignments
    asked_standins: dict[str, list[str]]  # those of another process, and their functions
    home: str  # the only folder it may write to
    limits: Limits
    forbidden: list[Forbidden]
    uid: int | None
    # Stand-ins for functions of the submission itself.
    replacements: list[Replacement] = msgspec.field(default_factory=list)
    replaced_apart: bool = False  # whether those run in another process
    serves_standins: bool = False  # whether it answers calls of its stand-ins, and that is all


class ServerPlan(Record, frozen=True):
    """Everything that decides how the fork server is started."""

    libraries: list[str]
    data: list[str]  # of common/data, to be held in memory
    forbidden: list[Forbidden]
    folder: str  # the sandbox's own
    common: str  # where children find common/
    uid: int | None  # of its children
    memory_mb: int
    first: bool  # whether it ends what earlier servers have left; others may have children by then


class Mechanisms(Record, frozen=True):
    """What the kernel has let the fork server do, as reported to the judge once it is ready."""

    network_namespace: bool
    ipc_namespace: bool
    pid_namespace: bool
    homes_in_memory: bool
    read_only_mounts: bool
    cgroups: dict[str, str]  # the folder of each control group that was joined


class Attempts(Record, frozen=True):
    """What a probe tries in vain, if the defenses hold."""

    read: list[str]
    write_into: list[str]
    change: list[str]  # folders of the submission
    connect_to: int  # a port of this machine
    abstract: str  # the name of an abstract socket
    signal: int  # the judge's process
    memory_mb: int
    unread: str  # a file that may be read, and has not been for long
    devices: list[str]  # of GPUs, when none was asked for
