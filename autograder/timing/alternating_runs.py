"""Alternates runs of the student's model and the baseline, with identical weights."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from autograder.timing.baseline_gpt import (
    BETAS,
    LEARNING_RATE,
    MAX_NORM,
    SIZES,
    WEIGHT_DECAY,
    BaselineGPT,
    Trainer,
    continue_greedily,
)
from common.errors import Failure, GraderFault
from common.student_code.values import Handle, is_tensor
from common.testing import cuda
from common.testing.feedback.failure import explain, is_caused_by_submission
from common.testing.remote.operations import peak_memory_of
from common.testing.remote.timed_calls import carried, on_device, timed_calls
from common.testing.remote.torch_modules import load_parameters, parameters_of
from common.testing.speed_ratio import Alternation, Interval, alternate, interval
from common.training.peak_memory import cpu_peak_memory

STEPS = 4  # of training in one run, so that asking the child takes almost none of the time
SUCCESSORS = (0.8, 0.2)  # how likely the first and the second follower of a token are
# How far losses may be off: they are of the order 1, and rounding adds up over all steps.
BANDS = {"cpu": 0.01, "cuda": 0.05}  # bfloat16 on a GPU
# How far weights may be off, as a share of how far they have moved. AdamW moves a weight whose
# gradient is nearly 0 by as much as any other, in a direction that rounding decides.
DRIFT = {"cpu": 0.01, "cuda": 0.5}
NARROWEST_LEAD = 3e-4  # far above rounding, for logits of the order 1


Steps = tuple[list[float], dict[str, Any]]  # the losses of a run, and the weights after it


@dataclass(frozen=True)
class Measurement:
    """How fast one thing is. Where the submission isn't right, only the problem is there."""

    what: str
    problem: str = ""
    ratio: Interval | None = None  # times the baseline's speed
    tokens_per_second: Interval | None = None
    baseline_tokens_per_second: Interval | None = None


class AlternatingRuns:
    """A baseline and a student's model with the same weights, side by side."""

    def __init__(self, student: Handle, device: str, repeats: int, seed: int) -> None:
        self.student = student
        self.device = device
        self.repeats = repeats
        self.sizes = SIZES[device]
        self.random = random.Random(seed)
        torch.manual_seed(seed)
        self.baseline = BaselineGPT(self.sizes).to(self.device)
        self.trainer = Trainer(self.baseline, autocast=self.device == "cuda")
        followers = range(self.sizes.vocab_size)
        self.text = {token: self.random.sample(followers, len(SUCCESSORS)) for token in followers}
        self.model: Handle | None = None

    def attempt(self, what: str, task: Callable[[], Measurement]) -> Measurement:
        """Measure; if the submission is wrong, report the problem instead of figures."""
        try:
            return task()
        except Exception as error:
            if not is_caused_by_submission(error):
                raise
            return Measurement(what, explain(error).sentence)

    def students_model(self) -> Handle:
        """The student's model, with the baseline's weights as they are now."""
        if self.model is None:
            code, sizes = self.student.model, self.sizes
            config = code.GPTConfig(
                sizes.vocab_size,
                context_length=sizes.context_length,
                num_layers=sizes.num_layers,
                num_heads=sizes.num_heads,
                d_model=sizes.d_model,
                dropout=0.0,
            )
            self.model = code.GPT(config)
            self.model.to(self.device)
        load_parameters(self.model, self.baseline.students_weights())
        return self.model

    def batch(self) -> tuple[Any, Any]:
        """Sequences in which each token has two followers, a likely one and another."""
        rows = []
        for _ in range(self.sizes.batch):
            row = [self.random.randrange(self.sizes.vocab_size)]
            while len(row) <= self.sizes.context_length:
                row += self.random.choices(self.text[row[-1]], SUCCESSORS)
            rows.append(row)
        whole = torch.tensor(rows)
        return whole[:, :-1].contiguous(), whole[:, 1:].contiguous()

    def train(self) -> Measurement:
        """Both take the same steps, run after run, and lose the same at each of them."""
        model = self.students_model()
        training = self.student.training
        optimizer = training.configure_optimizer(model, LEARNING_RATE, WEIGHT_DECAY, BETAS)
        autocast = self.trainer.autocast
        right: dict[int, Steps] = {}
        found: dict[int, Steps] = {}
        drawn = [[[self.batch()] for _ in range(STEPS)] for _ in range(self.repeats + 1)]

        def baseline(number: int) -> None:
            given = on_device(carried(self.student, drawn[number]), self.device)
            losses = [self.trainer.step(step) for step in given]
            right[number] = carried(self.student, (losses, self.baseline.students_weights()))

        def candidate(number: int) -> None:
            calls = [(model, optimizer, step) for step in drawn[number]]
            settings: dict[str, Any] = {"max_norm": MAX_NORM, "autocast": autocast}
            losses = timed_calls(training.train_step, calls, device=self.device, **settings)
            found[number] = losses, parameters_of(model)

        before = carried(self.student, self.baseline.students_weights())
        times = alternate(candidate, baseline, self.repeats)
        for number in sorted(right):
            self.check_losses(found[number][0], right[number][0], number * STEPS)
            self.check_weights(found[number][1], right[number][1], before, number)
        tokens = STEPS * self.sizes.batch * self.sizes.context_length
        return measurement("training step", tokens, times)

    def check_losses(self, found: Any, right: list[float], before: int) -> None:
        """Each loss is the baseline's, but for rounding."""
        band = BANDS[self.device]
        numbers = isinstance(found, list) and all(type(loss) is float for loss in found)
        if not numbers or len(found) != len(right):
            raise Failure("train_step didn't return a float for each step.")
        for step, (loss, wanted) in enumerate(zip(found, right, strict=True), start=before + 1):
            if not math.isfinite(loss) or abs(loss - wanted) > band * max(1.0, wanted):
                raise Failure(
                    f"At step {step} the loss is {loss:.4f}, where the baseline has {wanted:.4f}: "
                    "with the same weights and batches, these are not the same steps."
                )

    def check_weights(
        self, found: dict[str, Any], right: dict[str, Any], before: dict[str, Any], number: int
    ) -> None:
        """The weights after a run have moved where the baseline's have, but for rounding."""
        moved = sum(float((right[name] - before[name]).abs().sum()) for name in right)
        off = sum(
            float((found[name] - right[name]).abs().sum())
            if is_tensor(found.get(name)) and found[name].shape == right[name].shape
            else math.inf
            for name in right
        )
        if not off <= DRIFT[self.device] * moved:
            raise Failure(
                f"After step {(number + 1) * STEPS} the weights are not the baseline's: "
                "with the same weights and batches, these are not the same steps."
            )

    def prompts(self) -> list[tuple[list[int], list[int]]]:
        """For each run a prompt of its own, and what follows. No choice in it is a close call."""
        self.baseline.scatter()
        found: list[tuple[list[int], list[int]]] = []
        for _ in range(10 * (self.repeats + 1)):
            if len(found) > self.repeats:
                return found
            prompt = [self.random.randrange(self.sizes.vocab_size) for _ in range(4)]
            tokens, lead = continue_greedily(self.baseline, prompt, self.sizes.new_tokens)
            if lead > NARROWEST_LEAD:
                found.append((prompt, tokens))
        raise GraderFault("the baseline can't decide between tokens")

    def generate(self) -> Measurement:
        """Both continue the same prompts with the most likely tokens, which must be the same."""
        runs = self.prompts()
        model = self.students_model()
        found: dict[int, Any] = {}
        count = self.sizes.new_tokens

        def baseline(number: int) -> None:
            (prompt,) = carried(self.student, [torch.tensor(runs[number][0])])
            tokens, _ = continue_greedily(self.baseline, prompt.tolist(), count)
            carried(self.student, [torch.tensor(tokens)])

        def candidate(number: int) -> None:
            calls = [(model, torch.tensor(runs[number][0]), count)]
            generate = self.student.sampling.generate_cached
            (found[number],) = timed_calls(generate, calls, device=self.device, temperature=0.0)

        times = alternate(candidate, baseline, self.repeats)
        for number, tokens in found.items():
            wanted = torch.tensor(runs[number][1])
            if not is_tensor(tokens) or not torch.equal(tokens, wanted):
                raise Failure("generate_cached returns different tokens than the baseline.")
        return measurement("generation", count, times)

    def memory(self) -> tuple[int | None, int]:
        """Bytes of tensors at the peak of a training step: the student's, and the baseline's."""
        batch = self.batch()
        ours = [tuple(part.to(self.device) for part in batch)]
        count = cpu_peak_memory if self.device == "cpu" else cuda.peak_memory
        of_baseline = count(partial(self.trainer.step, ours))
        try:
            model, training = self.students_model(), self.student.training
            optimizer = training.configure_optimizer(model, LEARNING_RATE, WEIGHT_DECAY, BETAS)
            call = (model, optimizer, [batch])
            settings: dict[str, Any] = {"max_norm": MAX_NORM, "autocast": self.trainer.autocast}
            # Once before, so that the optimizer's state exists.
            timed_calls(training.train_step, [call], device=self.device, **settings)
            taken = peak_memory_of(training.train_step, call, self.device, **settings)
        except Exception as error:
            if not is_caused_by_submission(error):
                raise
            return None, of_baseline
        return taken if type(taken) is int else None, of_baseline


def measurement(what: str, tokens: int, times: Alternation) -> Measurement:
    """The figures of runs of that many tokens each."""
    return Measurement(
        what,
        ratio=interval(times.ratios),
        tokens_per_second=interval([tokens / taken for taken in times.candidate_seconds]),
        baseline_tokens_per_second=interval([tokens / taken for taken in times.baseline_seconds]),
    )
