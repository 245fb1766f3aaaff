"""The commands about studies, of users (``admiss study``) and of any catalogue."""

import argparse
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from admiss.atomic_write import OverwriteError
from admiss.cli.study.files import load_study, write_study
from admiss.extras import MissingPackageError, optional_import
from admiss.study.plan import EngineError
from admiss.study.run import RunOptions, grid, opened_store, run_plan, status_text
from admiss.terminal.table import for_standard_error, wrapped
from admiss.versions import how_to_report

if TYPE_CHECKING:  # needs polars
    from admiss.study.report.presentation import Catalogue, Presentation

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
OUT_HELP = "folder of the store (default: runs/STUDY-SCALE, or runs/STUDY for a study with one scale)"
Handler = Callable[[argparse.Namespace], str]


@dataclass(frozen=True)
class Studies:
    """Studies that commands know."""

    # From the text that names a study on the command line to the study.
    find: "Callable[[str], Presentation]"
    # Those that the command ``list`` shows, by these texts; an error in place of a study that cannot be loaded.
    known: "Callable[[], Mapping[str, Presentation | EngineError]]"
    # Help on how a study is named.
    words: str


def catalogued(catalogue: "Callable[[], Catalogue]") -> Studies:
    """The studies of a catalogue, which is loaded by commands that need it: its modules may take seconds to import."""

    def find(name: str) -> "Presentation":
        known = catalogue()
        if name not in known:
            raise EngineError(f"Unknown study {name!r}: choose one of {', '.join(known)}.")
        return known[name]

    return Studies(find, lambda: dict(catalogue()), "a name that the command 'list' shows")


def studies_here() -> "dict[str, Presentation | EngineError]":
    """Studies in the Python files of this folder that import ``admiss.study``; other files are never run."""
    files = [path for path in sorted(Path().glob("*.py")) if path.is_file()]
    imports = re.compile(rb"^\s*(from admiss\.study\b.* import|from admiss import .*\bstudy\b)", re.MULTILINE)
    return {path.name: _found(load_study, path.name) for path in files if imports.search(path.read_bytes())}


def _found(find: Callable[[str], Any], name: str) -> Any:
    try:
        return find(name)
    except EngineError as error:
        return error


def add_parser(commands: Any, summary: str) -> None:
    """Declare ``admiss study``."""
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
    words = "a file (mine.py, mine.py:NAME if it has several) or a module (package.module:NAME)"
    add_study_commands(inner, Studies(load_study, studies_here, words))


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
    words = "summary tables (CSV, LaTeX) and figures (SVG, PDF, PNG), to be kept"
    results = add_reader(commands, "results", words, write_summary, studies)
    results.add_argument("folder", metavar="FOLDER", type=Path, help="where to write them")


def add_reader(commands: Any, name: str, words: str, handler: Handler, studies: Studies, **study: Any) -> Any:
    """Add a command that reads a store; ``study`` are further options of the argument that names the study."""
    parser = commands.add_parser(name, help=words, description=f"{words[0].upper()}{words[1:]}.")
    parser.add_argument("study", metavar="STUDY", **study, help=studies.words)
    scales = "which of the folders runs/STUDY-SCALE, if there are several"
    parser.add_argument("--scale", metavar="SCALE", help=scales)
    parser.add_argument("--out", type=Path, metavar="DIR", help=OUT_HELP)
    parser.set_defaults(handler=handler, studies=studies)
    return parser


def _add_run(commands: Any, studies: Studies) -> None:
    parser = commands.add_parser(
        "run",
        help="compute the missing cells of a study",
        description="Compute the missing cells of a study, and say which methods are best. Stop it at any time: the "
        "same command continues. Failed cells are rows with a reason, and are computed again only with --retry.",
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


def run_command(parser: argparse.ArgumentParser, arguments: Sequence[str] | None = None) -> int:
    """Run a command and print its text; the exit code is 0, 2 with one sentence for an error, 130 if interrupted."""
    return run_handler(parser.parse_args(arguments), parser.prog, arguments)


def run_handler(options: argparse.Namespace, program: str, arguments: Sequence[str] | None = None) -> int:
    """Run the handler of parsed options."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options.command_line = shlex.join([*program.split(), *given])
    try:
        text: str = options.handler(options)
        print(text.encode("utf-8", "backslashreplace").decode(), flush=True)  # names of files may have any bytes
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


def new_study(options: argparse.Namespace) -> str:
    """Write the files, and return the next steps."""
    written = write_study(options.file, options.table, options.target)
    steps = [f"written: {path}" for path in written]
    steps += [f"run it:  admiss study run {options.file}", f"look:    admiss study report {options.file}"]
    return "\n".join([*steps, f"test it: python -m pytest {written[1]}"])


def named_study(options: argparse.Namespace) -> "Presentation":
    """The study that the options name."""
    with optional_import("This command", "study"):
        studies: Studies = options.studies
        return studies.find(options.study)


def list_studies(options: argparse.Namespace) -> str:
    """Name every study, with its numbers of cells."""
    with optional_import("This command", "study"):
        known = {name: _found(options.studies.find, name) for name in options.names} or options.studies.known()
    lines = []
    for name, found in known.items():
        if isinstance(found, EngineError):  # a study that cannot be loaded or listed does not hide the others
            lines.append(f"{name:<14} {found}")
            continue
        study = found.study
        lines.append(f"{name:<14} {study.title}")
        try:
            counts = [f"{scale} {len(grid(study, scale)):,}" for scale in study.scales]
            lines.append(f"{'':<14} cells: {', '.join(counts)}")
        except EngineError as error:
            lines.append(f"{'':<14} {error}")
    return "\n".join(lines) or "There are no studies here: 'admiss study new mine.py' writes one to start from."


def run_study(options: argparse.Namespace) -> str:
    """Compute pending cells, print the summary and the answer, and return the command for the report."""
    presentation = named_study(options)
    chosen = {part.name: getattr(options, part.name) for part in fields(RunOptions) if part.name != "folder"}
    run_plan(presentation.study, RunOptions(folder=options.out, **chosen), options.command_line, presentation.answer)
    words = [options.study]
    for name, value in (("--scale", options.scale), ("--out", options.out)):
        words += [] if value is None else [name, str(value)]
    return f"report: {options.command_line.partition(' run ')[0]} report {shlex.join(words)}"


def status(options: argparse.Namespace) -> str:
    """Count the cells of a store, and name what has changed since they were computed."""
    study = named_study(options).study
    with opened_store(study, options.scale, options.out) as store:
        return wrapped(status_text(store, study))


def export_table(options: argparse.Namespace) -> str:
    """Write the table to a file."""
    from admiss.study.export import write_table

    study = named_study(options).study
    with opened_store(study, options.scale, options.out) as store:
        rows = write_table(store, study, options.file)
    return f"{rows:,} rows written to {options.file}"


def report_page(options: argparse.Namespace) -> str:
    """Write the report."""
    from admiss.study.report.results import write_page

    presentation = named_study(options)
    with opened_store(presentation.study, options.scale, options.out) as store:
        return f"report written to {write_page(store, presentation, options.html)}"


def write_summary(options: argparse.Namespace) -> str:
    """Write tables and figures to a folder."""
    from admiss.study.report.results import write_files

    presentation = named_study(options)
    with opened_store(presentation.study, options.scale, options.out) as store:
        written = write_files(store, presentation, options.folder)
    return f"{len(written)} files written to {options.folder}"
