"""Fixtures of the command tests."""

import sys

import pytest

from autograder.__main__ import run


@pytest.fixture
def autograder(monkeypatch, capsys):
    """The command line in this process: exit code, stdout, stderr."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["autograder", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            run()
        return stop.value.code or 0, *capsys.readouterr()

    return call
