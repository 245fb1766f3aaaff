"""The commands about studies: list, run, status, export, report, results, compare-paper.

The studies are imported when a command needs them: they import most of the packages, which takes seconds.
"""

import argparse
import contextlib
import json
import os
import shlex
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

from experiments.engine.digest import source_digest
from experiments.engine.errors import EngineError
from experiments.engine.local import run_locally
from experiments.engine.run import Runner, failures, grid_keys, matching, run_cells
from experiments.engine.store import FILE, Store
from experiments.study import SCALES, Cell, Study, instance_recipe

RUNS = Path("runs")
OUT_HELP = "folder of the store (default: runs/STUDY-SCALE)"


def add_study_commands(commands: Any) -> None:
    """The parsers of the commands; each sets ``answer``, a function of the options that returns a text."""
    listing = commands.add_parser("list", help="the studies, with their numbers of cells at each scale")
    listing.set_defaults(answer=list_studies)
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
                        help="processes, each of one thread (default: the cores of this machine)")  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="DIR", help=OUT_HELP)
    parser.add_argument("--seconds", type=float, metavar="S", help="time limit of a cell (default: that of the study)")
    parser.add_argument("--gigabytes", type=float, metavar="G",
                        help="memory limit of a cell, none on Windows (default: that of the study)")  # fmt: skip
    parser.add_argument("--retry", action="store_true", help="compute failed cells again")
    parser.add_argument("--stale", action="store_true", help="compute cells again that other sources have computed")
    parser.add_argument("--only", metavar="TEXT", help="only cells whose instance or method, as JSON, contains this")
    parser.add_argument("--dask", action="store_true", help="run on a Dask cluster of N workers on this machine")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="run on the Dask scheduler at this address")
    parser.set_defaults(answer=run_study)


def _add_reader(commands: Any, name: str, words: str, answer: Callable[[argparse.Namespace], str], **many: Any) -> Any:
    parser = commands.add_parser(name, help=words, description=f"{words[0].upper()}{words[1:]}.")
    parser.add_argument("study", metavar="STUDY", **many, help="a name that the command 'list' shows")
    parser.add_argument(
        "--scale", metavar="SCALE", help="which of the folders runs/STUDY-SCALE, where there are several"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help=OUT_HELP)
    parser.set_defaults(answer=answer)
    return parser


def _study(options: argparse.Namespace) -> Study:
    from experiments.catalogue import find_study

    try:
        study = find_study(options.study)
    except ValueError as error:
        raise EngineError(str(error)) from None
    if getattr(options, "scale", None) not in (None, *SCALES):
        raise EngineError(f"Unknown scale {options.scale!r}: choose one of {', '.join(SCALES)}.")
    return study


def list_studies(options: argparse.Namespace) -> str:
    """A line for each study."""
    from experiments.catalogue import STUDIES

    lines = []
    for study in STUDIES.values():
        counts = [f"{scale} {_size(study, scale):,}" for scale in SCALES]
        lines.append(f"{study.name:<14} {study.title}\n{'':<14} cells: {', '.join(counts)}")
    return "\n".join(lines) or "There are no studies."


def _size(study: Study, scale: str) -> int:
    """The number of cells, without the hash of each: a grid may have a million."""
    pairs: set[tuple[str, str]] = set()
    for part in study.products(scale):
        instances = [json.dumps(instance_recipe(instance)) for instance in part.instances]
        methods = [json.dumps(Cell(part.instances[0], method).recipe["method"]) for method in part.methods]
        pairs.update(product(instances, methods))
    return len(pairs)


def run_study(options: argparse.Namespace) -> str:
    """Run, and return the summary."""
    study = _study(options)
    cells = list(study.cells(options.scale))
    chosen = matching(cells, options.only)
    if not chosen:
        raise EngineError(f"No cell of {study.name} at scale {options.scale} contains {options.only!r}.")
    if options.workers < 1:
        raise EngineError(f"--workers must be at least 1, not {options.workers}.")
    seconds = study.seconds if options.seconds is None else options.seconds
    gigabytes = study.gigabytes if options.gigabytes is None else options.gigabytes
    if seconds <= 0 or gigabytes <= 0:
        raise EngineError("--seconds and --gigabytes must be positive.")
    runner: Runner = partial(run_locally, workers=options.workers, seconds=seconds, gigabytes=gigabytes)
    if options.dask or options.scheduler is not None:
        run_on_dask = _module("experiments.engine.dask_cluster").run_on_dask
        runner = partial(run_on_dask, workers=options.workers, seconds=seconds, gigabytes=gigabytes)
        runner = partial(runner, scheduler=options.scheduler)
    folder = options.out or RUNS / f"{study.name}-{options.scale}"
    with _stopped_by_terminate(), Store(folder, study.name, write=True) as store:
        where = f"{options.workers} workers" if options.scheduler is None else f"Dask scheduler {options.scheduler}"
        print(f"{study.name} at scale {options.scale} in {folder}, {where}", file=sys.stderr)
        try:
            return run_cells(store, chosen, runner, scale=options.scale, command=_command(options),
                             retry=options.retry, stale=options.stale)  # fmt: skip
        except KeyboardInterrupt:
            done = sum(cell.key in store.states() for cell in chosen)
            raise Interrupted(
                f"stopped with {done:,} of {len(chosen):,} cells finished; the same command continues"
            ) from None


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


def status(options: argparse.Namespace) -> str:
    """What a store has, and which sources computed it."""
    study = _study(options)
    with Store(_folder(options, study), study.name) as store:
        states, scales, keys = store.states(), store.scales(), grid_keys(store, study)
    known = [state for key, state in states.items() if key in keys]
    done = sum(state["status"] == "done" for state in known)
    lines = [
        f"{study.name} ({', '.join(scales)}) in {store.folder}",
        f"{done:,} done, {len(known) - done:,} failed, {len(keys) - len(known):,} pending, of {len(keys):,} cells",
        *failures(known),
        *_digests(known),
    ]
    if len(known) < len(states):
        lines.append(f"{len(states) - len(known):,} rows of cells that are no longer in the study, left out of tables")
    return "\n".join(lines)


def _digests(states: Sequence[dict[str, Any]]) -> list[str]:
    counts = Counter(state["digest"] for state in states)
    current = source_digest()
    words = [f"{digest} {count:,} cells{' (current)' * (digest == current)}" for digest, count in counts.most_common()]
    lines = [f"sources: {', '.join(words)}"] if words else []
    if len(counts) > 1:
        lines.append("The table mixes sources: run with --stale to compute the cells of other sources again.")
    elif counts and current not in counts:
        lines.append(f"The sources have changed since (now {current}): run with --stale to compute again.")
    return lines


def export_table(options: argparse.Namespace) -> str:
    """Write the table to a file."""
    from experiments.engine.export import write_table

    study = _study(options)
    with Store(_folder(options, study), study.name) as store:
        rows = write_table(store, study, options.file)
    return f"{rows:,} rows written to {options.file}"


def report_page(options: argparse.Namespace) -> str:
    """Write the report."""
    from experiments.engine.export import provenance
    from experiments.engine.table import read_table

    study = _study(options)
    page = _module("experiments.report.page")
    with Store(_folder(options, study), study.name) as store:
        table = read_table(store, study)
        place = options.html or store.folder / "report.html"
        sections, _ = _module("experiments.compare.commands").all_sections(table, study)
        page.write_report(table, study, place, comparison=sections, facts=provenance(store, study))
    return f"report written to {place}"


def keep_results(options: argparse.Namespace) -> str:
    """Write tables and figures to a folder."""
    from experiments.engine.export import provenance
    from experiments.engine.table import read_table

    study = _study(options)
    compare, figures = _module("experiments.compare.commands"), _module("experiments.report.figures")
    with Store(_folder(options, study), study.name) as store:
        table, facts = read_table(store, study), provenance(store, study)
        words = {"versions": ", ".join(f"{name} {version}" for name, version in facts["versions"].items())}
        written = compare.write_results(table, study, options.folder, "\n".join(facts["command"]), words)
        written += figures.save_figures(table, study, options.folder)
    return f"{len(written)} files written to {options.folder}"


def compare_with_paper(options: argparse.Namespace) -> str:
    """The comparison as text, of one study or of all that were run."""
    from experiments.catalogue import STUDIES
    from experiments.engine.table import read_table

    compare_paper = _module("experiments.compare.commands").compare_paper
    if options.study is not None:
        studies = [_study(options)]
    else:
        studies = [study for study in STUDIES.values() if options.out is None and _runs(study)]
        if not studies:
            raise EngineError(f"There are no runs in {RUNS}: run a study first, or name one and its folder with --out.")
    texts = []
    for study in studies:
        with Store(_folder(options, study), study.name) as store:
            texts.append(str(compare_paper(read_table(store, study), study)))
    return "\n\n".join(texts)


def _folder(options: argparse.Namespace, study: Study) -> Path:
    """The folder that is named, or the only one there is."""
    if options.out is not None:
        return Path(options.out)
    if options.scale is not None:
        return RUNS / f"{study.name}-{options.scale}"
    found = _runs(study)
    if not found:
        raise EngineError(f"There is no run of {study.name} in {RUNS}: run it first, or name its folder with --out.")
    if len(found) > 1:
        raise EngineError(f"There are several runs ({', '.join(map(str, found))}): choose one with --scale or --out.")
    return found[0]


def _runs(study: Study) -> list[Path]:
    return [folder for scale in SCALES if (folder := RUNS / f"{study.name}-{scale}").joinpath(FILE).exists()]


def _module(name: str) -> Any:
    """A module that needs more than running does."""
    try:
        return import_module(name)
    except ImportError as error:
        raise EngineError(f"This command needs {error.name or name}, which is not installed ({error}).") from error
