"""Trains your mini-GPT on Shakespeare, prints a sample, and saves what you submit for 7.10.

    python -m assignments.a7_minigpt.shakespeare            # 5 to 10 minutes on a CPU
    python -m assignments.a7_minigpt.shakespeare --resume   # continue after Ctrl-C

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
STATE = "training.safetensors"  # the checkpoint for --resume
LINES = 14  # as in a sonnet
CHARACTERS = 1200  # more than 14 lines need
VALIDATIONS = 10
# On a CPU a higher rate than TrainConfig's is better for such a short run. The larger model for a
# GPU needs a lower one, and a GPU can process larger batches.
SETTINGS = {
    "cpu": {"max_lr": 4e-3},
    "cuda": {"max_lr": 1e-3, "min_lr": 1e-4, "batch_size": 64},
}


@dataclass(frozen=True)
class Code:
    """Your files."""

    tokenizer: ModuleType
    model: ModuleType
    training: ModuleType
    sampling: ModuleType


def read_options(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    about = "Train your mini-GPT on Shakespeare, print a sample, save what you submit."
    parser = argparse.ArgumentParser(prog=f"python -m assignments.{NAME}.shakespeare")
    parser.description = about
    add = parser.add_argument
    add("--steps", type=int, help="training steps (2000, the default of TrainConfig)")
    add("--device", choices=("cpu", "cuda"), help="cpu or cuda (cuda if there is a GPU)")
    add("--which", choices=("plays", "tiny"), default="plays", help="which text (plays)")
    add("--out", type=Path, help="folder for what you submit (the assignment's)")
    add("--resume", action="store_true", help="continue a run that was stopped")
    add("--overwrite", action="store_true", help="replace the files of an earlier run")
    add("--prompt", default="ROMEO:\n", help="the start of the sample")
    add("--temperature", type=float, default=0.8, help="of the sample (0.8)")
    add("--top-p", type=float, default=0.95, help="of the sample (0.95)")
    add("--seed", type=int, default=0, help="of all random numbers (0)")
    add(
        "--impl",
        choices=("assignments", "solutions"),
        default="assignments",
        help="whose code: yours, or the reference where there is one",
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
    """All files that training needs."""
    mount({NAME: ROOT / impl / NAME})
    return Code(*(load(NAME, file) for file in ("tokenizer", "model", "training", "sampling")))


def train_config(code: Code, options: argparse.Namespace) -> object:
    """The defaults of TrainConfig, except for the steps, checkpoints, validations and SETTINGS."""
    default = code.training.TrainConfig()
    steps = options.steps or default.steps
    every = max(steps // VALIDATIONS, 1)
    return code.training.TrainConfig(
        steps=steps,
        **SETTINGS[options.device],
        warmup=min(default.warmup, steps // 2),
        evaluate_batches=min(default.evaluate_batches, every),
        seed=options.seed,
        autocast=options.device == "cuda",
        evaluate_every=every,
        save_every=every,
        checkpoint=str(options.out / STATE),
        resume=options.resume,
    )


def check_folder(options: argparse.Namespace) -> None:
    """Refuse to replace the files of an earlier run without --overwrite."""
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=options.out):
            pass
    except OSError as error:
        raise CourseError(f"Can't write to {options.out}: {error.strerror}.") from None
    there = [name for name in (*SUBMITTED, STATE) if (options.out / name).exists()]
    if options.resume and STATE not in there:
        raise CourseError(f"{options.out / STATE} doesn't exist: there is nothing to resume.")
    if there and not (options.resume or options.overwrite):
        raise CourseError(
            f"{options.out / there[0]} already exists: --resume continues that run, "
            "--overwrite starts a new one."
        )


def write(
    code: Code, model: nn.Module, tokenizer: object, length: int, options: argparse.Namespace
) -> str:
    """The prompt and the model's continuation."""
    try:
        ids = code.sampling.generate_cached(
            model,
            tokenizer.encode(options.prompt),
            length,
            temperature=options.temperature,
            top_p=options.top_p,
            generator=torch.Generator().manual_seed(options.seed),
        )
    except ValueError as error:
        raise CourseError(f"No sample from this prompt and these settings: {error}.") from None
    return tokenizer.decode(ids)


def work(options: argparse.Namespace) -> None:
    """Train, save, and print a sample."""
    code = load_code(options.impl)
    check_folder(options)
    text = load_shakespeare(options.which)
    tokenizer = code.tokenizer.CharTokenizer.from_text(text.train + text.validation)
    data, validation = tokenizer.encode(text.train), tokenizer.encode(text.validation)

    torch.manual_seed(options.seed)
    sizes = code.model.GPTConfig.for_device(tokenizer.vocab_size, options.device)
    model = code.model.GPT(sizes).to(options.device)
    write(code, model, tokenizer, 1, options)  # a bad prompt fails here, before training
    print(
        f"{model.num_parameters():,} parameters, {len(data):,} characters, on {options.device}",
        flush=True,
    )
    config = train_config(code, options)
    try:
        history = code.training.train(model, data, config, validation)
    except ValueError as error:
        raise CourseError(f"Training stopped: {error}.") from None
    except KeyboardInterrupt:
        if (options.out / STATE).exists():
            print(f"\n{options.out / STATE} is kept: --resume continues.", file=sys.stderr)
        raise
    if not history["step"]:
        print(f"All {config.steps} steps were done already. More steps: --steps.")
    code.training.export_model(model, tokenizer, options.out)

    lines = write(code, model, tokenizer, CHARACTERS, options).split("\n")[:LINES]
    print("", *lines, "", sep="\n")
    same = torch.Generator().manual_seed(options.seed)
    batches = VALIDATIONS * config.evaluate_batches  # more precise than those during training
    loss = code.training.estimate_loss(model, validation, config.batch_size, batches, same)
    print(f"validation loss {loss:.3f} (mean of {batches} batches of held-out text)")
    print(f"written: {', '.join(str(options.out / name) for name in SUBMITTED)}")
    if options.which != "plays":
        print("Not for 7.10, which needs all characters of the plays.")


def main(arguments: list[str]) -> int:
    """The command."""
    options = read_options(arguments)
    return run(lambda: work(options))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
