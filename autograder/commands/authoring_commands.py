"""Commands `new`, `stubs`, `answers`, `artifacts`, `figures`, `labs`, `site` write files."""

import click

from autograder.authoring.answer_recorder import check_answers, record_to_file
from autograder.authoring.generated_files import generate
from autograder.authoring.handout_figures import draw_figures, has_figures
from autograder.authoring.module_tree import write_module_tree
from autograder.authoring.new_assignment import write_new_assignment
from autograder.authoring.otter_assign import write_labs
from autograder.authoring.reference_artifacts import make_artifacts, trained
from autograder.classroom.demo_grading import ASSIGNMENT as DEMO
from autograder.classroom.demo_grading import grade_demo
from autograder.classroom.demo_picture import write_picture
from autograder.commands.progress_display import status_line
from autograder.screen import Screen
from autograder.semester import DIST
from autograder.website.site_build import build_site
from common.assignment import ROOT, Assignment, load_all, load_assignment


def chosen(names: tuple[str, ...]) -> list[Assignment]:
    """The assignments that a person named; all, if none."""
    return [load_assignment(name) for name in names] if names else load_all()


@click.command()
@click.argument("name")
@click.option("--title", required=True, help="As the handout's heading says it.")
def new(name: str, title: str) -> None:
    """Write a new assignment with one small exercise, which passes its proof as it is.

    NAME: a11_diffusion, for instance.
    """
    with status_line(Screen(), f"writing {name}"):
        files = write_new_assignment(name, title)
    for file in files:
        click.echo(f"wrote {file.relative_to(ROOT)}")
    short = name.partition("_")[0]
    click.echo(
        f"""
Next:
  make A={short}           # build its zips, grade reference and stub with them
  make verify A={short}    # prove it, and record its hints
Then replace the exercise by yours, as docs/add-an-assignment.md says, and add the assignment to
the table in README.md."""
    )


@click.command()
@click.argument("assignments", nargs=-1)
def stubs(assignments: tuple[str, ...]) -> None:
    """Make stubs and exercise tables from solutions and tests, and the list of modules in docs/.

    ASSIGNMENTS: a1 a2 ...; none: all.
    """
    for file in [*generate(chosen(assignments)), *write_module_tree()]:
        click.echo(f"wrote {file.relative_to(ROOT)}")


@click.command()
@click.argument("assignments", nargs=-1)
@click.option("--check", is_flag=True, help="Write nothing; fail if they are missing or stale.")
def answers(assignments: tuple[str, ...], check: bool) -> None:
    """Record the oracles' answers that public tests read.

    ASSIGNMENTS: a1 a2 ...; none: all.
    """
    for assignment in chosen(assignments):
        if assignment.stores_answers and check:
            check_answers(assignment)
        elif assignment.stores_answers:
            click.echo(f"wrote {record_to_file(assignment).relative_to(ROOT)}")
        elif assignments:
            click.echo(f"{assignment.short} stores no answers: its public tests call PyTorch")


@click.command()
@click.argument("assignments", nargs=-1)
def artifacts(assignments: tuple[str, ...]) -> None:
    """Retrain the models that the references submit with their code; commit the files.

    ASSIGNMENTS: a1 a2 ...; none: all that train something.
    """
    for assignment in chosen(assignments):
        if not trained(assignment):
            if assignments:
                click.echo(f"{assignment.short} has no artifacts: its assignment.toml names none")
            continue
        click.echo(f"{assignment.short}: training the reference's artifacts, which takes minutes")
        for file in make_artifacts(assignment, click.echo):
            click.echo(f"wrote {file.relative_to(ROOT)} ({file.stat().st_size / 1024:.0f} KB)")


@click.command()
@click.argument("assignments", nargs=-1)
def figures(assignments: tuple[str, ...]) -> None:
    """Draw the figures of the handouts, and with a1 the picture of what a student sees.

    ASSIGNMENTS: a1 a2 ...; none: all.
    """
    for assignment in chosen(assignments):
        if not has_figures(assignment):
            click.echo(f"{assignment.short} has no figures: solutions/{assignment.name}/figures.py")
            continue
        for file in draw_figures(assignment, ROOT / "assignments" / assignment.name / "images"):
            click.echo(f"wrote {file.relative_to(ROOT)}")
        if assignment.short == DEMO:
            graded = grade_demo(DIST / "demo", lambda done, count: None)
            click.echo(f"wrote {write_picture(graded.result).relative_to(ROOT)}")


@click.command()
@click.argument("assignments", nargs=-1)
def labs(assignments: tuple[str, ...]) -> None:
    """Make the labs' notebooks from their masters.

    ASSIGNMENTS: a1 a2 ...; none: all.
    """
    entries = chosen(assignments)
    for file in write_labs(entry for entry in entries if entry.lab):
        click.echo(f"wrote {file.relative_to(ROOT)}")
    for entry in entries:
        if assignments and not entry.lab:
            click.echo(f"{entry.short} has no lab: its assignment.toml has no [lab]")


@click.command()
def site() -> None:
    """Render manual, handouts and labs as a site in dist/site/ that works offline."""
    console, folder = Screen(), DIST / "site"
    with status_line(console, "rendering the site"):
        build_site(folder)
    console.print(f"Wrote {folder.relative_to(ROOT)}/: open {folder.relative_to(ROOT)}/index.html")
