"""The command that makes a synthetic class."""

from pathlib import Path

import click

from autograder.classroom.export import TRUTH, write_class
from autograder.classroom.school import SHARES, make_class
from common.assignment import load_assignment


@click.command("class")
@click.argument("assignment")
@click.option("--students", default=300, show_default=True, help="How many there are.")
@click.option("--seed", default=7, show_default=True, help="The same seed, the same class.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="An empty folder.")
@click.option("--without", multiple=True, type=click.Choice([*SHARES]), help="A kind to leave out.")
@click.option("--gpu", is_flag=True, help="True scores as on a machine with a GPU.")
def make(
    assignment: str, students: int, seed: int, out: Path, without: tuple[str, ...], gpu: bool
) -> None:
    """Make a synthetic class as Gradescope exports one, and say what each must score."""
    chosen = load_assignment(assignment)
    handed = make_class(chosen, students, seed, without, gpu)
    export = write_class(handed, chosen, out)
    groups = sum(len(one.students) > 1 for one in handed)
    exact = sum(one.work.truth.exact for one in handed)
    click.echo(f"{students} students, {len(handed)} submissions, {groups} of them by groups.")
    for kind in SHARES:
        count = sum(one.work.kind == kind for one in handed)
        click.echo(f"{count:6} {kind}")
    click.echo(
        f"Of {exact} the score is known exactly, of {len(handed) - exact} within bounds: "
        f"{out / TRUTH}"
    )
    click.echo(f"Written: {export}")
