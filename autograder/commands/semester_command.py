"""Command `semester`: draws a secret salt, proves, and builds a term's release zips."""

from datetime import date
from pathlib import Path

import click
from rich.console import Console

from autograder.commands.authoring_commands import chosen
from autograder.commands.progress_display import live_lines, progress_bar
from autograder.commands.release_command import print_rows
from autograder.packaging.term_hints import unfinished_file
from autograder.packaging.zip_build import Kind, autograder_file
from autograder.release.term_proof import check_ledgers, prove_term
from autograder.release.up_to_date import Row, release
from autograder.screen import Screen
from autograder.semester import (
    DIST,
    FILES,
    Semester,
    backup_file,
    new_semester,
    read_semester,
    salt_of,
)
from autograder.zip_archive import write_if_changed
from common.assignment import ROOT, load_all
from common.errors import CourseError


@click.command()
@click.argument("assignments", nargs=-1)
@click.option("--new", is_flag=True, help="Draw a new salt for a new term; an earlier one is kept.")
@click.option("--name", help="Name of a new term (default: this month).")
def semester(assignments: tuple[str, ...], new: bool, name: str | None) -> None:
    """Make the zips of a term, with a secret salt for the tests' inputs.

    Draws the salt if there is none, proves the graders and records the hints under it, builds
    the zips, and grades reference and stub with them. If interrupted, rerun the
    same command to resume, also with --new. ASSIGNMENTS: a1 a2 ...; none: all.
    """
    console = Screen()
    named = chosen(assignments)
    check_ledgers(named)
    term = open_term(console, new, name)
    for assignment in named:
        with progress_bar(console, f"{assignment.short}: hints and proof for this term") as show:
            done = prove_term(assignment, term, show)
        if done:
            console.print(f"{assignment.short}: proved under {term.label}", soft_wrap=True)
    with live_lines(console, [assignment.short for assignment in named]) as show_doing:
        rows = release(named, show_doing, training=True)
    print_rows(console, rows)
    print_uploads(console, rows, term)
    unfinished_file(term.fingerprint).unlink(missing_ok=True)


def open_term(console: Console, new: bool, name: str | None, dist: Path = DIST) -> Semester:
    """The term of this checkout; a new one if there is none, or if asked.

    Asked again for a new one that was interrupted, it is that one.
    """
    if FILES[0].is_file():
        unfinished = unfinished_file(salt_of(FILES[0]), dist).is_file()
        if unfinished or not new:
            term = read_semester()
            if not name or name == term.name:
                another = "NEW=1 with another NAME" if unfinished else "NEW=1 (--new)"
                console.print(f"Resuming {term.label}; {another} draws a new salt.", soft_wrap=True)
                return term
            if not new:
                raise CourseError(
                    f"This checkout is set to {term.label}: for a new term '{name}', add NEW=1 "
                    "(--new)."
                )
    earlier = sorted(FILES[0].parent.glob(backup_file("*").name))
    term = new_semester(name or f"{date.today():%Y-%m}")
    if new:
        write_if_changed(unfinished_file(term.fingerprint, dist), b"")
    console.print(f"New {term.label}: a secret salt, in {FILES[0].name}.")
    put_away = {*FILES[0].parent.glob(backup_file("*").name)} - {*earlier}
    for file in put_away:
        console.print(f"The previous {FILES[0].name} was moved to {file.name}.")
    for assignment in load_all():  # of another term: nobody may take them for this one's
        autograder_file(assignment, Kind.RELEASE, dist).unlink(missing_ok=True)
    return term


def print_uploads(console: Console, rows: list[Row], term: Semester) -> None:
    """What to do with the zips."""
    drafts = [row.assignment.short for row in rows if row.built.kind is not Kind.RELEASE]
    if drafts:  # a source was edited meanwhile
        raise CourseError(f"Files of {', '.join(drafts)} changed meanwhile: rerun `make semester`.")
    console.print(f"\nThe release of {term.label}: zips for Gradescope and for students:")
    for row in rows:
        files = (row.built.autograder.relative_to(ROOT), row.built.handout.relative_to(ROOT))
        console.print(f"  {row.assignment.short}: {files[0]}; {files[1]}", soft_wrap=True)
    console.print(
        f"Back up {FILES[0].name} and keep it secret: regrades need it to reproduce the same "
        "inputs.",
        soft_wrap=True,
    )
