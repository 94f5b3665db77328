"""Commands `build`, `rehearse`, `otter` and `study`: zips, tried ones, and handouts laid out."""

import json
import shlex
from pathlib import Path

import click
from rich.markup import escape

from autograder.batch.batch_records import writing
from autograder.commands.authoring_commands import chosen
from autograder.commands.grading_commands import OUT, writable
from autograder.commands.progress_display import status_line
from autograder.packaging.otter_zip import build_and_prove
from autograder.packaging.rehearsal import rehearse as rehearse_zip
from autograder.packaging.study_folder import DEFAULT, lay_out
from autograder.packaging.zip_build import build as build_zips
from autograder.packaging.zip_build import find_autograder
from autograder.release.up_to_date import notices
from autograder.screen import Screen
from common.assignment import ROOT, load_assignment
from common.atomic_write import write_atomically
from common.testing.graded_tests import format_points


@click.command()
@click.argument("assignments", nargs=-1)
def build(assignments: tuple[str, ...]) -> None:
    """Build handout and autograder zips into dist/.

    ASSIGNMENTS: a1 a2 ...; none: all.
    """
    for assignment in chosen(assignments):
        built = build_zips(assignment)
        for file in (built.handout, built.autograder):
            click.echo(f"{file.relative_to(ROOT)}: {file.stat().st_size / 1024:.0f} KB")
        for notice in notices(assignment):  # such as hints that don't fit
            click.echo(f"{assignment.short}: {notice}")


@click.command()
@click.argument("assignment")
@click.argument("submission", type=click.Path(path_type=Path))
@click.option("--out", type=OUT, callback=writable, help="Write results.json here.")
def rehearse(assignment: str, submission: Path, out: Path | None) -> None:
    """Run the built zip's run_autograder in a tree like Gradescope's."""
    archive = find_autograder(load_assignment(assignment))
    console = Screen()
    with status_line(console, f"run_autograder of {archive.name}"):
        rehearsal = rehearse_zip(archive, submission)
    if rehearsal.output.strip():
        console.print(escape(rehearsal.output))
    for test in rehearsal.results["tests"]:
        mark = "[green]ok[/]" if test["status"] == "passed" else "[red]x[/] "
        points = f"{test['score']:g} / {test['max_score']:g}"
        head = f"{mark} {points:>7}  {test['number']} {escape(test['name'])}"
        console.print(head + (" [dim](hidden)[/]" if test["visibility"] != "visible" else ""))
        if test["status"] == "failed":
            console.print(escape(test["output"]), style="dim")
    for entry in rehearsal.results.get("leaderboard", []):
        console.print(escape(f"{entry['name']}: {entry['value']:g}"))
    console.print(escape(rehearsal.results["output"]), style="dim")
    console.print(f"[bold]{rehearsal.score:g} of {rehearsal.maximum:g} points[/]")
    if out:
        with writing(out):
            write_atomically(out, f"{json.dumps(rehearsal.results, indent=1)}\n".encode())
        console.print(f"Wrote {out}")


@click.command()
@click.argument("assignments", nargs=-1)
def otter(assignments: tuple[str, ...]) -> None:
    """Build dist/aN-otter.zip, and grade the solved and the student's lab with it.

    ASSIGNMENTS: a1 a2 ...; none: all.
    """
    for assignment in chosen(assignments):
        if assignment.lab:
            proof = build_and_prove(assignment)
            solved, student = proof.solved, proof.student
            click.echo(
                f"{proof.archive.relative_to(ROOT)}: {solved.tests} tests; the solved lab gets "
                f"{format_points(solved.score)} of {format_points(solved.maximum)} points, the "
                f"student's {format_points(student.score)}"
            )


@click.command()
@click.argument("assignment")
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path),
    default=DEFAULT,
    help="The folder to work in.  [default: conv2gpt-study beside this checkout]",
)
def study(assignment: str, folder: Path) -> None:
    """Lay out a handout to take the course without an instructor. Your work is never overwritten.

    ASSIGNMENT: a1, for instance.
    """
    chosen_one = load_assignment(assignment)
    laid_out = lay_out(chosen_one, folder.resolve())
    place, short = laid_out.folder, chosen_one.short
    work = place / "assignments" / chosen_one.name
    click.echo(f"{place}: wrote {len(laid_out.written)} files")
    for name in laid_out.kept:
        click.echo(f"kept your {name}")
    click.echo(
        f"""
Next:
  cd {shlex.quote(str(place))}
  . {shlex.quote(str(ROOT / ".venv" / "bin" / "activate"))}
  open assignments/{chosen_one.name}/README.md, and write the functions of exercise 1
  make test A={short}

To grade it with the hidden tests and the lab, here:
  make grade A={short} SUBMISSION={shlex.quote(str(work))}"""
    )
