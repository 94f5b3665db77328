"""Writes the list of modules in docs/architecture.md from their docstrings (`make stubs`)."""

import ast
from collections.abc import Iterator
from pathlib import Path

from autograder.authoring.generated_files import with_block
from autograder.zip_archive import write_if_changed
from common.assignment import ROOT

PAGE = "docs/architecture.md"
MODULES_BEGIN, MODULES_END = "<!-- BEGIN MODULES -->", "<!-- END MODULES -->"
PACKAGES = ("autograder", "common")
PACKAGE_FILE = "__init__.py"


def current_page(root: Path = ROOT) -> str:
    """What the page must hold."""
    lines = [line for name in PACKAGES for line in module_lines(root, root / name)]
    return with_block(root / PAGE, "\n".join(lines), MODULES_BEGIN, MODULES_END)


def write_module_tree(root: Path = ROOT) -> list[Path]:
    """Write the page if it is stale; the files that changed. Scratch copies have no page."""
    page = root / PAGE
    changed = page.is_file() and write_if_changed(page, current_page(root).encode())
    return [page] if changed else []


def module_lines(root: Path, folder: Path, depth: int = 0) -> Iterator[str]:
    """A package, its modules, and the packages in it, as a nested Markdown list."""
    indent = " " * 4 * depth
    yield f"{indent}- **`{folder.relative_to(root)}/`**{first_line(folder / PACKAGE_FILE)}"
    for file in sorted(folder.glob("*.py")):
        if file.name != PACKAGE_FILE:
            yield f"{indent}    - `{file.name}`{first_line(file)}"
    for inner in sorted(folder.iterdir()):
        if inner.is_dir() and any(inner.rglob("*.py")):
            yield from module_lines(root, inner, depth + 1)


def first_line(file: Path) -> str:
    """The first line of a module's docstring, after a colon; "" where there is none."""
    docstring = ast.get_docstring(ast.parse(file.read_text("utf-8"))) if file.is_file() else None
    return f": {docstring.splitlines()[0]}" if docstring else ""
