"""The command that proves the graders."""

import sys
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from autograder.commands.authoring import chosen
from autograder.commands.progress import progress_bar
from autograder.packaging.archive import write_if_changed
from autograder.packaging.build import DIST, build
from autograder.proving.case import ONE_SALT, Scope
from autograder.proving.memory import grader_fingerprint
from autograder.proving.page import proof_page
from autograder.proving.proof import SALTS, Proof
from autograder.proving.recording import public_file, record_public
from autograder.proving.verify import verify as verify_assignment
from common.assignment import ROOT, load_all
from common.errors import CourseError

SHOWN = 12


@click.command()
@click.argument("assignments", nargs=-1)
@click.option("--seeds", default=SALTS, show_default=True, help="Salts for the flake budget.")
@click.option(
    "--quick",
    is_flag=True,
    help="One salt, no mutants, no trained mistakes: what `make test` runs.",
)
def verify(assignments: tuple[str, ...], seeds: int, quick: bool) -> None:
    """Prove the graders: mistakes, alternatives, mutants, margins; write dist/proof.html.

    ASSIGNMENTS: a1 to a7; none: all.
    """
    console = Console()
    if seeds < 1:
        raise CourseError("--seeds must be at least 1.")
    scope = ONE_SALT if quick else Scope(seeds, True)
    proofs = []
    for assignment in chosen(assignments):
        with progress_bar(console, f"proving {assignment.short}") as show:
            proof, evidence = verify_assignment(assignment, scope, show)
        if not proof.all_problems and record_public(assignment, evidence):
            console.print(f"written: {public_file(assignment).relative_to(ROOT)}")
            build(assignment)  # so that the zips carry them
        proofs.append(proof)
    console.print(summary(proofs))
    write_proofs([*proofs, *still_valid(proofs, DIST)], DIST)
    problems = [(proof, problem) for proof in proofs for problem in proof.all_problems]
    for proof, problem in problems[:SHOWN]:
        console.print(f"[red]x[/] {proof.assignment}: {escape(problem)}")
    if len(problems) > SHOWN:
        console.print(f"... and {len(problems) - SHOWN} more, in dist/proof.html")
    console.print("Written: dist/proof.html, dist/proof.json")
    sys.exit(1 if problems else 0)


def still_valid(fresh: list[Proof], dist: Path) -> list[Proof]:
    """The proofs of other assignments from earlier runs, as long as their graders are the same."""
    try:
        earlier = msgspec.json.decode((dist / "proof.json").read_bytes(), type=list[Proof])
    except (OSError, msgspec.DecodeError):
        return []
    done = {proof.assignment for proof in fresh}
    graders = {
        assignment.name: grader_fingerprint(built)
        for assignment in load_all()
        if (built := dist / f"{assignment.short}-autograder.zip").is_file()
    }
    return [
        proof
        for proof in earlier
        if proof.assignment not in done and graders.get(proof.assignment) == proof.grader
    ]


def write_proofs(proofs: list[Proof], dist: Path) -> None:
    """One page for people, one file for machines, in the order of the course."""
    proofs = sorted(proofs, key=lambda proof: proof.assignment)
    write_if_changed(dist / "proof.html", proof_page(proofs).encode())
    encoded = msgspec.json.format(msgspec.json.encode(proofs))
    write_if_changed(dist / "proof.json", encoded + b"\n")


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
        scores["reference"] += f"; {proof.not_run:g} not run here: no GPU"
    others = [row for row in proof.scored if row.name.startswith("alternative")]
    right = sum(row.lowest == proof.points - proof.not_run for row in others)
    caught = sum(not row.problems for row in proof.mistakes)
    mutants = f"{proof.killed:.1%} of {proof.mutants - proof.equivalent}"
    return {
        "reference, lowest score": scores["reference"],
        "stub": scores["stub"],
        "alternatives with all points": f"{right} of {len(others)}",
        "salts": str(proof.scored[0].salts),
        "mistakes that cost what they must": f"{caught} of {len(proof.mistakes)}",
        "mutants noticed": mutants if proof.mutants else "not run",
        "margins that hold": f"{sum(not m.problem for m in proof.margins)} of {len(proof.margins)}",
        "gradings": f"{proof.gradings} ({proof.remembered} remembered)",
        "seconds": f"{proof.seconds:.0f}",
        "problems": str(len(proof.all_problems)),
    }
