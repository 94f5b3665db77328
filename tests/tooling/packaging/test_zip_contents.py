"""Tests of the zips: their contents, reproducible bytes, and no solution in them."""

import ast
import io
import marshal
import os
import re
import stat
import zipfile
from itertools import pairwise

import numpy as np
import pytest

from autograder.authoring.lab_master import read_master
from autograder.authoring.solution_markers import solution_lines
from autograder.packaging.leak_check import COMMONPLACE, SHORTEST_LINE, Secrets, check_zip
from autograder.packaging.requirement_parts import (
    grader_requirements,
    read_parts,
    student_requirements,
)
from autograder.packaging.zip_build import build
from autograder.packaging.zip_contents import autograder_zip, handout
from autograder.semester import PRACTICE
from autograder.zip_archive import unpack, write_if_changed, zip_bytes
from common.assignment import ROOT, course_order, load_all, load_assignment
from common.errors import CourseError
from tests.tooling.sampling import sample
from tests.tooling.scratch_copies import copy_repo, python

EACH = pytest.mark.parametrize("assignment", load_all(), ids=lambda entry: entry.name)
ONE = pytest.mark.parametrize(
    "assignment",
    sample("assignments to build", load_all(), 1),
    ids=lambda entry: entry.name,
)
A1 = load_assignment("a1")
SOLUTION = ROOT / "solutions" / "a1_convolution" / "convolution.py"
SECRET = "last_start = size + 2 * padding - kernel_size"
KINDS = {"handout": handout(A1), "autograder": autograder_zip(A1, b'{"name": "x", "salt": "y"}\n')}
BOTH = pytest.mark.parametrize("kind", KINDS)


def python_files(folder):
    """The sources of a folder of the repo, by a walk of our own."""
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / folder).rglob("*.py")
        if not any(part.startswith((".", "__pycache__")) for part in path.parts)
    }


def of_common(members):
    """What a zip holds of common/; another test says what that is."""
    return {name for name in members if name.startswith("common/")}


@EACH
def test_the_handout_holds_exactly_what_a_student_needs(assignment):
    here, tests = f"assignments/{assignment.name}", f"tests/{assignment.name}"
    own = [f"{tests}/test_hidden.py"]
    answers = []
    if assignment.stores_answers:  # otherwise the oracle itself answers students' tests
        own, answers = [*own, f"{tests}/oracle.py"], [f"{tests}/answers.npz"]
    shared = {name for name in python_files(tests) if name not in own}
    expected = {
        *(f"{here}/{name}" for name in ("README.md", "assignment.toml", *assignment.files)),
        *python_files(here) & {f"{here}/experiments.py"},
        *([f"{here}/lab.ipynb", "common/labs/requirements.txt"] if assignment.lab else []),
        *(f"{here}/{name}" for name in assignment.given),
        *(f"{here}/images/{image.name}" for image in (ROOT / here / "images").glob("*")),
        *shared,
        *answers,
        f"{tests}/hidden_points.json",
        f"{tests}/public.hints",
        "tests/conftest.py",
        *of_common(handout(assignment)),
        # Whoever begins with a later assignment has it from there, with data or without.
        *(["common/data/requirements.txt"] if course_order(assignment.name) >= (2,) else []),
        *("Makefile", "README.md", "docs/students.md", "pytest.ini", "requirements.txt"),
    }
    assert set(handout(assignment)) == expected


def course_modules(source):
    """The modules of common/ that a source may load: imports, and names in strings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def shipped_and_named(assignment, members):
    """The files of common/ in a zip, and those that its sources and its lab name."""
    sources = [content for name, content in members.items() if name.endswith(".py")]
    sources.append(read_master(assignment).encode() if assignment.lab else b"")
    sources.append("\n".join(f"import {name}" for name in assignment.lab_standins).encode())
    named, there = set(), python_files("common")
    for word in {word for source in sources for word in course_modules(source)}:
        parts = word.split(".") if re.fullmatch(r"common(\.\w+)*", word) else []
        for length in range(1, len(parts) + 1):
            place = "/".join(parts[:length])
            named |= {f"{place}.py", f"{place}/__init__.py"} & there
    shipped = {name for name in members if name.startswith("common/") and name.endswith(".py")}
    return shipped, named


@EACH
def test_zips_hold_of_common_what_they_import_and_nothing_else(assignment):
    shipped, named = shipped_and_named(assignment, handout(assignment))
    own = {"common/submission_zip.py", "common/training/numeric_gradients.py"}
    assert shipped == named | own
    stubs = [ROOT / "assignments" / assignment.name / name for name in assignment.files]
    members = autograder_zip(assignment, b"") | {file.name: file.read_bytes() for file in stubs}
    shipped, named = shipped_and_named(assignment, members)
    assert shipped == named


def test_no_zip_holds_the_stand_in_of_its_own_assignment():
    for members in (handout(A1), autograder_zip(A1, b"")):
        assert not [name for name in members if name.startswith("common/standins/")]


@pytest.mark.parametrize(
    "assignment", [one for one in load_all() if one.lab], ids=lambda one: one.name
)
def test_no_zip_holds_the_labs_stand_in_of_another_assignment(assignment):
    own = f"common/labs/standins/{assignment.name}/"
    for members in (handout(assignment), autograder_zip(assignment, b"")):
        found = [name for name in members if name.startswith("common/labs/standins/")]
        assert found and all(name.startswith(own) for name in found)


@EACH
def test_the_autograder_zip_holds_exactly_what_grading_needs(assignment):
    tests = f"tests/{assignment.name}"
    expected = {
        *("setup.sh", "run_autograder", "requirements.txt", "semester"),
        f"assignments/{assignment.name}/assignment.toml",
        *(f"assignments/{assignment.name}/{name}" for name in assignment.files),
        *python_files(tests),
        f"{tests}/hidden_points.json",
        *of_common(autograder_zip(assignment, b"")),
        *python_files("autograder/grading"),
        *("autograder/__init__.py", "autograder/__main__.py"),
        "autograder/screen.py",
        "autograder/semester.py",
        *(f"autograder/commands/{name}.py" for name in ("__init__", "progress_display")),
        *(f"autograder/commands/{name}.py" for name in ("grading_commands", "doctor_command")),
    }
    assert set(autograder_zip(assignment, b"")) == expected


def test_a_junk_file_in_the_repo_gets_into_no_zip(tmp_path):
    root = copy_repo(tmp_path / "repo")
    finished = python("-m", "autograder", "build", "a1", cwd=root)
    assert finished.returncode == 0, finished.stderr
    zips = [root / "dist" / name for name in ("a1-handout.zip", "a1-autograder-practice.zip")]
    before = [file.read_bytes() for file in zips]
    for folder in ("assignments/a1_convolution", "tests/a1_convolution", "common", "."):
        (root / folder / ".DS_Store").write_text("junk")
        (root / folder / "notes.txt").write_text("junk")
        (root / folder / "__pycache__").mkdir(exist_ok=True)
        (root / folder / "__pycache__" / "x.cpython-311.pyc").write_bytes(b"junk")
    (root / "assignments/a1_convolution/my_attempt.py").write_text("x = 1\n")
    # Another working directory, umask and date must not show in the bytes either.
    for path in root.rglob("*.py"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
        path.chmod(0o600)
    old = os.umask(0o077)
    try:
        for file in zips:
            file.unlink()
        finished = python(
            "-m", "autograder", "build", "a1", cwd=tmp_path, env={"PYTHONPATH": str(root)}
        )
    finally:
        os.umask(old)
    assert finished.returncode == 0, finished.stderr
    assert [file.read_bytes() for file in zips] == before


@ONE
def test_building_twice_gives_identical_bytes_and_writes_nothing_the_second_time(
    assignment, tmp_path
):
    first, second = (build(assignment, tmp_path / name, PRACTICE) for name in ("one", "two"))
    assert first.handout.name == f"{assignment.short}-handout.zip"
    assert first.autograder.name == f"{assignment.short}-autograder-practice.zip"
    assert first.handout.read_bytes() == second.handout.read_bytes()
    assert first.autograder.read_bytes() == second.autograder.read_bytes()
    times = [file.stat().st_mtime_ns for file in (first.handout, first.autograder)]
    build(assignment, tmp_path / "one", PRACTICE)
    assert times == [file.stat().st_mtime_ns for file in (first.handout, first.autograder)]


def test_bytes_depend_on_nothing_but_the_members():
    members = {"b/two.py": b"x = 2\n", "a.sh": b"#!/bin/sh\n"}
    assert zip_bytes(members) == zip_bytes(dict(reversed(members.items())))
    with zipfile.ZipFile(io.BytesIO(zip_bytes(members))) as archive:
        assert archive.namelist() == sorted(members)
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


@ONE
def test_scripts_can_be_executed_and_nothing_else_can(assignment, tmp_path):
    built = build(assignment, tmp_path)
    for file in (built.handout, built.autograder):
        with zipfile.ZipFile(file) as archive:
            modes = {m.filename: m.external_attr >> 16 for m in archive.infolist()}
        scripts = {name for name, mode in modes.items() if mode & 0o111}
        assert scripts == ({"setup.sh", "run_autograder"} if file == built.autograder else set())
        assert all(stat.S_ISREG(mode) and mode & 0o444 == 0o444 for mode in modes.values())
    unpack(built.autograder, tmp_path / "source")
    assert os.access(tmp_path / "source" / "setup.sh", os.X_OK)


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    file = tmp_path / "new" / "file"
    assert write_if_changed(file, b"one")
    assert not write_if_changed(file, b"one")
    assert write_if_changed(file, b"two")
    assert file.read_bytes() == b"two"
    assert list(file.parent.iterdir()) == [file]


def leak(tmp_path, kind, members):
    """Check a real zip with some members added or replaced."""
    file = tmp_path / f"a1-{kind}.zip"
    file.write_bytes(zip_bytes({**KINDS[kind], **members}))
    check_zip(file, A1)


@BOTH
def test_a_line_of_the_solution_is_found_in_any_member(kind):
    assert SECRET in solution_lines(SOLUTION.read_text("utf-8"), "convolution.py")
    secrets = Secrets([A1], A1.name)
    for name, content in KINDS[kind].items():
        with pytest.raises(CourseError, match=rf"^{name} contains a line of .*last_start ="):
            secrets.check(name, content + b"\n      " + SECRET.encode() + b"\n")


def test_every_line_of_the_solution_but_the_shortest_is_found():
    secrets = Secrets([A1], A1.name)
    lines = solution_lines(SOLUTION.read_text("utf-8"), "convolution.py")
    long = [line for line in lines if len(line) >= SHORTEST_LINE]
    assert len(long) > 0.8 * len(lines)
    for line in set(long) - COMMONPLACE:
        with pytest.raises(CourseError, match="contains a line of solutions/a1_convolution"):
            secrets.check("common/student_code/values.py", f"x = 1\n    {line}\n".encode())


@pytest.mark.parametrize(
    "text",
    [f"# {SECRET}", f">>> {SECRET}", f"- `{SECRET}`", f'{{"hint": "{SECRET}"}}', f"x; {SECRET}"],
)
def test_a_line_of_the_solution_is_found_in_comments_prose_and_data(tmp_path, text):
    with pytest.raises(CourseError, match="contains a line of solutions/a1_convolution"):
        leak(tmp_path, "handout", {"README.md": f"Hello\n{text}\n".encode()})


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def as_bytes(content):
    return np.frombuffer(content, dtype=np.uint8)


def compiled():
    source = SOLUTION.read_text("utf-8")
    return b"\xa7\x0d\x0d\x0a" + bytes(12) + marshal.dumps(compile(source, "x", "exec"))


def zipped(name, content):
    return zip_bytes({name: content})


PICTURE = next(content for name, content in KINDS["handout"].items() if name.endswith(".png"))
LEAKS = {
    "bytecode by its name": ({"common/a.pyc": b"x"}, "must not contain common/a.pyc"),
    "bytecode in its folder": ({"common/__pycache__/a.txt": b"x"}, "must not contain"),
    "solutions by their folder": ({"solutions/a1_convolution/a.py": b"x"}, "must not contain"),
    "the list of mistakes": ({"tests/a1_convolution/mistakes.toml": b"x"}, "must not contain"),
    "alternatives": ({"tests/alternatives/a.py": b"x"}, "must not contain"),
    "a hidden file": ({"common/.env": b"x"}, "must not contain common/.env"),
    "a hidden folder": ({".git/config": b"x"}, "must not contain"),
    "compiled code under another name": ({"common/data.bin": compiled()}, "compiled code"),
    "compiled code as a picture": ({"images/a.png": compiled()}, "compiled code"),
    "compiled code behind a picture": ({"images/a.png": PICTURE + compiled()}, "compiled code"),
    "compiled code in an array": ({"a.npz": npz(x=as_bytes(compiled()))}, "compiled code"),
    "compiled code in a zip": ({"a.npz": zipped("x.npy", compiled())}, "compiled code"),
    "source in an array": ({"a.npz": npz(x=as_bytes(SOLUTION.read_bytes()))}, "a line of"),
    "source as text in an array": ({"a.npz": npz(x=np.array(SECRET.encode()))}, "a line of"),
    "source as wide text in an array": ({"a.npz": npz(x=np.array(SECRET))}, "a line of"),
    "source in a zip": ({"a.npz": zipped("x.npy", SOLUTION.read_bytes())}, "a line of"),
    "source in a zip behind a picture": (
        {"a.png": PICTURE + zipped("x.py", SOLUTION.read_bytes())},
        "a line of",
    ),
    "source behind a picture": ({"a.png": PICTURE + SOLUTION.read_bytes()}, "a line of"),
    "bytes of no known kind": ({"common/data.bin": b"\xff\xfe\x00"}, "neither text nor"),
    "bytes that only claim to be a picture": ({"a.png": b"\xff\xfe\x00"}, "is not a picture"),
    "bytes that only claim to be arrays": ({"a.npz": b"\xff\xfe\x00"}, "is not an archive"),
    "pickles in an archive of arrays": (
        {"a.npz": zipped("x.pkl", b"\x80\x04\x95")},
        "neither text nor",
    ),
}


@pytest.mark.parametrize(("members", "named"), LEAKS.values(), ids=LEAKS)
def test_a_leak_is_found_and_named(tmp_path, members, named):
    (name,) = members
    with pytest.raises(CourseError, match=rf"a1-handout\.zip.*{named}") as error:
        leak(tmp_path, "handout", members)
    assert name in str(error.value)


@pytest.mark.parametrize("optimization", [0, 1, 2])
def test_a_single_compiled_function_is_found(tmp_path, optimization):
    code = compile(SOLUTION.read_text("utf-8"), "elsewhere.py", "exec", optimize=optimization)
    functions = [c for c in code.co_consts if getattr(c, "co_name", "") == "conv2d_backward"]
    assert len(functions) == 1
    with pytest.raises(CourseError, match="compiled code of solutions/a1_convolution"):
        leak(tmp_path, "handout", {"common/data.bin": marshal.dumps(functions[0])})


def test_a_zip_that_leaks_is_not_left_behind(tmp_path):
    root = copy_repo(tmp_path / "repo")
    file = root / "common" / "student_code" / "values.py"
    file.write_text(f"{file.read_text('utf-8')}\n# {SECRET}\n", "utf-8")
    finished = python("-m", "autograder", "build", "a1", cwd=root)
    assert finished.returncode == 2
    assert (
        "common/student_code/values.py contains a line of solutions/a1_convolution"
        in finished.stderr
    )
    assert "Traceback" not in finished.stderr
    assert not list((root / "dist").iterdir())


def test_students_install_less_than_graders_who_install_less_than_instructors():
    parts = read_parts()
    student, grader = student_requirements(A1).splitlines(), grader_requirements().splitlines()
    everything = [line for part in parts.values() for line in part]
    assert set(student) < set(grader) < set(everything)
    assert "torch==2.13.0" in grader
    assert not {"torch", "safetensors", "click"} & {line.split("==")[0] for line in student}


@pytest.mark.parametrize(
    ("find", "put", "named"),
    [
        ("numpy==", "numpy>=", "'numpy>=.*' is not pinned"),
        ("# [grader]", "# grader", r"the part \[grader\] is missing"),
    ],
)
def test_requirements_that_cannot_be_split_are_named(tmp_path, find, put, named):
    file = tmp_path / "requirements.txt"
    text = (ROOT / "requirements.txt").read_text()
    assert find in text
    file.write_text(text.replace(find, put))
    with pytest.raises(CourseError, match=rf"requirements\.txt: {named}"):
        read_parts(file)


def test_the_requirements_of_handouts_only_grow():
    """Students unzip one handout over another: the last list must serve for all."""
    lists = [student_requirements(assignment).splitlines() for assignment in load_all()]
    assert not any("torch" in line for line in lists[0])
    for earlier, later in pairwise(lists):
        assert {*earlier} <= {*later}
