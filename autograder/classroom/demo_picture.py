"""Draws what a student sees of the demo's result as an SVG picture (`make figures`)."""

import io
import re
from pathlib import Path

from autograder.classroom.demo_view import print_student_view
from autograder.grading.results import Result
from autograder.screen import Screen
from autograder.zip_archive import write_if_changed
from common.assignment import ROOT

PICTURE = ROOT / "docs" / "images" / "demo.svg"
WIDTH = 88
TITLE = "What a student sees"
FONT_FROM_THE_NETWORK = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def student_picture(result: Result) -> str:
    """What a student sees as an SVG, which loads nothing from another host."""
    console = Screen(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, legacy_windows=False
    )
    print_student_view(result, console)
    picture = console.export_svg(title=TITLE, unique_id="demo")
    return FONT_FROM_THE_NETWORK.sub("", picture)


def write_picture(result: Result, file: Path = PICTURE) -> Path:
    """Write the picture, if it isn't current."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_if_changed(file, student_picture(result).encode())
    return file
