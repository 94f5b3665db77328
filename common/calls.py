"""Calls of student code that cross together, and are checked in the order of the calls."""

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from common.checks import check_all_unchanged, check_refused
from common.comparison import unpack
from common.failures import ChildFailure
from common.turns import CHANGED, FINAL_RESULT, REFUSED, RESULT
from common.values import Handle


@dataclass(frozen=True)
class Item:
    """An item of a result that is not there yet, to be handed to a later call."""

    turn: int
    item: int


@dataclass(frozen=True)
class Turn:
    """One call: what crosses, and what is done with the answer."""

    function: Handle
    asked: str
    args: tuple
    kwargs: dict
    count: int | None
    sent: int | None
    check: Callable[[Any], object]
    check_raised: Callable[[Callable[[], Any]], object]


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

        def check_result(result: Any) -> None:
            then(result if count is None else unpack(result, count, name))

        asked = FINAL_RESULT if final else RESULT
        return self.take(name, asked, args, kwargs or {}, check_result, count, sent)

    def refused(self, situation: str, name: str, *args: Any) -> None:
        """A call that must raise ValueError."""

        def check_raised(call: Callable[[], Any]) -> None:
            check_refused(situation, call)

        def check_answer(answer: Any) -> None:
            if answer is not True:
                check_refused(situation, lambda: None)

        self.take(name, REFUSED, args, {}, check_answer, check_raised=check_raised)

    def unchanged(self, name: str, *args: Any) -> None:
        """A call that must leave its array arguments as they were."""
        self.take(name, CHANGED, args, {}, lambda changed: check_all_unchanged(name, changed))

    def take(
        self,
        name: str,
        asked: str,
        args: tuple,
        kwargs: dict,
        check: Callable[[Any], object],
        count: int | None = None,
        sent: int | None = None,
        check_raised: Callable[[Callable[[], Any]], object] = lambda call: call(),
    ) -> int:
        """Add a turn."""
        if not self.open:
            raise RuntimeError("Calls are added within their block: nothing makes them later.")
        function = getattr(self.student, name)
        self.turns.append(Turn(function, asked, args, kwargs, count, sent, check, check_raised))
        return len(self.turns) - 1

    def make(self) -> None:
        """Make the calls, and check what they gave."""
        if not self.turns:
            return
        face, label = self.student._face, self.turns[0].function._label
        reply = face.operate("call_in_turn", label, (list(map(self.details, self.turns)),), {})
        answers, raised = self.read(reply)
        for turn, answer in zip(self.turns, answers, strict=False):
            turn.check(answer)
        if len(answers) == len(self.turns):
            return
        turn = self.turns[len(answers)]
        if raised is not None:
            label = turn.function._label
            turn.check_raised(lambda: face.operate("raise_held", label, (raised,), {}))
        raise no_answer()

    def details(self, turn: Turn) -> tuple:
        """A turn as common/turns.py takes it."""
        given = {
            place: (arg.turn, arg.item, self.turns[arg.turn].count)
            for place, arg in enumerate(turn.args)
            if isinstance(arg, Item)
        }
        args = tuple(None if place in given else arg for place, arg in enumerate(turn.args))
        return turn.asked, turn.function, args, turn.kwargs, given, turn.count, turn.sent

    def read(self, reply: Any) -> tuple[list[Any], Handle | None]:
        """The answers and what was raised, if the reply is made of these."""
        if not isinstance(reply, tuple) or len(reply) != 2:
            raise no_answer()
        answers, raised = reply
        if not isinstance(answers, list) or len(answers) > len(self.turns):
            raise no_answer()
        if not (raised is None or isinstance(raised, Handle)):
            raise no_answer()
        return answers, raised


def no_answer() -> ChildFailure:
    """What is told of a reply that can only be made up."""
    return ChildFailure("The code's process answered with something that is not an answer.")
