"""The commands about studies: their options, and the handlers of list and run."""

import argparse
import contextlib
import json
import math
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from admiss.cli.study.choices import RUNS, catalogue_of, named_study
from admiss.cli.study.readers import export_table, report_page, status, write_summary
from admiss.extras import MissingPackageError
from admiss.study.digest import study_sources
from admiss.study.local import run_locally
from admiss.study.outcome import encodable
from admiss.study.run import Runner, grid, listed, matching, run_cells
from admiss.study.store import Store
from admiss.study.study import SCALES, Cell, EngineError, Study, instance_recipe

if TYPE_CHECKING:  # needs polars
    from admiss.study.report.presentation import Catalogue

# Seconds of four months, gigabytes beyond any machine.
LARGEST = 1e7
OUT_HELP = "folder of the store (default: runs/STUDY-SCALE)"
Handler = Callable[[argparse.Namespace], str]
Loader = Callable[[], "Catalogue"]


def add_study_commands(commands: Any, catalogue: Loader) -> None:
    """Add the commands to subparsers; each has a ``handler``, a function of the options that returns a text.

    Parameters
    ----------
    commands : subparsers of argparse
    catalogue : callable
        Returns the studies by name; called only by commands that need them.
    """
    listing = commands.add_parser("list", help="the studies, with their numbers of cells at each scale")
    listing.set_defaults(handler=list_studies, catalogue=catalogue)
    _add_run(commands, catalogue)
    add_reader(commands, "status", "what is done, failed and pending", status, catalogue)
    words = "the table as a Parquet or CSV file, with versions and machine"
    export = add_reader(commands, "export", words, export_table, catalogue)
    export.add_argument("file", metavar="FILE", type=Path, help="a name that ends in .parquet or .csv")
    report = add_reader(commands, "report", "one HTML page with tables, figures and failures", report_page, catalogue)
    report.add_argument(
        "--html", type=Path, metavar="FILE", help="where to write it (default: report.html in the folder)"
    )
    words = "summary tables (CSV) and figures, to be kept"
    results = add_reader(commands, "results", words, write_summary, catalogue)
    results.add_argument("folder", metavar="FOLDER", type=Path, help="where to write them")


def run_command(parser: argparse.ArgumentParser, arguments: Sequence[str] | None = None) -> int:
    """Run a command and print its text; the exit code is 0, 2 with one sentence for an error, 130 if interrupted."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    options = parser.parse_args(arguments)
    options.command_line = shlex.join([*parser.prog.split(), *arguments])
    try:
        print(encodable(options.handler(options)), flush=True)
    except BrokenPipeError:  # the reader, head for instance, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (EngineError, MissingPackageError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interruption:
        print(str(interruption) or "interrupted", file=sys.stderr)
        return 130
    return 0


def _add_run(commands: Any, catalogue: Loader) -> None:
    parser = commands.add_parser(
        "run",
        help="compute the missing cells of a study",
        description="Compute the missing cells of a study. Stop it at any time: the same command "
        "continues. Failed cells are rows with a reason, and are computed again only with --retry.",
    )
    parser.add_argument("study", metavar="STUDY", help="a name that the command 'list' shows")
    scales = "smoke (a minute; the default), laptop (an evening on two cores) or paper (everything)"
    parser.add_argument("--scale", default="smoke", metavar="SCALE", help=scales)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N",
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
    parser.set_defaults(handler=run_study, catalogue=catalogue)


def add_reader(commands: Any, name: str, words: str, handler: Handler, catalogue: Loader, **study: Any) -> Any:
    """Add a command that reads a store; ``study`` are further options of the argument that names the study."""
    parser = commands.add_parser(name, help=words, description=f"{words[0].upper()}{words[1:]}.")
    parser.add_argument("study", metavar="STUDY", **study, help="a name that the command 'list' shows")
    scales = f"which of the folders runs/STUDY-SCALE, if there are several: {', '.join(SCALES)}"
    parser.add_argument("--scale", metavar="SCALE", help=scales)
    parser.add_argument("--out", type=Path, metavar="DIR", help=OUT_HELP)
    parser.set_defaults(handler=handler, catalogue=catalogue)
    return parser


def list_studies(options: argparse.Namespace) -> str:
    """Name every study, with its numbers of cells."""
    lines = []
    for presentation in catalogue_of(options).values():
        study = presentation.study
        lines.append(f"{study.name:<14} {study.title}")
        try:
            counts = [f"{scale} {_size(study, scale):,}" for scale in SCALES]
            lines.append(f"{'':<14} cells: {', '.join(counts)}")
        except EngineError as error:  # the others are listed all the same
            lines.append(f"{'':<14} {error}")
    return "\n".join(lines) or "There are no studies."


def _size(study: Study, scale: str) -> int:
    """Count the cells without hashing them: a grid may have a million."""
    pairs: set[tuple[str, str]] = set()
    with listed(study, scale):
        for part in study.products(scale):
            instances = [json.dumps(instance_recipe(instance)) for instance in part.instances]
            if instances:
                methods = [json.dumps(Cell(part.instances[0], method).recipe["method"]) for method in part.methods]
                pairs.update(product(instances, methods))
    return len(pairs)


def run_study(options: argparse.Namespace) -> str:
    """Compute pending cells, and return the summary."""
    study = named_study(options).study
    _check_run(options)
    cells = grid(study, options.scale)
    if not cells:
        raise EngineError(f"{study.name} has no cells at scale {options.scale}.")
    selected = matching(cells, options.only)
    if not selected:
        raise EngineError(f"No cell of {study.name} at scale {options.scale} contains {options.only!r}.")
    sources = study_sources(study, [options.scale])
    conditions: dict[str, Any] = {
        "workers": options.workers,
        "seconds": study.seconds if options.seconds is None else options.seconds,
        "gigabytes": study.gigabytes if options.gigabytes is None else options.gigabytes,
        "sources": sources,
    }
    runner: Runner = partial(run_locally, **conditions)
    if options.dask or options.scheduler is not None:
        from admiss.study.dask_cluster import run_on_dask

        runner = partial(run_on_dask, **conditions, scheduler=options.scheduler)
    folder = options.out or RUNS / f"{study.name}-{options.scale}"
    with _stopped_by_terminate(), Store(folder, study.name, write=True) as store:
        where = f"{options.workers} worker{'s' * (options.workers > 1)}"
        if options.scheduler is not None:
            where = f"Dask scheduler {options.scheduler}"
        print(f"{study.name} at scale {options.scale} in {folder}, {where}", file=sys.stderr)
        try:
            return run_cells(store, selected, runner, scale=options.scale, command=options.command_line,
                             sources=sources, retry=options.retry, stale=options.stale)  # fmt: skip
        except KeyboardInterrupt:
            states = store.states()
            done = sum(cell.key in states for cell in selected)
            raise Interrupted(
                f"stopped with {done:,} of {len(selected):,} cells finished; the same command continues"
            ) from None


def _check_run(options: argparse.Namespace) -> None:
    if options.workers < 1:
        raise EngineError(f"--workers must be at least 1, not {options.workers}.")
    for name in ("seconds", "gigabytes"):
        value = getattr(options, name)
        if value is not None and not (math.isfinite(value) and 0 < value <= LARGEST):
            raise EngineError(f"--{name} must be a positive number of at most {LARGEST:g}, not {value:g}.")
    if options.dask and options.scheduler is not None:
        raise EngineError("--dask starts a cluster and --scheduler uses a running one: choose one of the two.")


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with a sentence."""


@contextlib.contextmanager
def _stopped_by_terminate() -> Iterator[None]:
    """Make SIGTERM, sent by a cluster at the end of a job for instance, stop the run like Ctrl-C."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
