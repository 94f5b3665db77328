"""Tests of the batch commands: options, errors and output."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.batch.batch_run import Order
from autograder.batch.engines import judge_settings
from autograder.commands import batch_commands as commands
from autograder.grading.warm.judge_messages import GradingReply
from common.assignment import LAB_FILE, ROOT
from tests.tooling.batch.pretended_engine import (
    A1,
    NAMES,
    Pretender,
    carry_out,
    changed,
    printed_summary,
)
from tests.tooling.scratch_copies import python


@pytest.mark.parametrize(
    ("regrade", "reported"), [(False, "command to resume"), (True, "keep their previous results")]
)
def test_what_is_said_after_an_interrupt_is_what_the_next_run_does(regrade, reported, order):
    def interrupt() -> None:
        raise KeyboardInterrupt

    if regrade:
        carry_out(order, Pretender())
    stopped = carry_out(changed(order, regrade=regrade), Pretender(after=interrupt))
    screen = printed_summary(*stopped)
    assert reported in screen
    again = Pretender()
    carry_out(changed(order, regrade=regrade), again)
    assert again.asked == [*(NAMES if regrade else NAMES[1:])]


@pytest.mark.parametrize(("options", "gpus"), (((), 0.5), (("--gpus-per-submission", "0"), 0.0)))
def test_a_batch_with_gpus_is_regraded_with_them_unless_asked_otherwise(
    options, gpus, order, monkeypatch
):
    carry_out(changed(order, gpus=0.5), Pretender())
    orders: list[Order] = []
    monkeypatch.setattr(commands, "carry_out", lambda order, *engine: orders.append(order))
    commands.regrade.main([str(order.out), "--failed", *options], standalone_mode=False)
    assert [order.gpus for order in orders] == [gpus]


@pytest.mark.parametrize("engine", ("local", "ray"))
def test_judges_know_where_submissions_and_results_lie(engine, order, monkeypatch):
    given: dict[str, tuple[Path, ...]] = {}

    class Started(Exception):
        pass

    def start(name: str) -> Callable:
        def started(*arguments) -> None:
            given[name] = arguments[-1]
            raise Started

        return started

    monkeypatch.setattr(commands, "load_ray", lambda: None)
    monkeypatch.setattr(commands, "LocalEngine", start("local"))
    monkeypatch.setattr(commands, "RayEngine", start("ray"))
    with pytest.raises(Started):
        commands.carry_out(order, engine, None, None)
    assert given == {engine: (order.export, order.out, order.out / "batch.json")}
    options = judge_settings.judge_options(A1, 1.0, (Path("class"),))
    assert (options.assignment, options.forks, options.gpu) == ("a1", True, True)
    assert options.private == (str(Path.cwd() / "class"),)


def test_only_without_an_id_is_not_everyone(order):
    for command in ("batch", "regrade"):
        given = (command, *(("a1", order.export, "--out") * (command == "batch")), order.out)
        done = python("-m", "autograder", *given, "--only", "", cwd=ROOT)
        assert (done.returncode, done.stderr) == (2, "--only doesn't match any submission.\n")


@pytest.mark.parametrize(
    ("count", "with_lab"),
    [(0, False), (1, False), (1, True), (3, False), (3, True)],  # every assignment has a lab
)
def test_zeros_for_what_could_not_be_read_are_reported(count, with_lab, order):
    for name in NAMES[:count]:
        (order.export / name / "convolution.py").rename(order.export / name / "lenet.py")
        if with_lab:
            (order.export / name / LAB_FILE).write_text("{}")
    batch, done = carry_out(order, Pretender())
    screen = printed_summary(batch, done)
    before, _, _ = screen.partition("3 graded, 0 kept")
    missing = "convolution.py is missing. Found: lenet.py."
    doubt = f"No submission in {order.export} holds a convolution.py: is it an export of a1?"
    names = () if with_lab else NAMES[:count]
    assert before.splitlines() == [
        *([doubt] if count == len(NAMES) else []),
        *(f"{name} was graded as an empty submission: {missing}" for name in names),
    ]
    assert done.warning == (doubt if count == len(NAMES) else "")
    assert (doubt in batch.index.notes) == bool(done.warning)
    whys = [row["why"] for row in csv.DictReader((order.out / "grades.csv").open())]
    assert whys == [missing] * count + [""] * (len(NAMES) - count)


def test_an_export_of_another_assignment_ends_with_an_error(order, monkeypatch):
    for name in NAMES:
        (order.export / name / "convolution.py").rename(order.export / name / "lenet.py")
    monkeypatch.setattr(commands, "LocalEngine", lambda *given: Pretender())
    with pytest.raises(SystemExit) as left:
        commands.carry_out(order, "local", None, None)
    assert left.value.code == 1


def test_a_regrade_whose_export_was_moved_says_what_to_do(order):
    carry_out(order, Pretender())
    order.export.rename(order.export.with_name("moved"))
    done = python("-m", "autograder", "regrade", order.out, cwd=ROOT)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert f"was graded from {order.export}, which no longer exists" in done.stderr
    assert f"batch a1 EXPORT --out {order.out}" in done.stderr


@pytest.mark.parametrize("anonymous", (False, True))
def test_what_is_printed_names_nobody_where_names_are_hidden(anonymous, order):
    (order.export / "notes of ada.txt").write_text("")
    fault = GradingReply(fault="ada.zip broke the judge")
    given = changed(order, anonymous=anonymous)
    screen = printed_summary(*carry_out(given, Pretender({"ada": [fault]})))
    assert ("ada" in screen) == (not anonymous)
