"""Composes a synthetic class: groups of students, and what each group submits."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from autograder.batch.batch_records import Student
from autograder.classroom.damaged_submissions import damaged_work
from autograder.classroom.hostile_submissions import SLOW, attacks, hostile_work
from autograder.classroom.synthetic_students import invent_students
from autograder.classroom.synthetic_submissions import StudentWork, SubmissionMaker
from autograder.proving.hostile.hostile_corpus import Entry
from common.assignment import Assignment
from common.errors import CourseError

UNTOUCHED, DAMAGED, HOSTILE = "untouched", "damaged", "hostile"
# The percentage of each kind of submission.
SHARES = {
    "complete": 24,
    "one mistake": 24,
    "several mistakes": 18,
    "unfinished": 12,
    "unfinished with a mistake": 10,
    UNTOUCHED: 4,
    DAMAGED: 4,
    HOSTILE: 4,
}
IN_GROUPS = 0.12  # of the students
GROUP_SIZES = (2, 2, 3)
MOST_SLOW = 2  # attacks that last until they are stopped, in a class of any size


@dataclass(frozen=True)
class SyntheticSubmission:
    """One submission."""

    number: int
    students: tuple[Student, ...]
    created_at: str
    work: StudentWork


def make_class(
    assignment: Assignment,
    students: int,
    seed: int,
    without: tuple[str, ...] = (),
    gpu: bool = False,
) -> list[SyntheticSubmission]:
    """A class of this many students. The same arguments make the same class."""
    if students < 1:
        raise CourseError("--students must be at least 1.")
    shares = {kind: share for kind, share in SHARES.items() if kind not in without}
    if not shares:
        raise CourseError("--without leaves no kind of submission.")
    rng = random.Random(f"{assignment.name}/{students}/{seed}")
    groups = make_groups(invent_students(students, rng), rng)
    works = make_works(SubmissionMaker(assignment, gpu), len(groups), shares, rng)
    numbers = sorted(rng.sample(range(210_000_000, 230_000_000), len(groups)))
    times = sorted(rng.uniform(0, 6 * 24 * 3600) for _ in groups)
    return [
        SyntheticSubmission(number, group, export_time(seconds), with_own_last_line(work, number))
        for number, group, seconds, work in zip(numbers, groups, times, works, strict=True)
    ]


def make_groups(students: list[Student], rng: random.Random) -> list[tuple[Student, ...]]:
    """The groups that submit together: most students alone, some in groups of two or three."""
    groups: list[tuple[Student, ...]] = []
    together = int(len(students) * IN_GROUPS)
    while together >= min(GROUP_SIZES):
        size = min(rng.choice(GROUP_SIZES), together)
        groups.append(tuple(students.pop() for _ in range(size)))
        together -= size
    groups += [(student,) for student in students]
    rng.shuffle(groups)
    return groups


def make_works(
    maker: SubmissionMaker, count: int, shares: dict[str, int], rng: random.Random
) -> list[StudentWork]:
    """So many works, of all kinds as far as there is room, in no order."""
    by_kind: dict[str, Callable[[random.Random], StudentWork]] = {
        "complete": maker.complete,
        "one mistake": maker.one_mistake,
        "several mistakes": maker.several_mistakes,
        "unfinished": maker.unfinished,
        "unfinished with a mistake": maker.unfinished_with_mistake,
        UNTOUCHED: maker.untouched,
        DAMAGED: lambda rng: damaged_work(maker, rng),
    }
    kinds = divide(count, shares)
    entries = choose_attacks(attacks(maker.assignment), kinds.count(HOSTILE), rng)
    works = [
        hostile_work(maker, rng, entries.pop()) if kind == HOSTILE else by_kind[kind](rng)
        for kind in kinds
    ]
    rng.shuffle(works)
    as_it_is = (UNTOUCHED, DAMAGED, HOSTILE)
    return [work if work.kind in as_it_is else maker.with_lab(work, rng) for work in works]


def divide(count: int, shares: dict[str, int]) -> list[str]:
    """So many kinds, in these proportions; the first come before the last where room is short."""
    whole = sum(shares.values())
    kinds = [kind for kind, share in shares.items() for _ in range(max(1, count * share // whole))]
    kinds = kinds[:count] if len(kinds) > count else kinds
    rest = [kind for kind in shares if kind != HOSTILE] or [*shares]
    return kinds + [rest[index % len(rest)] for index in range(count - len(kinds))]


def choose_attacks(entries: list[Entry], count: int, rng: random.Random) -> list[Entry]:
    """So many attacks, of many kinds, but few that last until they are stopped."""
    quick = [entry for entry in entries if entry.row not in SLOW]
    slow = [entry for entry in entries if entry.row in SLOW]
    few = rng.sample(slow, min(MOST_SLOW, count // 5, len(slow)))
    rng.shuffle(quick)
    repeated = [quick[index % len(quick)] for index in range(count - len(few))]
    return [*few, *repeated]


def with_own_last_line(work: StudentWork, number: int) -> StudentWork:
    """The work with a unique last line: no two students submit the same bytes."""
    if work.kind in (DAMAGED, HOSTILE):
        return work
    line = f"\n# Submitted as {number}.\n".encode()
    files = {n: c + line if n.endswith(".py") else c for n, c in work.files.items()}
    return StudentWork(work.kind, work.made_of, files, work.truth)


def export_time(seconds: float) -> str:
    """A time in the week before the deadline, as exports spell it."""
    day, rest = divmod(int(seconds), 24 * 3600)
    return f"2026-10-{day + 5:02} {rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}.000000000 Z"
