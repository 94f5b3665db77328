"""Tests of which lab questions a changed answer can affect."""

import pytest

from autograder.authoring.answer_dependencies import questions_that_may_change
from autograder.authoring.lab_master import solved_notebook

MASTER = """# %%
import numpy as np

# %% [raw]
# # BEGIN QUESTION
# name: q1
# points: 1

# %% [raw]
# # BEGIN SOLUTION

# %%
q1_size = np.abs(3)  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION

# %%
print(q1_size)
drawn = []
GIVEN

# %% [raw]
# # BEGIN QUESTION
# name: q2
# points: 1

# %% [raw]
# # BEGIN SOLUTION

# %%
q2_sum = np.sum(drawn)  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION

# %%
print("the end")
"""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("pass", ("q1",)),
        ("drawn = [q1_size]", ("q1", "q2")),
        ("drawn.append(q1_size)", ("q1", "q2")),
        ("drawn[0] = q1_size", ("q1", "q2")),
        ("def draw():\n    return q1_size\ndrawn = draw()", ("q1", "q2")),
        ("np.put(drawn, 0, q1_size)", ("q1", "q2")),
        ("print(drawn, q1_size)", ("q1",)),
        ("other = q1_size", ("q1",)),
    ],
)
def test_what_depends_on_a_wrong_answer_may_be_wrong(given, expected):
    right = MASTER.replace("GIVEN", given)
    assert questions_that_may_change(right, right) == ()
    assert questions_that_may_change(right, right.replace("np.abs(3)", "np.abs(4)")) == expected
    assert questions_that_may_change(right, right.replace("sum(d", "max(d")) == ("q2",)


def test_a_function_that_reads_an_answer_is_distinguished_though_it_was_there_before():
    early = "import numpy as np\n\n\ndef draw():\n    return [size()]\n\n\n"
    early += "def size():\n    return q1_size\n"
    right = MASTER.replace("import numpy as np\n", early).replace("GIVEN", "drawn = draw()")
    wrong = right.replace("np.abs(3)", "np.abs(4)")
    assert questions_that_may_change(right, wrong) == ("q1", "q2")


def test_a_lab_can_end_with_a_question():
    text = MASTER.replace("GIVEN", "pass")
    assert b"q2_sum" not in solved_notebook(text, "q1") and b"q1_size" in solved_notebook(
        text, "q1"
    )
    assert b"q2_sum" in solved_notebook(text, "q2") and b"the end" not in solved_notebook(
        text, "q2"
    )
    assert b"the end" in solved_notebook(text)
