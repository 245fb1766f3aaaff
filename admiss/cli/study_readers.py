"""The commands that read a store: status, export, report, results, compare-paper.

The studies and what draws are imported when a command needs them, which takes seconds.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from typing import Any

from admiss.cli.study_choices import RUNS, check_scale, folders_of_runs, named_study, needed_module, store_folder
from admiss.study.digest import source_digest
from admiss.study.errors import EngineError
from admiss.study.run import failures, grid_keys
from admiss.study.store import Store


def status(options: argparse.Namespace) -> str:
    """What a store has, and which sources computed it."""
    study = named_study(options)
    with Store(store_folder(options, study), study.name) as store:
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
    from admiss.study.export import write_table

    study = named_study(options)
    with Store(store_folder(options, study), study.name) as store:
        rows = write_table(store, study, options.file)
    return f"{rows:,} rows written to {options.file}"


def report_page(options: argparse.Namespace) -> str:
    """Write the report."""
    from admiss.study.export import provenance
    from admiss.study.table import read_table

    study = named_study(options)
    page = needed_module("admiss.study.report.page")
    with Store(store_folder(options, study), study.name) as store:
        table = read_table(store, study)
        place = options.html or store.folder / "report.html"
        sections, _ = needed_module("experiments.paper.commands").all_sections(table, study)
        page.write_report(table, study, place, comparison=sections, facts=provenance(store, study))
    return f"report written to {place}"


def keep_results(options: argparse.Namespace) -> str:
    """Write tables and figures to a folder."""
    from admiss.study.export import provenance
    from admiss.study.table import read_table

    study = named_study(options)
    compare, figures = needed_module("experiments.paper.commands"), needed_module("admiss.study.report.figures")
    with Store(store_folder(options, study), study.name) as store:
        table, facts = read_table(store, study), provenance(store, study)
        words = {"versions": ", ".join(f"{name} {version}" for name, version in facts["versions"].items())}
        written = compare.write_results(table, study, options.folder, "\n".join(facts["command"]), words)
        written += figures.save_figures(table, study, options.folder)
    return f"{len(written)} files written to {options.folder}"


def compare_with_paper(options: argparse.Namespace) -> str:
    """The comparison as text, of one study or of all that were run."""
    from admiss.study.table import read_table
    from experiments.catalogue import STUDIES

    compare_paper = needed_module("experiments.paper.commands").compare_paper
    check_scale(options)
    if options.study is not None:
        studies = [named_study(options)]
    elif options.out is not None:
        raise EngineError("--out is the folder of one study: name the study too.")
    else:
        studies = [study for study in STUDIES.values() if folders_of_runs(study, options.scale)]
        if not studies:
            scale = "" if options.scale is None else f" at scale {options.scale}"
            raise EngineError(f"There are no runs{scale} in {RUNS}: run a study first, or name one and its folder.")
    texts = []
    for study in studies:
        with Store(store_folder(options, study), study.name) as store:
            texts.append(str(compare_paper(read_table(store, study), study)))
    return "\n\n".join(texts)
