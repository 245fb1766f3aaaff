"""One HTML page per study: provenance, tables, means with filters, figures, and failures.

The page opens from disk and needs no network: styles, script, figures and cells are embedded, and its content security
policy forbids everything else.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

import polars as pl

from admiss.atomic_write import write_atomically
from admiss.study.report.labels import Labels
from admiss.study.report.markup import (
    figure_element,
    filter_controls,
    plain_table,
    reference_table,
    summary_table,
    text,
)
from admiss.study.report.presentation import Presentation
from admiss.study.report.rows import instance_fields, repeated, scoreless
from admiss.study.report.summary import embedded_data, make_filters, summarise
from admiss.study.sections import Section

FOLDER = Path(__file__).parent
FACTS = ("command", "versions", "machine", "digests", "scale", "done", "failed", "pending")
# Failed cells that are listed one by one.
MOST_FAILED = 500


def write_report(table: pl.DataFrame, presentation: Presentation, path: Path, *, facts: Mapping[str, Any]) -> Path:
    """Write the page of a study, and return its path.

    Parameters
    ----------
    table : polars.DataFrame
        One row per cell that is done or failed, and one per choice among methods.
    presentation : Presentation
    path : Path
        Its folder is created if it does not exist.
    facts : mapping
        ``command`` (one or several), ``versions`` (name to version), ``machine``, ``digests`` (pairs of a digest of the
        sources and its number of cells), ``scale``, and the numbers of cells ``done``, ``failed`` and ``pending``.
    """
    absent = [name for name in FACTS if name not in facts]
    if absent:
        raise ValueError(f"The facts of a report lack {', '.join(absent)}: give {', '.join(FACTS)}.")
    rows, study = presentation.rows(table), presentation.study
    tables = [reference_table(each) for each in presentation.comparison(rows)] if rows.height else []
    tables += map(_section, presentation.sections(table))
    template = Template((FOLDER / "page.html").read_text(encoding="utf-8"))
    page = template.substitute(
        title=text(study.title),
        description=text(study.description),
        style=(FOLDER / "style.css").read_text(encoding="utf-8"),
        script=(FOLDER / "script.js").read_text(encoding="utf-8"),
        warnings=_warnings(rows, scoreless(table, presentation.value), facts),
        facts=_facts(facts),
        comparison="".join(tables) or "<p>The study has no tables of its own.</p>",
        **_means(rows, presentation),
        figures="".join(map(figure_element, presentation.figures(rows)))
        or "<p>There are too few cells for a figure.</p>",
        failed=_failed(table, presentation),
    )
    write_atomically(path, page.encode())
    return path


def _warnings(rows: pl.DataFrame, without_score: int, facts: Mapping[str, Any]) -> str:
    found = []
    if len(facts["digests"]) > 1:
        found.append(
            f"The cells come from {len(facts['digests'])} versions of the sources: "
            "recompute the older ones with <code>run --stale</code> before comparing."
        )
    if facts["pending"]:
        found.append(f"{text(facts['pending'])} cells of this scale are not computed yet: means are over the others.")
    if facts["failed"]:
        found.append(f'{text(facts["failed"])} cells <a href="#failed">failed</a>: means are over the others.')
    if without_score:
        found.append(f"{text(without_score)} rows are done and have no finite score: no mean counts them.")
    if count := repeated(rows):
        found.append(
            f"{text(count)} cells repeat a method on an instance with other parameters, as scales have them: "
            "means count each."
        )
    return "".join(f'<p class="warning"><strong>Note:</strong> {sentence}</p>' for sentence in found)


def _facts(facts: Mapping[str, Any]) -> str:
    commands = [facts["command"]] if isinstance(facts["command"], str) else list(facts["command"])
    entries = {
        "Scale": text(facts["scale"]),
        "Cells": ", ".join(f"{text(facts[name])} {name}" for name in ("done", "failed", "pending")),
        "Commands": "".join(f'<code class="command">{text(command)}</code>' for command in commands),
        "Machine": text(facts["machine"]),
        "Versions": ", ".join(f"{text(name)} {text(version)}" for name, version in facts["versions"].items()),
        "Digest of the sources": "<br>".join(
            f"<code>{text(digest)}</code> ({text(count)} cells)" for digest, count in facts["digests"]
        ),
    }
    return "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in entries.items())


def _section(section: Section) -> str:
    table = plain_table(section.title, section.header, section.rows) if section.rows else ""
    return f"<h3>{text(section.title)}</h3><p>{text(section.text)}</p>{table}"


def _means(rows: pl.DataFrame, presentation: Presentation) -> dict[str, str]:
    if not rows.height:
        return {"score": "No cell is done yet.", "controls": "", "summary": "", "data": "null"}
    labels = presentation.labels
    filters, methods = make_filters(rows, presentation.study, labels), labels.ordered(rows["method"].to_list())
    return {
        "score": text(f"Score: {presentation.score_words(rows)}."),
        "controls": filter_controls(filters, methods, labels.reference_among(methods)),
        "summary": summary_table(summarise(rows, filters, labels)),
        "data": embedded_data(rows, filters, labels),
    }


def _failed(table: pl.DataFrame, presentation: Presentation) -> str:
    labels = presentation.labels
    failed = table.filter(pl.col("status") == "failed")
    cells, choices = failed.filter(pl.col("key").is_not_null()), failed.filter(pl.col("key").is_null()).height
    if not failed.height:
        return "<p>Nothing failed.</p>"
    reason = pl.col("reason").fill_null("no reason is known")
    groups = cells.group_by(reason).agg(pl.len().alias("cells"), pl.col("method").unique().sort())
    groups = groups.sort(["cells", "reason"], descending=[True, False])
    grouped = [[why, count, ", ".join(labels.ordered(methods))] for why, count, methods in groups.iter_rows()]
    fields = instance_fields(table, presentation.study)
    listed = [
        [row["method"], _describe(row, fields, labels), row["reason"] or "no reason is known"]
        for row in cells.head(MOST_FAILED).iter_rows(named=True)
    ]
    more = f"<p>The first {MOST_FAILED:,} of {cells.height:,}.</p>" if cells.height > MOST_FAILED else ""
    parts = []
    if listed:
        parts.append(plain_table("Failed cells by reason", ["Reason", "Cells", "Methods"], grouped))
        each = plain_table("Failed cells", ["Method", "Instance", "Reason"], listed)
        parts.append(f"<details><summary>Each failed cell</summary>{more}{each}</details>")
    if choices:
        parts.append(f"<p>{choices:,} choices among methods have no number, as one of their members failed.</p>")
    return "".join(parts)


def _describe(row: Mapping[str, Any], fields: Sequence[str], labels: Labels) -> str:
    values = [f"{name} {labels.word(row[name])}" for name in fields if name != "kind" and row[name] is not None]
    return f"{row['kind']}: {', '.join(values)}"
