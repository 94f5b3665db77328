"""Removes Jupyter magics and shell commands from a cell, so that it is valid Python.

Python itself says which line it can't read, so that no other line is ever touched.
"""

import re
from types import CodeType

LINE_END = re.compile(r"\r\n|\r|\n")
CELL_MAGIC = re.compile(r"%%(\w*)")
# Whose cells leave their names behind in Jupyter; others time, write or draw what is in them.
TRANSPARENT = ("time", "capture", "prun")
MAGIC = re.compile(
    r"(?P<start>\s*(?:[^=]+=\s*)?)(?:%time\s+(?P<timed>.+)|[%!].*)"  # %cd, !ls, files = !ls
    r"|(?P<indent>\s*)(?:\?.*|[%\w.*]+\?{1,2}\s*)"  # ?name, name?, name??
)


def cell_code(source: str, name: str) -> CodeType:
    """The code of a cell. name: what messages call the cell."""
    try:
        return compile(source, name, "exec", dont_inherit=True)
    except SyntaxError:
        lines = without_cell_magic(without_indent(LINE_END.split(source)))
    while True:
        try:
            return compile("\n".join(lines), name, "exec", dont_inherit=True)
        except SyntaxError as error:
            if not make_python(lines, (error.lineno or 0) - 1):
                raise


def without_indent(lines: list[str]) -> list[str]:
    """A cell without the indentation of its first line: it may be pasted from a function."""
    first = next((line for line in lines if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip())]
    return [line.removeprefix(indent) for line in lines]


def without_cell_magic(lines: list[str]) -> list[str]:
    """A cell without a %%magic at its start, and without what is no Python for Jupyter, either."""
    index = next((index for index, line in enumerate(lines) if line.strip()), 0)
    magic = CELL_MAGIC.match(lines[index])
    if magic is None:
        return lines
    return ["" for _ in lines[: index + 1]] + (
        lines[index + 1 :] if magic[1] in TRANSPARENT else []
    )


def make_python(lines: list[str], index: int) -> bool:
    """Make Python of a line that only Jupyter understands; whether it is one."""
    magic = MAGIC.fullmatch(lines[index]) if 0 <= index < len(lines) else None
    if magic is None:
        return False
    continued = lines[index].endswith("\\")
    lines[index] = (magic["start"] or magic["indent"] or "") + (magic["timed"] or "None")
    while continued and index + 1 < len(lines):
        index += 1
        continued = lines[index].endswith("\\")
        lines[index] = ""
    return True
