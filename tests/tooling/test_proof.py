"""The proof itself, with one salt: `make verify` has twenty, and the mutants."""

from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest

from autograder.grading.worker import Job, Reply
from autograder.labs.master import MASTER
from autograder.packaging.build import build, hidden_hints_file
from autograder.proving.case import ONE_SALT, Case
from autograder.proving.mistakes import load_mistakes
from autograder.proving.pool import Pool
from autograder.proving.proof import Proof
from autograder.proving.recording import fresh_hints, public_file
from autograder.proving.sightings import outdated
from autograder.proving.verify import Gradings, verify
from common.assignment import Assignment, load_all
from common.evidence import Evidence
from common.hints import HintFile, Hints, hint_bytes, read_hints

# Not the semester's salt, which each checkout draws for itself: a test must not hang on luck.
SCOPE = replace(ONE_SALT, salt="proof")

EACH = pytest.mark.parametrize("proved", load_all(), ids=lambda entry: entry.short, indirect=True)


@dataclass(frozen=True)
class Proved:
    """An assignment, its proof, all that was graded for it, and where its zip lies."""

    assignment: Assignment
    proof: Proof
    evidence: Gradings
    dist: Path


@pytest.fixture(scope="module")
def proved(request, tmp_path_factory) -> Proved:
    dist = tmp_path_factory.mktemp("dist")
    proof, evidence = verify(request.param, SCOPE, lambda done, total: None, dist)
    return Proved(request.param, proof, evidence, dist)


@EACH
def test_the_graders_reward_right_code_and_only_right_code(proved):
    proof = proved.proof
    assert proof.all_problems == []
    assert {row.name: row.lowest for row in proof.scored if row.name != "stub"} == {
        row.name: proof.points - proof.not_run for row in proof.scored if row.name != "stub"
    }
    # A mistake of the lab meets public and hidden tests in one grading, any other in two.
    files = [mistake.file for mistake in load_mistakes(proved.assignment)]
    assert len(proof.mistakes) == len(files)
    assert proof.gradings > 2 * len(files) - files.count(MASTER)


@EACH
def test_the_committed_hints_are_current(proved):
    assignment, evidence = proved.assignment, proved.evidence
    stored = read_hints(public_file(assignment))
    assert outdated(stored, fresh_hints(assignment, evidence, hidden=False)) == []


@EACH
def test_known_mistakes_get_their_hints_and_code_that_is_not_written_gets_none(proved, tmp_path):
    """Each mistake, graded again by a zip that carries the hints, is told its own hint."""
    case = Case(proved.assignment, SCOPE)
    mistakes = mistakes_where_they_tell(proved, tmp_path)
    shown = graded_with_hints(proved, {"stub": case.jobs()["stub"]} | mistakes)
    for mistake in load_mistakes(proved.assignment):
        hints = {verdict.hint for verdict in shown[mistake.name].verdicts}
        assert hints == {mistake.hint}, f"{mistake.name} shows {hints}"
    assert len(shown["stub"].verdicts) == len(case.tests)
    assert {verdict.hint for verdict in shown["stub"].verdicts} == {""}


def mistakes_where_they_tell(proved: Proved, folder: Path) -> dict[str, Job]:
    """Each mistake, on one test that should tell it from all others: a public one if it can be."""
    case = Case(proved.assignment, SCOPE)
    graded = case.mistake_jobs(hidden=False) | case.mistake_jobs(hidden=True)
    jobs: dict[str, Job] = {}
    for hidden in (False, True):
        content = fresh_hints(proved.assignment, proved.evidence, hidden)
        file = folder / f"{hidden}.hints"
        file.write_bytes(hint_bytes(content))
        hints = Hints([file])
        for seen in content.sightings:
            if hints.look_up(seen.test, seen.check, seen.seen) != content.hints[seen.mistake]:
                continue  # another mistake looks the same there
            job = next(
                job
                for name, job in graded.items()
                if name.startswith(f"mistake {seen.mistake}:") and seen.test in job.only
            )
            jobs.setdefault(seen.mistake, msgspec.structs.replace(job, only=(seen.test,)))
    return jobs


def graded_with_hints(proved: Proved, jobs: dict[str, Job]) -> dict[str, Reply]:
    """What a zip says that was built with the hints of all mistakes."""
    assignment = proved.assignment
    fresh = fresh_hints(assignment, proved.evidence, hidden=True)
    hidden_hints_file(assignment, proved.dist).write_bytes(hint_bytes(fresh))
    replies: dict[str, Reply] = {}
    with Pool(build(assignment, proved.dist).autograder, assignment.short) as pool:
        pool.run(list(jobs.items()), replies.__setitem__)
    return replies


def test_an_empty_hint_file_has_no_hint(tmp_path):
    (tmp_path / "public.hints").write_bytes(hint_bytes(HintFile({}, [])))
    hints = Hints([tmp_path / "public.hints", tmp_path / "missing.hints"])
    assert hints.find("test_a", Evidence(1, None, "said")) == ""
