"""What is removed for good: PyTorch's operators, by whatever name they are called."""

import json
import os
import re
import subprocess
import sys
from contextlib import ExitStack

import pytest
import torch

from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.grading.sandbox.sandbox import Sandbox
from common.assignment import ROOT, load_all, load_assignment
from common.errors import ForbiddenCall
from common.student_code.forbidden_calls import Guard, refusal_texts
from common.testing.compare import assert_close
from common.testing.direct_face import DirectFace
from tests.tooling.grading_fixtures import FACES, code_in
from tests.tooling.sampling import sample

# Exercises, with some of what is refused there, and with what must not come out of any call: in a7
# nothing, since scaled_dot_product_attention is allowed there.
WALKS = {
    ("a4", "4.2"): (
        {
            *(
                "torch.nn.functional.scaled_dot_product_attention",
                "torch._triton_scaled_dot_attention",
            ),
            *("aten.scaled_dot_product_attention.default", "torch._native_multi_head_attention"),
            "torch.nn.functional.multi_head_attention_forward",
        },
        "attention",
    ),
    ("a5", "5.3"): (
        {
            *("torch._C._nn.scaled_dot_product_attention", "aten._native_multi_head_attention.out"),
            *(
                "aten._scaled_dot_product_attention_math.default",
                "torch._native_multi_head_attention",
            ),
        },
        "attention",
    ),
    ("a6", "6.2"): (
        {
            *("torch.nn.functional.group_norm", "torch.native_layer_norm", "torch.nn.RMSNorm"),
            *("torch._VF.native_batch_norm", "torch._refs.native_layer_norm"),
            *("aten.layer_norm.default", "aten.native_layer_norm.out"),
        },
        "layer norm",
    ),
    ("a6", "6.6"): (
        {"torch._C._nn.cross_entropy_loss", "aten.cross_entropy_loss.default"},
        "cross entropy",
    ),
    ("a7", "7.3"): (
        {
            *(
                "torch.nn.functional.multi_head_attention_forward",
                "torch._triton_multi_head_attention",
            ),
            *("aten._native_multi_head_attention.out", "torch._VF._transformer_encoder_layer_fwd"),
        },
        "",
    ),
}


@pytest.mark.parametrize("case", sample("operator walks", list(WALKS), 1), ids="-".join)
def test_nothing_that_can_be_called_reaches_a_removed_operator(case):
    refused, result = WALKS[case]
    walked = subprocess.run(
        [sys.executable, "-m", "tests.tooling.common.student_code.operator_walk", *case],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        text=True,
    ).stdout
    found = json.loads(walked.splitlines()[-1])  # libraries print before it
    assert found["called"] > 2000
    assert len(found["broke"]) < 5
    assert refused <= set(found["refused"])
    assert found["reached"] == []
    assert [name for name, what in found["returned"] if what == result] == []


# What has such a name and does something else: choices, statistics, other losses.
HARMLESS = {
    *("aten::_fused_sdp_choice", "aten::batch_norm_stats", "aten::batch_norm_update_stats"),
    *("aten::batch_norm_gather_stats", "aten::batch_norm_gather_stats_with_counts"),
}
FAMILIES = {
    "aten::layer_norm": r"(layer|group|instance|batch|rms)_norm",
    "aten::scaled_dot_product_attention": r"attention_forward|attention_math|scaled_dot|_sdp",
    "aten::_native_multi_head_attention": r"multi_head|transformer",
}


@pytest.mark.parametrize("assignment", load_all(), ids=lambda assignment: assignment.short)
def test_no_operator_of_a_forbidden_family_is_left_out(assignment):
    """A new release of PyTorch may bring new ones."""
    listed = {operator for entry in assignment.forbidden for operator in entry.operators}
    every = {name.partition(".")[0] for name in torch._C._dispatch_get_all_op_names()}
    standin = {"aten::_scaled_dot_product_attention_math"} if assignment.prerequisites else set()
    for member, names in FAMILIES.items():
        family = {
            name
            for name in every - HARMLESS - standin
            if name.startswith("aten::") and re.search(names, name) and "backward" not in name
        }
        if member in listed:
            assert family <= listed
    assert listed <= every


def test_a_refusal_names_the_function_that_was_called():
    norm = load_assignment("a6").forbidden[0]
    assert norm.call == "torch.nn.LayerNorm"
    texts = refusal_texts(norm)
    for name in ("torch.nn.LayerNorm", "torch.nn.functional.group_norm", "torch.native_layer_norm"):
        assert f"Exercises 6.2, 6.3, 6.4, 6.5 and 6.7 don't allow {name}: {norm.instead}." in texts
    guard = Guard([norm])
    assert guard.shown["aten::group_norm"] == "torch.nn.functional.group_norm"
    assert guard.shown["quantized::layer_norm"] == "torch.ops.quantized.layer_norm"


BORROWED = """
import torch


def norm(x):
    return torch.native_layer_norm(x, [8], None, None, 1e-5)[0]


def attend(x):
    from assignments.a5_attention.attention import scaled_dot_product_attention

    return scaled_dot_product_attention(x, x, x)[0]
"""


@pytest.mark.parametrize("kind", FACES)
def test_both_faces_refuse_an_operator_with_the_same_sentence(kind, tmp_path):
    assignment = load_assignment("a6")
    packages = {assignment.name: tmp_path / assignment.name}
    packages[assignment.name].mkdir()
    (packages[assignment.name] / "layers.py").write_text(BORROWED)
    x = torch.arange(24, dtype=torch.float64).sin().reshape(3, 8)
    with ExitStack() as stack:
        face = DirectFace(assignment, packages, assignment.standins)
        if kind == "isolated":
            sandbox = stack.enter_context(Sandbox(assignment))
            sandbox.admit(code_in(packages))
            face = IsolatedFace(sandbox)
        with face.open("6.2") as student, pytest.raises(ForbiddenCall) as raised:
            student.layers.norm(x)
        assert str(raised.value) == (
            "Exercises 6.2, 6.3, 6.4, 6.5 and 6.7 don't allow torch.native_layer_norm: "
            "use your own LayerNorm."
        )
        with face.open("6.1") as student:
            assert_close(student.layers.norm(x), torch.nn.functional.layer_norm(x, (8,)))
        with face.open("6.3") as student:  # what a stand-in needs is there still
            expected = torch.nn.functional.scaled_dot_product_attention(x, x, x)
            assert_close(student.layers.attend(x), expected)
