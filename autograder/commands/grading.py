"""The commands that grade."""

from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from autograder.grading.intake import take
from autograder.grading.judge import Settings, with_gpu
from autograder.grading.judge import grade as grade_submission
from autograder.grading.ongradescope import grade_tree
from autograder.grading.report import print_result
from common.assignment import ROOT, load_assignment
from common.errors import CourseError
from common.roster import read_roster
from common.semester import read_semester


def writable(context: click.Context, parameter: click.Parameter, out: Path | None) -> Path | None:
    """Refuse a result file that could not be written, before any work is done for it."""
    if out and (out.is_dir() or not out.parent.is_dir()):
        reason = "it is a folder" if out.is_dir() else f"there is no folder {out.parent}"
        raise CourseError(f"{out} can't be written: {reason}.")
    return out


OUT = click.Path(path_type=Path)


@click.command()
@click.argument("assignment")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--out", type=OUT, callback=writable, help="Write results.json here.")
@click.option("--direct", is_flag=True, help="Without isolation, for debugging. Says so.")
@click.option("--gpu", is_flag=True, help="Run the tests that need a GPU, too.")
@click.option("--unsafe", is_flag=True, help="Grade even where the machine can't protect us.")
def grade(
    assignment: str, path: Path, out: Path | None, direct: bool, gpu: bool, unsafe: bool
) -> None:
    """Grade one submission: a folder, a zip or a file."""
    chosen = load_assignment(assignment)
    if gpu:
        with_gpu(chosen)  # an error here and now, where there is none
    submission = take(path, chosen)
    console = Console()
    count = len(read_roster(ROOT / "tests" / chosen.name))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        bar = progress.add_task(f"grading {chosen.short}", total=count)
        settings = Settings(
            semester=read_semester(),
            out=out,
            direct=direct,
            unsafe=unsafe,
            gpu=gpu,
            on_test=lambda outcome: progress.advance(bar),
        )
        result = grade_submission(chosen, submission, settings)
    print_result(result, console)
    if out:
        console.print(f"Written: {out}")


@click.command()
@click.option("--root", type=click.Path(path_type=Path), default=Path("/autograder"))
def gradescope(root: Path) -> None:
    """What run_autograder runs on Gradescope."""
    grade_tree(root)
