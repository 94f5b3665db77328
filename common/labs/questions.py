"""Names of answer variables in labs, and detection of unanswered questions."""

import re
from typing import Any

# An answer is a variable with such a name: q1_kernel belongs to question q1.
ANSWER = re.compile(r"q[1-9][0-9]?_[a-z0-9_]{1,40}")


class Unanswered(Exception):
    """A question has no answer yet. A notebook that is run as a whole stops here."""


def is_unanswered(value: Any) -> bool:
    """Whether a student has left the dots, or None, as the answer."""
    return value is None or value is ...


def answered(**answers: Any) -> None:
    """Stop here unless all of these are answered: answered(q1_kernel=q1_kernel)."""
    for name, value in answers.items():
        if is_unanswered(value):
            question = name.partition("_")[0].removeprefix("q")
            raise Unanswered(
                f"Question {question} is not answered yet: replace the three dots after {name} = "
                "with your answer and rerun that cell."
            )
