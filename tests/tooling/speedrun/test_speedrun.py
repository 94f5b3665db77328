"""Tests of the speedrun: its parts against PyTorch, its model's properties, and its command."""

import math
import re
import urllib.request
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

from autograder.benchmarks.benchmark_row import NotMeasured
from autograder.speedrun import race, speedrun_training
from autograder.speedrun.muon import Muon, orthogonalize
from autograder.speedrun.speedrun_model import (
    EPSILON,
    GPT,
    Shape,
    rms_norm,
    rotary_phases,
    rotate,
    squared_relu,
)
from autograder.speedrun.speedrun_training import (
    BASELINE,
    Corpus,
    Measurement,
    Run,
    rate_factor,
)
from common.data import Text
from solutions.a7_minigpt import benchmarks

# Matrices of 4 blocks, characters, positions, and the gains of 9 norms.
BASELINE_PARAMETERS = 4 * 12 * 128 * 128 + 65 * 128 + 64 * 128 + 9 * 128
SMALL = Shape(vocab_size=11, context_length=16, num_layers=2, num_heads=2, d_model=32)


@pytest.fixture(autouse=True)
def repeatable():
    """The same random numbers each time; restores the number of threads."""
    threads = torch.get_num_threads()
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


def synthetic() -> Text:
    """A text that a model can learn: random words from a few."""
    words = ["to ", "be ", "or ", "not ", "that ", "is ", "the ", "question\n"]
    drawn = torch.randint(len(words), (4000,)).tolist()
    text = "".join(words[index] for index in drawn)
    end = int(0.9 * len(text))
    return Text(text[:end], text[end:])


def awake(model: GPT) -> GPT:
    """The model with random weights everywhere, because zeros would hide mistakes."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    return model


@pytest.mark.parametrize("shape", [(3, 24, 24), (2, 16, 48), (2, 48, 16), (1, 20, 30)])
def test_orthogonalised_matrices_have_singular_values_near_one(shape):
    matrices = torch.randn(shape)
    u, s, vt = torch.linalg.svd(matrices, full_matrices=False)
    # Smaller singular values need more than five iterations.
    matrices = (u * s.clamp(min=0.05 * s.max())[:, None, :]) @ vt
    result = orthogonalize(matrices)
    values = torch.linalg.svdvals(result)
    assert result.shape == shape
    assert values.min() > 0.65 and values.max() < 1.25
    # The singular vectors don't change: in the bases of u and v, the result is diagonal.
    inside = u.mT @ result @ vt.mT
    assert (inside - torch.diag_embed(inside.diagonal(dim1=-2, dim2=-1))).abs().max() < 1e-3


def test_orthogonalising_zeros_gives_zeros():
    assert torch.equal(orthogonalize(torch.zeros(2, 8, 32)), torch.zeros(2, 8, 32))


def test_muon_moves_each_part_of_a_split_matrix_by_the_learning_rate():
    parameter = torch.nn.Parameter(torch.zeros(3 * 24, 24))
    sizes = torch.tensor([1e-3, 1.0, 1e3])[:, None, None]
    parameter.grad = (sizes * torch.randn(3, 24, 24)).flatten(0, 1)
    Muon([{"params": [parameter], "split": 3}], lr=0.1, momentum=0.9, weight_decay=0.0).step()
    lengths = torch.linalg.matrix_norm(parameter.detach().view(3, 24, 24), ord=2)
    assert ((lengths > 0.06) & (lengths < 0.13)).all()


def test_rms_norm_and_its_gradient_are_pytorchs():
    x = torch.randn(3, 5, 7, dtype=torch.float64, requires_grad=True)
    grad = torch.randn(3, 5, 7, dtype=torch.float64)
    ours, theirs = rms_norm(x), F.rms_norm(x, (7,), eps=EPSILON)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(
        torch.autograd.grad(ours, x, grad), torch.autograd.grad(theirs, x, grad)
    )


def test_squared_relu_and_its_gradient_are_those_of_the_formula():
    x = torch.randn(4, 9, dtype=torch.float64, requires_grad=True)
    grad = torch.randn(4, 9, dtype=torch.float64)
    ours, formula = squared_relu(x), x.clamp(min=0) ** 2
    torch.testing.assert_close(ours, formula)
    torch.testing.assert_close(
        torch.autograd.grad(ours, x, grad), torch.autograd.grad(formula, x, grad)
    )


def test_rotary_positions_keep_lengths_and_dont_change_the_first_position():
    x = torch.randn(2, 9, 3, 8)
    turned = rotate(x, rotary_phases(12, 8))
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    torch.testing.assert_close(turned[:, 0], x[:, 0])
    assert (turned[:, 1:] - x[:, 1:]).abs().max() > 0.1


def test_scores_of_rotated_vectors_depend_on_their_distance_alone():
    query, key = torch.randn(2, 8)
    phases = rotary_phases(12, 8)
    queries, keys = (rotate(each.expand(1, 12, 1, 8), phases)[0, :, 0] for each in (query, key))
    scores = queries @ keys.T
    for distance in range(12):
        along = scores.diagonal(-distance)
        torch.testing.assert_close(along, along[:1].expand_as(along), rtol=1e-4, atol=1e-4)
    assert scores[:, 0].std() > 0.1


@pytest.mark.parametrize("recipe", race.ablations(), ids=lambda recipe: recipe.name)
def test_a_later_character_never_changes_earlier_logits(recipe):
    model = awake(GPT(SMALL, recipe.switches)).eval()
    tokens = torch.randint(SMALL.vocab_size, (2, SMALL.context_length))
    before = model(tokens)
    for position in (1, 7, SMALL.context_length - 1):
        other = tokens.clone()
        other[:, position] = (other[:, position] + 1) % SMALL.vocab_size
        after = model(other)
        torch.testing.assert_close(after[:, :position], before[:, :position])
        assert (after[:, position] - before[:, position]).abs().max() > 1e-3


@pytest.mark.parametrize("recipe", race.ablations(), ids=lambda recipe: recipe.name)
def test_every_variant_is_about_as_large_as_the_baseline_and_starts_near_ln_65(recipe):
    model = GPT(Shape(vocab_size=65), recipe.switches)
    assert abs(model.num_parameters() / BASELINE_PARAMETERS - 1) < 0.1
    tokens = torch.randint(65, (4, 65))
    loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()).item()
    assert abs(loss - math.log(65)) < 0.3


def test_nanogpts_model_has_the_parameters_that_its_shape_gives():
    model = GPT(Shape(vocab_size=65), race.NANOGPT.switches)
    assert model.num_parameters() == BASELINE_PARAMETERS


def test_a_position_is_embedded_with_the_three_characters_before_it():
    model = awake(GPT(SMALL, race.OURS.switches))
    tokens = torch.randint(SMALL.vocab_size, (1, SMALL.context_length))
    other = tokens.clone()
    other[0, 5] = (other[0, 5] + 1) % SMALL.vocab_size
    moved = (model.embed(tokens) - model.embed(other)).abs().amax(dim=-1)[0] > 1e-6
    assert moved.nonzero().flatten().tolist() == [5, 6, 7, 8]


def test_the_learning_rates_follow_both_schedules():
    assert rate_factor(0.025, linear_decay=False) == pytest.approx(0.5)
    assert rate_factor(0.05, linear_decay=False) == pytest.approx(1.0)
    assert rate_factor(1.0, linear_decay=False) == pytest.approx(0.1)
    assert rate_factor(0.0, linear_decay=True) == 1.0
    assert rate_factor(1.0, linear_decay=True) == 0.0


def test_validation_reads_every_character_of_the_split_once():
    corpus = Corpus(synthetic())
    inputs, targets = corpus.windows(16)
    read = torch.cat([inputs.flatten(), targets[-1, -1:]])
    assert len(read) > len(corpus.validation) - 16
    assert torch.equal(read, corpus.validation[: len(read)])
    assert torch.equal(inputs.flatten()[1:], targets.flatten()[:-1])


def test_the_validation_loss_is_that_of_all_windows_at_once():
    corpus = Corpus(synthetic())
    model = awake(GPT(replace(SMALL, vocab_size=corpus.vocab_size, context_length=64), BASELINE))
    inputs, targets = corpus.windows(64)
    expected = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten()).item()
    assert corpus.loss(model) == pytest.approx(expected, rel=1e-5)


def test_a_run_that_pauses_ends_like_an_uninterrupted_one():
    recipe = replace(race.OURS, steps=6, batch_size=2)
    corpus = Corpus(synthetic())
    ticks = iter(range(1000))
    at_once, in_slices = (Run(recipe, corpus, lambda: float(next(ticks)), seed=3) for _ in range(2))
    at_once.advance(1.0)
    for part in (0.4, 0.5, 1.0):
        in_slices.advance(part)
        in_slices.measure()
    assert at_once.step == in_slices.step == 6
    assert at_once.seconds == in_slices.seconds == 6.0  # a tick each step, none for validation
    for mine, other in zip(at_once.model.parameters(), in_slices.model.parameters(), strict=True):
        torch.testing.assert_close(mine, other)


def test_the_verdict_compares_the_times_to_the_target():
    def ended(seconds, reached=None):
        at = None if reached is None else Measurement(step=1, seconds=reached, loss=1.87)
        return SimpleNamespace(seconds=seconds, reached=at)

    quick = ended(30.0, reached=20.0)
    assert "5.0 times the time that ours needs to reach 1.88." in race.verdict(
        ended(180.0, reached=100.0), quick
    )
    assert "to reach 1.88, and ends without reaching it" in race.verdict(ended(180.0), quick)
    assert race.verdict(ended(180.0, reached=100.0), ended(30.0)) == "Ours did not reach 1.88."


def test_the_quick_race_prints_a_table(capsys):
    assert race.main(["--quick", "--threads=1"], synthetic()) == 0
    table = capsys.readouterr().out
    for recipe in ("nanoGPT's recipe", "ours", "ours, longer"):
        assert f"\n{recipe} " in table
    assert not re.search(r"\bnan\b", table)


def test_the_quick_ablation_has_a_row_for_every_switch(capsys):
    assert race.main(["--quick", "--ablate", "--threads=1"], synthetic()) == 0
    table = capsys.readouterr().out
    for recipe in race.ablations():
        assert f"| {recipe.name} |" in table
    assert not re.search(r"\bnan\b", table)


def test_a_text_shorter_than_the_context_is_one_sentence(capsys):
    assert race.main(["--quick", "--threads=1"], Text("to be" * 200, "or not")) == 2
    assert "validation text must have at least 600 characters, got 6" in capsys.readouterr().err


@pytest.mark.parametrize("bad", ["--seconds=0", "--seconds=nan", "--threads=0", "--seed=-1"])
def test_a_bad_option_is_refused(bad, capsys):
    with pytest.raises(SystemExit) as ended:
        race.main([bad], synthetic())
    assert ended.value.code == 2
    assert bad.split("=")[0] in capsys.readouterr().err


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """No tiny Shakespeare anywhere."""

    def refuse(*_, **__):
        raise OSError("no network")

    monkeypatch.setenv("CONV2GPT_DATA", str(tmp_path))
    monkeypatch.setenv("CONV2GPT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(urllib.request, "urlopen", refuse)


def test_without_tiny_shakespeare_there_is_one_sentence(offline, capsys):
    assert race.main(["--quick"]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("Tiny Shakespeare can't be downloaded (no network)")
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_without_tiny_shakespeare_the_row_is_not_measured(offline):
    row = benchmarks.speedrun_row()
    assert isinstance(row, NotMeasured)
    assert "Tiny Shakespeare can't be downloaded" in row.why


def test_the_row_compares_our_time_to_the_target_with_nanogpts(monkeypatch):
    monkeypatch.setattr(race, "NANOGPT", replace(race.NANOGPT, steps=2, batch_size=2))
    monkeypatch.setattr(race, "OURS", replace(race.OURS, steps=2, batch_size=2))
    monkeypatch.setattr(race, "ROUNDS", 1)
    monkeypatch.setattr(speedrun_training, "TARGET", 0.0)  # which nobody reaches
    row = benchmarks.speedrun_row(synthetic())
    assert row.seconds == math.inf and not row.holds
    assert 0 < row.baseline_seconds < math.inf
