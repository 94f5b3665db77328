"""Where `import assignments.aN_name` finds its modules, and how a submitted one is loaded."""

import difflib
import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from common.failures import Failure, ForbiddenCall


def mount(packages: Mapping[str, Path]) -> None:
    """Let `assignments.<name>` mean the given folder, for each name."""
    unmount()
    top = ModuleType("assignments")
    top.__path__ = []
    sys.modules["assignments"] = top
    for name, folder in packages.items():
        package = ModuleType(f"assignments.{name}")
        package.__path__ = [str(folder)]
        sys.modules[package.__name__] = package
        setattr(top, name, package)


def unmount() -> None:
    """Forget every module of `assignments`."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "assignments"]:
        del sys.modules[name]


def load(package: str, module: str) -> ModuleType:
    """Import a submitted module; a Failure says in words why it can't be."""
    name = f"assignments.{package}.{module}"
    folder = Path(sys.modules[f"assignments.{package}"].__path__[0])
    file = f"{module}.py"
    if not (folder / file).is_file():
        raise Failure(f"{file} is missing.", help="Submit it under exactly this name.")
    try:
        return importlib.import_module(name)
    except SyntaxError as error:
        raise Failure(
            f"{file} is not valid Python: line {error.lineno}.", f"{error.msg}: {error.text}"
        ) from None
    except ForbiddenCall:
        raise
    except Exception as error:
        raise Failure(
            f"{file} can't be imported: it raises {builtin_name(error)}.",
            f"{type(error).__name__}: {error}",
        ) from error


def builtin_name(error: BaseException) -> str:
    """The name of the nearest builtin class of an exception."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")


def read(owner: object, name: str, file: str) -> object:
    """An attribute of student code; a Failure says that it isn't there."""
    try:
        return getattr(owner, name)
    except AttributeError:
        near = difflib.get_close_matches(name, [key for key in dir(owner) if key[0] != "_"], n=1)
        raise Failure(
            f"{file} has no {name}.",
            f"The nearest name there is {near[0]}." if near else "",
            "Keep the names that the handout gives.",
        ) from None
