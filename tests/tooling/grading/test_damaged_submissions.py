"""A thousand damaged submissions: each gets a complete result, and none takes the judge down.

`make test` takes a sample of them, with each kind of damage.
"""

import functools
import json
import random
import time
import tracemalloc
import zipfile
from dataclasses import replace

import pytest

from autograder.grading.grade import grade_in, new_result
from autograder.grading.judge import Settings
from autograder.grading.results import write_results
from autograder.grading.sandbox.sandbox import Sandbox
from autograder.grading.submission import MAX_FILE_BYTES, Submission, read_submission
from autograder.proving.hostile.hostile_corpus import honest_parts
from common.assignment import ROOT, load_assignment
from common.errors import CourseError
from common.testing.graded_tests import read_graded_tests
from tests.tooling.grading.test_results import check_content
from tests.tooling.grading.zip_damages import DAMAGES, bomb_of, valid
from tests.tooling.grading_fixtures import SEMESTER
from tests.tooling.sampling import is_complete, sample

COUNT = 1000
SECONDS, MEGABYTES = 2.0, 16  # what taking one may cost
EARNED = {"a1": "1.7", "a5": "5.4"}


@functools.cache
def work(short):
    """Honest files of an assignment, and the tests that they pass."""
    assignment = load_assignment(short)
    number = EARNED[short]
    files = {name: text.encode() for name, text in honest_parts(assignment, [number]).items()}
    names = [test.name for test in read_graded_tests(ROOT / "tests" / assignment.name)]
    functions = assignment.exercise(number).functions
    only = [name for name in names if any(function in name for function in functions)]
    return assignment, files, tuple(only[:2])  # quick ones, since there are many gradings


def plan(number):
    """Which assignment a zip is for, and by which damage it is made."""
    return random.Random(number).choice([*EARNED]), list(DAMAGES)[number % len(DAMAGES)]


CHOSEN = sample("damaged zips", range(COUNT), 0, kind=plan)  # one of each kind


def make(number):
    """Damaged zip number so-and-so: which assignment, by which damage, and its bytes."""
    short, kind = plan(number)
    rng = random.Random(f"content {number}")
    files = work(short)[1]
    return short, kind, DAMAGES[kind](rng, valid(rng, files), files)


@pytest.fixture(scope="module")
def taken(tmp_path_factory):
    """What intake makes of each: (kind, assignment, submission), and what it cost."""
    folder = tmp_path_factory.mktemp("malformed")
    found = []
    for number in CHOSEN:
        short, kind, data = make(number)
        path = folder / "submission.zip"
        path.write_bytes(data)
        start = time.process_time()
        try:
            submission = read_submission(path, work(short)[0])
        except CourseError as error:
            submission = Submission(notes=[str(error)])
        found.append((number, kind, short, submission, time.process_time() - start))
        path.unlink()
    return found


def test_each_damaged_submission_is_taken_or_refused_in_a_sentence_and_in_time(taken):
    assert len(taken) == len(CHOSEN) and {kind for _, kind, *_ in taken} == DAMAGES.keys()
    for number, kind, short, submission, seconds in taken:
        assignment, files, _ = work(short)
        assert submission.files.keys() <= set(assignment.files), (number, kind)
        assert all(len(content) <= MAX_FILE_BYTES for content in submission.files.values())
        for note in submission.notes:
            assert note.endswith(".") and "\n" not in note, (number, kind, note)
        assert seconds < SECONDS, (number, kind)
        if kind == "valid":
            assert submission.files == files, number
            absent = [name for name in assignment.files if name not in files]
            assert len(submission.notes) == len(absent), number
        if kind in (
            "bomb",
            "lying bomb",
            "encrypted",
            "wrong CRC",
            "folders for files",
            "no files",
        ):
            assert not submission.files, (number, kind)
        if kind in ("bomb", "lying bomb", "encrypted", "wrong CRC"):
            assert submission.notes, (number, kind)


def test_taking_a_bomb_costs_little_memory(tmp_path):
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        path = tmp_path / f"{method}.zip"
        path.write_bytes(bomb_of(method, ("convolution.py",)))
        tracemalloc.start()
        assert not read_submission(path, work("a1")[0]).files
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < MEGABYTES << 20, method


def content_of(short, submission):
    """What decides about points: the assignment, and the files that were taken."""
    return short, *sorted(submission.files.items())


@pytest.fixture(scope="module")
def graded(taken):
    """A real grading of each content that was taken, by content."""
    found = {}
    for short in EARNED:
        assignment, _, only = work(short)
        chosen = Settings(SEMESTER, only=only)
        with Sandbox(assignment) as sandbox:
            for _, _, other, submission, _ in taken:
                key = content_of(short, submission)
                if other == short and key not in found:
                    result = new_result(assignment, submission, chosen)
                    found[key] = grade_in(sandbox, result, submission, chosen)
    return found


def test_each_damaged_submission_has_a_whole_result_and_no_more_points_than_an_undamaged_one(
    taken, graded, tmp_path
):
    """The result of each is written and checked.

    Submissions of which the same files were taken differ in their notes alone, and share one
    grading: a judge that graded equal files differently would not be noticed here
    (test_repeated_grading looks at that).
    """
    out, checked = tmp_path / "results.json", set()
    for number, kind, short, submission, _ in taken:
        _, files, only = work(short)
        once = graded[content_of(short, submission)]
        result = replace(once, notes=submission.notes)
        write_results(result, out)
        content = json.loads(out.read_text())
        assert [test["extra_data"]["test"] for test in content["tests"]] == [*only], (number, kind)
        assert content["extra_data"]["finished"] and len(result.outcomes) == len(only)
        assert all(note in content["output"] for note in submission.notes), (number, kind)
        score = sum(test["score"] for test in content["tests"])
        whole = graded[content_of(short, Submission(files))].score
        assert 0 < whole == result.maximum and 0 <= score <= whole, (number, kind)
        if submission.files == files:
            assert score == whole, (number, kind)
        elif not submission.files:
            assert score == 0, (number, kind)
        key = (short, *submission.notes, score)
        if key not in checked:  # the schema takes its time, and sees nothing else that differs
            check_content(content)
        checked.add(key)
    assert len(checked) > 10 and len(graded) > (16 if is_complete() else 5)
