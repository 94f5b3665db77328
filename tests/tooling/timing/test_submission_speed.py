"""`python -m autograder time`: right code gets a ratio, wrong code a sentence, on small sizes."""

import io
import json
import math
from contextlib import nullcontext

import msgspec
import pytest
import torch
from rich.console import Console

from autograder.grading.sandbox.sandbox import Sandbox
from autograder.grading.submission import Submission
from autograder.timing import submission_speed
from autograder.timing.baseline_gpt import SIZES, BaselineGPT, Sizes, Trainer, continue_greedily
from autograder.timing.speed_table import print_speed
from autograder.timing.submission_speed import TimingOptions, measure
from common.assignment import Limits, load_assignment
from common.errors import CourseError

SMALL = Sizes(31, context_length=8, num_layers=2, num_heads=2, d_model=32, batch=3, new_tokens=25)
MODEL = """
import torch
import torch.nn.functional as F
from torch import nn


class GPTConfig:
    def __init__(
        self, vocab_size, context_length=64, num_layers=4, num_heads=4, d_model=128, dropout=0.0
    ):
        self.__dict__.update(locals())


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.num_heads = config.num_heads
        self.qkv = nn.Linear(config.d_model, 3 * config.d_model)
        self.out = nn.Linear(config.d_model, config.d_model)

    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(found.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.up = nn.Linear(config.d_model, 4 * config.d_model)
        self.down = nn.Linear(4 * config.d_model, config.d_model)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(config.d_model), nn.LayerNorm(config.d_model)
        self.attention, self.mlp = Attention(config), MLP(config)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.token_embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.position_embedding = nn.Embedding(config.context_length, config.d_model)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        self.norm = nn.LayerNorm(config.d_model)

    def forward(self, x, y=None):
        out = self.token_embedding(x) + self.position_embedding.weight[: x.shape[1]]
        for block in self.blocks:
            out = block(out)
        logits = self.norm(out) @ self.token_embedding.weight.T
        return logits, None if y is None else F.cross_entropy(logits.flatten(0, 1), y.flatten())
"""
TRAINING = """
import torch
from torch import nn


def configure_optimizer(model, learning_rate, weight_decay, betas):
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim < 2]
    groups = [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=betas)


steps = []


def train_step(model, optimizer, batches, max_norm=1.0, autocast=False):
    optimizer.zero_grad()
    total = 0.0
    for x, y in batches:
        loss = model(x, y)[1] / len(batches)
        loss.backward()
        total += loss.item()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return total
"""
SAMPLING = """
import torch


@torch.no_grad()
def generate_cached(model, prompt, length, temperature=1.0, **others):
    tokens, window = prompt.tolist(), prompt.tolist()
    for _ in range(length):
        token = int(model(torch.tensor([window]))[0][0, -1].argmax())
        tokens.append(token)
        if len(window) == model.config.context_length:
            window = window[-(model.config.context_length // 2) :]
        window = [*window, token]
    return torch.tensor(tokens)
"""
CODE = {"model.py": MODEL, "training.py": TRAINING, "sampling.py": SAMPLING}
ASSIGNMENT = msgspec.structs.replace(
    load_assignment("a1"),
    files=tuple(CODE),
    lab=None,
    libraries=("numpy", "torch"),
    forbidden=(),
    limits=Limits(60, 60, 2048),
)
ORDER = TimingOptions(repeats=2)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setitem(SIZES, "cpu", SMALL)


@pytest.fixture(scope="module")
def sandbox():
    """One for all wrong versions: loading PyTorch takes longer than measuring them."""
    with Sandbox(ASSIGNMENT) as made:
        yield made


@pytest.fixture
def one_sandbox(sandbox, monkeypatch):
    monkeypatch.setattr(submission_speed, "Sandbox", lambda assignment: nullcontext(sandbox))


def timed(order=ORDER, **changes):
    """What is measured of the code with some of it changed: file=(old, new)."""
    files = dict(CODE)
    for name, (old, new) in changes.items():
        assert files[f"{name}.py"].count(old) == 1
        files[f"{name}.py"] = files[f"{name}.py"].replace(old, new)
    taken = {name: source.encode() for name, source in files.items()}
    return measure(ASSIGNMENT, Submission(taken), order)


def test_right_code_gets_its_figures():
    found = timed(TimingOptions(repeats=4, peak_flops=1e9))
    for entry in (found.training, found.generation):
        assert entry.problem == ""
        assert 0 < entry.ratio.low <= entry.ratio.median <= entry.ratio.high
        assert entry.ratio.n == 4
        rates = (entry.tokens_per_second, entry.baseline_tokens_per_second)
        assert all(rate.median > 0 for rate in rates)
    assert 0.2 < found.peak_bytes / found.baseline_peak_bytes < 5
    per_token = 3 * (2 * (24 * 32**2 + 4 * 8 * 32) + 2 * 32 * 31)
    assert found.mfu == pytest.approx(found.training.tokens_per_second.median * per_token / 1e9)
    assert any("tests and metadata can't be read" in line for line in found.defenses)
    assert (found.clocks_before, found.clocks_after) == ("", "")
    content = json.loads(msgspec.json.encode(found))
    assert content["training"]["ratio"]["median"] == found.training.ratio.median
    assert content["sizes"]["d_model"] == 32
    console = Console(file=io.StringIO(), width=200)
    print_speed(found, console)
    said = console.file.getvalue()
    for part in ("training step", "generation", str(found.generation.ratio), "MB", "utilization"):
        assert part in said


@pytest.mark.usefixtures("one_sandbox")
def test_memory_is_that_of_the_step_that_is_timed():
    """On a GPU both use autocast: here, the step gets the argument in either case."""
    found = timed(training=("max_norm=1.0, autocast=False", "*, max_norm, autocast"))
    assert found.training.problem == "" and found.peak_bytes is not None


@pytest.mark.usefixtures("one_sandbox")
def test_slow_code_has_a_small_ratio():
    slow = "    optimizer.zero_grad()\n    __import__('time').sleep(0.1)\n"
    found = timed(training=("    optimizer.zero_grad()\n", slow))
    assert found.training.problem == ""
    assert found.training.ratio.high < 0.5
    assert found.mfu is None


WRONG_STEPS = {
    "no update": ("    optimizer.step()\n", ""),
    "no gradient": ("loss.backward()", "(0 * loss).backward()"),
    "no update after the last step": (
        "    optimizer.step()\n",
        "    steps.append(1)\n    if len(steps) != 52:\n        optimizer.step()\n",
    ),
    "a made-up loss": ("return total", "return 1.9"),
    "not a number": ("return total", "return float('nan')"),
}


@pytest.mark.usefixtures("one_sandbox")
@pytest.mark.parametrize("change", WRONG_STEPS.values(), ids=WRONG_STEPS)
def test_steps_that_are_not_the_baselines_get_no_ratio(change):
    # The last step's weights must be told from right ones by then, which are far from the first.
    found = timed(TimingOptions(repeats=12 if "52" in change[1] else 2), training=change)
    assert "these are not the same steps" in found.training.problem
    assert found.training.ratio is None and found.training.tokens_per_second is None
    assert found.generation.ratio is not None  # with the baseline's own weights


@pytest.mark.usefixtures("one_sandbox")
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"sampling": ("tokens.append(token)", "tokens.append(0)")}, "different tokens"),
        ({"sampling": ("return torch.tensor(tokens)", "return tokens")}, "different tokens"),
        (
            {"sampling": ("context_length // 2) :]", "context_length // 2 + 1) :]")},
            "different tokens",
        ),
        ({"sampling": ("tensor([window])", "tensor([window[-2:]])")}, "different tokens"),
        ({"sampling": ("tokens, window =", "1 / 0\n    tokens, window =")}, "ZeroDivisionError"),
        ({"sampling": ("def generate_cached", "def generate")}, "doesn't define generate_cached"),
    ],
)
def test_wrong_generation_gets_no_ratio_and_training_keeps_its_own(change, sentence):
    found = timed(**change)
    assert sentence in found.generation.problem
    assert found.generation.ratio is None
    assert found.training.ratio is not None


@pytest.mark.usefixtures("one_sandbox")
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"model": ("self.norm = nn", "self.last = nn")}, "no parameter named norm.weight"),
        ({"model": ("import torch\n", "import torch\nimport os\nos._exit(0)\n")}, "died"),
        ({"training": ("return total", "return [total]")}, "a float for each step"),
    ],
)
def test_a_submission_that_does_not_fit_is_told_in_a_sentence(change, sentence):
    found = timed(**change)
    assert sentence in found.training.problem
    console = Console(file=io.StringIO(), width=200)
    print_speed(found, console)
    assert f"x training step: {found.training.problem}" in console.file.getvalue()


def test_the_baseline_learns_and_is_causal():
    torch.manual_seed(0)
    model = BaselineGPT(SMALL)
    trainer = Trainer(model, autocast=False)
    x = torch.randint(31, (3, 8))
    y = (x + 1) % 31
    first = trainer.step([(x, y)])
    assert first == pytest.approx(math.log(31), abs=0.1)
    for _ in range(100):
        last = trainer.step([(x, y)])
    assert last < first / 2
    changed = x.clone()
    changed[:, 5] = (x[:, 5] + 1) % 31
    before, after = model(x), model(changed)
    assert torch.equal(before[:, :5], after[:, :5])
    assert not torch.allclose(before[:, 5:], after[:, 5:])
    # In two pieces, with the mean of their gradients, a step is the same.
    twin = BaselineGPT(SMALL)
    twin.load_state_dict(model.state_dict())
    whole, pieces = Trainer(model, False), Trainer(twin, False)
    x, y = torch.cat([x, changed]), torch.cat([y, y])
    losses = whole.step([(x, y)]), pieces.step([(x[:3], y[:3]), (x[3:], y[3:])])
    assert losses[0] == pytest.approx(losses[1])
    for one, other in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.allclose(one.grad, other.grad, atol=1e-6)


def test_the_baseline_generates_from_a_window_that_loses_its_oldest_half():
    torch.manual_seed(1)
    model = BaselineGPT(SMALL)
    model.scatter()
    found, lead = continue_greedily(model, [1, 2, 3], 25)
    assert len(found) == 28 and lead > 0 and model.training
    window = found[:3]
    for token in found[3:]:
        with torch.no_grad():
            assert int(model(torch.tensor([window]))[0, -1].argmax()) == token
        window = [*(window[4:] if len(window) == 8 else window), token]


def test_what_cannot_be_measured_is_refused(monkeypatch):
    monkeypatch.setattr(submission_speed.cuda, "available", lambda: False)
    for order, sentence in (
        (
            TimingOptions(device="cuda"),
            "--device cuda: PyTorch finds no usable GPU on this machine.",
        ),
        (TimingOptions(repeats=1), "--repeats must be at least 2"),
        (TimingOptions(peak_flops=0.0), "--peak-flops must be positive"),
        (TimingOptions(peak_flops=math.nan), "--peak-flops must be positive"),
    ):
        with pytest.raises(CourseError, match=sentence):
            timed(order)


def test_clocks_are_told_for_a_gpu_only(monkeypatch):
    monkeypatch.setattr(submission_speed.cuda, "clocks", lambda: "1410 of 1410 MHz; throttled: no")
    assert submission_speed.clocks_in_words("cuda") == "1410 of 1410 MHz; throttled: no"
    assert submission_speed.clocks_in_words("cpu") == ""
