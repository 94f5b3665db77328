"""Starts the process of a test's stand-ins when student code first calls one: the judge's side."""

import ast
import os
import socket
from functools import cache
from typing import Any

from autograder.grading.sandbox.fork_client import ForkServerClient
from autograder.grading.sandbox.kernel.confinement_plan import Plan
from autograder.grading.sandbox.wire.shared_arrays import sealed_memory
from common.assignment import ROOT
from common.errors import GraderFault

NAMES = "__all__"  # in a stand-in: what it offers


class StandinStarter:
    """A connection whose one end is the child's; the other waits here until something comes."""

    def __init__(self, server: ForkServerClient, plan: Plan) -> None:
        self.server = server
        self.plan = plan
        self.memory = sealed_memory()
        self.waiting, self.childs = socket.socketpair()
        self.pid: int | None = None

    @property
    def watched(self) -> list[int]:
        """The descriptors that become readable with the first call."""
        return [] if self.pid is not None else [self.waiting.fileno()]

    def start(self) -> None:
        """Let a process answer what has come and what follows. Nothing of it is read here."""
        nowhere = os.open("/dev/null", os.O_WRONLY | os.O_CLOEXEC)
        try:
            request = {"do": "start", "plan": self.plan}
            given = [self.waiting.fileno(), nowhere, self.memory]
            self.pid = self.server.ask(request, given)["pid"]
        finally:
            os.close(nowhere)
        self.waiting.close()  # so that the child notices where that process ends

    @property
    def descriptors(self) -> list[int]:
        """What the child is to be given."""
        return [self.childs.fileno(), self.memory]

    def close(self) -> None:
        """Hang up, and have the process killed, if there is one.

        If it couldn't be started, this raises that once more: the test may have caught it.
        """
        self.waiting.close()
        self.childs.close()
        os.close(self.memory)
        if self.server.fault:
            raise GraderFault(self.server.fault)
        if self.pid is not None:
            self.server.end(self.pid)


@cache
def offered_functions(standin: str) -> list[str]:
    """The functions that a stand-in offers, from its source: it needs PyTorch to be imported."""
    file = ROOT.joinpath(*standin.split(".")).with_suffix(".py")
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and is_name(node.targets[0], NAMES):
            return list(ast.literal_eval(node.value))
    raise ValueError(f"{file} doesn't say in {NAMES} which functions it offers")


def is_name(target: Any, name: str) -> bool:
    """Whether that name is what is assigned to."""
    return isinstance(target, ast.Name) and target.id == name
