"""Tests of the GPU runners for GitHub and Slurm: run here without a GPU."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys

import pytest
import yaml

from autograder.batch.batch_records import read_batch
from autograder.classroom.synthetic_class import DAMAGED, HOSTILE, make_class
from autograder.classroom.synthetic_export import read_truths, write_class
from common.assignment import ROOT, load_assignment
from tests.tooling.file_linters import shellcheck
from tests.tooling.scratch_copies import clean_environment, copy_repo, run, script

WORKFLOW = ROOT / ".github" / "workflows" / "grade-gpu.yml"
SLURM = ROOT / "autograder" / "runners" / "grade.slurm"
SHELL = ["bash", "--noprofile", "--norc", "-eo", "pipefail"]  # as GitHub's runners start it
HAS_RAY = importlib.util.find_spec("ray") is not None


def steps():
    """The steps of the workflow's only job."""
    (job,) = yaml.safe_load(WORKFLOW.read_text("utf-8"))["jobs"].values()
    return job["steps"]


@pytest.mark.parametrize("file", [SLURM, ROOT / ".ci" / "run"], ids=lambda file: file.name)
def test_shell_scripts_are_sound(file):
    finished = shellcheck(file)
    assert finished.returncode == 0, finished.stdout
    worse = file.read_text("utf-8") + "\nrm -rf $missing/*\n"
    assert shellcheck("-", text=worse).returncode != 0


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """A checkout, and a small class."""
    folder = tmp_path_factory.mktemp("runner")
    assignment = load_assignment("a1")
    handed = make_class(assignment, 4, 2, without=(DAMAGED, HOSTILE))
    export = write_class(handed, assignment, folder / "class")
    return copy_repo(folder / "repo"), export


def check_graded(out, export):
    """Every submission has a result that is true, and all the files are there."""
    batch = read_batch(out)
    truths = read_truths(export.parent)
    assert {entry.id for entry in batch.entries} == {*truths}
    for entry in batch.entries:
        truth = truths[entry.id]
        assert entry.status == "graded"
        assert truth.lowest <= entry.score <= truth.highest, (entry, truth)
    for name in ("grades.csv", "canvas.csv", "report.html", "log.jsonl"):
        assert (out / name).stat().st_size > 0


def test_the_workflow_s_commands_grade_a_class_here(scene):
    repo, export = scene
    given = {"ASSIGNMENT": "a1", "EXPORT": str(export), "GPUS": "0", "ANONYMOUS": ""}
    given |= {"PRIVATE": "true", "SEMESTER": json.dumps({"name": "x", "salt": "of this term"})}
    (upload,) = [step for step in steps() if "upload-artifact" in step.get("uses", "")]
    out = repo / upload["with"]["path"]
    for step in steps():
        if step is upload:
            check_graded(out, export)
            assert "of this term" in (repo / ".semester").read_text()
        if "run" in step:
            finished = run([*SHELL, "-c", step["run"]], repo, given)
            assert finished.returncode == 0, (step, finished.stdout, finished.stderr)
    assert not out.exists()
    assert not (repo / ".semester").exists()
    assert not (repo / "dist").exists()


def test_the_workflow_refuses_a_public_repository():
    refuse = steps()[0]["run"]
    finished = run([*SHELL, "-c", refuse], ROOT, {"PRIVATE": "false"})
    assert finished.returncode == 1
    assert "private" in finished.stdout


def test_the_slurm_script_says_how_it_is_used():
    finished = run(["bash", SLURM, "a1"], ROOT)
    assert finished.returncode == 2
    assert finished.stderr.startswith("usage: sbatch autograder/runners/grade.slurm")


@pytest.mark.skipif(
    not HAS_RAY, reason="Ray is not installed: autograder/batch/engines/requirements.txt"
)
def test_the_slurm_script_grades_a_class_on_two_nodes_here(scene, tmp_path):
    repo, export = scene
    ray = "from ray.scripts.scripts import main; main()"
    script(repo / ".venv" / "bin" / "ray", f"exec {sys.executable} -c '{ray}' \"$@\"")
    # Stand where Slurm's own commands would: both nodes are this machine.
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    log = tmp_path / "srun.log"
    script(bin_folder / "scontrol", 'printf "node1\\nnode2\\n"')
    script(
        bin_folder / "srun",
        f'while [ "${{1#--}}" != "$1" ]; do printf "%s " "$1" >> {log}; shift; done\n'
        f'echo "$@" >> {log}\n'
        'exec "$@"',
    )
    job = str(os.getpid())
    given = {
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "SLURM_JOB_NODELIST": "node[1-2]",
        "SLURM_JOB_ID": job,
        "SLURM_CPUS_PER_TASK": "1",
        "GPUS": "0",
    }
    try:
        finished = subprocess.run(
            ["bash", SLURM, "a1", export, tmp_path / "out"],
            cwd=repo,
            env=clean_environment() | given,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert finished.returncode == 0, finished.stdout + finished.stderr
    finally:
        shutil.rmtree(f"/tmp/ray-{job}", ignore_errors=True)
    check_graded(tmp_path / "out", export)
    started = [line for line in log.read_text().splitlines() if "ray start" in line]
    assert len(started) == 2
    assert "--nodelist=node1" in started[0]
    assert "--head" in started[0]
    assert "--nodelist=node2" in started[1]
