"""Hides students' names, emails and ids in a report's texts; aliases come from batch_records."""

import re
from functools import lru_cache

from autograder.batch.batch_records import Entry, Student

HIDDEN_NAME = "[hidden]"
SHORTEST = 3  # letters of a word that identifies somebody
# So many, and it is found in small letters and in names of files, too. Shorter ones only as they
# are written and by themselves: somebody is called Max, and that is not the max of max_pool2d.
LONG = 5
BETWEEN = r"[\W_]*"  # what may stand between two names: ada_lovelace, Ada Lovelace, AdaLovelace
NOTHING = r"(?!)"
# Names of submitted files: people name files after themselves.
FOUND = re.compile(r"(?<=Found: )[^\n]*")


def anonymized(text: str, entry: Entry) -> str:
    """A text without the names of the submitting students."""
    return identity_pattern(entry.students, entry.id).sub(HIDDEN_NAME, FOUND.sub(HIDDEN_NAME, text))


@lru_cache(maxsize=8)  # all texts of a submission come one after the other
def identity_pattern(students: tuple[Student, ...], identifier: str) -> re.Pattern[str]:
    """A pattern for everything that identifies a student."""
    patterns = [short_or_long(identifier)]
    for student in students:
        names = [part for part in re.split(r"[\W_]+", student.name) if part]
        whole = [BETWEEN.join(map(re.escape, order)) for order in (names, names[::-1])]
        login = student.email.partition("@")[0]
        patterns.append(anywhere(re.escape(student.email)))  # first: it may hold the name
        patterns += map(anywhere, whole if len(names) > 1 else [])
        patterns += map(short_or_long, (student.name, student.sid, login, *names))
    return re.compile("|".join(filter(None, patterns)) or NOTHING)


def short_or_long(word: str) -> str:
    """A pattern for a word that identifies somebody; none if the word is too short."""
    if len(word) >= LONG:
        return anywhere(re.escape(word))
    return rf"\b{re.escape(word)}\b" if len(word) >= SHORTEST else ""


def anywhere(pattern: str) -> str:
    """What matches in small or large letters, where no other letter or digit is beside it."""
    return rf"(?i:(?<![^\W_]){pattern}(?![^\W_]))" if pattern else ""
