"""The page that shows a TA how the class did."""

from pathlib import Path


def write_report(folder: Path) -> None:
    """Write report.html for the batch in a folder."""
