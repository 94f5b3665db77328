"""A Sphinx extension: shows docstrings line by line, since they aren't reStructuredText."""

from typing import Any

BLOCK = [".. code-block:: text", "   :class: docstring", ""]


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", keep_lines)
    return {"parallel_read_safe": True}


def keep_lines(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Put a docstring into a block that keeps its lines."""
    if any(lines):
        lines[:] = [*BLOCK, *(f"   {line}" for line in lines), ""]
