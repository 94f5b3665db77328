"""Makes hostile submissions by chance: odd results, moments, ends and processes, beside right code.

A submission follows from its seed and its number: the same two make the same one again.
"""

import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from autograder.proving.hostile.hostile_corpus import honest_parts
from autograder.proving.hostile.odd_behavior import HEAD, deed, value
from common.assignment import LAB_FILE, ROOT, Assignment, load_assignment
from common.testing.graded_tests import HIDDEN_FILE, PUBLIC_FILE, read_graded_tests

# Exercises that are solved right, beside what is odd. Every fourth submission is to a5.
HONEST_EXERCISES = {
    "a1": (("1.1",), ("1.7",), ("1.1", "1.7"), ("1.1", "1.5"), ("1.1", "1.5", "1.7")),
    "a5": (("5.4",), ("5.1",), ("5.1", "5.4")),
}
A5_EVERY = 4
SUBMISSIONS = 2000  # in `make chaos`; `make test` takes some of them
SEED = 1
# When something odd happens in the whole file. Only "never" leaves right code its points for sure.
MOMENTS = {
    "never": "",
    "import": "happen()",
    "exit": "atexit.register(happen)",
    "thread": "threading.Thread(target=happen).start()",
    "daemon": "threading.Thread(target=happen, daemon=True).start()",
    "later": "threading.Timer(0.01, happen).start()",
    "signal": "signal.signal(signal.SIGALRM, happen); signal.setitimer(signal.ITIMER_REAL, 0.02)",
    "collected": "weakref.finalize(Lying, happen)",
}
NEVER = "never"
WEIGHTS = (16, *[1] * (len(MOMENTS) - 1))
LAB_SHARE = 0.06
ANSWER_NAME = re.compile(r"\"(q\d+_\w+)\"")


@dataclass(frozen=True)
class FuzzedSubmission:
    """The submission of that number."""

    seed: int
    number: int

    cold = False
    leaves = False  # an honest one after every few

    @property
    def name(self) -> str:
        """What people call it, by which it can be made again."""
        return f"fuzzed/{self.seed}-{self.number}"

    @property
    def short(self) -> str:
        """The short name of its assignment."""
        return "a5" if self.number % A5_EVERY == 0 else "a1"

    @property
    def assignment(self) -> Assignment:
        """The assignment that it is submitted to."""
        return known_assignment(self.short)

    @property
    def exercises(self) -> tuple[str, ...]:
        """What it solves right."""
        return random.Random(self.name).choice(HONEST_EXERCISES[self.short])

    @property
    def moment(self) -> str:
        """When something odd happens beside what functions do."""
        return random.Random(f"{self.name} moment").choices(list(MOMENTS), WEIGHTS)[0]

    @property
    def is_harmless_to_itself(self) -> bool:
        """Whether nothing odd can happen to its right code, which must get all its points then."""
        return self.moment == NEVER

    @property
    def earned_tests(self) -> set[str]:
        """The tests that its right code passes."""
        return {name for name, number in exercise_of_test(self.short) if number in self.exercises}

    def honest_parts(self) -> dict[str, str]:
        """Its right code: the text of each file."""
        return dict(right_code(self.short, self.exercises))

    def lay_out(self, folder: Path, honest: Mapping[str, str]) -> Path:
        """Write the submission into an empty folder."""
        for name, text in self.files(honest).items():
            (folder / name).write_text(text, "utf-8", "surrogatepass")
        return folder

    def files(self, honest: Mapping[str, str]) -> dict[str, str]:
        """The content of each file."""
        rng = random.Random(f"{self.name} files")
        functions = [
            (file, name)
            for file, names in functions_by_file(self.short)
            for name in names
            if name not in self.right_functions
        ]
        chosen = rng.sample(functions, rng.randint(1, len(functions)))
        parts = {}
        for file in self.assignment.files:
            own = [name for place, name in chosen if place == file]
            parts[file] = "\n\n".join(
                (self.beginning(rng), *(odd(rng, name, self.uses_torch(file)) for name in own))
            )
            parts[file] += f"\n\n{honest.get(file, '')}"
        if rng.random() < LAB_SHARE:
            parts[LAB_FILE] = notebook(rng, self.short)
        return parts

    def beginning(self, rng: random.Random) -> str:
        """What a file begins with: names to use, and what happens at its moment."""
        happening = f"def happen(*given):\n    x = first_array(given)\n    {deed(rng, False)}\n"
        return f"{HEAD}\n\n{happening}\n\n{MOMENTS[self.moment]}"

    @property
    def right_functions(self) -> set[str]:
        """The functions that it has right."""
        numbers = self.exercises
        return {name for n in numbers for name in self.assignment.exercise(n).functions}

    def uses_torch(self, file: str) -> bool:
        """Whether the functions of a file return tensors."""
        return self.short == "a5" and "numpy" not in file


def odd(rng: random.Random, name: str, tensors: bool) -> str:
    """A function that does something odd in one of its calls, and returns odd values in all.

    A class becomes one whose objects do so when they are called.
    """
    may_hang = rng.random() < 0.1
    body = [f'COUNTS["{name}"] += 1', "x = first_array([*given, *named.values()])"]
    if rng.random() < 0.5:
        call = rng.choice((1, 1, 2, 3))
        body.append(f'if COUNTS["{name}"] == {call}:\n        {deed(rng, may_hang)}')
    body.append(f"return {value(rng, tensors)}")
    lines = "".join(f"    {line}\n" for line in body)
    if not name[0].isupper():
        return f"{import_of_torch(tensors)}def {name}(*given, **named):\n{lines}"
    inner = f"def answer_of_{name}(self, *given, **named):\n{lines}"
    made = f"class {name}(torch.nn.Module):\n    __init__ = lambda self, *given, **named: "
    start = rng.choice(("super(type(self), self).__init__()", "None", "KEPT.append(self)"))
    return f"import torch\n\n\n{inner}\n\n{made}{start}\n    forward = answer_of_{name}\n"


def import_of_torch(tensors: bool) -> str:
    return "import torch\n\n\n" if tensors else ""


def notebook(rng: random.Random, short: str) -> str:
    """A lab with odd answers. None can be right by chance: each is three values."""
    first = "import torch\n" if short == "a5" else ""
    sources = [f"{first}{HEAD}\ngiven = ()\nx = np.zeros((2, 3))"]
    for name in rng.sample(answer_names(short), 3):
        sources.append(f"{name} = ({', '.join(value(rng, short == 'a5') for _ in range(3))})")
    sources.append(deed(rng, False))
    cells = [{"cell_type": "code", "source": source} for source in sources]
    return json.dumps({"nbformat": 4, "cells": cells})


@cache
def known_assignment(short: str) -> Assignment:
    """An assignment, read once."""
    return load_assignment(short)


@cache
def right_code(short: str, exercises: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The right code of these exercises: names and texts of files."""
    return tuple(honest_parts(known_assignment(short), list(exercises)).items())


@cache
def exercise_of_test(short: str) -> tuple[tuple[str, str], ...]:
    """Each graded test, and its exercise."""
    tests = read_graded_tests(ROOT / "tests" / known_assignment(short).name)
    return tuple((test.name, test.exercise) for test in tests)


@cache
def functions_by_file(short: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The functions and classes that students write, by file."""
    assignment = known_assignment(short)
    every = {name for exercise in assignment.exercises for name in exercise.functions}
    found = []
    for file in assignment.files:
        text = (ROOT / "assignments" / assignment.name / file).read_text("utf-8")
        defined = re.findall(r"(?m)^(?:def|class) (\w+)", text)
        found.append((file, tuple(name for name in defined if name in every)))
    return tuple(found)


@cache
def answer_names(short: str) -> list[str]:
    """The names of the lab's answers that tests ask for."""
    folder = ROOT / "tests" / known_assignment(short).name
    texts = [(folder / name).read_text("utf-8") for name in (PUBLIC_FILE, HIDDEN_FILE)]
    return sorted({name for text in texts for name in ANSWER_NAME.findall(text)})
