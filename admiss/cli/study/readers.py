"""The commands that read a store: status, export, report, results."""

import argparse

from admiss.cli.study.choices import named_study, opened_store
from admiss.study.reading import status_text, write_files, write_page
from admiss.terminal.table import wrapped


def status(options: argparse.Namespace) -> str:
    """Count the cells of a store, and name what has changed since they were computed."""
    presentation = named_study(options)
    with opened_store(options, presentation) as store:
        return wrapped(status_text(store, presentation.study))


def export_table(options: argparse.Namespace) -> str:
    """Write the table to a file."""
    from admiss.study.results import write_table

    presentation = named_study(options)
    with opened_store(options, presentation) as store:
        rows = write_table(store, presentation.study, options.file)
    return f"{rows:,} rows written to {options.file}"


def report_page(options: argparse.Namespace) -> str:
    """Write the report."""
    presentation = named_study(options)
    with opened_store(options, presentation) as store:
        return f"report written to {write_page(store, presentation, options.html)}"


def write_summary(options: argparse.Namespace) -> str:
    """Write tables and figures to a folder."""
    presentation = named_study(options)
    with opened_store(options, presentation) as store:
        written = write_files(store, presentation, options.folder)
    return f"{len(written)} files written to {options.folder}"
