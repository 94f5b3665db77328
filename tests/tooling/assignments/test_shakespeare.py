"""Tests of the script that trains the mini-GPT of assignment 7: short runs with the reference."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
from safetensors import safe_open

from common.assignment import ROOT
from common.training.experiments import INTERRUPTED
from tests.tooling.scratch_copies import clean_environment, copy_finished, give_python, python, run
from tests.tooling.wait_until import wait_until

MODULE = "assignments.a7_minigpt.shakespeare"
LEFT = ["checkpoint.safetensors", "config.json", "training.safetensors"]
MAKEFILE = ROOT / "autograder" / "packaging" / "templates" / "handout" / "Makefile"
ONE_THREAD = {"OMP_NUM_THREADS": "1"}  # a few small steps are slower on more


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A student's folder with a finished assignment 7."""
    folder = copy_finished(tmp_path_factory.mktemp("course"), "a7_minigpt")
    give_python(folder)
    shutil.copy(MAKEFILE, folder)
    return folder


def shakespeare(course, *arguments):
    """Run the script in a course folder."""
    return python("-m", MODULE, *arguments, cwd=course, env=ONE_THREAD)


def written(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def trained(course):
    """What five steps print; their files are in the folder `out`."""
    done = shakespeare(course, "--steps=5", "--out=out", "--prompt=KING")
    assert done.returncode == 0, done.stderr
    return done


def test_a_training_writes_what_is_submitted_and_prints_a_sample(course, trained):
    assert written(course / "out") == LEFT
    config = json.loads((course / "out" / "config.json").read_text(encoding="utf-8"))
    with safe_open(course / "out" / "checkpoint.safetensors", "pt") as file:
        shape = file.get_slice("token_embedding.weight").get_shape()
    assert shape == [len(config["characters"]), config["d_model"]]
    assert trained.stdout.startswith("810,496 parameters, ")
    assert "\n\nKING" in trained.stdout
    assert re.search(r"^validation loss \d\.\d{3} \(mean of 10 batches", trained.stdout, re.M)
    assert "written: out/checkpoint.safetensors, out/config.json" in trained.stdout
    assert "step 5: validation loss" in trained.stderr


def test_an_earlier_run_is_not_overwritten(course, trained):
    before = (course / "out" / "checkpoint.safetensors").read_bytes()
    done = shakespeare(course, "--steps=2", "--out=out")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "out/checkpoint.safetensors already exists: --resume continues that run, "
        "--overwrite starts a new one.\n"
    )
    assert (course / "out" / "checkpoint.safetensors").read_bytes() == before


def test_resume_continues_and_overwrite_starts_again(course, trained):
    shutil.copytree(course / "out", course / "again")
    done = shakespeare(course, "--steps=6", "--out=again", "--resume")
    assert done.returncode == 0, done.stderr
    assert "1/1 steps" in done.stderr
    done = shakespeare(course, "--steps=2", "--out=again", "--overwrite")
    assert done.returncode == 0, done.stderr
    assert "2/2 steps" in done.stderr


def test_after_ctrl_c_a_training_can_be_resumed(course):
    process = subprocess.Popen(
        [sys.executable, "-m", MODULE, "--steps=200", "--out=stopped"],
        cwd=course,
        env={**clean_environment(), **ONE_THREAD},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever starts the tests in the background has Ctrl-C ignored, by all below too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    state = course / "stopped" / LEFT[-1]
    wait_until(lambda: state.exists() or process.poll() is not None, 300)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == INTERRUPTED
    assert errors.endswith(
        "stopped/training.safetensors is kept: --resume continues.\n\nStopped.\n"
    )
    assert "Traceback" not in errors


REFUSED = {
    "--steps=0": "--steps must be at least 1",
    "--device=cuda": "--device cuda: there is no GPU here",
    "--resume": "new/training.safetensors doesn't exist: there is nothing to resume.",
    "--out=Makefile/new": "Can't write to Makefile/new: Not a directory.",
    "--prompt=\u20ac": "No sample from this prompt and these settings: '\u20ac' is not in",
    "--prompt=": "No sample from this prompt and these settings: the prompt is empty",
    "--top-p=2": "No sample from this prompt and these settings: top_p must be above 0",
    "--impl=solutions": "there is no folder solutions/a7_minigpt here",
}
# One process for all, since importing PyTorch takes seconds.
ONE_AFTER_ANOTHER = """
import contextlib, io, json, runpy, sys
module, *options = sys.argv[1:]
said = {}
for option in options:
    sys.argv = [module, "--steps=1", "--out=new", option]
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            code = runpy.run_module(module, run_name="__main__") and 0
        except SystemExit as stopped:
            code = stopped.code
    said[option] = code, errors.getvalue()
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def refused(course):
    """How the script ends with each of these options, and what it says."""
    done = python("-c", ONE_AFTER_ANOTHER, MODULE, *REFUSED, cwd=course, env=ONE_THREAD)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("option", REFUSED)
def test_bad_options_are_sentences(course, refused, option):
    if option == "--device=cuda" and shutil.which("nvidia-smi"):
        pytest.skip("there is a GPU")
    code, errors = refused[option]
    assert code == 2
    assert REFUSED[option] in errors
    assert "Traceback" not in errors
    assert not (course / "new" / LEFT[0]).exists()


def test_a_damaged_state_is_a_sentence(course, trained):
    shutil.copytree(course / "out", course / "damaged")
    (course / "damaged" / LEFT[-1]).write_bytes(b"nonsense")
    done = shakespeare(course, "--steps=6", "--out=damaged", "--resume")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(
        "Training stopped: damaged/training.safetensors is not a checkpoint"
    )


def test_make_shakespeare_is_the_same_command(course, trained, tmp_path):
    done = run(["make", "shakespeare", "ARGS=--steps=1 --out=out"], course, ONE_THREAD)
    assert done.returncode == 2
    assert "out/checkpoint.safetensors already exists" in done.stderr
    shutil.copy(MAKEFILE, tmp_path)
    done = run(["make", "shakespeare"], tmp_path)
    assert done.returncode == 2
    assert "shakespeare.py comes with the handout of a7." in done.stderr


def test_stubs_say_what_is_not_written_yet(tmp_path):
    done = shakespeare(ROOT, f"--out={tmp_path}")
    assert done.returncode == 2
    assert done.stderr.startswith("Not written yet: ")
    assert written(tmp_path) == []
