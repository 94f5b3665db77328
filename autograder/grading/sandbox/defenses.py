"""Names the defenses that hold here, and refuses to grade on an unsafe machine."""

from collections.abc import Mapping
from dataclasses import dataclass

from autograder.grading.sandbox import probe
from autograder.grading.sandbox.kernel import landlock
from autograder.grading.sandbox.kernel.cgroups import CPU, MEMORY, PIDS
from autograder.grading.sandbox.kernel.confinement_plan import Mechanisms
from autograder.grading.sandbox.kernel.home_folder import HOME_BYTES
from autograder.grading.sandbox.kernel.rlimits import PROCESSES
from common.assignment import Limits
from common.errors import CourseError

# What student code could do without each of the defenses.
FILES, RESULTS = "tests and metadata can't be read", "results can't be written"
COSTS = {
    FILES: "it could read hidden inputs, names and addresses",
    RESULTS: "it could write its own grade",
    "the submission can't be changed": "one test's run could replace the code of the next",
    "no network": "it could send hidden inputs out or ask others for answers",
    "no other programs": "it could run whatever is installed here",
    "dangerous system calls are blocked": "more of the kernel is exposed; shared memory outlives "
    "a test",
    "the grader can't be signaled": "it could kill the grader and leave the result incomplete",
    "nothing outlives a test": "processes that it leaves running could affect later tests",
    "no files elsewhere": "it could leave data for later tests in world-writable folders",
    "reading leaves no trace": "a later submission could see in access times what it read",
    "other processes are hidden": "it could count the processes of other submissions",
    "no messages through shared files": "submissions that run at the same time could exchange "
    "hidden inputs",
    "disk": "it could fill the disk",
    "memory": "it could use up all memory, and the system might kill the grader",
    "processes": "it could fork without limit and freeze the machine",
    "GPU": "it could use a GPU that its run didn't request",
}
# Without these, a result means nothing. What student code could then do, for the refusal.
REQUIRED = {FILES: "read tests and metadata", RESULTS: "write its own results"}


class Unprotected(CourseError):
    """A machine on which student code could read the tests or write its own result."""


@dataclass(frozen=True)
class Defense:
    """One thing that student code can't do here, and what prevents it."""

    name: str
    holds: bool
    means: str

    @property
    def required(self) -> bool:
        """Whether grading refuses without it."""
        return self.name in REQUIRED

    @property
    def cost(self) -> str:
        """What its absence means."""
        return COSTS[self.name]

    def __str__(self) -> str:
        return f"{self.name}: {self.means if self.holds else 'not protected'}"


@dataclass(frozen=True)
class Mechanism:
    """Something of the kernel's that defenses are made of."""

    name: str
    there: bool
    cost: str  # of its absence


@dataclass(frozen=True)
class Findings:
    """What was found out about this machine by trying."""

    refused: Mapping[str, bool]  # by the probe's keys
    nothing_survived: bool
    uid: int | None  # of children
    had: Mechanisms
    has_gpu: bool


def defenses_in_force(found: Findings, limits: Limits) -> tuple[Defense, ...]:
    """The list that stands in every result."""
    refused, had, abi = found.refused, found.had, landlock.version()
    user = ["own uid"] if found.uid is not None else []  # without its number: regrading repeats
    rules = [f"Landlock {abi}"] if abi else []
    calls = ["system call filter"] if refused[probe.CALLS] else []
    network = ["network namespace"] if had.network_namespace else []
    tree = ["pid namespace"] if had.pid_namespace else []
    memory = ["for all its processes" if MEMORY in had.cgroups else "for each process"]
    count = [f"{PROCESSES} by uid"]
    count += ["cgroup"] if PIDS in had.cgroups else []
    mounts = ["read-only mounts"] if had.read_only_mounts else []
    elsewhere = refused[probe.ELSEWHERE]
    known: dict[str, tuple[bool, list[str]]] = {
        FILES: (refused[probe.FILES], user + rules),
        RESULTS: (refused[probe.RESULTS], user + rules),
        "the submission can't be changed": (refused[probe.SUBMISSION], user + rules),
        "no network": (refused[probe.NETWORK], calls + network + rules * (abi >= 4)),
        "no other programs": (refused[probe.PROGRAMS], calls + rules),
        "dangerous system calls are blocked": (refused[probe.CALLS], calls),
        "the grader can't be signaled": (refused[probe.SIGNALS], user + tree + rules * (abi >= 6)),
        "nothing outlives a test": (found.nothing_survived, tree or ["sweep"]),
        "no files elsewhere": (elsewhere or bool(user), mounts + rules if elsewhere else ["sweep"]),
        "reading leaves no trace": (
            refused[probe.TRACES],
            mounts or ["the machine keeps no access times"],
        ),
        "other processes are hidden": (refused[probe.OTHERS], ["own /proc"]),
        "no messages through shared files": (refused[probe.MESSAGES], calls),
        # A home that is only watched doesn't count: open files without a name are not seen there.
        "disk": (refused[probe.DISK] and had.homes_in_memory, [f"{HOME_BYTES // 2**20} MB"]),
        "memory": (refused[probe.MEMORY], [f"{limits.memory_mb} MB", *memory]),
        "processes": (refused[probe.PROCESS_COUNT], count),
    }
    if limits.gpu:
        known["GPU"] = (True, ["accessible, as requested"])
    elif found.has_gpu:
        known["GPU"] = (refused[probe.GPU], ["not accessible", *rules])
    return tuple(
        Defense(name, holds, ", ".join(means) or "file permissions")
        for name, (holds, means) in known.items()
    )


def mechanisms(found: Findings) -> tuple[Mechanism, ...]:
    """What the kernel has given, and what is lost where it hasn't."""
    had, abi = found.had, landlock.version()
    filtered = "none while the system call filter is active"
    return (
        Mechanism("separate uid", found.uid is not None, "only Landlock protects files"),
        Mechanism("Landlock 1: files", abi >= 1, "only the uid protects files"),
        Mechanism("Landlock 4: TCP", abi >= 4, filtered),
        Mechanism("Landlock 6: signals", abi >= 6, "none while it has its own uid or pids"),
        Mechanism(
            "system call filter", found.refused[probe.CALLS], "more of the kernel is exposed"
        ),
        Mechanism("pid namespace", had.pid_namespace, "leftover processes are found and killed"),
        Mechanism("network namespace", had.network_namespace, filtered),
        Mechanism("IPC namespace", had.ipc_namespace, filtered),
        Mechanism("mount namespace", had.homes_in_memory, "disk use is monitored, not limited"),
        Mechanism("read-only mounts", had.read_only_mounts, "reading changes access times"),
        Mechanism("cgroup for memory", MEMORY in had.cgroups, "each process has its own limit"),
        Mechanism("cgroup for pids", PIDS in had.cgroups, "processes are counted by uid"),
        Mechanism("cgroup for cpu", CPU in had.cgroups, "processor time is summed now and then"),
    )


def check_required(defenses: tuple[Defense, ...], unsafe: bool) -> None:
    """Refuse to grade where student code could read the tests or write its own result."""
    if unsafe or all(defense.holds for defense in defenses if defense.required):
        return
    missing = [defense.name for defense in defenses if not defense.holds]
    possible = " and ".join(REQUIRED[name] for name in missing if name in REQUIRED)
    raise Unprotected(
        f"Refusing to grade: on this machine student code could {possible} "
        f"(not ensured: {'; '.join(missing)}). Run as root or on Linux 5.13 or later, and keep "
        "submissions and results where other users can't read them."
    )
