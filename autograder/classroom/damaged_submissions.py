"""Makes damaged submissions for a synthetic class, with their true scores."""

import random
from collections.abc import Callable
from dataclasses import replace

from autograder.classroom.synthetic_submissions import StudentWork, SubmissionMaker
from autograder.classroom.true_scores import Truth
from autograder.proving.right_versions import reference
from common.assignment import ROOT

TOO_LARGE = 1024 * 1024 + 1


def damaged_work(maker: SubmissionMaker, rng: random.Random) -> StudentWork:
    """A submission that was damaged, or nearly so."""
    name, damage = rng.choice(sorted(DAMAGES.items()))
    return replace(damage(maker, rng), kind="damaged", made_of=(name,))


def cut_off(maker: SubmissionMaker, rng: random.Random) -> StudentWork:
    """A file that ends in the middle of a line, as after an upload that broke off."""
    files = reference(maker.assignment)
    name = rng.choice(sorted(files))
    kept = files[name][: files[name].index(b"# END SOLUTION")]
    files[name] = kept + b'    broken = "'
    return StudentWork("", (), files, without_file(maker, name))


def not_python(maker: SubmissionMaker, rng: random.Random) -> StudentWork:
    """A file of bytes that are not text."""
    files = reference(maker.assignment)
    name = rng.choice(sorted(files))
    files[name] = b"\x00\xff" + rng.randbytes(2000)
    return StudentWork("", (), files, without_file(maker, name))


def too_large(maker: SubmissionMaker, rng: random.Random) -> StudentWork:
    """A file that is larger than what is taken."""
    files = reference(maker.assignment)
    name = rng.choice(sorted(files))
    files[name] += b"#" * TOO_LARGE
    return StudentWork("", (), files, without_file(maker, name))


def nothing_there(maker: SubmissionMaker, rng: random.Random) -> StudentWork:
    """A folder without a file of the assignment."""
    return StudentWork("", (), {"notes.txt": b"I will hand in later.\n"}, maker.scores.nothing())


def other_names(maker: SubmissionMaker, rng: random.Random) -> StudentWork:
    """Correct work under the names that a browser gives to second downloads. It counts."""
    files = reference(maker.assignment)
    renamed = {name.replace(".py", " (1).py"): content for name, content in files.items()}
    return StudentWork("", (), renamed, maker.whole)


def in_a_folder(maker: SubmissionMaker, rng: random.Random) -> StudentWork:
    """Correct work in a nested folder, next to what macOS leaves there. It counts."""
    folder = f"work/assignments/{maker.assignment.name}"
    files = {f"{folder}/{n}": content for n, content in reference(maker.assignment).items()}
    return StudentWork("", (), {".DS_Store": b"\0\0\0\1Bud1", **files}, maker.whole)


DAMAGES: dict[str, Callable[[SubmissionMaker, random.Random], StudentWork]] = {
    "cut off": cut_off,
    "not Python": not_python,
    "too large": too_large,
    "nothing there": nothing_there,
    "other names": other_names,
    "in a folder": in_a_folder,
}


def without_file(maker: SubmissionMaker, name: str) -> Truth:
    """The truth of right work without one of its files: the others may need it, or not."""
    whole = maker.whole
    source = (ROOT / "solutions" / maker.assignment.name / name).read_text("utf-8")
    lost = {
        entry.number
        for entry in maker.written
        if any(f"def {f}(" in source or f"class {f}" in source for f in entry.functions)
    }
    highest = {n: 0.0 if n in lost else points for n, points in whole.highest.items()}
    return maker.scores.at_most(Truth(highest, highest))
