"""The data of a proof: scores, mistakes, surviving mutants, margins, problems."""

import msgspec

from autograder.proving.margins import Margin
from common.assignment import Record

KILLED_AT_LEAST = 0.95
# The part of the mistakes that must get their own hint: of one assignment, and of all together. An
# answer in a lab is often one number or letter, which says too little for a hint.
HINTED_AT_LEAST, HINTED_OF_ALL = 0.85, 0.9
SALTS = 20


class Scored(Record, frozen=True):
    """The reference, the stub or an alternative, over all salts."""

    name: str
    salts: int
    tests: int
    lowest: float
    highest: float
    problems: list[str]


class MistakeRow(Record, frozen=True):
    """What one mistake cost."""

    name: str
    hint: str
    named: list[str]  # exercises that it must cost
    lost: dict[str, float]  # points that it did cost, by exercise
    public: list[str]  # public tests that it fails
    hidden: list[str]  # hidden tests that it fails
    hinted: list[str]  # tests at which a student who makes it is shown its hint
    problems: list[str]

    @property
    def failed(self) -> set[str]:
        """All tests that it fails."""
        return {*self.public, *self.hidden}


class HintRow(Record, frozen=True):
    """What hint a wrong version gets that is no mistake of the catalog."""

    name: str
    named: list[list[str]]  # the mistakes that each of its hints names
    result: str  # right, none or wrong, by the function that was changed


class Survivor(Record, frozen=True):
    """A mutant that no test noticed."""

    name: str
    file: str
    line: int
    change: str
    reason: str  # why it is equivalent; "" where nobody has said so


class Timing(Record, frozen=True):
    """How long something took: one kind of gradings, or one test on the reference."""

    what: str
    times: int
    total: float  # seconds
    longest: float


class Effort(Record, frozen=True):
    """What a proof took."""

    gradings: int
    remembered: int
    seconds: float
    timings: list[Timing]
    slowest: list[Timing]


class Proof(Record, frozen=True, omit_defaults=True):
    """All that was shown for one assignment."""

    assignment: str
    title: str
    tests: int
    points: float
    exercises: list[str]
    scored: list[Scored]
    mistakes: list[MistakeRow]
    noticed: dict[str, str]  # the test that noticed each mutant
    survivors: list[Survivor]
    margins: list[Margin]
    problems: list[str]
    hints: list[HintRow] = msgspec.field(default_factory=list)  # but for those without any
    without_hint: int = 0
    not_run: float = 0.0  # points of tests that need a GPU
    effort: Effort | None = None  # of this run; not part of what is kept

    @property
    def mutants(self) -> int:
        """How many mutants were graded."""
        return len(self.noticed) + len(self.survivors)

    @property
    def whole(self) -> bool:
        """Whether all was tried that a proof needs: enough salts, and the mutants."""
        return self.mutants > 0 and all(row.salts >= SALTS for row in self.scored[:1])

    @property
    def equivalent(self) -> int:
        """Survivors that change nothing, by the committed list."""
        return sum(bool(survivor.reason) for survivor in self.survivors)

    @property
    def killed(self) -> float:
        """The part of all mutants that matter which the tests noticed."""
        matter = self.mutants - self.equivalent
        missed = len(self.survivors) - self.equivalent
        return 1.0 if not matter else (matter - missed) / matter

    @property
    def hinted(self) -> float:
        """The part of the catalog's mistakes that get their own hint."""
        return sum(bool(row.hinted) for row in self.mistakes) / max(len(self.mistakes), 1)

    def hints_that_are(self, result: str) -> int:
        """How many wrong versions got hints that are right, or wrong."""
        return sum(row.result == result for row in self.hints)

    @property
    def all_problems(self) -> list[str]:
        """Every reason why the graders are not proved right."""
        found = [*self.problems]
        for name, problems in [
            *((row.name, row.problems) for row in self.scored),
            *((row.name, row.problems) for row in self.mistakes),
        ]:
            found += [f"{name}: {problem}" for problem in problems]
        found += [margin.problem for margin in self.margins if margin.problem]
        found += [
            f"{row.name} gets a wrong hint: that of {' and of '.join(map(' or '.join, row.named))}"
            for row in self.hints
            if row.result == "wrong"
        ]
        if self.mistakes and self.hinted < HINTED_AT_LEAST:
            found.append(f"only {self.hinted:.1%} of the mistakes get their own hint")
        if self.killed < KILLED_AT_LEAST:
            found.append(f"only {self.killed:.1%} of the mutants are killed")
        return found
