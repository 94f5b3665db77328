"""Defers libraries' at-fork hooks in the fork server, so that children start faster.

Imported before the libraries. The fork server has one thread and holds no lock, so in a child
there is nothing to put right; its random numbers are seeded anyway. To do it all the same makes
each child copy a hundred pages of memory.
"""

import os
from typing import Any

register = os.register_at_fork
wanted: list[dict[str, Any]] = []


def defer_hooks(**hooks: Any) -> None:
    """Replaces os.register_at_fork."""
    wanted.append(hooks)


def register_deferred_hooks() -> None:
    """In a child: from now on, forks do what libraries want."""
    os.register_at_fork = register
    for hooks in wanted:
        register(**hooks)


os.register_at_fork = defer_hooks
