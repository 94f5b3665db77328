"""Makes correct, wrong and unfinished submissions, each with its true score."""

import random
from dataclasses import dataclass, replace
from functools import cached_property

from autograder.authoring.lab_master import MASTER, question_points, read_master, solved_notebook
from autograder.authoring.reference_artifacts import reference_artifacts
from autograder.authoring.solution_markers import find_blocks, indent_of, split_lines
from autograder.classroom.true_scores import ScoreCalculator, Truth
from autograder.proving.right_versions import alternatives, reference, stub
from autograder.proving.wrong_versions.mistakes import Mistake, load_mistakes, wrong_master
from autograder.proving.wrong_versions.source_patch import Patch, apply_patch
from common.assignment import LAB_FILE, Assignment, Exercise
from common.errors import CourseError

MOST_MISTAKES = 4
# The percentage of complete submissions that include trained weights: each is megabytes.
WITH_ARTIFACTS = 0.2
# The percentage of each kind of lab.
LAB_SHARES = {"whole": 45, "with a wrong answer": 25, "in part": 15, "none": 15}


@dataclass(frozen=True)
class StudentWork:
    """A submission file by file, what it is made of, and its true score."""

    kind: str
    made_of: tuple[str, ...]
    files: dict[str, bytes]
    truth: Truth


class SubmissionMaker:
    """Makes the works of one assignment."""

    def __init__(self, assignment: Assignment, gpu: bool = False) -> None:
        self.assignment = assignment
        self.scores = ScoreCalculator.of(assignment, gpu)
        known = load_mistakes(assignment)
        self.mistakes = [entry for entry in known if entry.file != MASTER]
        self.lab_mistakes = [entry for entry in known if entry.file == MASTER]
        # Nothing to write for an exercise without functions: what was trained is judged.
        self.written = [entry for entry in assignment.exercises if entry.functions]

    @cached_property
    def artifacts(self) -> dict[str, bytes]:
        """The files that the reference submits with its code."""
        return reference_artifacts(self.assignment)

    @cached_property
    def versions(self) -> dict[str, dict[str, bytes]]:
        """All code that is right, by name."""
        others = alternatives(self.assignment)
        named = {f"alternative {name}": files for name, files in others.items()}
        return {"reference": reference(self.assignment), **named}

    def complete(self, rng: random.Random) -> StudentWork:
        """The reference, or a whole solution written another way."""
        name = rng.choice(sorted(self.versions))
        work = StudentWork("complete", (name,), self.versions[name], self.whole)
        return self.with_artifacts(work) if rng.random() < WITH_ARTIFACTS else work

    def one_mistake(self, rng: random.Random) -> StudentWork:
        """The reference with one mistake."""
        return self.with_mistakes("one mistake", rng, 1)

    def several_mistakes(self, rng: random.Random) -> StudentWork:
        """The reference with several mistakes."""
        return self.with_mistakes("several mistakes", rng, rng.randint(2, MOST_MISTAKES))

    def unfinished(self, rng: random.Random) -> StudentWork:
        """Some exercises written, the others untouched."""
        work = StudentWork("unfinished", (), reference(self.assignment), self.whole)
        return self.left_at(work, self.some_exercises(rng))

    def unfinished_with_mistake(self, rng: random.Random) -> StudentWork:
        """The same, with a mistake in what is written."""
        done = self.some_exercises(rng)
        files, made = self.patched(rng, 1, {f for entry in done for f in entry.functions})
        named = {number for mistake in made for number in mistake.exercises}
        truth = self.scores.with_mistakes(self.whole, named)
        names = tuple(mistake.name for mistake in made)
        kind = "unfinished with a mistake" if made else "unfinished"
        return self.left_at(StudentWork(kind, names, files, truth), done)

    def untouched(self, rng: random.Random) -> StudentWork:
        """The stub of the handout."""
        return StudentWork("untouched", (), stub(self.assignment), self.scores.nothing())

    @property
    def whole(self) -> Truth:
        """All points for code."""
        return self.scores.exercises({entry.number for entry in self.written})

    def with_artifacts(self, work: StudentWork) -> StudentWork:
        """The same work, with the reference's artifacts: judged whatever the code is."""
        if not self.artifacts:
            return work
        numbers = {test.exercise for test in self.scores.tests if test.reads_artifacts}
        earned = self.scores.exercises(numbers)
        return self.with_more(work, "artifacts", self.artifacts, earned)

    def with_lab(self, work: StudentWork, rng: random.Random) -> StudentWork:
        """The same work with a lab, whole or not: judged whatever the code is."""
        if not self.assignment.lab or LAB_FILE in work.files:
            return work
        master = read_master(self.assignment)
        questions = [*question_points(master)]
        (kind,) = rng.choices([*LAB_SHARES], [*LAB_SHARES.values()])
        if kind == "none":
            return work
        if kind == "in part":
            last = rng.randrange(1, len(questions))
            name, lab = (
                f"lab up to {questions[last - 1]}",
                solved_notebook(master, questions[last - 1]),
            )
            return self.with_more(work, name, {LAB_FILE: lab}, self.answered(questions[:last]))
        whole = self.answered(questions)
        if kind == "whole":
            return self.with_more(work, "whole lab", {LAB_FILE: solved_notebook(master)}, whole)
        mistake = rng.choice(self.lab_mistakes)
        lab = solved_notebook(wrong_master(mistake, self.assignment))
        truth = self.scores.with_mistakes(whole, {*mistake.exercises})
        return self.with_more(work, mistake.name, {LAB_FILE: lab}, truth)

    def answered(self, questions: list[str]) -> Truth:
        """The points for right answers to these questions of the lab."""
        asked = [test for test in self.scores.tests if test.reads_lab]
        return self.scores.passed({test.name for test in asked if test.question in questions})

    def with_more(
        self, work: StudentWork, name: str, files: dict[str, bytes], earned: Truth
    ) -> StudentWork:
        """The same work with files that earn points by themselves."""
        truth = Truth(
            {n: low + earned.lowest[n] for n, low in work.truth.lowest.items()},
            {n: high + earned.highest[n] for n, high in work.truth.highest.items()},
        )
        made_of = (*work.made_of, name)
        return replace(work, made_of=made_of, files=work.files | files, truth=truth)

    def with_mistakes(self, kind: str, rng: random.Random, count: int) -> StudentWork:
        """The reference with so many mistakes, or fewer where no more go together."""
        files, made = self.patched(rng, count)
        named = {number for mistake in made for number in mistake.exercises}
        names = tuple(mistake.name for mistake in made)
        return StudentWork(kind, names, files, self.scores.with_mistakes(self.whole, named))

    def patched(
        self, rng: random.Random, count: int, functions: set[str] | None = None
    ) -> tuple[dict[str, bytes], list[Mistake]]:
        """The reference with mistakes that cost no exercise twice, so that none hides another."""
        files = reference(self.assignment)
        made: list[Mistake] = []
        hit: set[str] = set()
        for mistake in rng.sample(self.mistakes, len(self.mistakes)):
            top = mistake.function.partition(".")[0]
            if len(made) == count:
                break
            if hit & {*mistake.exercises} or (functions is not None and top not in functions):
                continue
            name = mistake.file or self.assignment.files[0]
            patch = Patch(name, mistake.function, mistake.find, mistake.replace)
            try:
                fresh = apply_patch(files[name].decode("utf-8"), patch, mistake.name)
            except CourseError:  # an earlier mistake changed that code
                continue
            files = files | {name: fresh.encode()}
            made.append(mistake)
            hit |= {*mistake.exercises}
        return files, made

    def some_exercises(self, rng: random.Random) -> list[Exercise]:
        """Some of the exercises, but not all, and none without those that it builds on."""
        diligence = rng.uniform(0.4, 0.9)
        last = rng.randrange(1, len(self.written))
        done: list[Exercise] = []
        for exercise in self.written[:last]:
            numbers = {entry.number for entry in done}
            if {*exercise.needs} <= numbers and (not done or rng.random() < diligence):
                done.append(exercise)
        return done

    def left_at(self, work: StudentWork, done: list[Exercise]) -> StudentWork:
        """The work when only these exercises were written."""
        numbers = {entry.number for entry in done}
        files = {
            name: self.unwritten(content.decode("utf-8"), name, numbers).encode()
            for name, content in work.files.items()
        }
        lowest, highest = (
            {number: points if number in numbers else 0.0 for number, points in side.items()}
            for side in (work.truth.lowest, work.truth.highest)
        )
        made_of = (*work.made_of, "only " + ", ".join(entry.number for entry in done))
        return replace(work, made_of=made_of, files=files, truth=Truth(lowest, highest))

    def unwritten(self, source: str, file: str, done: set[str]) -> str:
        """A file with the solutions of these exercises, and what the stub says for the others."""
        owner = {name: entry.number for entry in self.written for name in entry.functions}
        lines = split_lines(source)
        for block in reversed(find_blocks(source, file)):
            number = owner[block.function.partition(".")[0]]
            if number not in done:
                indent = indent_of(lines[block.first - 1])
                said = f"{block.function}: exercise {number} is yours to write"
                lines[block.first - 1 : block.last] = [
                    f'{indent}raise NotImplementedError("{said}")'
                ]
        return "\n".join(lines)
