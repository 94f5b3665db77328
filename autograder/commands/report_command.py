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
@click.option("--anonymous", is_flag=True, help="Hide names in the report.")
@click.option("--picture", type=OUT, callback=writable, help="Also write a screenshot of it (PNG).")
def report(folder: Path, anonymous: bool, picture: Path | None) -> None:
    """Rewrite the report of a batch from its results."""
    write_report(folder, anonymous)
    texts = f", {TEXTS}/" if (folder / TEXTS).is_dir() else ""
    click.echo(f"Wrote {folder / REPORT}{texts}")
    if anonymous and not read_batch(folder).anonymous:
        click.echo(
            "The next batch or regrade into this folder writes names again. The tables, the "
            "results and batch.json still contain names."
        )
    if picture:
        take_picture(folder, picture)
        click.echo(f"Wrote {picture}")
