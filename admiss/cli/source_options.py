"""Options of commands that read a source in chunks."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from admiss.atomic_write import NamedFile, check_outputs

DATA = """\
Parquet files, folders of them or quoted patterns are read row group by row group, and CSV files in batches: memory does
not depend on the number of rows. Dates become days, and text a 0/1 column per value; empty cells are missing. All
footers are checked before any work. A pass that is interrupted, killed or out of disk space continues with the same
command; a source that has changed is refused.
"""


def add_source_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of one pass over files with a target."""
    add = parser.add_argument
    add("--data", nargs="+", required=True, metavar="FILES", help="files, folders or quoted patterns, see below")
    add("--target", required=True, metavar="COLUMN", help="the column to predict; rows without it are left out")
    add("--weight", metavar="COLUMN", help="sample weights")
    add("--drop", nargs="+", default=[], metavar="COLUMN", help="columns to leave out")
    add_pass_options(parser)


def add_pass_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a pass."""
    add = parser.add_argument
    add("--folds-key", metavar="COLUMN", help="rows with the same value are in the same fold; by default each is alone")
    add("--checkpoint", metavar="FOLDER", help="keeps the pass for further models; by default deleted at the end")
    add("--workers", type=int, metavar="N", help="processes on this machine (needs Dask); by default this one")
    add("--scheduler", metavar="ADDRESS", help="a Dask scheduler, whose workers find the files under the same names")


def opened(options: argparse.Namespace, out: Path, outputs: Sequence[NamedFile]) -> Any:
    """The source that options name, unless an output or the folder of the pass would take the place of its files."""
    from admiss.streaming import open_source

    data = options.data[0] if len(options.data) == 1 else options.data
    folder = ("--checkpoint" if options.checkpoint else "--out", _pass_folder(options, out))
    check_outputs([*outputs, folder], read_files(data))
    weight = getattr(options, "weight", None)
    return open_source(data, options.target, weight=weight, key=options.folds_key, drop=options.drop)


def read_files(data: str | Sequence[str]) -> list[NamedFile]:
    """The files that --data stands for."""
    from admiss.streaming.sources.opening import source_files

    return [("--data", path) for path in source_files(data)]


def _pass_folder(options: argparse.Namespace, out: Path) -> Path:
    return Path(options.checkpoint) if options.checkpoint else out.with_name(f"{out.name}.pass")


@contextmanager
def checked_pass(options: argparse.Namespace, out: Path) -> Iterator[Path]:
    """The folder of the checkpoint, deleted at the end unless it is named; errors of Dask are those of a command."""
    from admiss.errors import EngineError

    if options.workers is not None and options.workers < 1:
        raise ValueError(f"--workers must be at least 1, not {options.workers}.")
    folder = _pass_folder(options, out)
    try:
        yield folder
    except EngineError as error:
        raise ValueError(str(error)) from error
    if not options.checkpoint:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
