"""Command `report`: rewrites a batch's report.html, and can take a screenshot of it."""

from pathlib import Path

import click

from autograder.batch.batch_records import read_batch
from autograder.batch.output.html_report import REPORT, write_report
from autograder.batch.output.report_screenshot import take_picture
from autograder.batch.output.written_answers import TEXTS
from autograder.commands.grading_commands import OUT, writable


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--anonymous", is_flag=True, help="Hide names.")
@click.option("--picture", type=OUT, callback=writable, help="Also take a picture of it: a PNG.")
def report(folder: Path, anonymous: bool, picture: Path | None) -> None:
    """Write the report of a batch anew, from the results that are there."""
    write_report(folder, anonymous)
    texts = f", {TEXTS}/" if (folder / TEXTS).is_dir() else ""
    click.echo(f"Written: {folder / REPORT}{texts}")
    if anonymous and not read_batch(folder).anonymous:
        click.echo(
            "The next batch or regrade into it writes them with names again. The tables, "
            "results and batch.json hold names all the same."
        )
    if picture:
        take_picture(folder, picture)
        click.echo(f"Written: {picture}")
