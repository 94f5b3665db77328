"""Collects the pages of the site: the repo's own, the proof's figures, the stubs' APIs."""

import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from autograder.website.proof_summary import proof_summary
from common.assignment import LAB_FILE, ROOT, Assignment

# The manual's pages by reader; pages that aren't named here follow under the last heading.
MANUAL = {
    "For students": ("students", "self-study", "glossary", "leaves-out"),
    "For instructors": ("instructors", "gradescope", "labs", "add-an-assignment"),
    "For TAs": ("grading", "gpu"),
    "How it works": ("architecture", "security", "proof", "decisions"),
}
PROJECT = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
COPIED = ("LICENSE", "autograder/batch/output/page/example.png")
# Sphinx's first page is `index`, GitHub's is README.md.
HOME, FRONT_PAGE = "index.md", "README.md"


def write_pages(folder: Path, assignments: list[Assignment]) -> None:
    """Write the source of the site. Files keep their paths, so that links between them hold."""
    for file in [*page_files(assignments), *(ROOT / name for name in COPIED)]:
        target = folder / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    for page in folder.rglob("*.md"):
        text = re.sub(rf"\.\./{FRONT_PAGE}(?=[)#])", f"../{HOME}", page.read_text("utf-8"))
        page.write_text(text, "utf-8")
    (folder / "proof-summary.md").write_text(proof_summary(assignments), "utf-8")
    for assignment in assignments:
        reference = folder / "reference" / f"{assignment.short}.md"
        reference.parent.mkdir(exist_ok=True)
        reference.write_text(reference_page(assignment), "utf-8")
    front = (ROOT / FRONT_PAGE).read_text("utf-8")
    (folder / HOME).write_text(f"{front}\n{tables_of_contents(assignments)}", "utf-8")


def page_files(assignments: Iterable[Assignment]) -> Iterator[Path]:
    """The files of the repo that are pages, and the pictures in them."""
    yield from (ROOT / name for name in PROJECT)
    yield from sorted((ROOT / "docs").glob("*.md"))
    yield from sorted((ROOT / "docs" / "images").iterdir())
    for assignment in assignments:
        folder = ROOT / "assignments" / assignment.name
        yield folder / FRONT_PAGE
        yield from sorted((folder / "images").glob("*"))
        if assignment.lab:
            yield folder / LAB_FILE


def reference_page(assignment: Assignment) -> str:
    """The page with the signatures and docstrings of an assignment's stubs."""
    lines = [f"# {assignment.short}: the stubs", "", "Every function that students write."]
    for name in assignment.files:
        if name.endswith(".py"):
            module = f"assignments.{assignment.name}.{name.removesuffix('.py')}"
            lines += ["", f"## {name}", "", "```{eval-rst}", f".. automodule:: {module}"]
            lines += ["   :members:", "   :member-order: bysource", "```"]
    return "\n".join(lines) + "\n"


def tables_of_contents(assignments: list[Assignment]) -> str:
    """The side bar: every page under a heading."""
    handouts = [f"assignments/{one.name}/README" for one in assignments]
    labs = [f"assignments/{one.name}/lab" for one in assignments if one.lab]
    manual = {page.stem for page in (ROOT / "docs").glob("*.md")}
    groups = {"Assignments": handouts, "Labs": labs}
    for heading, names in MANUAL.items():
        groups[heading] = [f"docs/{name}" for name in names if name in manual]
    named = {name for names in MANUAL.values() for name in names}
    groups["How it works"] += [f"docs/{name}" for name in sorted(manual - named)]
    groups["How it works"].append("proof-summary")
    groups["The stubs"] = [f"reference/{one.short}" for one in assignments]
    groups["Project"] = [name.removesuffix(".md") for name in PROJECT]
    return "\n".join(table_of_contents(heading, names) for heading, names in groups.items())


def table_of_contents(heading: str, names: list[str]) -> str:
    """One heading of the side bar."""
    return "\n".join(
        ["```{toctree}", ":hidden:", ":maxdepth: 1", f":caption: {heading}", "", *names, "```", ""]
    )
