"""Trained models of assignment 7: what is wrong with their files is said in one sentence each."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save

from common.data import load_shakespeare
from common.errors import Failure
from tests.a7_minigpt import artifact_cases, oracle
from tests.a7_minigpt.artifact_cases import (
    CHECKPOINT,
    CONFIG,
    check_trained,
    held_out_loss,
    read_model,
)
from tests.a7_minigpt.cases import shapes_of

pytestmark = pytest.mark.usefixtures("one_thread")
SIZES = {"context_length": 16, "num_layers": 1, "num_heads": 2, "d_model": 8}


@pytest.fixture(scope="module")
def characters():
    return "".join(sorted(set(load_shakespeare("plays").train)))


@pytest.fixture
def config(characters):
    return {"characters": characters, **SIZES}


def tensors(config):
    """Zeros in all parameters: every character is equally likely."""
    sizes = config | {"vocab_size": len(config["characters"])}
    return {name: torch.zeros(shape) for name, shape in shapes_of("GPT", sizes).items()}


def read(config, content, checkpoint=None):
    config = config if isinstance(config, bytes) else json.dumps(config).encode()
    return read_model(save(content) if checkpoint is None else checkpoint, config)


def refusal(*arguments):
    """The one sentence of a refusal."""
    with pytest.raises(Failure) as caught:
        read(*arguments)
    sentence = caught.value.explanation.sentence
    assert sentence.endswith(".") and "\n" not in sentence
    assert len(caught.value.explanation.details) < 1000
    return sentence


def test_a_right_pair_of_files_is_a_model(config):
    trained = read(config, tensors(config))
    assert trained.small and trained.settings["vocab_size"] == len(config["characters"])
    loss = held_out_loss(oracle, trained, np.random.default_rng(0))
    assert loss == pytest.approx(np.log(len(config["characters"])), abs=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_taken(config, dtype):
    half = {name: value.to(dtype) for name, value in tensors(config).items()}
    trained = read(config, half)
    assert all(value.dtype == torch.float32 for value in trained.parameters.values())


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"context_length: 16",
        b"[" * 100_000,
        b"1" * 5000,
        b'{"characters": "ab", "context_length": NaN',
    ],
)
def test_a_config_that_is_no_json(config, content):
    assert refusal(content, tensors(config)) == f"{CONFIG} is not JSON in UTF-8."


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"more": 1}, "exactly"),
        ({"d_model": 0}, "d_model"),
        ({"d_model": -8}, "d_model"),
        ({"d_model": 8.0}, "d_model"),
        ({"d_model": "8"}, "d_model"),
        ({"d_model": True}, "d_model"),
        ({"d_model": None}, "d_model"),
        ({"d_model": 10**30}, "d_model"),
        ({"context_length": 1025}, "context_length"),
        ({"num_layers": 17}, "num_layers"),
        ({"num_heads": 17, "d_model": 17}, "num_heads"),
        ({"num_layers": float("nan")}, "num_layers"),
        ({"num_heads": 3}, "multiple"),
        ({"characters": 5}, "characters"),
        ({"characters": ""}, "characters"),
        ({"characters": "ba"}, "sorted"),
        ({"characters": "aab"}, "once"),
        ({"characters": "abc"}, "lacks characters"),
        ({"characters": "".join(map(chr, range(600)))}, "512"),
        ({"d_model": 1024, "num_layers": 16, "num_heads": 16}, "budget"),
    ],
)
def test_a_config_with_a_wrong_entry(config, change, part):
    content = tensors(config)
    sentence = refusal(config | change, content)
    assert sentence.startswith(CONFIG) and part in sentence


def test_a_config_that_lacks_an_entry(config):
    for name in config:
        rest = {key: value for key, value in config.items() if key != name}
        assert "exactly" in refusal(rest, tensors(config))
    for other in ([config], "config", 3, None):
        assert "exactly" in refusal(json.dumps(other).encode(), tensors(config))


def test_there_may_be_more_characters_than_in_the_plays(config):
    more = config | {"characters": "".join(sorted({*config["characters"], "é", "\U0001f600"}))}
    trained = read(more, tensors(more))
    assert held_out_loss(oracle, trained, np.random.default_rng(0)) > 0


def test_damaged_checkpoints(config):
    whole = save(tensors(config))
    huge = (2**62).to_bytes(8, "little") + whole[8:]
    deep = b'{"a":' * 5000
    nested = len(deep).to_bytes(8, "little") + deep
    for damaged in (b"", b"abc", whole[:100], whole[:-1], whole + b"x", huge, nested, b"PK" * 99):
        sentence = refusal(config, {}, damaged)
        assert sentence == f"{CHECKPOINT} is not a file that safetensors can read."


def with_header(text):
    return len(text).to_bytes(8, "little") + text


def test_a_header_can_neither_fill_the_memory_nor_the_message(config):
    entry = b'"%07d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    names = with_header(b"{" + b",".join(entry % number for number in range(20_000)) + b"}")
    assert refusal(config, {}, names) == f"{CHECKPOINT} has a header of more than 1,000,000 bytes."
    kind = with_header(b'{"a":{"dtype":"%s","shape":[0],"data_offsets":[0,0]}}' % (b"F" * 10_000))
    assert "safetensors can read" in refusal(config, {}, kind)


def test_a_checkpoint_with_overlapping_tensors(config):
    """A small file can't claim to hold more than it does."""
    content = tensors(config)
    header = {
        name: {"dtype": "F32", "shape": list(value.shape), "data_offsets": [0, 4 * value.numel()]}
        for name, value in content.items()
    }
    text = json.dumps(header).encode()
    size = 4 * max(value.numel() for value in content.values())
    damaged = len(text).to_bytes(8, "little") + text + bytes(size)
    assert "safetensors can read" in refusal(config, {}, damaged)


def test_a_checkpoint_of_another_model(config):
    content = tensors(config)
    missing = {name: value for name, value in content.items() if name != "norm.bias"}
    assert "lacks parameters" in refusal(config, missing)
    assert "aren't parameters" in refusal(config, content | {"lm_head.weight": torch.zeros(2)})
    assert "aren't parameters" in refusal(config, content | {"x" * 10_000: torch.zeros(2)})
    assert "doesn't match config.json" in refusal(config | {"context_length": 17}, content)
    assert "lacks parameters" in refusal(config | {"num_layers": 2}, content)
    flat = content | {"norm.bias": torch.zeros(8, 1)}
    assert "doesn't match config.json" in refusal(config, flat)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.bool, torch.float8_e4m3fn])
def test_a_checkpoint_of_another_type(config, dtype):
    content = tensors(config)
    content["norm.bias"] = content["norm.bias"].to(dtype)
    assert "float32, float16 or bfloat16" in refusal(config, content)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_checkpoint_that_holds_no_numbers(config, value):
    content = tensors(config)
    content["blocks.0.mlp.up.weight"][3, 5] = value
    assert "not finite" in refusal(config, content)


def test_weights_that_overflow_are_no_crash(config):
    content = {name: value + 1e38 for name, value in tensors(config).items()}
    files = {CHECKPOINT: save(content), CONFIG: json.dumps(config).encode()}
    with pytest.raises(Failure, match="not finite"):
        check_trained(oracle, files.__getitem__, np.random.default_rng(0), "first")


def test_a_bad_loss_is_reported_with_its_threshold_and_goes_to_the_leaderboard(config):
    files = {CHECKPOINT: save(tensors(config)), CONFIG: json.dumps(config).encode()}
    entries = []
    with pytest.raises(Failure, match=r"must have a loss below 1\.9"):
        check_trained(
            oracle,
            files.__getitem__,
            np.random.default_rng(0),
            "first",
            leaderboard=lambda *entry: entries.append(entry),
        )
    assert entries == [("validation loss", pytest.approx(4.248, abs=1e-3), "asc")]


def test_large_models_have_their_own_thresholds(config, monkeypatch):
    monkeypatch.setattr(artifact_cases, "SMALL_MODEL", 1000)
    files = {CHECKPOINT: save(tensors(config)), CONFIG: json.dumps(config).encode()}
    with pytest.raises(Failure, match=r"more than 1,000 parameters must have a loss below 1\.8 "):
        check_trained(oracle, files.__getitem__, np.random.default_rng(0), "first")


class CountingOracle:
    """Computes no loss, but counts the positions, in all and at a time."""

    def __init__(self):
        self.positions = self.largest = 0

    def loss(self, settings, parameters, tokens, targets):
        self.positions += tokens.numel()
        self.largest = max(self.largest, tokens.numel())
        return 0.0


@pytest.mark.parametrize(
    "sizes",
    [
        {"context_length": 256, "num_layers": 6, "num_heads": 6, "d_model": 384},
        {"context_length": 1024, "num_layers": 16, "num_heads": 1, "d_model": 224},
        {"context_length": 1024, "num_layers": 16, "num_heads": 16, "d_model": 16},
        {"context_length": 1, "num_layers": 1, "num_heads": 1, "d_model": 1},
    ],
)
def test_the_work_of_judging_is_bounded(characters, sizes):
    """The sizes for a GPU fit into the budget. Whatever the shape, it is seconds of one core."""
    config = {"characters": characters, **sizes}
    trained, counting = read(config, tensors(config)), CountingOracle()
    held_out_loss(counting, trained, np.random.default_rng(0))
    each = 4 * sizes["d_model"] + 50 * sizes["num_heads"]
    forward = 2 * trained.size + sizes["context_length"] * sizes["num_layers"] * each
    assert 8 * sizes["context_length"] <= counting.positions <= 51_200
    assert counting.positions * forward < 4.1e11 and counting.largest <= 8192
