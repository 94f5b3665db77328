"""Tests of reference artifacts: committed with a record of their sources, and used in gradings."""

import json
from pathlib import Path

import msgspec
import pytest

from autograder.authoring.reference_artifacts import outdated_sources, reference_artifacts, relayed
from common.assignment import load_all, load_assignment
from tests.tooling.scratch_copies import copy_repo, python

DECLARED = """
[[artifacts]]
file = "weights.bin"
megabytes = 1
command = "python -m train"

[[artifacts]]
file = "config.json"
megabytes = 0.1
command = "python -m train"
"""
MAKES = """
from pathlib import Path

from assignments.a1_convolution.convolution import conv_output_size
from assignments.a1_convolution.given_too import LENGTH

assert conv_output_size(5, 3) == 3  # the reference, not the stub


def make(folder: Path) -> None:
    (folder / "config.json").write_text("{}")
    (folder / "weights.bin").write_bytes(b"weights"[:LENGTH])
"""
READS = '''

@weight(0.5)
@number("1.1")
def test_weights_are_read(artifact):
    """The weights are there."""
    assert artifact("weights.bin") == b"weights"
'''
FOLDER = Path("solutions") / "a1_convolution" / "artifacts"
MAKER = "solutions/a1_convolution/artifacts.py"
GIVEN = "assignments/a1_convolution/given_too.py"
MAKES_AGAIN = "`make artifacts A=a1`"


@pytest.mark.parametrize("assignment", load_all(), ids=lambda entry: entry.short)
def test_the_committed_weights_are_current(assignment):
    changed = outdated_sources(assignment)
    again = f"run `make artifacts A={assignment.short}`, and commit what it writes"
    assert changed == [], f"the weights of {assignment.short} are out of date: {again}"


def test_the_committed_weights_are_those_of_the_record():
    assignment = load_assignment("a7")
    found = reference_artifacts(assignment)
    assert {*found} == {"checkpoint.safetensors", "config.json", "lab.ipynb"}
    bare = msgspec.structs.replace(assignment, artifacts=(), lab=None)
    assert reference_artifacts(bare) == {}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A scratch copy whose assignment 1 has artifacts, made once, and a test that reads them."""
    root = copy_repo(tmp_path_factory.mktemp("artifacts") / "repo")
    for file, text in (
        (root / "assignments" / "a1_convolution" / "assignment.toml", DECLARED),
        (root / "tests" / "a1_convolution" / "test_public.py", READS),
    ):
        file.write_text(file.read_text("utf-8") + text, "utf-8")
    (root / MAKER).write_text(MAKES)
    (root / GIVEN).write_text("LENGTH = 7\n")
    made = python("-m", "autograder", "artifacts", cwd=root)
    assert made.returncode == 0, made.stderr
    written = [line.split() for line in made.stdout.splitlines() if line.startswith("wrote ")]
    names = ("weights.bin", "config.json", "made_from.json")
    assert [words[1] for words in written] == [str(FOLDER / name) for name in names]
    return root


@pytest.fixture
def changed(course):
    """Changes files of the course for one test: None removes one."""
    before = {}

    def change(file, content):
        path = course / file
        before.setdefault(path, path.read_bytes() if path.exists() else None)
        put(path, content)

    yield change
    for path, content in before.items():
        put(path, content)


def put(path, content):
    if content is None:
        path.unlink(missing_ok=True)
    else:
        path.write_bytes(content)


SAYS = """
import json, sys
from pathlib import Path
from autograder.authoring.course_imports import forget_sources
from autograder.authoring.reference_artifacts import outdated_sources, reference_artifacts
from common.assignment import load_assignment
from common.errors import CourseError

def put(file, content):
    if content is None:
        file.unlink(missing_ok=True)
    else:
        file.write_bytes(content.encode("latin-1"))

said = {}
for name, (file, content) in json.loads(Path("changes.json").read_text()).items():
    file = Path(file)
    before = file.read_bytes().decode("latin-1")
    put(file, content)
    forget_sources()
    try:
        artifacts = reference_artifacts(load_assignment("a1"))
        said[name] = [*sorted(artifacts), *outdated_sources(load_assignment("a1"))]
    except CourseError as error:
        said[name] = [str(error)]
    put(file, before)
print(json.dumps(said))
"""
WHOLE = ["config.json", "lab.ipynb", "weights.bin"]
# What is changed, to what, and which source is named as outdated.
SOURCES = {
    "nothing": (MAKER, MAKES.encode(), []),
    "what makes them": (MAKER, MAKES.replace('"{}"', '"[]"').encode(), [MAKER]),
    "what that imports": (GIVEN, b"LENGTH = 3 + 4\n", [GIVEN]),
    "a comment": (MAKER, f"# A comment.\n{MAKES}".encode(), []),
}
DAMAGES = {
    "no weights": (
        FOLDER / "weights.bin",
        None,
        "weights.bin is missing or too large. Restore it with `git checkout`",
    ),
    "large weights": (
        FOLDER / "weights.bin",
        bytes(2**20 + 1),
        "weights.bin is missing or too large",
    ),
    "other weights": (
        FOLDER / "weights.bin",
        b"weightz",
        "weights.bin is damaged. Restore it with `git checkout`",
    ),
    "no record": (FOLDER / "made_from.json", None, "made_from.json is missing"),
    "half a record": (FOLDER / "made_from.json", b'{"sources": {', "made_from.json is damaged"),
    "no text": (FOLDER / "made_from.json", b"\xff\xfe", "made_from.json is damaged"),
    "another record": (
        FOLDER / "made_from.json",
        b'{"sources": {}, "artifacts": {"weights.bin": ""}}',
        "made_from.json lists different artifacts than assignment.toml",
    ),
}


def said(course, changes):
    """After each change: what is there and which sources are outdated, or what is wrong."""
    content = {
        name: (str(file), None if after is None else after.decode("latin-1"))
        for name, (file, after, _) in changes.items()
    }
    (course / "changes.json").write_text(json.dumps(content))
    result = python("-c", SAYS, cwd=course)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def after(course):
    """What is said after each change, all in one process."""
    return said(course, SOURCES | DAMAGES)


@pytest.mark.parametrize("change", SOURCES)
def test_a_change_of_what_makes_them_is_named_and_they_are_used_meanwhile(after, change):
    assert after[change] == [*WHOLE, *SOURCES[change][2]]


@pytest.mark.parametrize("change", DAMAGES)
def test_what_is_missing_or_damaged_is_one_sentence(after, change):
    (line,) = after[change]
    sentence = DAMAGES[change][2]
    assert line.startswith(f"{FOLDER}/") and sentence in line and MAKES_AGAIN in line


@pytest.mark.parametrize(
    ("spoiled", "instead", "sentence"),
    [
        ('"weights.bin"', '"other.bin"', "wrote no weights.bin of at most 1 MB"),
        ('b"weights"[:LENGTH]', "bytes(2**20 + 1)", "wrote no weights.bin of at most 1 MB"),
        ('b"weights"[:LENGTH]', "1 / 0", "ZeroDivisionError"),
        (None, None, "artifacts.py is missing"),
    ],
)
def test_what_goes_wrong_is_said_and_the_old_ones_stay(course, changed, spoiled, instead, sentence):
    before = content_of(course / FOLDER)
    changed(MAKER, MAKES.replace(spoiled, instead).encode() if spoiled else None)
    result = python("-m", "autograder", "artifacts", cwd=course)
    assert result.returncode == 2
    assert sentence in result.stderr
    assert content_of(course / FOLDER) == before


def content_of(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_made_again_they_replace_all_that_was_there(course, changed):
    for name in ("weights.bin", "config.json", "made_from.json", "of-another-time.bin"):
        changed(FOLDER / name, b"old")
    result = python("-m", "autograder", "artifacts", "a1", cwd=course)
    assert result.returncode == 0, result.stderr
    assert {*content_of(course / FOLDER)} == {"weights.bin", "config.json", "made_from.json"}
    nothing = {"nothing": SOURCES["nothing"]}
    assert said(course, nothing) == {"nothing": WHOLE}


def test_who_waits_hears_now_and_then_how_training_goes_on(monkeypatch):
    monkeypatch.setattr("autograder.authoring.reference_artifacts.SECONDS_BETWEEN", 20.0)
    clock = iter(range(0, 100, 8))
    monkeypatch.setattr(
        "autograder.authoring.reference_artifacts.time.monotonic", lambda: next(clock)
    )
    heard = []
    lines = [f"step {number}\n" for number in range(6)]
    assert relayed(lines, heard.append) == "".join(lines)
    assert heard and {*heard} < {line.rstrip() for line in lines}


def test_pytest_on_the_reference_reads_them_and_a_students_own_run_does_not(course, changed):
    tests = ("-m", "pytest", "-q", "-k", "weights_are_read")
    assert "1 passed" in python(*tests, "--impl=solutions", cwd=course).stdout
    own = python(*tests, cwd=course).stdout
    assert "weights.bin is missing" in own and "Create it with `python -m train`" in own
    assert "Traceback" not in own
    changed(FOLDER / "weights.bin", None)
    assert (
        "weights.bin is missing: run `make artifacts`"
        in python(*tests, "--impl=solutions", cwd=course).stdout
    )


PROVES = """
import json, sys
from autograder.proving.proof_jobs import ProofPlan, Scope
from autograder.release.zip_check import laid_out_submission
from common.assignment import load_assignment

assignment = load_assignment("a1")
case = ProofPlan(assignment, Scope(seeds=2, mutants=False))
readers = {test.name for test in case.tests if test.reads_artifacts}
taken = {
    name: [sorted(job.files), not readers.isdisjoint(job.only)] for name, job in case.jobs().items()
}
sides = {}
for side in ("solutions", "assignments"):
    with laid_out_submission(assignment, side) as folder:
        sides[side] = sorted(path.name for path in folder.iterdir())
print(json.dumps([taken, sides]))
"""


def test_whatever_is_graded_with_a_test_that_reads_them_has_them_but_the_stub(course):
    # A student's own, or an instructor's trials, must not get into the stub's grading.
    (course / "assignments" / "a1_convolution" / "weights.bin").write_bytes(b"mine")
    try:
        result = python("-c", PROVES, cwd=course)
    finally:
        (course / "assignments" / "a1_convolution" / "weights.bin").unlink()
    assert result.returncode == 0, result.stderr
    jobs, sides = json.loads(result.stdout.splitlines()[-1])
    assert sides == {
        "solutions": ["config.json", "convolution.py", "lab.ipynb", "weights.bin"],
        "assignments": ["convolution.py", "lab.ipynb"],
    }
    whole = {True: 0, False: 0}
    for name, (files, reads) in jobs.items():
        if name.startswith("stub"):
            assert files == sides["assignments"]
        elif reads or name.startswith("mistake lab-"):
            assert set(files) - {"weights.bin", "config.json"} == set(sides["assignments"]), name
            assert ("weights.bin" in files) == reads
        else:
            assert files == ["convolution.py"], name
        whole[reads] += 1
    assert min(whole.values()) > 20
