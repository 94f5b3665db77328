"""Hides who somebody is, in texts that they or their files have a part in."""

import re
from collections.abc import Iterable, Iterator

from autograder.batch.records import Entry, Student

HIDDEN_NAME = "[hidden]"
SHORTEST = 3  # letters of a word that tells who somebody is
# So many, and it is found in small letters and in names of files, too. Shorter ones only as they
# are written and by themselves: somebody is called Max, and that is not the max of max_pool2d.
LONG = 5
BETWEEN = r"[\W_]*"  # what may stand between two names: ada_lovelace, Ada Lovelace, AdaLovelace
# Names of files that were handed in; people call files by their own names.
FOUND = re.compile(r"(?<=Found: )[^\n]*")


def unnamed(text: str, entry: Entry) -> str:
    """A text without the names of those who handed in."""
    text = FOUND.sub(HIDDEN_NAME, text)
    for pattern in patterns(entry.students, entry.id):
        text = pattern.sub(HIDDEN_NAME, text)
    return text


def patterns(students: Iterable[Student], identifier: str) -> Iterator[re.Pattern[str]]:
    """All that tells who somebody is, the longest first."""
    for student in students:
        if student.email:  # which may hold the name
            yield anywhere(re.escape(student.email))
        names = [part for part in re.split(r"[\W_]+", student.name) if part]
        if len(names) > 1:
            for order in (names, names[::-1]):
                yield anywhere(BETWEEN.join(map(re.escape, order)))
        login = student.email.partition("@")[0]
        for secret in (student.name, student.sid, login, identifier, *names):
            if len(secret) >= LONG:
                yield anywhere(re.escape(secret))
            elif len(secret) >= SHORTEST:
                yield re.compile(rf"\b{re.escape(secret)}\b")


def anywhere(pattern: str) -> re.Pattern[str]:
    """What matches in small or large letters, where no other letter or digit is beside it."""
    return re.compile(rf"(?<![^\W_]){pattern}(?![^\W_])", re.IGNORECASE)
