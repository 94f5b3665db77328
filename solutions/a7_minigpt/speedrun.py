"""The speedrun: how much sooner than the public recipe does ours reach a loss of 1.88?

    python -m solutions.a7_minigpt.speedrun            the race, and a longer run for a lower loss
    python -m solutions.a7_minigpt.speedrun --ablate   what each switch is worth

Trainings take turns in short slices, so that whatever else the machine does slows all alike. Each
has a clock of its own, which runs while it trains and stands still while it is validated.
"""

import argparse
import math
import os
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from autograder.benchmarks.benchmark_row import NotMeasured, Row
from common.data import Text, load_shakespeare
from common.errors import CourseError
from common.training.experiments import run
from common.training.training_progress import TrainingDisplay
from solutions.a7_minigpt.speedrun_model import Switches
from solutions.a7_minigpt.speedrun_training import BAR, CONTEXT, Clock, Corpus, Recipe, Run

ROUNDS, ABLATION_ROUNDS = 32, 4  # slices of each training
QUICK_ROUNDS, QUICK_VALIDATION = 2, 1000

PUBLIC = Recipe("public recipe")
OURS = Recipe(
    "ours",
    steps=150,
    switches=Switches(
        rotary=True,
        rms_norm=True,
        qk_norm=True,
        squared_relu=True,
        zero_start=True,
        untied=True,
        earlier=3,
    ),
    batch=16,
    muon=True,
    linear_decay=True,
    rate=1e-2,
    betas=(0.9, 0.95),
    weight_decay=0.0,
    clip=0.0,
    muon_rate=0.03,
    muon_momentum=0.9,
)
# With more time, steadier steps pay: more characters for each, and a longer memory. Longer windows
# cost little more, since rotary positions need no further parameters.
LONGER = replace(
    OURS, name="ours, longer", batch=6, context=256, muon_rate=0.02, muon_momentum=0.95
)
ADAM_RATE = 3e-3  # the best of 1e-3, 3e-3, 6e-3 and 1e-2 for AdamW on all of our model


@dataclass(frozen=True)
class Options:
    """What was asked for."""

    seconds: float
    ablate: bool
    quick: bool
    threads: int
    clock: str
    seed: int


def read_options(arguments: Sequence[str]) -> Options:
    """The command line."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser = argparse.ArgumentParser(
        prog="python -m solutions.a7_minigpt.speedrun",
        description=f"Train on tiny Shakespeare to a validation loss of {BAR}, and beyond.",
    )
    parser.add_argument("--seconds", type=float, default=180.0, help="of the longer run (180)")
    parser.add_argument("--ablate", action="store_true", help="leave out one switch at a time")
    parser.add_argument("--quick", action="store_true", help="a few steps, to see that it works")
    parser.add_argument("--threads", type=int, default=cores or 1, help="(all cores)")
    parser.add_argument(
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="what seconds are: those of the clock on the wall, or of work by each thread, "
        "which is steadier where others use the machine too (wall)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of all random numbers (0)")
    options = Options(**vars(parser.parse_args(arguments)))
    if not (math.isfinite(options.seconds) and options.seconds > 0):
        parser.error("--seconds must be more than 0")
    if options.threads < 1:
        parser.error("--threads must be at least 1")
    if not 0 <= options.seed < 2**63:
        parser.error("--seed must be at least 0, and below 2**63")
    return options


def new_clock(options: Options) -> Clock:
    """Seconds that pass, or seconds that this process has worked, divided among its threads."""
    if options.clock == "wall":
        return time.perf_counter
    return lambda: time.process_time() / options.threads


def ablations() -> list[Recipe]:
    """Ours, and ours with one switch left out at a time."""

    def without(name: str, **switches: bool | int) -> Recipe:
        return replace(OURS, name=name, switches=replace(OURS.switches, **switches))

    return [
        OURS,
        without("learned positions", rotary=False),
        without("LayerNorm", rms_norm=False),
        without("no query-key norm", qk_norm=False),
        without("GELU", squared_relu=False),
        without("no zero start", zero_start=False),
        without("tied head", untied=False),
        without("no earlier characters", earlier=0),
        replace(OURS, name="AdamW for all", muon=False, rate=ADAM_RATE),
        replace(OURS, name="warm-up and cosine", linear_decay=False),
        replace(PUBLIC, name="public recipe, as short", steps=OURS.steps, batch=OURS.batch),
    ]


def new_runs(recipes: Sequence[Recipe], corpus: Corpus, options: Options) -> list[Run]:
    """A training by each recipe, not begun yet."""
    if options.quick:
        recipes = [replace(recipe, steps=2, batch=2, seconds=0.0) for recipe in recipes]
    for recipe in recipes:  # what PyTorch loads and sets up at first is on nobody's clock
        Run(recipe, corpus, new_clock(options), options.seed).train_step()
    return [Run(recipe, corpus, new_clock(options), options.seed) for recipe in recipes]


def in_turns(runs: Sequence[Run], rounds: int) -> Iterator[tuple[Run, float]]:
    """Train all to their ends, a slice of each in every round; who trained, and its loss now."""
    for done in range(1, rounds + 1):
        for each in runs:
            each.advance(done / rounds)
            yield each, each.measure(whole=done == rounds)


def train_in_turns(runs: Sequence[Run], rounds: int) -> None:
    """The same, shown."""
    with TrainingDisplay(total_steps=rounds * len(runs), title="speedrun") as display:
        for each, loss in in_turns(runs, rounds):
            display.step()
            display.note(
                f"{each.recipe.name}: step {each.step}, {each.seconds:.1f} s, loss {loss:.4f}"
            )


def race(corpus: Corpus, options: Options) -> None:
    """The public recipe against ours, and ours with more time."""
    recipes = [PUBLIC, OURS, replace(LONGER, seconds=options.seconds)]
    runs = new_runs(recipes, corpus, options)
    train_in_turns(runs, QUICK_ROUNDS if options.quick else ROUNDS)
    print(f"\nValidation on all windows of {CONTEXT} characters:")
    print(f"{'':24}parameters   steps  seconds  validation loss  seconds to {BAR}")
    for each in runs:
        reached = f"{each.reached.seconds:.1f}" if each.reached else "not reached"
        print(
            f"{each.recipe.name:24}{each.model.num_parameters():10,}{each.step:8}"
            f"{each.seconds:9.1f}{corpus.loss(each.model):17.4f}{reached:>17}"
        )
    public, ours, longer = runs
    context = longer.recipe.context
    alone = corpus.loss(longer.model, context=context)
    print(f"The last one's loss when it may look back over {context} characters: {alone:.4f}")
    print(verdict(public, ours))


def verdict(public: Run, ours: Run) -> str:
    """How the race ended, in a sentence. Who never reaches the bar counts with all its time."""
    if not ours.reached:
        return f"Ours did not reach {BAR}."
    theirs = public.reached.seconds if public.reached else public.seconds
    ratio = theirs / ours.reached.seconds
    end = "reaches it" if public.reached else "ends without reaching it"
    return f"Ours reaches {BAR} {ratio:.1f} times as soon as the public recipe {end}."


def benchmark(text: Text | None = None) -> Row | NotMeasured:
    """The race alone, on one thread: our time to the bar, against all of the public recipe's."""
    name, options = f"a7: speedrun to a validation loss of {BAR}", read_options(["--threads", "1"])
    try:
        corpus = Corpus(text or load_shakespeare("tiny"))
    except CourseError as error:
        return NotMeasured(name, str(error))
    torch.set_num_threads(options.threads)
    public, ours = new_runs([PUBLIC, OURS], corpus, options)
    deque(in_turns([public, ours], ROUNDS), maxlen=0)
    return Row(
        name,
        "the public recipe, until it is there or ends",
        ours.reached.seconds if ours.reached else math.inf,
        public.reached.seconds if public.reached else public.seconds,
        bar=1 / 3,
    )


def ablate(corpus: Corpus, options: Options) -> None:
    """What each switch is worth after equally many steps on equally many characters."""
    runs = new_runs(ablations(), corpus, options)
    train_in_turns(runs, QUICK_ROUNDS if options.quick else ABLATION_ROUNDS)
    print(f"\nAfter {runs[0].step} steps of {runs[0].recipe.batch} x {CONTEXT} characters:\n")
    print("| | parameters | seconds | validation loss | worse by |")
    print("|---|---:|---:|---:|---:|")
    losses = [corpus.loss(each.model) for each in runs]
    for each, loss in zip(runs, losses, strict=True):
        print(
            f"| {each.recipe.name} | {each.model.num_parameters():,} | {each.seconds:.1f} | "
            f"{loss:.3f} | {loss - losses[0]:+.3f} |"
        )


def main(arguments: Sequence[str], text: Text | None = None) -> int:
    """Run what is asked for, on tiny Shakespeare or on another text."""
    options = read_options(arguments)

    def work() -> None:
        torch.set_num_threads(options.threads)
        chosen = text or load_shakespeare("tiny")
        if options.quick:
            chosen = replace(chosen, validation=chosen.validation[:QUICK_VALIDATION])
        (ablate if options.ablate else race)(Corpus(chosen), options)

    return run(work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
