"""Tests of speed checks: alternating runs, after a warm-up, within the test's time."""

from functools import partial

import pytest

from common.check_log import LOG, check
from common.errors import Failure
from common.testing import speed_ratio
from common.testing.speed_ratio import Alternation, Try, alternate, check_speed, interval

RULES = {"bar": 2, "tries": 3, "patience": 60, "sentence": "It is slow.", "help": "Loop less."}


class Clock:
    """A clock that goes on only when code runs."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now

    monotonic = perf_counter


class Runner:
    """Candidates and baselines that take so long, try after try."""

    def __init__(self, clock, candidate, baseline=()):
        self.clock = clock
        self.seconds = {"candidate": list(candidate), "baseline": list(baseline)}
        self.order = []
        self.verified = []
        self.wrong = ()
        self.most = 1000

    def prepare(self):
        number = self.order.count("prepare")
        self.order.append("prepare")
        self.clock.now += 0.5  # which counts for neither
        if number >= self.most:
            return None
        runs = {name: partial(self.run, name, number) for name in self.seconds}
        return Try(runs["candidate"], runs["baseline"], self.verify)

    def verify(self, result, reference):
        self.clock.now += 0.5
        check(True, "Counted in each try.")
        self.verified.append((result, reference))
        if result in self.wrong:
            raise Failure("It is wrong.")

    def run(self, name, number):
        self.order.append(name)
        taken = self.seconds[name]
        self.clock.now += taken[number] if number < len(taken) else 1.0
        return f"{name} {number}"


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(speed_ratio, "time", clock)
    LOG.clear()
    return clock


def reported(runner, **rules):
    with pytest.raises(Failure) as raised:
        check_speed(runner.prepare, **RULES | rules)
    return raised.value


def test_one_good_try_is_enough_and_every_try_is_verified(clock):
    runner = Runner(clock, candidate=[9, 9, 2, 9])
    check_speed(runner.prepare, **RULES)
    assert runner.order == ["prepare", "baseline", "candidate"] * 3
    assert runner.verified == [(f"candidate {n}", f"baseline {n}") for n in range(3)]
    assert LOG.checks == 0  # a test's checks are counted the same, however many tries it takes


@pytest.mark.parametrize("wrong", range(3))
def test_a_wrong_result_of_any_try_fails(clock, wrong):
    runner = Runner(clock, candidate=[9, 9, 2, 9])
    runner.wrong = (f"candidate {wrong}",)
    with pytest.raises(Failure, match="It is wrong"):
        check_speed(runner.prepare, **RULES)


def test_tries_end_with_the_inputs(clock):
    runner = Runner(clock, candidate=[9] + 30 * [2.9])
    runner.most = 3
    assert "took 2.9x the baseline's time" in reported(runner).explanation.details
    assert runner.order.count("candidate") == 3


def test_the_first_try_only_warms_up(clock):
    slow_start = Runner(clock, candidate=[3, 3, 3, 3], baseline=[9])
    error = reported(slow_start)
    assert slow_start.order.count("candidate") == 4
    assert error.explanation.sentence == "It is slow." and error.explanation.help == "Loop less."
    assert "took 3x the baseline's time" in error.explanation.details
    assert error.evidence.text == "It is slow."  # the same on every machine


def test_code_near_the_bar_is_tried_until_patience_ends(clock):
    near = Runner(clock, candidate=[9, 2.9, 9, 9, 9, 9, 2])
    check_speed(near.prepare, **RULES)
    assert near.order.count("candidate") == 7
    never = Runner(clock, candidate=[9] + 30 * [2.9])
    assert "took 2.9x the baseline's time" in reported(never).explanation.details
    assert 10 < never.order.count("candidate") < 20  # 4.4 seconds each, of 60


def test_slow_code_hears_so_before_its_time_is_up(clock):
    hopeless = Runner(clock, candidate=[70])
    assert "took 70x the baseline's time" in reported(hopeless).explanation.details
    assert hopeless.order.count("candidate") == 1
    slow = Runner(clock, candidate=[40, 30, 20])
    assert "took 30x the baseline's time" in reported(slow).explanation.details
    assert slow.order.count("candidate") == 2


def test_a_warm_up_that_takes_all_the_time_is_not_held_against_fast_code(clock):
    runner = Runner(clock, candidate=[50, 1], baseline=[50, 1])
    check_speed(runner.prepare, **RULES)
    assert runner.verified[1:] == [("candidate 1", "baseline 1")]


def test_a_baseline_that_is_never_cold_is_not_warmed_up(clock):
    runner = Runner(clock, candidate=[9, 2])
    check_speed(runner.prepare, **RULES, cold=False)
    assert runner.verified == [("candidate 0", None), ("candidate 1", "baseline 1")]
    assert runner.order == ["prepare", "candidate", "prepare", "baseline", "candidate"]
    hopeless = Runner(clock, candidate=[70])
    assert "took 70x the baseline's time" in reported(hopeless, cold=False).explanation.details
    assert hopeless.order == ["prepare", "candidate", "baseline"]


def part_of_ten(clock, seconds):
    """A tenth of a baseline, which takes so long at its first run, its second, and so on."""
    left = iter(seconds)

    def run():
        clock.now += next(left)

    return run, 10


def test_a_part_of_the_baseline_is_enough_for_what_keeps_up_with_its_best_pace(clock):
    runner, part = Runner(clock, candidate=[9, 2]), part_of_ten(clock, [0.3, 0.125, 0.4])
    check_speed(runner.prepare, **RULES, part=part)
    assert runner.verified[1:] == [("candidate 1", None)]
    assert runner.order == ["prepare", "candidate"] * 2


def test_where_a_part_of_the_baseline_is_not_enough_the_whole_decides(clock):
    paces = [0.3, 0.075, 0.4] * 3  # the best is what counts
    runner = Runner(clock, candidate=[9, 2])
    part = part_of_ten(clock, paces)
    check_speed(runner.prepare, **RULES, part=part)
    assert runner.order.count("baseline") == 1
    slow = Runner(clock, candidate=[9, 2, 2, 2], baseline=[0.5] * 4)
    error = reported(slow, part=part_of_ten(clock, paces))
    assert "took 4x the baseline's time" in error.explanation.details
    assert slow.order == ["prepare", "candidate", *["prepare", "candidate", "baseline"] * 3]


def test_a_candidate_may_be_worth_several_runs_of_the_baseline(clock):
    check_speed(Runner(clock, candidate=[8, 8]).prepare, **RULES, runs=4)
    error = reported(Runner(clock, candidate=[6] * 4), bar=0.1, runs=8)
    assert "took 0.75x the baseline's time (limit 0.1x)" in error.explanation.details


def test_both_run_in_turns_and_warming_up_does_not_count(monkeypatch):
    runs, clock = [], iter(range(1000))
    monkeypatch.setattr(speed_ratio.time, "perf_counter", lambda: next(clock))
    found = alternate(lambda n: runs.append(("c", n)), lambda n: runs.append(("y", n)), 3, 2)
    assert sorted(runs) == [(who, n) for who in "cy" for n in range(5)]
    assert [n for _, n in runs] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    firsts = [runs[place][0] for place in range(0, 10, 2)]
    assert firsts == ["y", "c", "y", "c", "y"]
    assert len(found.candidate_seconds) == len(found.baseline_seconds) == 3


def test_ratios_are_of_neighbors():
    found = Alternation((1.0, 4.0, 2.0), (2.0, 2.0, 8.0))
    assert found.ratios == [2.0, 0.5, 4.0]


def test_an_interval_is_the_median_and_the_outer_tenths():
    found = interval([float(n) for n in reversed(range(11))])
    assert (found.median, found.low, found.high, found.n) == (5.0, 1.0, 9.0, 11)
    assert str(interval([1.0, 2.0])) == "1.50 (1.10 to 1.90)"
