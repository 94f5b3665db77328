"""Commands `demo`, `class` and `truth`: grade a synthetic submission, or make a whole class."""

import sys
from pathlib import Path

import click

from autograder.batch.batch_records import read_batch
from autograder.classroom.demo_grading import grade_demo
from autograder.classroom.demo_view import print_demo
from autograder.classroom.synthetic_class import SHARES, make_class
from autograder.classroom.synthetic_export import TRUTH, read_truths, write_class
from autograder.classroom.truth_comparison import differences
from autograder.commands.progress_display import progress_bar
from autograder.screen import Screen
from autograder.semester import DIST
from common.assignment import load_assignment


@click.command()
def demo() -> None:
    """Grade a small a1 submission with one wrong line, and show what a student sees."""
    console = Screen()
    with progress_bar(console, "grading a submission with one wrong line") as show:
        graded = grade_demo(DIST / "demo", show)
    print_demo(graded, console)


@click.command("class")
@click.argument("assignment")
@click.option("--students", default=300, show_default=True, help="Number of students.")
@click.option("--seed", default=7, show_default=True, help="Random seed of the class.")
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Output folder; must be empty."
)
@click.option("--without", multiple=True, type=click.Choice([*SHARES]), help="Exclude this kind.")
@click.option("--gpu", is_flag=True, help="True scores as on a machine with a GPU.")
def make(
    assignment: str, students: int, seed: int, out: Path, without: tuple[str, ...], gpu: bool
) -> None:
    """Make a synthetic class as Gradescope exports one, and say what each must score."""
    chosen = load_assignment(assignment)
    submissions = make_class(chosen, students, seed, without, gpu)
    export = write_class(submissions, chosen, out)
    groups = sum(len(one.students) > 1 for one in submissions)
    exact = sum(one.work.truth.exact for one in submissions)
    click.echo(
        f"{students} students, {len(submissions)} submissions, {groups} of them group submissions."
    )
    for kind in SHARES:
        count = sum(one.work.kind == kind for one in submissions)
        click.echo(f"{count:6} {kind}")
    click.echo(f"True scores: {exact} exact, {len(submissions) - exact} as bounds: {out / TRUTH}")
    click.echo(f"Wrote {export}")
    click.echo(
        f"To grade it:  python -m autograder batch {chosen.short} {export} --out {out}-graded"
    )
    click.echo(f"To check it:  python -m autograder truth {out} {out}-graded")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("batch", type=click.Path(path_type=Path))
def truth(folder: Path, batch: Path) -> None:
    """Compare a batch of a synthetic class with its true scores; exit code 1 if it differs."""
    truths = read_truths(folder)
    found = list(differences(truths, read_batch(batch)))
    for sentence in found:
        click.echo(sentence)
    exact = sum(one.lowest == one.highest for one in truths.values())
    if not found:
        click.echo(f"All {len(truths)} results are correct, {exact} of them checked exactly.")
    sys.exit(1 if found else 0)
