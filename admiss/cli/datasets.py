"""The command ``admiss datasets``: list, describe and write the real data sets of the paper."""

import argparse
import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from admiss.atomic_write import check_outputs, write_atomically
from admiss.datasets import Dataset, DataUnavailableError, list_datasets, load_dataset, summary
from admiss.datasets.paper.registry import Record, find_record
from admiss.datasets.paper.storage import stored_paths
from admiss.terminal.progress import progress
from admiss.terminal.table import Table, table_width, wrapped


def add_parser(commands: Any, summary: str) -> None:
    """Declare the options."""
    parser = commands.add_parser(
        "datasets",
        help=summary,
        description="Without a name: a table of all. UCI files are downloaded once and cached; files in the folder "
        "named by the environment variable ADMISS_DATA are used instead.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="data sets to load and describe")
    parser.add_argument("--all", action="store_true", help="load all data sets, for later use without network")
    parser.add_argument(
        "--encoding", choices=["clean", "authors"], default="clean", help="how they are encoded (clean)"
    )
    parser.add_argument("--out", metavar="FOLDER", help="write each as FOLDER/NAME.csv, the target as last column")
    parser.set_defaults(handler=datasets_pages)


def datasets_pages(options: argparse.Namespace) -> Iterator[str]:
    """Yield the text of the command, one page per data set as soon as it is loaded."""
    names, out = options.names, options.out
    if options.all and names:
        raise ValueError("Give names or --all, not both.")
    if options.all:
        names = [str(name) for name in list_datasets()["name"]]
    elif not names:
        if out is not None:
            raise ValueError("--out needs the names of data sets, or --all.")
        yield list_datasets(options.encoding).within(table_width(), optional=("cautions", "licence", "source"))
        return
    names = list(dict.fromkeys(names))
    records = [find_record(name) for name in names]
    paths = {} if out is None else {name: Path(out) / f"{name}.csv" for name in names}
    raw_files = [("a raw file", path) for record in records for path in stored_paths(_raw_name(record))]
    check_outputs([("--out", path) for path in paths.values()], raw_files)
    unavailable = []
    for name in progress(names, len(names), "loading"):
        try:
            dataset = load_dataset(name, options.encoding)
        except DataUnavailableError as error:
            unavailable.append(name)
            yield wrapped(f"{name} could not be loaded: {error}\n")
            continue
        yield _description(dataset)
        if name in paths:
            write_atomically(paths[name], _as_csv(dataset).encode())
            yield f"written to {paths[name]}\n"
    if unavailable:
        raise DataUnavailableError(f"{len(unavailable)} of {len(names)} could not be loaded: {', '.join(unavailable)}.")


def _raw_name(record: Record) -> str:
    """The file of a data set in a folder of raw files."""
    return record.path or f"{str(record.item).rpartition('/')[2]}.csv"


def _description(dataset: Dataset) -> str:
    counts = summary(dataset)
    lines = [repr(dataset)]
    lines += [f"caution: {caution}" for caution in dataset.cautions]
    share = dataset.M.mean(axis=0)
    features = dataset.without_missing_levels().origin
    missing: dict[str, float] = {}
    for j in np.argsort(-share, kind="stable"):
        if share[j] > 0:
            missing.setdefault(features[j].variable, share[j])
    lines.append(f"patterns: {counts.patterns:,}; variables with missing values: {len(missing)}")
    table = Table(variable=list(missing), missing=[round(s, 4) for s in missing.values()])
    return f"{wrapped(chr(10).join(lines))}\n{table.within(table_width())}\n"


def _as_csv(dataset: Dataset) -> str:
    """Encode X and y as CSV; a missing number is an empty cell."""
    names = dataset.feature_names
    if dataset.y is not None:
        target = str(dataset.target)
        names = [*names, target if target not in names else f"target: {target}"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for i, row in enumerate(dataset.X.tolist()):
        cells = [_cell(value) for value in row]
        writer.writerow(cells if dataset.y is None else [*cells, _cell(dataset.y[i])])
    return text.getvalue()


def _cell(value: Any) -> str:
    return "" if value != value else str(value)
