"""Fixtures of the sandbox tests: a submission that misbehaves, and children that run it."""

import os
import socket
from contextlib import contextmanager
from pathlib import Path

import pytest

from autograder.grading.sandbox.isolated_face import IsolatedFace
from common.assignment import ROOT
from tests.tooling.grading_fixtures import admitted, write_package
from tests.tooling.scratch_copies import open_to_others
from tests.tooling.weakened_sandbox import said, weakened

MISBEHAVING = Path(__file__).with_name("misbehaving_code.py")


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    return write_package(tmp_path_factory.mktemp("package"), MISBEHAVING.read_bytes())


@pytest.fixture(scope="module")
def private(tmp_path_factory):
    """Files that a child must not reach, in a place that any user may enter."""
    folder = tmp_path_factory.mktemp("private")
    open_to_others(folder)
    for name in ("results.json", "submission_metadata.json"):
        (folder / name).write_text("{}")
        (folder / name).chmod(0o666)
    folder.chmod(0o777)
    return folder


@pytest.fixture(scope="module")
def sandbox_and_defenses(packages, private):
    with admitted(packages, (ROOT / "tests", private)) as made:
        yield made


@pytest.fixture(scope="module")
def sandbox(sandbox_and_defenses):
    return sandbox_and_defenses[0]


@pytest.fixture
def student(sandbox):
    with IsolatedFace(sandbox).open("1.1") as code:
        yield code


@pytest.fixture
def without(tmp_path, packages):
    """Opens a child of a sandbox without some defenses, with what the result says of them."""

    @contextmanager
    def opened(*patches, private=()):
        with (
            weakened(tmp_path, *patches),
            admitted(packages, private) as (made, defenses),
            IsolatedFace(made).open("1.1") as code,
        ):
            yield code, said(defenses), made

    return opened


@pytest.fixture
def ports():
    """A TCP port and an abstract socket that any process of this machine could reach."""
    name = f"conv2gpt-test-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{name}")
        abstract.listen()
        yield tcp.getsockname()[1], name
