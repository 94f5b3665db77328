"""Imports submitted modules as `assignments.aN_name`, and mounts stand-ins."""

import builtins
import difflib
import importlib
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from common.assignment import ROOT, STANDINS
from common.errors import CourseError, Failure, ForbiddenCall, builtin_name
from common.exercise_needs import Replacement
from common.student_code.forbidden_calls import Guard

# Assignments that later ones build on.
PREREQUISITES = tuple(sorted(folder.name for folder in STANDINS.glob("a*")))


def mount(packages: Mapping[str, Path] | Mapping[str, str]) -> None:
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
    """Forget every module of `assignments`.

    Only if there are any: to look at the names of all modules, a fork must copy much memory.
    """
    if "assignments" not in sys.modules:
        return
    for name in [name for name in sys.modules if name.partition(".")[0] == "assignments"]:
        del sys.modules[name]


def load_references(names: Iterable[str], *modules: str) -> list[ModuleType]:
    """Modules such as "a2_lenet.lenet", where the named assignments are their references."""
    mount({name: ROOT / "solutions" / name for name in names})
    try:
        return [importlib.import_module(f"assignments.{module}") for module in modules]
    finally:
        unmount()


def load_standins(modules: Iterable[str], guard: Guard | None = None) -> None:
    """Mount stand-ins as the modules of earlier assignments, in this process.

    guard: that of the code that calls them. Their functions may use what it refuses, as those of
    assignment 1 use PyTorch. Grading has no such exception: what may not be in the memory of
    student code runs in another process, and asks nobody.
    """
    for standin in modules:
        *_, package, module = standin.split(".")
        try:
            offered = copy_of_functions(importlib.import_module(standin), guard)
        except ModuleNotFoundError as error:
            raise CourseError(
                f"The stand-in for {package} needs {error.name}. "
                "Run `pip install -r requirements.txt`."
            ) from None
        mount_standin(package, module, offered)


def mount_standin(package: str, name: str, module: ModuleType) -> None:
    """Let `assignments.<package>.<name>` mean this module."""
    made = ModuleType(f"assignments.{package}")
    made.__path__ = []
    made = sys.modules.setdefault(made.__name__, made)
    setattr(sys.modules["assignments"], package, made)
    sys.modules[f"{made.__name__}.{name}"] = module
    setattr(made, name, module)


def copy_of_functions(module: ModuleType, guard: Guard | None) -> ModuleType:
    """A module with the functions and classes that another one defines, and nothing else of it."""
    copy = ModuleType(module.__name__, module.__doc__)
    for name, value in vars(module).items():
        if getattr(value, "__module__", "") == module.__name__:
            if guard is not None and isinstance(value, FunctionType):
                value = guard.exempt(value)
            setattr(copy, name, value)
    return copy


def executed(replacement: Replacement, guard: Guard | None = None) -> dict[str, Any]:
    """The functions and classes of a replacement, by name. No module holds them.

    guard: as in load_standins.
    """
    space: dict[str, Any] = {"__name__": replacement.module}
    exec(compile(replacement.source, f"<stand-in for {replacement.module}>", "exec"), space)
    return {
        name: guard.exempt(space[name])
        if guard is not None and isinstance(space[name], FunctionType)
        else space[name]
        for name in replacement.names
    }


def replace_functions(package: str, standins: Mapping[str, Mapping[str, Any]]) -> None:
    """Put stand-ins into every module of a submission, wherever it has functions of its own.

    standins: by module and name. A class that inherits from a replaced one gets the new base.
    """
    for module_name, functions in standins.items():
        with suppress(Failure):  # the test that loads this module fails with the same words
            module = load(package, module_name)
            for name, standin in functions.items():
                replace_object(package, vars(module).get(name, standin), standin)
                setattr(module, name, standin)


def replace_object(package: str, own: object, standin: Any) -> None:
    """Let all modules of a submission have a stand-in where they have this object."""
    for name, module in [*sys.modules.items()]:
        if name.startswith(f"assignments.{package}."):
            for key, value in [*vars(module).items()]:
                if value is own:
                    setattr(module, key, standin)
                elif isinstance(value, type) and own in value.__bases__:
                    bases = (standin if base is own else base for base in value.__bases__)
                    value.__bases__ = tuple(bases)


def load(package: str, module: str) -> ModuleType:
    """Import a submitted module; a Failure says in words why it can't be."""
    name = f"assignments.{package}.{module}"
    folder = sys.modules[f"assignments.{package}"].__path__[0]
    file = f"{module}.py"
    if not os.path.isfile(os.path.join(folder, file)):
        raise missing_file(file)
    try:
        return importlib.import_module(name)
    except SyntaxError as error:
        broken = os.path.basename(error.filename or file)
        if broken != file:  # one that this file imports
            raise import_failed(file, "SyntaxError", f"{broken}: {place_of(error)}") from None
        raise invalid_python(file, error) from None
    except ForbiddenCall:
        raise
    except ModuleNotFoundError as error:
        needed = str(error.name).split(".")
        if needed[0] != "assignments" or needed[-1] not in PREREQUISITES:
            raise import_failed(file, builtin_name(error), str(error)) from error
        raise missing_prerequisite(file, needed[-1]) from None
    except Exception as error:
        if b"\0" in Path(folder, file).read_bytes():  # of which Python before 3.11.4 says otherwise
            raise invalid_python(file) from None
        details = f"{type(error).__name__}: {error}"
        raise import_failed(file, builtin_name(error), details) from error


def read(owner: object, name: str, file: str) -> object:
    """An attribute of student code; a Failure says that it isn't there."""
    try:
        return getattr(owner, name)
    except AttributeError:
        nearest = difflib.get_close_matches(name, [key for key in dir(owner) if key[0] != "_"], n=1)
        raise missing_name(file, name, f"Did you mean {nearest[0]}?" if nearest else "") from None


def read_student_attribute(package: str, modules: Sequence[str], name: str) -> object:
    """What a test gets by `student.name`: of one file what is in it, of several the file itself."""
    if len(modules) == 1:
        return read(load(package, modules[0]), name, f"{modules[0]}.py")
    if name not in modules:
        raise AttributeError(f"{package} has no module {name}, only {', '.join(modules)}")
    return load(package, name)


def student_attribute_label(modules: Sequence[str], name: str) -> str:
    """What messages call that: a function by its name, a module by its file's."""
    return name if len(modules) == 1 else f"{name}.py"


# What can be wrong with student code before it returns anything. The judge says these sentences
# of a child, and no others: a child that has seen a hidden input could say anything.


def missing_file(file: str) -> Failure:
    return Failure(f"{file} is missing.", help="Submit it under exactly this name.")


def invalid_python(file: str, error: SyntaxError | None = None) -> Failure:
    return Failure(f"{file} is not valid Python.", place_of(error) if error else "")


def place_of(error: SyntaxError) -> str:
    """What is wrong in which line, and the line."""
    line = f"Line {error.lineno}: " if error.lineno else ""
    return f"{line}{error.msg}" + (f"\n{error.text.rstrip()}" if error.text else "")


def import_failed(file: str, kind: str, details: str = "") -> Failure:
    return Failure(f"{file} can't be imported: it raises {kind}.", details)


def missing_prerequisite(file: str, package: str) -> Failure:
    return Failure(
        f"{file} needs your assignments/{package}, which is missing.",
        help="Put that folder next to this one, or use --prerequisites=standin.",
    )


def missing_name(file: str, name: str, details: str = "") -> Failure:
    return Failure(f"{file} doesn't define {name}.", details, "Keep the names from the handout.")


def program_ended(kind: str) -> Failure:
    return Failure(f"Your code exited the program ({kind}) instead of returning.")


def unreadable_result(details: str = "") -> Failure:
    return Failure("The return value can't be read.", details)


def possible_failures(file: str, name: str) -> list[Failure]:
    """All that can be said when `name` is asked of `file`."""
    kinds = [
        kind
        for kind, value in vars(builtins).items()
        if isinstance(value, type) and issubclass(value, BaseException)
    ]
    return [
        *(missing_file(file), invalid_python(file), missing_name(file, name), unreadable_result()),
        *(missing_prerequisite(file, package) for package in PREREQUISITES),
        *(import_failed(file, kind) for kind in kinds),
        *(program_ended(kind) for kind in kinds),
    ]
