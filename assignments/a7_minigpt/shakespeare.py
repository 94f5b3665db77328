"""Trains your mini-GPT on Shakespeare, prints what it writes, and saves what you submit for 7.10.

    python -m assignments.a7_minigpt.shakespeare            # about three minutes on a CPU
    python -m assignments.a7_minigpt.shakespeare --resume   # go on after Ctrl-C

Given, and not graded. It needs exercises 7.1 to 7.8.
"""

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch
from torch import nn

from common.assignment import ROOT
from common.data import load_shakespeare
from common.errors import CourseError
from common.student_code.loader import load, mount
from common.training.experiments import run

NAME = "a7_minigpt"
SUBMITTED = ("checkpoint.safetensors", "config.json")
STATE = "training.safetensors"  # what --resume goes on from
LINES = 14  # of a sonnet
CHARACTERS = 1200  # more than 14 lines have
VALIDATIONS = 10
# On a CPU a higher rate than TrainConfig's is better for so short a training. The larger model for
# a GPU wants a lower one, and can read more at a time.
SETTINGS = {"cpu": {"peak": 4e-3}, "cuda": {"peak": 1e-3, "floor": 1e-4, "batch_size": 64}}


@dataclass(frozen=True)
class Code:
    """Your files."""

    tokenizer: ModuleType
    model: ModuleType
    training: ModuleType
    sampling: ModuleType


def read_options(arguments: list[str]) -> argparse.Namespace:
    """What was asked for."""
    about = "Train your mini-GPT on Shakespeare, print what it writes, save what you submit."
    parser = argparse.ArgumentParser(prog=f"python -m assignments.{NAME}.shakespeare")
    parser.description = about
    add = parser.add_argument
    add("--steps", type=int, help="steps of the training (2000, as TrainConfig has them)")
    add("--device", choices=("cpu", "cuda"), help="where (a GPU if there is one)")
    add("--which", choices=("plays", "tiny"), default="plays", help="which text (plays)")
    add("--out", type=Path, help="folder for what you submit (that of the assignment)")
    add("--resume", action="store_true", help="go on with a training that was stopped")
    add("--overwrite", action="store_true", help="replace what an earlier training has left")
    add("--prompt", default="ROMEO:\n", help="what the sample goes on from")
    add("--temperature", type=float, default=0.8, help="of the sample (0.8)")
    add("--top-p", type=float, default=0.95, help="of the sample (0.95)")
    add("--seed", type=int, default=0, help="of all random numbers (0)")
    add(
        "--impl",
        choices=("assignments", "solutions"),
        default="assignments",
        help="whose code: yours, or where there is one the reference",
    )
    options = parser.parse_args(arguments)
    if options.steps is not None and options.steps < 1:
        parser.error("--steps must be at least 1")
    if not 0 <= options.seed < 2**63:
        parser.error("--seed must be at least 0, and below 2**63")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: there is no GPU here")
    if not (ROOT / options.impl / NAME).is_dir():
        parser.error(f"--impl {options.impl}: there is no folder {options.impl}/{NAME} here")
    options.device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    options.out = options.out or ROOT / "assignments" / NAME
    return options


def load_code(impl: str) -> Code:
    """All files that a training needs."""
    mount({NAME: ROOT / impl / NAME})
    return Code(*(load(NAME, file) for file in ("tokenizer", "model", "training", "sampling")))


def train_config(code: Code, options: argparse.Namespace) -> object:
    """The settings as TrainConfig has them, but for the steps, with checkpoints and validations."""
    usual = code.training.TrainConfig()
    steps = options.steps or usual.steps
    often = max(steps // VALIDATIONS, 1)
    return code.training.TrainConfig(
        steps=steps,
        **SETTINGS[options.device],
        warmup=min(usual.warmup, steps // 2),
        evaluate_batches=min(usual.evaluate_batches, often),
        seed=options.seed,
        autocast=options.device == "cuda",
        evaluate_every=often,
        save_every=often,
        checkpoint=str(options.out / STATE),
        resume=options.resume,
    )


def check_folder(options: argparse.Namespace) -> None:
    """Nothing that took minutes to make is lost without a word."""
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=options.out):
            pass
    except OSError as error:
        raise CourseError(f"Can't write to {options.out}: {error.strerror}.") from None
    there = [name for name in (*SUBMITTED, STATE) if (options.out / name).exists()]
    if options.resume and STATE not in there:
        raise CourseError(f"{options.out / STATE} is not there: nothing to go on from.")
    if there and not (options.resume or options.overwrite):
        raise CourseError(
            f"{options.out / there[0]} is there already: --resume goes on with that training, "
            "--overwrite begins a new one."
        )


def write(
    code: Code, model: nn.Module, known: object, length: int, options: argparse.Namespace
) -> str:
    """The prompt and what the model writes after it."""
    try:
        ids = code.sampling.generate_cached(
            model,
            known.encode(options.prompt),
            length,
            temperature=options.temperature,
            top_p=options.top_p,
            generator=torch.Generator().manual_seed(options.seed),
        )
    except ValueError as error:
        raise CourseError(f"No sample from this prompt and these settings: {error}.") from None
    return known.decode(ids)


def work(options: argparse.Namespace) -> None:
    """Train, save, and show."""
    code = load_code(options.impl)
    check_folder(options)
    text = load_shakespeare(options.which)
    known = code.tokenizer.CharTokenizer.from_text(text.train + text.validation)
    data, validation = known.encode(text.train), known.encode(text.validation)

    torch.manual_seed(options.seed)
    sizes = code.model.GPTConfig.for_device(known.size, options.device)
    model = code.model.GPT(sizes).to(options.device)
    write(code, model, known, 1, options)  # what is wrong with the prompt shows before the training
    print(
        f"{model.num_parameters():,} parameters, {len(data):,} characters, on {options.device}",
        flush=True,
    )
    config = train_config(code, options)
    try:
        history = code.training.train(model, data, config, validation)
    except ValueError as error:
        raise CourseError(f"The training can't go on: {error}.") from None
    except KeyboardInterrupt:
        if (options.out / STATE).exists():
            print(f"\n{options.out / STATE} is kept: --resume goes on.", file=sys.stderr)
        raise
    if not history["step"]:
        print(f"Nothing was left to train: all {config.steps} steps were done. --steps adds more.")
    code.training.export_model(model, known, options.out)

    lines = write(code, model, known, CHARACTERS, options).split("\n")[:LINES]
    print("", *lines, "", sep="\n")
    fresh = torch.Generator().manual_seed(options.seed)
    batches = VALIDATIONS * config.evaluate_batches  # more exact than those on the way
    loss = code.training.estimate_loss(model, validation, config.batch_size, batches, fresh)
    print(f"validation loss {loss:.3f} (mean of {batches} batches of text that it hasn't read)")
    print(f"written: {', '.join(str(options.out / name) for name in SUBMITTED)}")
    if options.which != "plays":
        print("Not for 7.10: that wants a model that knows all characters of the plays.")


def main(arguments: list[str]) -> int:
    """The command."""
    options = read_options(arguments)
    return run(lambda: work(options))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
