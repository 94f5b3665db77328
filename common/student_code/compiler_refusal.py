"""Refuses torch.compile where it would run a C++ compiler: graded code starts no programs."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from common.errors import ForbiddenCall

COMPILE = "torch.compile"
COMPILER_REFUSED = (
    "torch.compile needs a C++ compiler, which graded code can't run: "
    "use the function or the module as it is."
)
# The default. Other backends, which PyTorch uses itself for torch.cond, need no compiler.
NEEDS_COMPILER = ("inductor", None)


def without_compiler(compile: Callable[..., Any], refuses: Callable[[], bool]) -> Any:
    """torch.compile, but that it raises ForbiddenCall at once, not when its result is called."""

    @wraps(compile)
    def refuse_or_compile(*args: Any, **options: Any) -> Any:
        if refuses() and options.get("backend", "inductor") in NEEDS_COMPILER:
            raise ForbiddenCall(COMPILER_REFUSED)
        return compile(*args, **options)

    return refuse_or_compile
