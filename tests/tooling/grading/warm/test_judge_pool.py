"""Tests of the judge pool: a judge that dies is replaced, and its output is kept."""

import msgspec
import pytest

from autograder.grading.sandbox.wire.frames import ChannelClosed
from autograder.grading.warm.judge_client import JudgeClient
from autograder.grading.warm.judge_messages import GradingReply, JudgeOptions
from autograder.grading.warm.judge_pool import JudgeDied, JudgePool


class PretendedJudge:
    """Answers, or fails in the way that it is given."""

    def __init__(self, failure=None):
        self.failure = failure

    def exchange(self, request):
        if self.failure:
            raise self.failure
        return msgspec.msgpack.encode(GradingReply(score=1.0))

    def close(self):
        pass

    def last_line(self):
        return ""


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        (MemoryError(), "the judge ended (MemoryError)"),
        (TimeoutError(), "the judge didn't answer in time (TimeoutError)"),
    ],
)
def test_whatever_happens_to_a_judge_the_slot_goes_on_with_another(failure, sentence):
    judges = iter([PretendedJudge(failure), PretendedJudge()])
    pool = JudgePool(lambda slot: next(judges))
    with pytest.raises(JudgeDied) as died:
        pool.grade(1, b"")
    assert str(died.value) == sentence
    assert pool.grade(1, b"").score == pool.grade(1, b"").score == 1.0


def test_what_a_dying_judge_says_is_reported(tmp_path):
    package = tmp_path / "autograder" / "grading" / "warm"
    package.mkdir(parents=True)
    (package / "warm_judge.py").write_text("raise SystemExit('no salt here')")
    judge = JudgeClient(tmp_path, JudgeOptions("a1", forks=True))
    with pytest.raises((ChannelClosed, OSError)):
        judge.exchange(b"")
    judge.close()
    assert judge.last_line() == "no salt here"
