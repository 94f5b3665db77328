"""Keeps one warm judge per slot, and replaces one that died or doesn't answer."""

import threading
from collections.abc import Callable

import msgspec

from autograder.grading.warm.judge_client import JudgeClient
from autograder.grading.warm.judge_messages import GradingReply


class JudgeDied(Exception):
    """A judge ended or didn't answer in time, which may be the fault of what it graded."""

    def __init__(self, how: str, last_line: str, error: Exception) -> None:
        super().__init__(f"the judge {how} ({last_line or type(error).__name__})")
        self.last_line = last_line


class JudgePool:
    """The warm judges of a batch or of a proof, by slot; each is started when it is needed."""

    def __init__(self, start: Callable[[int], JudgeClient]) -> None:
        self.start = start
        self.judges: dict[int, JudgeClient] = {}
        self.closed = False

    def grade(self, slot: int, request: bytes) -> GradingReply:
        """Have the slot's judge grade; JudgeDied if it can't, and the next request gets another."""
        try:
            if slot not in self.judges and not self.closed:
                self.judges[slot] = self.start(slot)
            answer = self.judges[slot].exchange(request)
            return msgspec.msgpack.decode(answer, type=GradingReply)
        except Exception as error:  # whatever it is, the slot needs another judge
            judge, last_line = self.judges.pop(slot, None), ""
            if judge is not None:
                judge.close()
                last_line = judge.last_line()
            how = "didn't answer in time" if isinstance(error, TimeoutError) else "ended"
            raise JudgeDied(how, last_line, error) from None

    def close(self) -> None:
        """End all judges; whoever waits for one gets a JudgeDied."""
        self.closed = True
        closing = [threading.Thread(target=judge.close) for judge in [*self.judges.values()]]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join()
