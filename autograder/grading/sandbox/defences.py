"""Names the defenses that hold here, and refuses to grade on an unsafe machine."""

from collections.abc import Mapping
from dataclasses import dataclass

from autograder.grading.sandbox import probe
from autograder.grading.sandbox.kernel import landlock
from autograder.grading.sandbox.kernel.cgroups import MEMORY, PIDS
from autograder.grading.sandbox.kernel.confinement_plan import Mechanisms
from autograder.grading.sandbox.kernel.home_folder import HOME_BYTES
from autograder.grading.sandbox.kernel.rlimits import PROCESSES
from common.assignment import Limits
from common.errors import CourseError

# What student code could do without each of the defences.
FILES, RESULTS = "tests and metadata can't be read", "results can't be written"
COSTS = {
    FILES: "it could look hidden inputs up, and read names and addresses",
    RESULTS: "it could write its own grade",
    "the submission can't be changed": "a test's run could replace the code that the next one sees",
    "no network": "it could send hidden inputs away, or ask others for answers",
    "no other programs": "it could use whatever is installed here",
    "no odd system calls": "holes in the kernel are nearer; shared memory outlives a test",
    "the grader can't be signalled": "it could kill the grader, whose result stays incomplete",
    "nothing outlives a test": "what it leaves running could disturb or help later tests",
    "no files elsewhere": "it could leave notes for later tests where all may write",
    "disk": "it could fill the disk",
    "memory": "it could take all memory, and the system might kill the grader",
    "processes": "it could fork without end, and the machine would stand still",
    "GPU": "it could use a GPU that its run didn't ask for",
}
FLOOR = (FILES, RESULTS)  # without these, a result means nothing


class Unprotected(CourseError):
    """A machine on which student code could read the tests or write its own result."""


@dataclass(frozen=True)
class Defence:
    """One thing that student code can't do here, and what prevents it."""

    name: str
    holds: bool
    means: str

    @property
    def floor(self) -> bool:
        """Whether grading refuses without it."""
        return self.name in FLOOR

    @property
    def cost(self) -> str:
        """What its absence means."""
        return COSTS[self.name]

    def __str__(self) -> str:
        return f"{self.name}: {self.means if self.holds else 'not protected'}"


@dataclass(frozen=True)
class Mechanism:
    """Something of the kernel's that defences are made of."""

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


def defences_in_force(found: Findings, limits: Limits) -> tuple[Defence, ...]:
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
    elsewhere = refused[probe.ELSEWHERE]
    known: dict[str, tuple[bool, list[str]]] = {
        FILES: (refused[probe.FILES], user + rules),
        RESULTS: (refused[probe.RESULTS], user + rules),
        "the submission can't be changed": (refused[probe.SUBMISSION], user + rules),
        "no network": (refused[probe.NETWORK], calls + network + rules * (abi >= 4)),
        "no other programs": (refused[probe.PROGRAMS], calls + rules),
        "no odd system calls": (refused[probe.CALLS], calls),
        "the grader can't be signalled": (refused[probe.SIGNALS], user + tree + rules * (abi >= 6)),
        "nothing outlives a test": (found.nothing_survived, tree or ["sweep"]),
        "no files elsewhere": (elsewhere or bool(user), rules if elsewhere else ["sweep"]),
        # A home that is only watched doesn't count: open files without a name are not seen there.
        "disk": (refused[probe.DISK] and had.homes_in_memory, [f"{HOME_BYTES // 2**20} MB"]),
        "memory": (refused[probe.MEMORY], [f"{limits.memory_mb} MB", *memory]),
        "processes": (refused[probe.PROCESS_COUNT], count),
    }
    if limits.gpu:
        known["GPU"] = (True, ["in reach, as asked"])
    elif found.has_gpu:
        known["GPU"] = (refused[probe.GPU], ["out of reach", *rules])
    return tuple(
        Defence(name, holds, ", ".join(means) or "file rights")
        for name, (holds, means) in known.items()
    )


def mechanisms(found: Findings) -> tuple[Mechanism, ...]:
    """What the kernel has given, and what is lost where it hasn't."""
    had, abi = found.had, landlock.version()
    filtered = "none, while the system call filter holds"
    return (
        Mechanism("uid of its own", found.uid is not None, "files rest on Landlock alone"),
        Mechanism("Landlock 1: files", abi >= 1, "files rest on the uid alone"),
        Mechanism("Landlock 4: TCP", abi >= 4, filtered),
        Mechanism("Landlock 6: signals", abi >= 6, "none, while the uid or the pids are its own"),
        Mechanism("system call filter", found.refused[probe.CALLS], "more of the kernel in reach"),
        Mechanism("pid namespace", had.pid_namespace, "leftovers are looked for and killed"),
        Mechanism("network namespace", had.network_namespace, filtered),
        Mechanism("IPC namespace", had.ipc_namespace, filtered),
        Mechanism("mount namespace", had.homes_in_memory, "disk use is watched, not bounded"),
        Mechanism("cgroup for memory", MEMORY in had.cgroups, "each process has its own limit"),
        Mechanism("cgroup for pids", PIDS in had.cgroups, "processes are counted by uid"),
    )


def check_floor(defences: tuple[Defence, ...], unsafe: bool) -> None:
    """Refuse to grade where student code could read the tests or write its own result."""
    if unsafe or all(defence.holds for defence in defences if defence.floor):
        return
    open_doors = "; ".join(defence.name for defence in defences if not defence.holds)
    raise Unprotected(
        f"This machine can't protect the grader (not true here: {open_doors}). "
        "Run as root, or on Linux 5.13 or later, with submissions and results where other users "
        "can't read them."
    )
