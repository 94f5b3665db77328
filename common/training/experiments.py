"""The command line that every assignment's experiments.py shares."""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType

from common.assignment import ROOT, STANDINS
from common.errors import CourseError, Failure
from common.student_code.loader import load, mount

INTERRUPTED = 130  # what a shell expects of a program that Ctrl-C has ended


def new_parser(assignment: str, about: str, quick: str) -> argparse.ArgumentParser:
    """A parser with the options that all have. quick: what --quick does."""
    parser = argparse.ArgumentParser(
        prog=f"python -m assignments.{assignment}.experiments", description=about
    )
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--out", type=Path, default=Path("figures"), help="output folder (figures)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (0)")
    return parser


def add_prerequisites(parser: argparse.ArgumentParser, number: int) -> None:
    """Let people choose on what their code builds. number: that of the earlier assignment."""
    parser.add_argument(
        "--prerequisites",
        choices=("own", "standin"),
        default="own",
        help=f"build on your own assignment {number} (the default), or on the stand-in",
    )


def read_options(
    parser: argparse.ArgumentParser, names: Iterable[str], arguments: list[str]
) -> argparse.Namespace:
    """What was asked for, with options.names: all if none was named."""
    known = list(names)
    parser.add_argument(
        "names", nargs="*", metavar="experiment", help=f"{', '.join(known)} (default: all)"
    )
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in known:
            parser.error(f"no experiment is named '{name}'; available: {', '.join(known)}")
    if options.seed < 0:
        parser.error("--seed must be at least 0")
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"can't write to {options.out}: {error.strerror}")
    options.names = options.names or known
    return options


def load_code(file: str, assignment: str, standins: Iterable[str] = ()) -> ModuleType:
    """A file of yours, on your own earlier assignments, or on stand-ins for those named."""
    if standins:
        others = {path.name: path for path in (ROOT / "assignments").glob("a[0-9]*_*")}
        mount(others | {name: STANDINS / name for name in standins})
    return load(assignment, file)


def run(work: Callable[[], None]) -> int:
    """Run the work. An error that a person can fix is one sentence, and the exit code 2."""
    try:
        work()
    except NotImplementedError as error:
        print(f"Not written yet: {error}.", file=sys.stderr)
    except Failure as error:
        explanation = error.explanation
        parts = (explanation.sentence, explanation.details, explanation.help)
        print(" ".join(filter(None, parts)), file=sys.stderr)
    except CourseError as error:
        print(error, file=sys.stderr)
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return INTERRUPTED
    else:
        return 0
    return 2


def run_each(
    experiments: Mapping[str, Callable[[Path, bool, int], None]],
    parser: argparse.ArgumentParser,
    arguments: list[str],
) -> int:
    """Run those that are asked for; each gets the folder, whether to be quick, and the seed."""
    options = read_options(parser, experiments, arguments)

    def work() -> None:
        for name in options.names:
            experiments[name](options.out, options.quick, options.seed)

    return run(work)


def report(file: Path) -> None:
    """Say what was written."""
    print(f"  wrote {file}", flush=True)
