"""Says in one sentence why this Python can't run the tests: too old, or packages are missing.

tests/conftest.py asks before it imports anything else: this file must run on any Python 3.
"""

import sys
from importlib.util import find_spec

OLDEST = (3, 11)
PACKAGES = ("numpy", "msgspec", "gradescope-utils", "jaxtyping")  # what every handout's tests need
ACTIVATE = "activate the course's environment (. .venv/bin/activate)"


def why_tests_cannot_run(version: "tuple[int, int]" = sys.version_info[:2]) -> str:
    """The sentence; an empty one where nothing is missing."""
    if version < OLDEST:
        return f"Python {version[0]}.{version[1]} is older than 3.11: {ACTIVATE}."
    missing = [name for name in PACKAGES if not is_installed(name)]
    return missing_sentence(*missing) if missing else ""


def missing_sentence(*packages: str) -> str:
    """Which packages are missing, and what to do."""
    *others, last = packages
    names = f"{', '.join(others)} and {last} are" if others else f"{last} is"
    return f"{names} missing: {ACTIVATE} or run pip install -r requirements.txt."


def is_installed(package: str) -> bool:
    """Whether this Python could import it."""
    try:
        return find_spec(package.replace("-", "_")) is not None
    except ImportError:
        return False
