"""How many submissions a Ray cluster takes, without Ray."""

import socket
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from autograder.authoring.course_imports import import_closure
from autograder.batch.batch_run import Order
from autograder.batch.engines import ray_engine
from autograder.batch.engines.ray_engine import RayEngine, check_somebody_listens
from autograder.batch.event_log import Log
from autograder.batch.input.export_reader import read_export
from autograder.batch.work_queue import Work
from common.errors import CourseError
from tests.tooling.batch.pretended_engine import A1


def engine_on(*nodes: dict[str, float]) -> RayEngine:
    """An engine on a cluster of nodes with so many cores and bytes, without Ray."""
    engine = RayEngine.__new__(RayEngine)
    engine.jobs, engine.needs = None, {"CPU": 1.0, "memory": 2e9}
    told = [{"Alive": True, "Resources": node} for node in nodes]
    engine.ray = SimpleNamespace(nodes=lambda: told)
    return engine


def test_slots_of_a_cluster_are_those_that_its_nodes_have_room_for():
    small, large = {"CPU": 8.0, "memory": 5e9}, {"CPU": 4.0, "memory": 64e9}
    assert engine_on(small, large, {"memory": 64e9}).count_slots() == 2 + 4
    with pytest.raises(CourseError, match="No node of the Ray cluster has the 1907 MB"):
        engine_on({"CPU": 8.0, "memory": 1e9}, {"CPU": 8.0, "memory": 1.5e9}).check_nodes()
    with pytest.raises(CourseError, match="No node of the Ray cluster has room"):
        engine_on({"memory": 64e9}, {"CPU": 4.0, "memory": 1e9}).check_nodes()


def test_a_cluster_that_loses_its_nodes_is_waited_for_but_not_for_ever(order, monkeypatch):
    engine = engine_on({"CPU": 2.0, "memory": 64e9})
    engine.slots, engine.task = 2, SimpleNamespace(remote=lambda *given: object())
    engine.archive, engine.fixed = None, ()
    engine.looked = engine.had_room = time.monotonic()
    monkeypatch.setattr(ray_engine, "LOOK_EVERY", -1.0)
    waiting = Work(read_export(order.export), A1, "zip", Log(tmp(order)), [])
    engine.ray.nodes = lambda: [{"Alive": False, "Resources": {"CPU": 2.0, "memory": 64e9}}]
    engine.submit(waiting, {})
    assert engine.slots == 0 and not waiting.stopped
    engine.had_room -= ray_engine.ROOM_SECONDS + 1
    engine.submit(waiting, {})
    assert waiting.stopped == "for 10 minutes no node of the Ray cluster has had room"


def tmp(order: Order) -> Path:
    """A folder for a log."""
    folder = order.out.with_name("log")
    folder.mkdir(exist_ok=True)
    return folder


def test_an_address_where_nobody_listens_is_told_at_once():
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
