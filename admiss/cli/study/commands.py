"""The commands about studies: their options, and the handlers of list and run."""

import argparse
import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from admiss.atomic_write import OverwriteError
from admiss.cli.study.choices import Studies, named_study
from admiss.cli.study.readers import export_table, report_page, status, write_summary
from admiss.extras import MissingPackageError, optional_import
from admiss.study.outcome import encodable
from admiss.study.plan import EngineError, Plan, instance_recipe
from admiss.study.run import listed, run_plan
from admiss.terminal.table import for_standard_error, wrapped
from admiss.versions import how_to_report

OUT_HELP = "folder of the store (default: runs/STUDY-SCALE, or runs/STUDY for a study with one scale)"
Handler = Callable[[argparse.Namespace], str]


def add_study_commands(commands: Any, studies: Studies) -> None:
    """Add the commands to subparsers; each has a ``handler``, a function of the options that returns a text."""
    listing = commands.add_parser("list", help="the studies, with their numbers of cells at each scale")
    listing.add_argument("names", nargs="*", metavar="STUDY", help=f"{studies.words} (default: all that are known)")
    listing.set_defaults(handler=list_studies, studies=studies)
    _add_run(commands, studies)
    add_reader(commands, "status", "what is done, failed, stale and pending", status, studies)
    words = "the table as a Parquet or CSV file, with versions and machine"
    export = add_reader(commands, "export", words, export_table, studies)
    export.add_argument("file", metavar="FILE", type=Path, help="a name that ends in .parquet or .csv")
    report = add_reader(commands, "report", "one HTML page with figures, tables and failures", report_page, studies)
    report.add_argument(
        "--html", type=Path, metavar="FILE", help="where to write it (default: report.html in the folder)"
    )
    words = "summary tables (CSV) and figures (SVG, PDF, PNG), to be kept"
    results = add_reader(commands, "results", words, write_summary, studies)
    results.add_argument("folder", metavar="FOLDER", type=Path, help="where to write them")


def run_command(parser: argparse.ArgumentParser, arguments: Sequence[str] | None = None) -> int:
    """Run a command and print its text; the exit code is 0, 2 with one sentence for an error, 130 if interrupted."""
    options = parser.parse_args(arguments)
    return run_handler(options, parser.prog, arguments)


def run_handler(options: argparse.Namespace, program: str, arguments: Sequence[str] | None = None) -> int:
    """Run the handler of parsed options."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options.command_line = shlex.join([*program.split(), *given])
    try:
        print(encodable(options.handler(options)), flush=True)
    except BrokenPipeError:  # the reader, head for instance, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (EngineError, OverwriteError, MissingPackageError, OSError) as error:
        print(for_standard_error(f"error: {error}"), file=sys.stderr)
        return 2
    except KeyboardInterrupt as interruption:
        print(str(interruption) or "interrupted", file=sys.stderr)
        return 130
    except Exception:  # a defect of admiss: the traceback follows
        print(how_to_report(program), file=sys.stderr)
        raise
    return 0


def _add_run(commands: Any, studies: Studies) -> None:
    parser = commands.add_parser(
        "run",
        help="compute the missing cells of a study",
        description="Compute the missing cells of a study. Stop it at any time: the same command "
        "continues. Failed cells are rows with a reason, and are computed again only with --retry.",
    )
    parser.add_argument("study", metavar="STUDY", help=studies.words)
    scales = "a scale of the study, which 'list' shows (default: the first, for a quick look)"
    parser.add_argument("--scale", metavar="SCALE", help=scales)
    parser.add_argument("--workers", type=int, metavar="N",
                        help="processes, each of one thread (default: the cores of this machine); not used with "
                        "--scheduler, which has its own workers")  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="DIR", help=OUT_HELP)
    parser.add_argument("--seconds", type=float, metavar="S", help="time limit of a cell (default: that of the study)")
    parser.add_argument("--gigabytes", type=float, metavar="G",
                        help="memory limit of a cell, none on Windows (default: that of the study)")  # fmt: skip
    parser.add_argument("--retry", action="store_true", help="compute failed cells again")
    parser.add_argument("--stale", action="store_true", help="compute cells again that other sources have computed")
    parser.add_argument("--only", metavar="TEXT", help="only cells whose instance and method, as JSON, contain this, "
                        """for instance --only '"name": "CART MIA"' or --only '"mechanism": "mcar"'""")  # fmt: skip
    parser.add_argument(
        "--dask",
        action="store_true",
        help="run on a Dask cluster of N workers on this machine, which ends with the run",
    )
    parser.add_argument("--scheduler", metavar="ADDRESS", help="run on the Dask scheduler at this address")
    parser.set_defaults(handler=run_study, studies=studies)


def add_reader(commands: Any, name: str, words: str, handler: Handler, studies: Studies, **study: Any) -> Any:
    """Add a command that reads a store; ``study`` are further options of the argument that names the study."""
    parser = commands.add_parser(name, help=words, description=f"{words[0].upper()}{words[1:]}.")
    parser.add_argument("study", metavar="STUDY", **study, help=studies.words)
    scales = "which of the folders runs/STUDY-SCALE, if there are several"
    parser.add_argument("--scale", metavar="SCALE", help=scales)
    parser.add_argument("--out", type=Path, metavar="DIR", help=OUT_HELP)
    parser.set_defaults(handler=handler, studies=studies)
    return parser


def list_studies(options: argparse.Namespace) -> str:
    """Name every study, with its numbers of cells."""
    with optional_import("This command", "study"):
        known = {name: _found(options.studies, name) for name in options.names} or options.studies.known()
    lines = []
    for name, found in known.items():
        try:  # a study that cannot be loaded or listed does not hide the others
            if isinstance(found, EngineError):
                raise found
            study = found.study
            lines.append(f"{name:<14} {study.title}")
            counts = [f"{scale} {_size(study, scale):,}" for scale in study.scales]
            lines.append(f"{'':<14} cells: {', '.join(counts)}")
        except EngineError as error:
            lines += [f"{name:<14} {error}"] if isinstance(found, EngineError) else [f"{'':<14} {error}"]
    return "\n".join(lines) or "There are no studies here: 'admiss study new mine.py' writes one to start from."


def _found(studies: Studies, name: str) -> Any:
    try:
        return studies.find(name)
    except EngineError as error:
        return error


def _size(study: Plan, scale: str) -> int:
    """Count the cells without hashing them: a grid may have a million."""
    pairs: set[tuple[str, str]] = set()
    with listed(study, scale):
        for part in study.products(scale):
            instances = [json.dumps(instance_recipe(instance)) for instance in part.instances]
            if instances:
                methods = [json.dumps(method.recipe) for method in part.methods]
                pairs.update(product(instances, methods))
    return len(pairs)


def run_study(options: argparse.Namespace) -> str:
    """Compute pending cells, and return the summary."""
    summary = run_plan(
        named_study(options).study,
        command=options.command_line,
        scale=options.scale,
        folder=options.out,
        workers=options.workers,
        seconds=options.seconds,
        gigabytes=options.gigabytes,
        retry=options.retry,
        stale=options.stale,
        only=options.only,
        dask=options.dask,
        scheduler=options.scheduler,
    )
    return wrapped(summary)
