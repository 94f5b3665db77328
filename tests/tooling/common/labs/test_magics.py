"""Tests of Jupyter magics in cells: they do nothing, and the code around them runs."""

import pytest

from common.labs.lab_in_process import run_lab_in_process
from tests.tooling.made_up_notebooks import A1, notebook

JUPYTERS_LINES = {
    "a comment that asks": "%matplotlib inline\nq1_a = 7  # why?",
    "a text that asks": '%matplotlib inline\ntext = """Why\nso?\n% 9\n"""\nq1_a = len(text) - 5',
    "a line that goes on": "%matplotlib inline\nq1_a = (47\n% 10)",
    "a timed line": "%time q1_a = 7",
    "a timed value": "q1_a = %time 3 + 4",
    "a timed cell": "\n%%time\nq1_a = 7",
    "a captured cell": "%%capture out\nprint(1)\n%time q1_a = 7",
    "a command's lines": "files = !ls *.py | grep \"it's (\nq1_a = 7",
    "a long command": "!pip install \\\n    something \\\n  more\nq1_a = 7",
    "help": "?len\nlen?\nlen??\nstr.split?\nq1_a = 7",
    "within a block": "for q1_a in range(8):\n    %timeit q1_a\n    !ls\n    len?",
    "pasted": "\n    q1_a = 6\n    if q1_a:\n        q1_a += 1",
    "Windows' lines": "%cd x\r\nq1_a = 7\r\nlen?\r\n",
}


@pytest.mark.parametrize("source", JUPYTERS_LINES.values(), ids=JUPYTERS_LINES)
def test_code_beside_what_belongs_to_jupyter_is_run_as_it_is(source):
    lab = run_lab_in_process(notebook(source), A1)
    assert lab.cell_errors == []
    assert lab.answer("q1_a") == 7


def test_a_cell_of_another_language_does_nothing():
    lab = run_lab_in_process(
        notebook("%%bash\nq1_a = 7\nls -l | grep", "%%html\n<b>q1_a = 7</b>"), A1
    )
    assert lab.cell_errors == [] and lab.answers == {}


def test_what_jupyter_can_not_read_either_is_reported_with_its_line():
    lab = run_lab_in_process(notebook("%time q1_a = 7\nq1_b = = 8  # why?"), A1)
    assert lab.cell_errors == [
        "lab.ipynb, cell 1 (`%time q1_a = 7`): SyntaxError: invalid syntax (<cell 1>, line 2)",
    ]
