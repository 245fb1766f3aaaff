"""The command ``admiss``."""

import argparse
import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NoReturn

from admiss._version import __version__
from admiss.atomic_write import sentence_of
from admiss.extras import MissingPackageError
from admiss.terminal.progress import command_progress
from admiss.terminal.table import for_standard_error, refilled
from admiss.versions import how_to_report
from formulations.certificate import SolverError

# New objects after which Python looks for garbage. Imports make many objects that stay, and looking through them
# as often as by default takes a twentieth of a short run.
MANY_OBJECTS = 10_000
# For each command its module, which is imported if it is named, and what it does.
COMMANDS = {
    "compare": ("admiss.cli.compare", "compare exact with greedy partitioning on generated data or on a file"),
    "fit": ("admiss.cli.fit", "fit a model of Parquet or CSV files that need not fit in memory"),
    "predict": ("admiss.cli.predict", "predict such files with a fitted model"),
    "datasets": (
        "admiss.cli.datasets",
        "list the 63 real data sets of the paper, describe some, or write them as CSV files",
    ),
    "new-class": ("admiss.cli.new_class", "write the file of a new adaptivity class, and its test"),
    "study": ("admiss.cli.study.commands", "run a study of your own: methods on instances, with a report"),
    "demo": ("admiss.cli.demo", "fit every adaptivity class on generated data and print R2 by class"),
    "versions": ("admiss.cli.versions", "print the versions of admiss and of the packages that it uses"),
}


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, without the usage; its subparsers are of the same kind."""

    def __init__(self, **settings: Any) -> None:
        for name in ("description", "epilog"):
            if settings.get(name):
                settings[name] = refilled(settings[name])
        super().__init__(**settings)

    def error(self, message: str) -> NoReturn:
        """End with a wrong option."""
        self.fail(f"{message}; see {self.prog} --help")

    def fail(self, sentence: str) -> NoReturn:
        """End with exit code 2."""
        self.exit(2, f"{for_standard_error(f'{self.prog}: error: {sentence}')}\n")


def build_parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Build the commands, with options for the one that the arguments name; the others are imported for nothing.

    A command has a ``handler``, a function of the options that yields the text to print.
    """
    purpose = "Prediction with missing data by adaptive optimization."
    parser = _Parser(prog="admiss", description=purpose)
    parser.add_argument("--version", action="version", version=f"admiss {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    named = next((argument for argument in arguments if not argument.startswith("-")), None)
    for name, (module, summary) in COMMANDS.items():
        if name == named:
            import_module(module).add_parser(commands, summary)
            commands.choices[name].set_defaults(parser=commands.choices[name])  # errors name the command
        else:
            commands.add_parser(name, help=summary)
    return parser


@contextmanager
def _rare_collection() -> Iterator[None]:
    """Look for garbage less often."""
    usual = gc.get_threshold()
    if 0 < usual[0] < MANY_OBJECTS:  # 0: never
        gc.set_threshold(MANY_OBJECTS, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


@_rare_collection()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code is 0, 2 with one sentence for an error, 130 if interrupted."""
    given = sys.argv[1:] if arguments is None else arguments
    options, unknown = build_parser(given).parse_known_args(given)
    if unknown:
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if options.command == "study":
        from admiss.cli.study.commands import run_handler

        return run_handler(options, "admiss", arguments)
    try:
        with command_progress(options.parser.prog) as say:
            for page in options.handler(options):
                say(page)
    except BrokenPipeError:  # the reader, head for instance, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        options.parser.fail(sentence_of(error))
    except (ValueError, SolverError, MissingPackageError) as error:
        options.parser.fail(str(error))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except Exception:  # a defect of admiss: the traceback follows the line on how to report it
        print(how_to_report(options.parser.prog), file=sys.stderr)
        raise
    return 0
