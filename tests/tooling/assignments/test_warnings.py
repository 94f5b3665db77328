"""Tests that right code prints no warnings in public tests, the lab's included."""

import json

import pytest

from autograder.authoring.lab_master import read_master, solved_notebook
from common.assignment import ROOT, load_assignment
from tests.tooling.scratch_copies import python

RUN_LAB = """
import json, sys, warnings
from pathlib import Path
from common.assignment import load_assignment
from common.labs.lab_in_process import run_lab_in_process

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    lab = run_lab_in_process(Path(sys.argv[2]).read_bytes(), load_assignment(sys.argv[1]))
words = [f"{each.category.__name__}: {each.message}" for each in caught]
Path(sys.argv[3]).write_text(json.dumps([str(lab.failure), words]))
"""


@pytest.mark.parametrize("name", ["a2_lenet", "a3_recurrent"])
def test_a_loss_that_is_not_finite_prints_no_warning(name):
    chosen = ("--impl=solutions", f"tests/{name}/test_public.py", "-k", "train_stops")
    done = python("-m", "pytest", "-W", "error::RuntimeWarning", *chosen, cwd=ROOT)
    assert "1 passed" in done.stdout, done.stdout
    assert "warning" not in done.stdout


@pytest.mark.parametrize("short", ["a4", "a6"])
def test_a_lab_that_draws_tensors_prints_no_warning(short, tmp_path):
    notebook, found = tmp_path / "lab.ipynb", tmp_path / "found.json"
    notebook.write_bytes(solved_notebook(read_master(load_assignment(short))))
    done = python("-c", RUN_LAB, short, notebook, found, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert json.loads(found.read_text()) == ["None", []]
