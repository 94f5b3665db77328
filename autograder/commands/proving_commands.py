"""Command `verify`: proves the graders, and writes ledgers, hints and proof.html."""

import sys
import time
from contextlib import suppress

import click
from rich.markup import escape
from rich.table import Table

from autograder.commands.authoring_commands import chosen
from autograder.commands.progress_display import progress_bar
from autograder.commands.release_command import print_whole
from autograder.proving.hints.hint_recorder import record_hints
from autograder.proving.hostile.attack_findings import AttackRow, grade_attacks
from autograder.proving.hostile.hostile_corpus import read_corpus
from autograder.proving.ledgers.proof_ledger import current_ledger, ledger_file, write_ledger
from autograder.proving.proof_findings import SALTS, Proof
from autograder.proving.proof_jobs import ONE_SALT, Scope
from autograder.proving.proof_page import proof_page
from autograder.proving.verification import verify as verify_assignment
from autograder.screen import Screen
from autograder.semester import DIST
from autograder.zip_archive import write_if_changed
from common.assignment import ROOT, load_all
from common.errors import CourseError

SHOWN = 12
PAGE = DIST / "proof.html"


@click.command()
@click.argument("assignments", nargs=-1)
@click.option("--seeds", default=SALTS, show_default=True, help="Number of salts to prove under.")
@click.option(
    "--quick", is_flag=True, help="One salt, no mutants, no trained mistakes; writes no ledger."
)
def verify(assignments: tuple[str, ...], seeds: int, quick: bool) -> None:
    """Prove the graders: mistakes, alternatives, mutants, margins, and without names all attacks.

    A whole proof without problems writes the hints of known mistakes and solutions/aN/proof.json:
    commit both. If interrupted, rerun the same command to resume.

    ASSIGNMENTS: a1 a2 ...; none: all.
    """
    console = Screen()
    if seeds < 1:
        raise CourseError("--seeds must be at least 1.")
    scope = ONE_SALT if quick else Scope(seeds, True)
    start = time.monotonic()
    proofs = []
    for assignment in chosen(assignments):
        with progress_bar(console, f"proving {assignment.short}") as show:
            proof, evidence = verify_assignment(assignment, scope, show)
        if proof.whole and not proof.all_problems:
            written = record_hints(assignment, evidence)
            if write_ledger(assignment, proof, evidence.sources):
                written.append(ledger_file(assignment))
            for file in written:
                console.print(f"wrote {file.relative_to(ROOT)}", soft_wrap=True)
        proofs.append(proof)
    attacks = [] if assignments or quick else grade_corpus(console)
    if console.is_terminal:
        console.print(summary(proofs))
    else:
        print_whole(console, summary(proofs))
    console.print(f"took {(time.monotonic() - start) / 60:.1f} minutes")
    for text in peaks(attacks):
        console.print(text)
    write_page(proofs, attacks)
    unproved = [(proof.assignment, problem) for proof in proofs for problem in proof.all_problems]
    problems = unproved + [(row.name, problem) for row in attacks for problem in row.problems]
    for name, problem in problems[:SHOWN]:
        console.print(f"[red]x[/] {name}: {escape(problem)}", soft_wrap=True)
    if len(problems) > SHOWN:
        console.print(f"... and {len(problems) - SHOWN} more, in dist/proof.html")
    if unproved:
        console.print("These assignments are not proved: no ledger was written for them.")
    console.print("Wrote dist/proof.html")
    sys.exit(1 if problems else 0)


def grade_corpus(console: Screen) -> list[AttackRow]:
    """The rows of all attacks."""
    corpus, done = read_corpus(), 0
    with progress_bar(console, "grading attacks") as show:

        def note(row: AttackRow) -> None:
            nonlocal done
            done += 1
            show(done, len(corpus))

        return grade_attacks(corpus, note)


def peaks(attacks: list[AttackRow]) -> list[str]:
    """For each bar of the judge's memory, the attack that came nearest to it."""
    measured = [(row.bar_mb, row.peak_mb, row.name) for row in attacks if row.peak_mb is not None]
    highest = [
        max(row for row in measured if row[0] == bar) for bar in {row[0] for row in measured}
    ]
    return [
        f"highest peak memory of the judge: {peak:.0f} MB of {bar:.0f} MB ({name})"
        for bar, peak, name in sorted(highest)
    ]


def write_page(proofs: list[Proof], attacks: list[AttackRow]) -> None:
    """One page for people: these proofs, and the ledgers of other assignments that are current."""
    fresh = {proof.assignment: proof for proof in proofs}
    shown = []
    for assignment in load_all():
        if assignment.name in fresh:
            shown.append(fresh[assignment.name])
            continue
        with suppress(CourseError):
            shown.append(current_ledger(assignment).proof)
    write_if_changed(PAGE, proof_page(shown, attacks).encode())


def hint_counts(proof: Proof) -> str:
    """How many mutants and unnamed mistakes get a right hint, none, and a wrong one."""
    right, wrong = (proof.hints_that_are(result) for result in ("right", "wrong"))
    return f"{right}, {proof.without_hint}, {wrong}" if proof.mutants else "not run"


def summary(proofs: list[Proof]) -> Table:
    """What was proved: one column for each assignment, so that it fits a narrow terminal."""
    table = Table(title="make verify")
    table.add_column("")
    for proof in proofs:
        table.add_column(proof.assignment.partition("_")[0], justify="right")
    for row in zip(*(facts(proof).items() for proof in proofs), strict=True):
        table.add_row(row[0][0], *(value for _, value in row))
    return table


def facts(proof: Proof) -> dict[str, str]:
    """One assignment's column."""
    scores = {row.name: f"{row.lowest:g} of {proof.points:g}" for row in proof.scored}
    if proof.not_run:
        scores["reference"] += f"; {proof.not_run:g} not run: no GPU"
    others = [row for row in proof.scored if row.name.startswith("alternative")]
    right = sum(row.lowest == proof.points - proof.not_run for row in others)
    caught = sum(not row.problems for row in proof.mistakes)
    mutants = f"{proof.killed:.1%} of {proof.mutants - proof.equivalent}"
    effort = proof.effort
    assert effort is not None  # it was graded just now
    return {
        "reference, lowest score": scores["reference"],
        "stub": scores["stub"],
        "alternatives with all points": f"{right} of {len(others)}",
        "salts": str(proof.scored[0].salts),
        "mistakes that cost what they must": f"{caught} of {len(proof.mistakes)}",
        "mistakes with their own hint": f"{proof.hinted:.1%}",
        "other hints: right, none, wrong": hint_counts(proof),
        "mutants killed": mutants if proof.mutants else "not run",
        "margins that hold": f"{sum(not m.problem for m in proof.margins)} of {len(proof.margins)}",
        "gradings": f"{effort.gradings} ({effort.remembered} cached)",
        "seconds": f"{effort.seconds:.0f}",
        "problems": str(len(proof.all_problems)),
    }
