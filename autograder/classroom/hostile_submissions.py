"""Makes submissions that attack the grader, with their true scores."""

import random
import tempfile
from pathlib import Path

from autograder.classroom.synthetic_submissions import StudentWork, SubmissionMaker
from autograder.proving.hostile.hostile_corpus import Entry, read_corpus
from common.assignment import Assignment

# These kinds of attack work in any file that is imported; others need the functions they replace.
ANYWHERE = (
    *("environment", "inspection", "network", "patching", "reading", "results"),
    *("run_autograder", "survivors"),
)
# Attacks that last until they are stopped: a minute or more each.
SLOW = ("bombs", "waiting")


def attacks(assignment: Assignment) -> list[Entry]:
    """The attacks on an assignment that fit into an export, where zips are unpacked.

    Not those that earn single tests: they are named out of the few that the corpus is graded by,
    and what such an attack earns of the rest is not known.
    """
    entries = [entry for entry in read_corpus() if not entry.is_tree and entry.earns_exercises]
    own = [entry for entry in entries if entry.stands_for in assignment.files]
    return own or [entry for entry in entries if entry.row in ANYWHERE]


def hostile_work(maker: SubmissionMaker, rng: random.Random, entry: Entry) -> StudentWork:
    """An attack, with the honest work that it comes with."""
    if entry.stands_for not in maker.assignment.files:
        return attack_in_other_work(maker, rng, entry)
    with tempfile.TemporaryDirectory(prefix="conv2gpt-class-") as scratch:
        entry.lay_out(Path(scratch), entry.honest_parts())
        files = {file.name: file.read_bytes() for file in sorted(Path(scratch).iterdir())}
    truth = maker.scores.passed(entry.earned_tests)
    return StudentWork("hostile", (entry.name,), files, truth)


def attack_in_other_work(maker: SubmissionMaker, rng: random.Random, entry: Entry) -> StudentWork:
    """An attack that was written for another assignment, in unfinished work for this one.

    Whether the attack spoils that work is not known: it gains nothing.
    """
    work = maker.unfinished(rng)
    name = maker.assignment.files[0]
    attack = entry.file.read_text("utf-8")
    files = work.files | {name: f"{attack}\n\n".encode() + work.files[name]}
    made_of = (entry.name, *work.made_of)
    return StudentWork("hostile", made_of, files, maker.scores.at_most(work.truth))
