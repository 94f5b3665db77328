"""Which tasks Ray is given, and what becomes of them, without Ray."""

import socket
import time
from types import SimpleNamespace

import pytest

from autograder.authoring.course_imports import import_closure
from autograder.batch.batch_run import Order
from autograder.batch.engines import ray_engine, ray_worker
from autograder.batch.engines.ray_engine import RayEngine, check_somebody_listens
from autograder.batch.event_log import Log
from autograder.batch.input.export_reader import read_export
from autograder.batch.work_queue import Work
from common.errors import CourseError
from tests.tooling.batch.pretended_engine import A1

ROOMY = {"CPU": 2.0, "memory": 64e9}


def engine_on(*nodes: dict[str, float], alive: bool = True) -> RayEngine:
    """An engine on a cluster of nodes with so many cores and bytes, without Ray."""
    engine = RayEngine.__new__(RayEngine)
    engine.jobs, engine.needs = None, {"CPU": 1.0, "memory": 2e9}
    listed = [{"Alive": alive, "Resources": node} for node in nodes]
    engine.ray = SimpleNamespace(nodes=lambda: listed, get=lambda content: content)
    engine.task = SimpleNamespace(remote=lambda *given: iter([ray_worker.STARTED, b"died:why"]))
    engine.archive, engine.fixed = None, ()
    engine.looked = engine.had_room = time.monotonic()
    return engine


def test_a_cluster_whose_nodes_can_never_grade_is_refused():
    engine_on({"CPU": 8.0, "memory": 1e9}, ROOMY).check_nodes()
    with pytest.raises(CourseError, match="No node of the Ray cluster has the 1907 MB"):
        engine_on({"CPU": 8.0, "memory": 1e9}, {"CPU": 8.0, "memory": 1.5e9}).check_nodes()
    with pytest.raises(CourseError, match="No node of the Ray cluster has room"):
        engine_on({"memory": 64e9}, {"CPU": 4.0, "memory": 1e9}).check_nodes()


@pytest.fixture
def work(order: Order) -> Work:
    """Three submissions to grade."""
    folder = order.out.with_name("log")
    for path in (folder, folder / "state", folder / "results"):
        path.mkdir()
    export = read_export(order.export)
    return Work(export, A1, "zip", Log(folder), export.submissions)


def test_a_cluster_that_loses_its_nodes_is_waited_for_but_not_for_ever(work, monkeypatch):
    engine = engine_on(ROOMY, alive=False)
    monkeypatch.setattr(ray_engine, "LOOK_EVERY", -1.0)
    engine.look_for_room(work)
    assert not work.stopped
    engine.had_room -= ray_engine.ROOM_SECONDS + 1
    engine.look_for_room(work)
    assert work.stopped == "for 10 minutes no node of the Ray cluster has had room"


def test_ray_is_given_few_tasks_more_than_it_starts_and_no_more_than_asked_for(work, monkeypatch):
    engine, tasks = engine_on(ROOMY), {}
    monkeypatch.setattr(ray_engine, "WAITING", 1)
    engine.submit(work, tasks)
    engine.submit(work, tasks)
    assert (len(tasks), work.running) == (1, [])  # it waits for a node
    engine.receive(next(iter(tasks)), tasks, work)
    assert [attempt.id for attempt, _ in work.running] == ["ada"]
    engine.jobs = 1
    engine.submit(work, tasks)
    assert len(tasks) == 1
    engine.jobs = None
    engine.submit(work, tasks)
    assert [attempt.id for attempt in tasks.values()] == ["ada", "alan"]


def test_a_judge_that_died_on_a_node_is_a_fault_and_the_attempt_is_over(work):
    engine, tasks = engine_on(ROOMY), {}
    engine.submit(work, tasks)
    assert len(tasks) == 3
    first = next(iter(tasks))
    engine.receive(first, tasks, work)
    engine.receive(first, tasks, work)
    assert (len(tasks), work.running, work.progress.retries) == (2, [], 1)
    ((_, number, again),) = work.later
    assert (again.id, number) == ("ada", 2)


def test_an_address_where_nobody_listens_is_reported_at_once():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{held.getsockname()[1]}"
        with pytest.raises(CourseError, match=f"There is no Ray cluster at {address}: "):
            check_somebody_listens(address)
        held.listen()
        check_somebody_listens(address)
    check_somebody_listens("auto")


def test_neither_engine_needs_the_other():
    engines = {f"autograder.batch.engines.{name}" for name in ("local_engine", "ray_engine")}
    for engine in engines:
        assert import_closure([engine]) & engines == {engine}
