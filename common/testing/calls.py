"""Batches several calls of student code into one message, and checks the results in order."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any

from common.student_code.values import Handle
from common.testing.checks import check_all_unchanged, check_refused
from common.testing.compare import unpack
from common.testing.feedback.failure import ChildFailure
from common.testing.remote.turns import CHANGED, FINAL_RESULT, RAISED, REFUSED, RESULT, RETURNED


@dataclass(frozen=True)
class Item:
    """An item of a result that is not there yet, to be handed to a later call."""

    turn: int
    item: int


@dataclass(frozen=True)
class Turn:
    """One call: what crosses, and what is done when it is known how the call ended."""

    function: Handle
    asked: str
    args: tuple
    kwargs: dict
    sent: int | None
    check: Callable[[str, Callable[[], Any]], object]

    @property
    def details(self) -> tuple:
        """The turn as common/testing/remote/turns.py takes it."""
        given = {
            place: (arg.turn, arg.item)
            for place, arg in enumerate(self.args)
            if isinstance(arg, Item)
        }
        args = tuple(None if place in given else arg for place, arg in enumerate(self.args))
        return self.asked, self.function, args, self.kwargs, given, self.sent


class Calls:
    """Collects calls, makes them in one message at the end of the block, and checks the answers.

        with Calls(student) as calls:
            calls.add("double", (2,), then=lambda result: assert_equal(result, 4, "double(2)"))
            calls.refused("a negative number", "root", -1)

    A message costs far more than a small call. What is told is the first thing that is wrong, as if
    each answer were checked before the next call: a call that raises is told in its turn.
    """

    def __init__(self, student: Handle) -> None:
        self.student = student
        self.turns: list[Turn] = []
        self.open = False

    def __enter__(self) -> "Calls":
        self.open = True
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.open = False
        if error is None or isinstance(error, Exception):  # a function that isn't there, say:
            self.make()  # what was asked before it may be wrong already

    def add(
        self,
        name: str,
        args: tuple,
        kwargs: dict | None = None,
        *,
        then: Callable[[Any], object] = lambda result: None,
        count: int | None = None,
        sent: int | None = None,
        final: bool = False,
    ) -> int:
        """A call, by the function's name. The number that comes back is its turn.

        then: is given the result.
        count: of so many items the result must be, and it is checked to be.
        sent: only so many of them are needed here; others are handed on by Item(turn, item).
        final: read the result after the last call of all, so that a result which lives in memory
            that a later call writes to shows up as wrong.
        """

        def check(ending: str, outcome: Callable[[], Any]) -> None:
            result = outcome()
            then(result if count is None else unpack(result, count, name))

        asked = FINAL_RESULT if final else RESULT
        return self.take(name, asked, args, kwargs or {}, sent, check)

    def refused(self, situation: str, name: str, *args: Any, sent: int | None = None) -> None:
        """A call that must raise ValueError.

        sent: as in other calls of the function, so that it can't tell this one from them.
        """

        def check(ending: str, outcome: Callable[[], Any]) -> None:
            if ending != REFUSED:
                check_refused(situation, outcome)

        self.take(name, RESULT, args, {}, sent, check)

    def unchanged(self, name: str, *args: Any) -> None:
        """A call that must leave its array arguments as they were."""

        def check(ending: str, outcome: Callable[[], Any]) -> None:
            check_all_unchanged(name, outcome())

        self.take(name, CHANGED, args, {}, None, check)

    def take(
        self,
        name: str,
        asked: str,
        args: tuple,
        kwargs: dict,
        sent: int | None,
        check: Callable[[str, Callable[[], Any]], object],
    ) -> int:
        """Add a turn."""
        if not self.open:
            raise RuntimeError("Calls are added within their block: nothing makes them later.")
        function = getattr(self.student, name)
        self.turns.append(Turn(function, asked, args, kwargs, sent, check))
        return len(self.turns) - 1

    def make(self) -> None:
        """Make the calls, and check what they gave."""
        if not self.turns:
            return
        face, label = self.student._face, self.turns[0].function._label
        details = [turn.details for turn in self.turns]
        endings = face.operate("call_in_turn", label, (details,), {})
        if not isinstance(endings, list):
            raise no_answer()
        for turn, ending in zip(self.turns, endings, strict=False):
            how, value = read_ending(ending)
            turn.check(how, partial(outcome, turn, how, value))
        if len(endings) != len(self.turns):
            raise no_answer()


def read_ending(ending: Any) -> tuple[str, Any]:
    """How a call ended, and its result or what was raised, if that is what was sent."""
    if not isinstance(ending, tuple) or len(ending) != 2:
        raise no_answer()
    how, value = ending
    if not isinstance(how, str) or how not in (RETURNED, REFUSED, RAISED):
        raise no_answer()
    if how != RETURNED and not isinstance(value, Handle):
        raise no_answer()
    return how, value


def outcome(turn: Turn, how: str, value: Any) -> Any:
    """The result of a call, or its exception once more."""
    if how == RETURNED:
        return value
    return turn.function._face.operate("raise_held", turn.function._label, (value,), {})


def no_answer() -> ChildFailure:
    """What is told of a reply that can only be made up."""
    return ChildFailure("The code's process answered with something that is not an answer.")
