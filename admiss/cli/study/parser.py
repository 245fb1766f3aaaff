"""The command ``admiss study``: studies of users, from a new file to a report."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from admiss.cli.study.choices import OWN_STUDIES
from admiss.cli.study.commands import add_study_commands, run_handler
from admiss.study.template import write_study

DESCRIPTION = """\
Compare methods on instances: a study is a Python file that says which. Its cells (a method on an instance) are computed
once, in processes of their own, and kept: a run that is stopped or killed continues where it was.
"""
EXAMPLE = """\
example:
  admiss study new mine.py            # a study that runs, to be changed
  admiss study run mine.py            # compute its cells
  admiss study report mine.py         # one page with figures and tables
"""


def add_parser(commands: Any, summary: str) -> None:
    """Declare the commands."""
    parser = commands.add_parser(
        "study",
        help=summary,
        description=DESCRIPTION,
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    inner = parser.add_subparsers(dest="study_command", required=True, metavar="COMMAND")
    new = inner.add_parser(
        "new",
        help="write the file of a study that runs, and its test",
        description="Write the file of a study that runs as it is, to be changed, and a test of it.",
    )
    new.add_argument("file", metavar="FILE", type=Path, help="file to write, mine.py for instance")
    new.add_argument("--table", type=Path, metavar="DATA", help="a CSV or Parquet file to compare methods on")
    new.add_argument("--target", metavar="COLUMN", help="the column of the table to predict")
    new.set_defaults(handler=new_study)
    add_study_commands(inner, OWN_STUDIES)


def new_study(options: argparse.Namespace) -> str:
    """Write the files, and return the next steps."""
    written = write_study(options.file, options.table, options.target)
    steps = [f"written: {path}" for path in written]
    steps += [f"run it:  admiss study run {options.file}", f"look:    admiss study report {options.file}"]
    return "\n".join([*steps, f"test it: python -m pytest {written[1]}"])


def run_study_command(options: argparse.Namespace, arguments: Sequence[str] | None) -> int:
    """Run a command of ``admiss study`` and return its exit code."""
    return run_handler(options, "admiss", arguments)
