"""The commands that read a store: status, export, report, results."""

import argparse
from collections import Counter
from collections.abc import Sequence
from typing import Any

from admiss.cli.study.choices import named_study, store_folder
from admiss.study.digest import source_digest, study_sources
from admiss.study.run import failures, grid_keys
from admiss.study.store import Store


def status(options: argparse.Namespace) -> str:
    """Count the cells of a store, and name the sources that computed them."""
    study = named_study(options).study
    with Store(store_folder(options, study), study.name) as store:
        states, scales, keys = store.states(), store.scales(), grid_keys(store, study)
    known = [state for key, state in states.items() if key in keys]
    done = sum(state["status"] == "done" for state in known)
    lines = [
        f"{study.name} ({', '.join(scales)}) in {store.folder}",
        f"{done:,} done, {len(known) - done:,} failed, {len(keys) - len(known):,} pending, of {len(keys):,} cells",
        *failures(known),
        *_digests(known, source_digest(study_sources(study, scales))),
    ]
    if len(known) < len(states):
        lines.append(f"{len(states) - len(known):,} rows of cells that are no longer in the study, left out of tables")
    return "\n".join(lines)


def _digests(states: Sequence[dict[str, Any]], current: str) -> list[str]:
    counts = Counter(state["digest"] for state in states)
    words = [f"{digest} {count:,} cells{' (current)' * (digest == current)}" for digest, count in counts.most_common()]
    lines = [f"sources: {', '.join(words)}"] if words else []
    if len(counts) > 1:
        lines.append("The table mixes sources: run with --stale to compute the cells of other sources again.")
    elif counts and current not in counts:
        lines.append(f"The sources have changed since (now {current}): run with --stale to compute again.")
    return lines


def export_table(options: argparse.Namespace) -> str:
    """Write the table to a file."""
    from admiss.study.export import write_table

    study = named_study(options).study
    with Store(store_folder(options, study), study.name) as store:
        rows = write_table(store, study, options.file)
    return f"{rows:,} rows written to {options.file}"


def report_page(options: argparse.Namespace) -> str:
    """Write the report."""
    from admiss.study.export import provenance
    from admiss.study.report.page import write_report
    from admiss.study.table import read_table

    presentation = named_study(options)
    study = presentation.study
    with Store(store_folder(options, study), study.name) as store:
        path = options.html or store.folder / "report.html"
        write_report(read_table(store, study), presentation, path, facts=provenance(store, study))
    return f"report written to {path}"


def write_summary(options: argparse.Namespace) -> str:
    """Write tables and figures to a folder."""
    from admiss.study.export import provenance, save_figures, write_results
    from admiss.study.table import read_table

    presentation = named_study(options)
    study = presentation.study
    with Store(store_folder(options, study), study.name) as store:
        table, facts = read_table(store, study), provenance(store, study)
    words = {"versions": ", ".join(f"{name} {version}" for name, version in facts["versions"].items())}
    written = write_results(table, presentation, options.folder, "\n".join(facts["command"]), words)
    written += save_figures(table, presentation, options.folder)
    return f"{len(written)} files written to {options.folder}"
