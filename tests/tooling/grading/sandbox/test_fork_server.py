"""Tests of the fork server: it survives errors, and leaves other servers' children alone."""

import pytest

from autograder.grading.sandbox.fork_client import ForkServerClient
from autograder.grading.sandbox.fork_server import hold_data
from autograder.grading.sandbox.sandbox import Sandbox
from common.assignment import load_assignment
from common.data import cache, load_mnist
from common.errors import GraderFault
from tests.tooling.grading_fixtures import admitted, assignment, code_in
from tests.tooling.made_up_notebooks import QUICK, notebook, run_isolated
from tests.tooling.weakened_sandbox import needs_root, weakened

NO_PROCESS = 2**22  # above the highest pid that Linux gives


@needs_root
def test_any_error_in_the_fork_server_is_reported_and_does_not_end_it(tmp_path, packages):
    failing = "home_folder.Homes.remove = lambda *arguments: [][0]\n"
    with weakened(tmp_path, failing), Sandbox(assignment()) as made:
        for _ in range(2):
            with pytest.raises(GraderFault, match="list index out of range"):
                made.admit(code_in(packages))
        assert made.server.process.poll() is None


@needs_root
def test_a_child_that_can_not_be_ended_is_a_fault(packages):
    with admitted(packages) as (sandbox, _):
        sandbox.server.end(NO_PROCESS)
        for _ in range(2):  # the next answer would be that to this request
            with pytest.raises(GraderFault, match="the fork server failed"), sandbox.child():
                pass


@needs_root
def test_a_server_that_gets_ready_late_ends_no_child_of_another():
    with Sandbox(load_assignment("a5")) as made, made.child() as child:
        held = child.operate("hold", "hold", (1,), {})
        made.restricted_server.stop(keep_folder=True)
        made.restricted_server = ForkServerClient(made.server_module, made.folder)
        made.restricted_server.begin(made.server_plan(made.allowed, first=False))
        assert (
            made.restricted_server.mechanisms and made.lab_server.mechanisms
        )  # they are ready now
        assert child.operate("fetch", "fetch", (held,), {}) == 1


def test_a_server_that_is_stopped_while_it_loads_leaves_the_folder_to_the_others():
    with Sandbox(QUICK) as sandbox:
        sandbox.restart()
        assert sandbox.folder.is_dir()
        assert run_isolated(sandbox, notebook("q1_a = 1")).answer("q1_a") == 1


def test_data_that_cannot_be_had_is_left_to_the_cell_that_loads_it(monkeypatch):
    monkeypatch.setattr(cache, "held", None)
    monkeypatch.setattr(cache, "from_folder", lambda *arguments: 1 / 0)
    hold_data(["mnist"])
    with pytest.raises(ZeroDivisionError):
        load_mnist()
