"""Reads replies of a child: a value, or an exception, raised here in words that may be shown."""

import builtins
from dataclasses import dataclass
from typing import Any

from autograder.grading.sandbox.wire.array_codec import CodecError
from common.assignment import Forbidden
from common.errors import Failure, ForbiddenCall
from common.student_code.compiler_refusal import COMPILER_REFUSED
from common.student_code.forbidden_calls import refusal_texts
from common.student_code.loader import possible_failures
from common.student_code.values import Handle, StudentObjects, keep
from common.student_text import StudentBytes, StudentText, plain
from common.testing.feedback.failure import StudentCall, mark_as_students

TEXT_LIMIT = 5000


@dataclass(frozen=True)
class Request:
    """What a reply must be to."""

    number: int
    label: str  # what was called
    asked: tuple[str, str]  # the file, and the name in it
    forbidden: tuple[Forbidden, ...]


class Answers:
    """What the judge makes of the nodes in a reply."""

    def __init__(self, face: StudentObjects, label: str) -> None:
        self.face = face
        self.label = label

    def container(self, value: Any, reference: int | None) -> Any:
        return value if reference is None else keep(value, reference)

    def text(self, value: str) -> StudentText:
        return StudentText(value)

    def data(self, value: bytes) -> StudentBytes:
        return StudentBytes(value)

    def handle(self, reference: int) -> Handle:
        return Handle(self.face, reference, self.label)

    def kept(self, reference: int) -> Any:
        raise CodecError("the judge keeps no objects")


def value_of_reply(reply: Any, request: Request) -> Any:
    """The value of a decoded reply; exceptions of the child are raised here."""
    if not isinstance(reply, list) or len(reply) < 3:
        raise CodecError("a malformed reply")
    number, status, *content = reply
    # Exact types: True is 1, and an array may be equal to anything.
    if (type(number), type(status)) != (int, StudentText) or number != request.number:
        raise CodecError("a reply to another request")
    if status == "value" and len(content) == 1:
        return content[0]
    if not all(type(part) is StudentText and len(part) <= TEXT_LIMIT for part in content):
        raise CodecError("an error that is not text")
    if status == "failure" and len(content) == 3:
        raise checked_failure(request, *content)
    if status == "forbidden" and len(content) == 1:
        raise refusal(request, content[0])
    if status == "raised" and len(content) == 3:
        name, message, frames = content
        error = exception_of_that_name(plain(name), message)
        mark_as_students(error, StudentCall(request.label or "Your code", str(frames)))
        raise error
    raise CodecError("an unknown reply")


def exception_of_that_name(name: str, message: StudentText) -> Exception:
    """An exception as the child's, if Python has one of that name."""
    kind = getattr(builtins, name, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        try:
            return kind(message)
        except TypeError:  # UnicodeDecodeError and the like take more than a message
            pass
    return RuntimeError(message)


def checked_failure(request: Request, sentence: StudentText, *more: StudentText) -> Failure:
    """A failure that the child reports, if it is one of those that may be shown.

    Student code that made up its own sentence could put a hidden input into it.
    """
    for failure in possible_failures(*request.asked):
        known = failure.explanation
        if known.sentence == sentence:
            return Failure(known.sentence, str(more[0]) if more else "", known.help)
    return Failure("Your code failed.", "\n".join(map(str, (sentence, *more))))


def refusal(request: Request, sentence: StudentText) -> Exception:
    """The refusal of a forbidden call, if it is one that this exercise's rules make."""
    texts = [text for entry in request.forbidden for text in refusal_texts(entry)]
    for known in (COMPILER_REFUSED, *texts):
        if known == sentence:
            return ForbiddenCall(known)
    return checked_failure(request, sentence)
