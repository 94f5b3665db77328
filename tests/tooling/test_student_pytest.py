"""What a student sees who runs `pytest`, and what a TA sees who runs `grade`."""

import json
import os
import re
import subprocess
import sys

import pytest

from common.assignment import ROOT

PUBLIC = "tests/a1_convolution/test_public.py"
HIDDEN = "tests/a1_convolution/test_hidden.py"
SIZES = "conv_output_size"


def run(*arguments):
    """Run Python as a person would, in the root of the course."""
    keep = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**keep, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def run_pytest(*arguments):
    return run("-m", "pytest", "-p", "no:cacheprovider", *arguments)


def test_failures_are_words_and_the_points_are_summed_up():
    done = run_pytest(PUBLIC)
    assert done.returncode == 1
    assert "conv_output_size is not written yet." in done.stdout
    assert "Traceback" not in done.stdout and "assert " not in done.stdout
    assert "common/" not in done.stdout
    assert "44 failed" in done.stdout or re.search(r"\d\d failed", done.stdout)
    assert re.search(r"  1\.1 +0 of 3   conv_output_size", done.stdout)
    assert "0 of 61 points shown here; 39 more are decided by hidden tests." in done.stdout
    assert "  lab.ipynb: the first question without an answer is q1_kernel." in done.stdout
    assert "not run" not in done.stdout
    assert "torch" not in done.stderr


def test_the_reference_can_be_tested_and_earns_all():
    done = run_pytest("-q", "--impl=solutions", PUBLIC, HIDDEN, "-k", f"{SIZES} or parameters")
    assert done.returncode == 0, done.stdout
    assert re.search(r"  1\.1 +5 of 5   conv_output_size", done.stdout)
    assert re.search(r"  1\.7 +3 of 3   conv_parameters", done.stdout)
    assert "8 of 8 points shown here; 36 more are decided by hidden tests." in done.stdout
    assert "56 more are decided by public tests that you have not run." in done.stdout


def test_a_traceback_is_there_for_those_who_ask_for_it():
    done = run_pytest("--tb=long", PUBLIC, "-k", "counts_the_places")
    assert "raise NotImplementedError" in done.stdout and "test_public.py" in done.stdout
    assert "0 of 1 points shown here" in done.stdout


def test_the_salt_decides_what_hidden_tests_draw_and_public_ones_do_not_care():
    script = (
        "import sys, pytest\n"
        "class Look:\n"
        "    @pytest.hookimpl(wrapper=True)\n"
        "    def pytest_fixture_setup(self, fixturedef, request):\n"
        "        value = yield\n"
        "        if fixturedef.argname == 'rng':\n"
        "            print('drew', request.node.name, value.bit_generator.state['state'])\n"
        "        return value\n"
        "pytest.main(sys.argv[1:], plugins=[Look()])\n"
    )
    chosen = ("-s", "--impl=solutions", PUBLIC, HIDDEN, "-k", "any_sizes or single_one")
    drawn = {}
    for salt in ("one", "two"):
        done = run("-c", script, *chosen, f"--salt={salt}")
        drawn[salt] = dict(re.findall(r"drew (\w+) (.*)", done.stdout))
    assert len(drawn["one"]) == 3
    for name, state in drawn["one"].items():
        assert (state == drawn["two"][name]) == ("single_one" in name)


@pytest.mark.parametrize("direct", [True, False], ids=["direct", "isolated"])
def test_grade_prints_points_and_reasons_and_writes_the_result(direct, tmp_path):
    out = tmp_path / "results.json"
    arguments = ["grade", "a1", "assignments/a1_convolution", "--out", str(out)]
    done = run("-m", "autograder", *arguments, *(["--direct"] if direct else []))
    assert done.returncode == 0, done.stderr
    content = json.loads(out.read_text())
    for text in (" ".join(done.stdout.split()), content["output"]):
        assert ("WITHOUT PROTECTION" in text) == direct
        assert ("no network: " in text) != direct
    assert content["extra_data"]["finished"] is True
    text = " ".join(done.stdout.split())
    assert "0 of 100 points. Hidden tests decide 39 of the 100" in text
    assert "conv2d_forward is not written yet." in text and "(hidden)" in text
    assert f"Written: {out}" in done.stdout.replace("\n", "")
