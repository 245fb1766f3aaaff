"""The commands about studies: their options, and the answers of list and run.

The studies are imported when a command needs them: they import most of the packages, which takes seconds.
"""

import argparse
import contextlib
import json
import math
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from admiss.cli.study_choices import RUNS, named_study, needed_module
from admiss.cli.study_readers import compare_with_paper, export_table, keep_results, report_page, status
from admiss.study.errors import EngineError
from admiss.study.local import run_locally
from admiss.study.run import Runner, grid, listed, matching, run_cells
from admiss.study.store import Store
from admiss.study.study import SCALES, Cell, Study, instance_recipe

# Seconds of four months, gigabytes beyond any machine.
LARGEST = 1e7
OUT_HELP = "folder of the store (default: runs/STUDY-SCALE)"


def add_study_commands(commands: Any) -> None:
    """The parsers of the commands; each sets ``answer``, a function of the options that returns a text."""
    listing = commands.add_parser("list", help="the studies, with their numbers of cells at each scale")
    listing.set_defaults(handler=list_studies)
    _add_run(commands)
    _add_reader(commands, "status", "what is done, failed and pending", status)
    export = _add_reader(
        commands, "export", "the table as a Parquet or CSV file, with versions and machine", export_table
    )
    export.add_argument("file", metavar="FILE", type=Path, help="a name that ends in .parquet or .csv")
    report = _add_reader(commands, "report", "one HTML page with tables, figures and failures", report_page)
    report.add_argument(
        "--html", type=Path, metavar="FILE", help="where to write it (default: report.html in the folder)"
    )
    results = _add_reader(commands, "results", "summary tables (CSV) and figures, to be kept", keep_results)
    results.add_argument("folder", metavar="FOLDER", type=Path, help="where to write them")
    words = "the numbers beside those of the paper (without a study: of all that were run)"
    _add_reader(commands, "compare-paper", words, compare_with_paper, nargs="?")


def _add_run(commands: Any) -> None:
    parser = commands.add_parser(
        "run",
        help="compute the cells of a study that are not there yet",
        description="Compute the cells of a study that are not there yet. Stop it at any time: the same command "
        "continues. Cells that failed are rows with a reason, and are computed again with --retry only.",
    )
    parser.add_argument("study", metavar="STUDY", help="a name that the command 'list' shows")
    scales = "smoke (a minute; the default), laptop (an evening on two cores) or paper (everything)"
    parser.add_argument("--scale", default="smoke", metavar="SCALE", help=scales)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N",
                        help="processes, each of one thread (default: the cores of this machine); not used with "
                        "--scheduler, which has workers of its own")  # fmt: skip
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
    parser.set_defaults(handler=run_study)


def _add_reader(commands: Any, name: str, words: str, answer: Callable[[argparse.Namespace], str], **many: Any) -> Any:
    parser = commands.add_parser(name, help=words, description=f"{words[0].upper()}{words[1:]}.")
    parser.add_argument("study", metavar="STUDY", **many, help="a name that the command 'list' shows")
    scales = f"which of the folders runs/STUDY-SCALE, where there are several: {', '.join(SCALES)}"
    parser.add_argument("--scale", metavar="SCALE", help=scales)
    parser.add_argument("--out", type=Path, metavar="DIR", help=OUT_HELP)
    parser.set_defaults(handler=answer)
    return parser


def list_studies(options: argparse.Namespace) -> str:
    """A line for each study."""
    from experiments.catalogue import STUDIES

    lines = []
    for study in STUDIES.values():
        lines.append(f"{study.name:<14} {study.title}")
        try:
            counts = [f"{scale} {_size(study, scale):,}" for scale in SCALES]
            lines.append(f"{'':<14} cells: {', '.join(counts)}")
        except EngineError as error:  # the others are listed all the same
            lines.append(f"{'':<14} {error}")
    return "\n".join(lines) or "There are no studies."


def _size(study: Study, scale: str) -> int:
    """The number of cells, without the hash of each: a grid may have a million."""
    pairs: set[tuple[str, str]] = set()
    with listed(study, scale):
        for part in study.products(scale):
            instances = [json.dumps(instance_recipe(instance)) for instance in part.instances]
            if instances:
                methods = [json.dumps(Cell(part.instances[0], method).recipe["method"]) for method in part.methods]
                pairs.update(product(instances, methods))
    return len(pairs)


def run_study(options: argparse.Namespace) -> str:
    """Run, and return the summary."""
    study = named_study(options)
    _check_run(options)
    cells = grid(study, options.scale)
    if not cells:
        raise EngineError(f"{study.name} has no cells at scale {options.scale}.")
    chosen = matching(cells, options.only)
    if not chosen:
        raise EngineError(f"No cell of {study.name} at scale {options.scale} contains {options.only!r}.")
    seconds = study.seconds if options.seconds is None else options.seconds
    gigabytes = study.gigabytes if options.gigabytes is None else options.gigabytes
    runner: Runner = partial(run_locally, workers=options.workers, seconds=seconds, gigabytes=gigabytes)
    if options.dask or options.scheduler is not None:
        run_on_dask = needed_module("admiss.study.dask_cluster").run_on_dask
        runner = partial(run_on_dask, workers=options.workers, seconds=seconds, gigabytes=gigabytes)
        runner = partial(runner, scheduler=options.scheduler)
    folder = options.out or RUNS / f"{study.name}-{options.scale}"
    with _stopped_by_terminate(), Store(folder, study.name, write=True) as store:
        where = f"{options.workers} worker{'s' * (options.workers > 1)}"
        if options.scheduler is not None:
            where = f"Dask scheduler {options.scheduler}"
        print(f"{study.name} at scale {options.scale} in {folder}, {where}", file=sys.stderr)
        try:
            return run_cells(store, chosen, runner, scale=options.scale, command=_command(options),
                             retry=options.retry, stale=options.stale)  # fmt: skip
        except KeyboardInterrupt:
            states = store.states()
            done = sum(cell.key in states for cell in chosen)
            raise Interrupted(
                f"stopped with {done:,} of {len(chosen):,} cells finished; the same command continues"
            ) from None


def _check_run(options: argparse.Namespace) -> None:
    if options.workers < 1:
        raise EngineError(f"--workers must be at least 1, not {options.workers}.")
    for name in ("seconds", "gigabytes"):
        value = getattr(options, name)
        if value is not None and not (math.isfinite(value) and 0 < value <= LARGEST):
            raise EngineError(f"--{name} must be a positive number of at most {LARGEST:g}, not {value:g}.")
    if options.dask and options.scheduler is not None:
        raise EngineError("--dask starts a cluster and --scheduler uses one that is there: choose one of them.")


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with a sentence."""


@contextlib.contextmanager
def _stopped_by_terminate() -> Iterator[None]:
    """A polite kill, by a cluster whose time is over for instance, stops like Ctrl-C."""

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


def _command(options: argparse.Namespace) -> str:
    return shlex.join(["python", "-m", "experiments", *options.arguments])
