"""The command ``admiss predict``: predictions of a model for files that need not fit in memory."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from admiss.atomic_write import check_outputs
from admiss.cli.source_options import DATA, read_files

WARNING = "Loading a model executes code that is in its file: use only models from people whom you trust."
SHOWN_PATTERNS = 20


def add_parser(commands: Any, summary: str) -> None:
    """Declare the options."""
    parser = commands.add_parser(
        "predict",
        help=summary,
        description=f"Predict every row of files with a model of admiss fit, in the order of the rows.\n{WARNING}",
        epilog=f"data:\n{DATA}\nexample:\n"
        "  admiss predict --model m.joblib --data 'new/*.parquet' --keep id \\\n      --out predicted.parquet\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--model", required=True, metavar="FILE", help="a file of admiss fit; loading it executes code, see above")
    add("--data", nargs="+", required=True, metavar="FILES", help="files, folders or quoted patterns, see below")
    add("--keep", nargs="+", default=[], metavar="COLUMN", help="columns of --data to write too, before the prediction")
    add("--unknown", choices=["error", "missing"], help="values of text that training has not seen (error)")
    add("--patterns", action="store_true", help=f"print the {SHOWN_PATTERNS} most frequent patterns, by one more pass")
    add("--out", required=True, metavar="FILE", help="a Parquet or .csv file, written completely or not at all")
    parser.set_defaults(handler=predict_pages)


def predict_pages(options: argparse.Namespace) -> Iterator[str]:
    """Predict, and yield the text to print."""
    from dataclasses import replace

    from admiss.streaming import open_source, pattern_report, predict_to_parquet
    from admiss.streaming.file_model import load_model
    from admiss.terminal.table import Table, table_width

    data = options.data[0] if len(options.data) == 1 else options.data
    check_outputs([("--out", Path(options.out))], [("--model", Path(options.model)), *read_files(data)])
    model = load_model(options.model)
    schema = model.schema.without_target()
    if options.unknown:
        schema = replace(schema, unknown=options.unknown)
    source = open_source(data, schema=schema)
    n_rows = predict_to_parquet(model.estimator, source, options.out, keep=options.keep)
    yield f"{n_rows:,} rows predicted"
    if options.patterns:
        report = pattern_report(model.estimator, source)
        yield Table(**{name: column[:SHOWN_PATTERNS] for name, column in report.items()}).within(table_width())
    yield f"written: {options.out}"
