"""The command line: maps each command of `python -m autograder` to its function."""

import importlib
import os
import sys
from pathlib import Path

import click

from common.assignment import ROOT
from common.determinism import SAME_ARITHMETIC
from common.errors import CourseError
from common.visible_text import visible

# Where each command lies. A built autograder zip carries only the grading ones.
COMMANDS = {
    "release": "autograder.commands.release_command:release",
    "new": "autograder.commands.authoring_commands:new",
    "stubs": "autograder.commands.authoring_commands:stubs",
    "answers": "autograder.commands.authoring_commands:answers",
    "artifacts": "autograder.commands.authoring_commands:artifacts",
    "figures": "autograder.commands.authoring_commands:figures",
    "labs": "autograder.commands.authoring_commands:labs",
    "otter": "autograder.commands.packaging_commands:otter",
    "build": "autograder.commands.packaging_commands:build",
    "semester": "autograder.commands.semester_command:semester",
    "grade": "autograder.commands.grading_commands:grade",
    "gradescope": "autograder.commands.grading_commands:gradescope",
    "time": "autograder.commands.timing_command:time",
    "doctor": "autograder.commands.doctor_command:doctor",
    "rehearse": "autograder.commands.packaging_commands:rehearse",
    "study": "autograder.commands.packaging_commands:study",
    "demo": "autograder.commands.classroom_commands:demo",
    "class": "autograder.commands.classroom_commands:make",
    "truth": "autograder.commands.classroom_commands:truth",
    "verify": "autograder.commands.proving_commands:verify",
    "chaos": "autograder.commands.fault_commands:chaos",
    "batch": "autograder.commands.batch_commands:batch",
    "regrade": "autograder.commands.batch_commands:regrade",
    "compare": "autograder.commands.batch_commands:compare",
    "report": "autograder.commands.report_command:report",
    "chaos-batch": "autograder.commands.fault_commands:chaos_batch",
    "chaos-submissions": "autograder.commands.fault_commands:chaos_submissions",
    "bench": "autograder.commands.bench_commands:bench",
    "hostile": "autograder.commands.bench_commands:compare_graders",
    "site": "autograder.commands.authoring_commands:site",
}


class Commands(click.Group):
    """Loads a command only when it is called, so that `grade` doesn't wait for the others."""

    def list_commands(self, context: click.Context) -> list[str]:
        return [name for name, target in COMMANDS.items() if is_there(target)]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(context):
            return None
        os.environ.update(SAME_ARITHMETIC)  # before NumPy is loaded: all cores are for gradings
        module, _, attribute = COMMANDS[name].partition(":")
        return getattr(importlib.import_module(module), attribute)


def is_there(target: str) -> bool:
    """Whether a command's module is part of this checkout or zip."""
    module = target.partition(":")[0]
    return (ROOT / Path(*module.split("."))).with_suffix(".py").is_file()


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Build, prove and grade the assignments of conv2gpt."""


def run() -> None:
    """Run a command; an error that a person can fix is one sentence and exit code 2."""
    try:
        sys.exit(main(prog_name="python -m autograder", standalone_mode=False))
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message())
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "python -m autograder"
        message = error.format_message().rstrip(".")
        say(f"{message}. See `{command} --help`.")
    except CourseError as error:
        say(str(error))
    except PermissionError as error:  # a folder that this user may not enter, for instance
        if error.filename is None:
            raise
        say(f"{error.filename} can't be accessed: {error.strerror}.")
    except click.Abort:
        say("Stopped.")
    sys.exit(2)


def say(text: str) -> None:
    """Print a sentence about an error, which may name a file of a submission."""
    click.echo(visible(text), err=True)


if __name__ == "__main__":
    run()
