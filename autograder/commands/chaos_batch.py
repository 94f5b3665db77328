"""The command that strikes whole batches."""

import sys
import tempfile
import time
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from autograder.batch.engines.ray_engine import load_ray
from autograder.classroom.batch_faults import complaints, grade_calmly, strike_batch
from autograder.classroom.synthetic_class import make_class
from autograder.classroom.synthetic_export import write_class
from common.assignment import load_assignment


@click.command("chaos-batch")
@click.argument("assignment", default="a1")
@click.option("--students", default=100, show_default=True, help="How many there are.")
@click.option("--every", default=5, show_default=True, help="Results between two strikes.")
@click.option("--seed", default=1, show_default=True, help="Decides what is struck.")
@click.option(
    "--engine",
    multiple=True,
    type=click.Choice(["local", "ray"]),
    help="Only this one; can be repeated (default: both).",
)
def chaos_batch(
    assignment: str, students: int, every: int, seed: int, engine: tuple[str, ...]
) -> None:
    """Kill parts of batches at random; exit code 1 unless they end as a calm one does."""
    console = Console()
    engines = engine or ("local", "ray")
    if "ray" in engines:
        load_ray()  # an error here and now, where it is missing
    table = Table(title="make chaos: a class, graded while parts of the batch are killed")
    for column in ("engine", "killed", "starts", "seconds", "differences from a calm run"):
        table.add_column(column)
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="conv2gpt-chaos-batch-") as name:
        folder = Path(name)
        # Without attacks: where a clock decides, a result may differ for no fault of the batch.
        handed = make_class(load_assignment(assignment), students, seed, without=("hostile",))
        export = write_class(handed, load_assignment(assignment), folder / "class")
        grade_calmly(assignment, export, folder / "calm")
        for chosen in engines:
            begun = time.monotonic()
            struck = strike_batch(assignment, export, folder / chosen, chosen, every, seed)
            found = [*struck.complaints, *complaints(folder / "calm", folder / chosen)]
            wrong += len(found)
            killed = ", ".join(f"{count} {part}" for part, count in struck.kills.items())
            seconds = f"{time.monotonic() - begun:.0f}"
            table.add_row(chosen, killed, str(struck.starts), seconds, "\n".join(found) or "none")
    console.print(table)
    sys.exit(1 if wrong else 0)
