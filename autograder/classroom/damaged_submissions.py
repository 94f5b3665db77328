"""Makes damaged and hostile submissions for a synthetic class."""

import random
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from autograder.classroom.synthetic_submissions import Work, Workshop
from autograder.classroom.true_scores import Truth
from autograder.proving.hostile.hostile_corpus import Entry, read_corpus
from autograder.proving.mistakes import reference
from common.assignment import ROOT, Assignment

TOO_LARGE = 1024 * 1024 + 1
# These kinds of attack work in any file that is imported; others need the functions they replace.
ANYWHERE = (
    *("environment", "inspection", "network", "patching", "reading", "results"),
    *("run_autograder", "survivors"),
)
# Attacks that last until they are stopped: a minute or more each.
SLOW = ("bombs", "waiting")


def damaged(workshop: Workshop, rng: random.Random) -> Work:
    """Work that did not survive being handed in, or nearly not."""
    name, damage = rng.choice(sorted(DAMAGES.items()))
    return replace(damage(workshop, rng), kind="damaged", made_of=(name,))


def cut_off(workshop: Workshop, rng: random.Random) -> Work:
    """A file that ends in the middle of a line, as after an upload that broke off."""
    files = reference(workshop.assignment)
    name = rng.choice(sorted(files))
    kept = files[name][: files[name].index(b"# END SOLUTION")]
    files[name] = kept + b'    broken = "'
    return Work("", (), files, without_file(workshop, name))


def not_python(workshop: Workshop, rng: random.Random) -> Work:
    """A file of bytes that are no text."""
    files = reference(workshop.assignment)
    name = rng.choice(sorted(files))
    files[name] = b"\x00\xff" + rng.randbytes(2000)
    return Work("", (), files, without_file(workshop, name))


def too_large(workshop: Workshop, rng: random.Random) -> Work:
    """A file that is larger than what is taken."""
    files = reference(workshop.assignment)
    name = rng.choice(sorted(files))
    files[name] += b"#" * TOO_LARGE
    return Work("", (), files, without_file(workshop, name))


def nothing_there(workshop: Workshop, rng: random.Random) -> Work:
    """A folder without a file of the assignment."""
    return Work("", (), {"notes.txt": b"I will hand in later.\n"}, workshop.scale.nothing())


def other_names(workshop: Workshop, rng: random.Random) -> Work:
    """Right work under the names that a browser gives to second downloads."""
    files = reference(workshop.assignment)
    renamed = {name.replace(".py", " (1).py"): content for name, content in files.items()}
    return Work("", (), renamed, workshop.scale.nothing())


def in_a_folder(workshop: Workshop, rng: random.Random) -> Work:
    """Right work in a folder within the folder, beside what a Mac leaves there. It counts."""
    place = f"work/assignments/{workshop.assignment.name}"
    files = {f"{place}/{n}": content for n, content in reference(workshop.assignment).items()}
    return Work("", (), {".DS_Store": b"\0\0\0\1Bud1", **files}, workshop.whole)


DAMAGES: dict[str, Callable[[Workshop, random.Random], Work]] = {
    "cut off": cut_off,
    "not Python": not_python,
    "too large": too_large,
    "nothing there": nothing_there,
    "other names": other_names,
    "in a folder": in_a_folder,
}


def without_file(workshop: Workshop, name: str) -> Truth:
    """The truth of right work without one of its files: the others may need it, or not."""
    whole = workshop.whole
    source = (ROOT / "solutions" / workshop.assignment.name / name).read_text("utf-8")
    lost = {
        entry.number
        for entry in workshop.written
        if any(f"def {f}(" in source or f"class {f}" in source for f in entry.functions)
    }
    highest = {n: 0.0 if n in lost else points for n, points in whole.highest.items()}
    return workshop.scale.at_most(Truth(highest, highest))


def attacks(assignment: Assignment) -> list[Entry]:
    """The attacks that can be handed in for an assignment in an export, where zips are unpacked.

    Not those that earn single tests: they are named out of the few that the corpus is graded by,
    and what such an attack earns of the rest is not known.
    """
    entries = [entry for entry in read_corpus() if not entry.is_tree and entry.earns_exercises]
    own = [entry for entry in entries if entry.stands_for in assignment.files]
    return own or [entry for entry in entries if entry.row in ANYWHERE]


def hostile(workshop: Workshop, rng: random.Random, entry: Entry) -> Work:
    """An attack, with the honest work that it comes with."""
    if entry.stands_for not in workshop.assignment.files:
        return elsewhere(workshop, rng, entry)
    with tempfile.TemporaryDirectory(prefix="conv2gpt-class-") as scratch:
        entry.lay_out(Path(scratch), entry.honest_parts())
        files = {file.name: file.read_bytes() for file in sorted(Path(scratch).iterdir())}
    truth = workshop.scale.passed(entry.earned_tests)
    return Work("hostile", (entry.name,), files, truth)


def elsewhere(workshop: Workshop, rng: random.Random, entry: Entry) -> Work:
    """An attack that was written for another assignment, in unfinished work for this one.

    Whether the attack spoils that work is not known: it gains nothing.
    """
    work = workshop.unfinished(rng)
    name = workshop.assignment.files[0]
    attack = entry.file.read_text("utf-8")
    files = work.files | {name: f"{attack}\n\n".encode() + work.files[name]}
    made_of = (entry.name, *work.made_of)
    return Work("hostile", made_of, files, workshop.scale.at_most(work.truth))
