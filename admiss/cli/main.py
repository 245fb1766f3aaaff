"""The command ``admiss``."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from typing import NoReturn

from admiss._version import __version__
from admiss.cli.compare import add_compare_parser
from admiss.cli.datasets import add_datasets_parser
from admiss.cli.new_class import add_new_class_parser
from admiss.cli.study.parser import add_study_parser, run_study_command
from admiss.demo import demo_pages
from admiss.extras import MissingPackageError
from admiss.terminal.progress import command_progress
from admiss.versions import show_versions
from formulations.certificate import SolverError


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage; its subparsers are of the same kind."""

    def error(self, message: str) -> NoReturn:
        """End with a wrong option."""
        self.fail(f"{message}; see {self.prog} --help")

    def fail(self, sentence: str) -> NoReturn:
        """End with exit code 2."""
        self.exit(2, f"{self.prog}: error: {sentence}\n")


def build_parser() -> argparse.ArgumentParser:
    """Build the commands; each has a ``handler``, a function of the options that yields the text to print."""
    purpose = "Prediction with missing data by adaptive optimization."
    parser = _Parser(prog="admiss", description=purpose)
    parser.add_argument("--version", action="version", version=f"admiss {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_compare_parser(commands)
    add_datasets_parser(commands)
    add_new_class_parser(commands)
    add_study_parser(commands)
    demo = commands.add_parser(
        "demo",
        help="fit every adaptivity class on generated data and print R2 by class",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    demo.add_argument("--rows", type=int, default=1000, help="training rows")
    demo.add_argument("--missing", type=float, default=0.3, metavar="SHARE", help="share of missing values")
    demo.add_argument("--lam", type=float, default=5.0, help="strength of the penalty")
    demo.add_argument("--seed", type=int, default=0, help="seed of the data")
    demo.set_defaults(handler=lambda options: demo_pages(options.rows, options.missing, options.lam, options.seed))
    versions = commands.add_parser("versions", help="print the versions of admiss and of the packages that it uses")
    versions.set_defaults(handler=_versions)
    for command in commands.choices.values():
        command.set_defaults(parser=command)  # errors name the command
    return parser


def _versions(options: argparse.Namespace) -> Iterator[str]:
    show_versions()
    return iter(())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code is 0, 2 with one sentence for an error, 130 if interrupted."""
    options, unknown = build_parser().parse_known_args(arguments)
    if unknown:
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if options.command == "study":
        return run_study_command(options, arguments)
    try:
        with command_progress(options.parser.prog) as say:
            for page in options.handler(options):
                say(page)
    except BrokenPipeError:  # the reader, head for instance, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, OSError, SolverError, MissingPackageError) as error:
        options.parser.fail(str(error))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return 0
