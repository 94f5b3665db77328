"""Compares how soon nanoGPT's recipe and ours reach a validation loss of 1.88.

    python -m autograder.speedrun.race             the race, and a longer run for a lower loss
    python -m autograder.speedrun.race --ablate    what each switch is worth

The runs alternate in short slices, so that other load on the machine slows all of them alike. Each
has its own clock, which runs during training and stops during validation.
"""

import argparse
import math
import os
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from autograder.speedrun.speedrun_model import Switches
from autograder.speedrun.speedrun_training import CONTEXT, TARGET, Clock, Corpus, Recipe, Run
from common.data import Text, load_shakespeare
from common.training.experiments import run
from common.training.training_progress import TrainingDisplay

ROUNDS, ABLATION_ROUNDS = 32, 4  # slices of each run
QUICK_ROUNDS, QUICK_VALIDATION = 2, 1000

NANOGPT = Recipe("nanoGPT's recipe")
OURS = Recipe(
    "ours",
    steps=150,
    switches=Switches(
        rotary=True,
        rms_norm=True,
        qk_norm=True,
        squared_relu=True,
        zero_init=True,
        untied=True,
        earlier=3,
    ),
    batch_size=16,
    muon=True,
    linear_decay=True,
    learning_rate=1e-2,
    betas=(0.9, 0.95),
    weight_decay=0.0,
    max_norm=0.0,
    muon_lr=0.03,
    muon_momentum=0.9,
)
# With more time, less noisy steps pay off: more characters in each, and a larger momentum. Longer
# windows cost little more, since rotary positions need no parameters.
LONGER = replace(
    OURS, name="ours, longer", batch_size=6, context_length=256, muon_lr=0.02, muon_momentum=0.95
)
ADAM_RATE = 3e-3  # the best of 1e-3, 3e-3, 6e-3 and 1e-2 for AdamW on all of our model


@dataclass(frozen=True)
class Options:
    """The command line."""

    seconds: float
    ablate: bool
    quick: bool
    threads: int
    clock: str
    seed: int


def read_options(arguments: Sequence[str]) -> Options:
    """Parse the command line."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser = argparse.ArgumentParser(
        prog="python -m autograder.speedrun.race",
        description=f"Train on tiny Shakespeare to a validation loss of {TARGET}, and beyond.",
    )
    parser.add_argument(
        "--seconds", type=float, default=180.0, help="length of the longer run (180)"
    )
    parser.add_argument("--ablate", action="store_true", help="leave out one switch at a time")
    parser.add_argument("--quick", action="store_true", help="a few steps, to check that it works")
    parser.add_argument("--threads", type=int, default=cores or 1, help="(all cores)")
    parser.add_argument(
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="how seconds are measured: by the wall clock, or as processor time per thread, "
        "which varies less on a busy machine (wall)",
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
    """Wall-clock seconds, or this process's processor time per thread."""
    if options.clock == "wall":
        return time.perf_counter
    return lambda: time.process_time() / options.threads


def ablations() -> list[Recipe]:
    """Ours, and ours with one switch left out at a time."""

    def without(name: str, **switches: Any) -> Recipe:
        return replace(OURS, name=name, switches=replace(OURS.switches, **switches))

    return [
        OURS,
        without("learned positions", rotary=False),
        without("LayerNorm", rms_norm=False),
        without("no query-key norm", qk_norm=False),
        without("GELU", squared_relu=False),
        without("no zero initialization", zero_init=False),
        without("tied embeddings", untied=False),
        without("no earlier characters", earlier=0),
        replace(OURS, name="AdamW for all", muon=False, learning_rate=ADAM_RATE),
        replace(OURS, name="warm-up and cosine", linear_decay=False),
        replace(
            NANOGPT, name="nanoGPT's recipe, as short", steps=OURS.steps, batch_size=OURS.batch_size
        ),
    ]


def new_runs(recipes: Sequence[Recipe], corpus: Corpus, options: Options) -> list[Run]:
    """A new run of each recipe."""
    if options.quick:
        recipes = [replace(recipe, steps=2, batch_size=2, seconds=0.0) for recipe in recipes]
    for recipe in recipes:  # PyTorch's own set-up counts for nobody
        Run(recipe, corpus, new_clock(options), options.seed).train_step()
    return [Run(recipe, corpus, new_clock(options), options.seed) for recipe in recipes]


def in_turns(runs: Sequence[Run], rounds: int) -> Iterator[tuple[Run, float]]:
    """Train all runs in turns; after each slice, the run and its loss."""
    for done in range(1, rounds + 1):
        for each in runs:
            each.advance(done / rounds)
            yield each, each.measure(whole=done == rounds)


def train_in_turns(runs: Sequence[Run], rounds: int) -> None:
    """The same, with a progress display."""
    with TrainingDisplay(total_steps=rounds * len(runs), title="speedrun") as display:
        for each, loss in in_turns(runs, rounds):
            display.step()
            display.note(
                f"{each.recipe.name}: step {each.step}, {each.seconds:.1f} s, loss {loss:.4f}"
            )


def race(corpus: Corpus, options: Options) -> None:
    """nanoGPT's recipe against ours, and ours with more time."""
    recipes = [NANOGPT, OURS, replace(LONGER, seconds=options.seconds)]
    runs = new_runs(recipes, corpus, options)
    train_in_turns(runs, QUICK_ROUNDS if options.quick else ROUNDS)
    print(f"\nValidation on all windows of {CONTEXT} characters:")
    print(f"{'':24}parameters   steps  seconds  validation loss  seconds to {TARGET}")
    for each in runs:
        reached = f"{each.reached.seconds:.1f}" if each.reached else "not reached"
        print(
            f"{each.recipe.name:24}{each.model.num_parameters():10,}{each.step:8}"
            f"{each.seconds:9.1f}{corpus.loss(each.model):17.4f}{reached:>17}"
        )
    nanogpt, ours, longer = runs
    context_length = longer.recipe.context_length
    loss = corpus.loss(longer.model, context_length=context_length)
    print(f"The last one's loss on windows of {context_length} characters: {loss:.4f}")
    print(verdict(nanogpt, ours))


def verdict(nanogpt: Run, ours: Run) -> str:
    """The result in a sentence. A run that never reaches the target counts with all its time."""
    if not ours.reached:
        return f"Ours did not reach {TARGET}."
    theirs = nanogpt.reached.seconds if nanogpt.reached else nanogpt.seconds
    ratio = theirs / ours.reached.seconds
    needs = f"{ratio:.1f} times the time that ours needs to reach {TARGET}"
    if not nanogpt.reached:
        return f"nanoGPT's recipe takes {needs}, and ends without reaching it."
    return f"nanoGPT's recipe takes {needs}."


def race_alone(text: Text | None = None) -> tuple[Run, Run]:
    """nanoGPT's run and ours, on one thread, without the longer one and without output."""
    options = read_options(["--threads", "1"])
    corpus = Corpus(text or load_shakespeare("tiny"))
    torch.set_num_threads(options.threads)
    nanogpt, ours = new_runs([NANOGPT, OURS], corpus, options)
    deque(in_turns([nanogpt, ours], ROUNDS), maxlen=0)
    return nanogpt, ours


def ablate(corpus: Corpus, options: Options) -> None:
    """The effect of each switch after equally many steps on equally many characters."""
    runs = new_runs(ablations(), corpus, options)
    train_in_turns(runs, QUICK_ROUNDS if options.quick else ABLATION_ROUNDS)
    print(f"\nAfter {runs[0].step} steps of {runs[0].recipe.batch_size} x {CONTEXT} characters:\n")
    print("| | parameters | seconds | validation loss | worse by |")
    print("|---|---:|---:|---:|---:|")
    losses = [corpus.loss(each.model) for each in runs]
    for each, loss in zip(runs, losses, strict=True):
        print(
            f"| {each.recipe.name} | {each.model.num_parameters():,} | {each.seconds:.1f} | "
            f"{loss:.3f} | {loss - losses[0]:+.3f} |"
        )


def main(arguments: Sequence[str], text: Text | None = None) -> int:
    """Run the command, on tiny Shakespeare or on another text."""
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
