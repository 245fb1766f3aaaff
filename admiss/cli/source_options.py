"""Options of commands that read a source in chunks."""

import argparse
from collections.abc import Sequence
from typing import Any

from admiss.atomic_write import EngineError, NamedFile, check_outputs
from admiss.tables.deciding import DECIDING_ROWS, TASKS

DATA = f"""\
Parquet files, folders of them or quoted patterns are read row group by row group, and CSV files in parts: memory does
not depend on the number of rows. Columns are used as admiss compare uses them: dates become days, and text a 0/1 column
per value; IDs, constants and copies are left out, and what was done with each column is said. Files that lack columns
are named before any work.

Passes: a CSV file is read for its encoding, then its first {DECIDING_ROWS:,} rows to decide what the columns are,
then all rows for columns that are text, constant or missing in these, and then for the sums; with at most so many rows
it is kept after the second. Parquet files are read alike, but only their footers first. --settle and --patterns read
the rows once more.

A pass that is interrupted or killed starts again with the same command. A Parquet file that changes during a pass is
refused.
"""


def add_source_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of one pass over files with a target."""
    add = parser.add_argument
    add("--data", nargs="+", required=True, metavar="FILES", help="files, folders or quoted patterns, see below")
    add("--target", required=True, metavar="COLUMN", help="the column to predict; rows without it are left out")
    add("--weight", metavar="COLUMN", help="sample weights")
    add(
        "--task", choices=TASKS, default="auto", help="auto decides by the values of the target, as admiss compare does"
    )
    add("--drop", nargs="+", default=[], metavar="COLUMN", help="columns to leave out")
    add("--keep", nargs="+", default=[], metavar="COLUMN", help="columns to use that would be left out")
    add_pass_options(parser)


def add_pass_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a pass."""
    add = parser.add_argument
    add("--folds-key", metavar="COLUMN", help="rows with the same value are in the same fold; by default each is alone")
    add("--workers", type=int, metavar="N", help="processes on this machine (needs Dask); by default this one")
    add("--scheduler", metavar="ADDRESS", help="a Dask scheduler, whose workers find the files under the same names")


def opened(options: argparse.Namespace, outputs: Sequence[NamedFile]) -> Any:
    """The source that options name, unless an output would take the place of its files."""
    from admiss.tables.opening import open_source

    if options.workers is not None and options.workers < 1:
        raise ValueError(f"--workers must be at least 1, not {options.workers}.")
    data = options.data[0] if len(options.data) == 1 else options.data
    check_outputs(outputs, read_files(data))
    weight = getattr(options, "weight", None)
    columns = {"weight": weight, "key": options.folds_key, "drop": options.drop, "keep": options.keep}
    return open_source(data, options.target, task=options.task, **columns)


def read_files(data: str | Sequence[str]) -> list[NamedFile]:
    """The files that --data stands for."""
    from admiss.tables.opening import source_files

    return [("--data", path) for path in source_files(data)]


def tree_statistics(source: Any, depth: int, folds: Any, every_pattern: bool = False) -> Any:
    """Statistics of no rows for partitions: sums over sets of missing features, or by pattern if they are too large."""
    from admiss.statistics.blocks import Shape
    from admiss.statistics.missing_sets import MOST_BYTES, bytes_of_sums
    from admiss.statistics.row_statistics import RowStatistics

    shape = Shape(len(source.schema.names), 1 if folds is None else folds.n_splits)
    patterns = every_pattern or bytes_of_sums(shape, depth) > MOST_BYTES
    return RowStatistics([], tree_depth=None if patterns else depth, patterns=patterns, folds=folds)


def statistics_of(source: Any, empty: Any, options: argparse.Namespace) -> tuple[Any, Any]:
    """Statistics of one pass, and their summary; errors of Dask are those of a command."""
    from admiss.streaming.one_pass import accumulate

    try:
        statistics = accumulate(source, empty, workers=options.workers, scheduler=options.scheduler)
    except EngineError as error:
        raise ValueError(str(error)) from error
    return statistics, statistics.summary()
