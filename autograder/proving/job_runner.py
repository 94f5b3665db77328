"""Grades all jobs of a proof, skipping those whose verdicts are cached."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from autograder.grading.warm.judge_messages import GradingReply, GradingRequest, Verdict
from autograder.packaging.fingerprint import differing
from autograder.packaging.zip_build import build
from autograder.proving.parallel_grader import ParallelGrader
from autograder.proving.proof_fingerprint import fresh_fingerprint
from autograder.proving.verdict_cache import VerdictCache
from autograder.semester import DIST, PRACTICE
from common.assignment import Assignment
from common.errors import CourseError

RIGHT = ("reference", "alternative")

Progress = Callable[[int, int], None]
# What is to be graded beyond some jobs, by what these gave.
FollowUp = Callable[[dict[str, GradingReply]], dict[str, GradingRequest]]


@dataclass(frozen=True)
class JobResults:
    """What all gradings gave, by name."""

    sources: dict[str, str]  # the fingerprint of what was graded
    replies: dict[str, GradingReply]
    remembered: int
    seconds: float

    def verdicts(self, *beginnings: str) -> list[Verdict]:
        """All verdicts of the jobs whose names begin so."""
        return [
            verdict
            for name, reply in self.replies.items()
            if name.startswith(beginnings)
            for verdict in reply.verdicts
        ]


def run_jobs(
    assignment: Assignment,
    jobs: dict[str, GradingRequest],
    sources: dict[str, str],
    progress: Progress,
    *,
    dist: Path = DIST,
    drop_unused: bool = False,
    follow_up: FollowUp = lambda replies: {},
) -> JobResults:
    """Grade what isn't remembered, on all cores, with the grader of a built zip.

    A job brings its own salt. The zip is a practice zip, built separately from those in dist/.
    sources: the fingerprint of what the jobs were made of; the zip must be made of the same.
    drop_unused: whether these jobs are all there are, so that everything else can be forgotten.
    follow_up: names more jobs, once these are graded.
    """
    start = time.monotonic()
    cache = VerdictCache(dist / f"{assignment.short}-memory.bin", assignment)
    with ExitStack() as stack:
        run = Run(assignment, sources, cache, progress, stack)
        run.grade(jobs)
        run.grade(follow_up(run.replies))
    if drop_unused:
        cache.drop_unused()
    in_order = {name: run.replies[name] for name in run.jobs}
    return JobResults(sources, in_order, run.remembered, time.monotonic() - start)


class Run:
    """The gradings of one proof, with judges that are started when one isn't remembered."""

    def __init__(
        self,
        assignment: Assignment,
        sources: dict[str, str],
        cache: VerdictCache,
        progress: Progress,
        stack: ExitStack,
    ) -> None:
        self.assignment = assignment
        self.sources = sources
        self.cache = cache
        self.progress = progress
        self.stack = stack
        self.jobs: dict[str, GradingRequest] = {}
        self.replies: dict[str, GradingReply] = {}
        self.remembered = 0

    @cached_property
    def grader(self) -> ParallelGrader:
        """The judges, with a zip of what the jobs were made of."""
        scratch = self.stack.enter_context(TemporaryDirectory(prefix="conv2gpt-proof-"))
        built = build(self.assignment, Path(scratch), PRACTICE)
        check_sources(self.assignment, self.sources)
        grader = ParallelGrader(built.autograder, self.assignment.short)
        return self.stack.enter_context(grader)

    def grade(self, jobs: dict[str, GradingRequest]) -> None:
        """Grade what isn't remembered of some jobs."""
        known = {name: self.cache.find(job) for name, job in jobs.items()}
        self.jobs |= jobs
        remembered = {
            name: merged([], verdicts) for name, (verdicts, left) in known.items() if not left
        }
        self.replies |= remembered
        self.remembered += len(remembered)
        self.progress(len(self.replies), len(self.jobs))

        def done(name: str, reply: GradingReply) -> None:
            # A failure of correct code must be investigated, not cached.
            if not name.startswith(RIGHT) or all(v.passed or not v.ran for v in reply.verdicts):
                self.cache.store(jobs[name], reply.verdicts)
            self.replies[name] = merged(known[name][0], reply.verdicts, jobs[name])
            self.progress(len(self.replies), len(self.jobs))

        todo = [(name, replace(jobs[name], only=left)) for name, (_, left) in known.items() if left]
        if todo:
            self.grader.run(todo, done)


def check_sources(assignment: Assignment, before: dict[str, str]) -> None:
    """Refuse to grade where a file was edited after it was read. Later edits don't matter."""
    changed = differing(before, fresh_fingerprint(assignment))
    if changed:
        raise CourseError(
            f"{assignment.short} was edited while its proof began ({', '.join(changed)}): rerun "
            "the same command."
        )


def merged(
    known: list[Verdict], fresh: list[Verdict], job: GradingRequest | None = None
) -> GradingReply:
    """One reply of what was known and what was graded now, in the order of the job."""
    verdicts = [*known, *fresh]
    if job and job.only:
        place = {test: index for index, test in enumerate(job.only)}
        verdicts.sort(key=lambda verdict: place[verdict.test])
    return GradingReply(verdicts=verdicts, seconds=sum(verdict.seconds for verdict in verdicts))
