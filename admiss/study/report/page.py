"""One HTML page for a study: what was run, tables beside the paper's, means with filters, figures, and what failed.

The page opens from disk and asks no network for anything: styles, script, figures and cells are inside it, and its
content security policy forbids the rest.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any, Protocol

import polars as pl

from admiss.study.report.figures import drawings
from admiss.study.report.markup import (
    figure_element,
    filter_controls,
    paper_table,
    plain_table,
    summary_table,
    text,
)
from admiss.study.report.rows import (
    instance_fields,
    method_order,
    repeated,
    score_words,
    scored_rows,
    scoreless,
    uses_authors_form,
    words,
)
from admiss.study.report.summary import embedded_data, make_filters, reference_method, summarise
from admiss.study.study import Study
from experiments.paper.averages import paper_tables

FOLDER = Path(__file__).parent
FACTS = ("command", "versions", "machine", "digests", "scale", "done", "failed", "pending")
# Failed cells that are listed one by one.
MOST_FAILED = 500


class Section(Protocol):
    """A table of a comparison: a title, a text, a header and rows of text or numbers."""

    @property
    def title(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def header(self) -> Sequence[str]: ...
    @property
    def rows(self) -> Sequence[Sequence[Any]]: ...


def write_report(
    table: pl.DataFrame,
    study: Study,
    path: Path,
    *,
    comparison: Sequence[Section] | str | None = None,
    facts: Mapping[str, Any],
) -> Path:
    """Write the page of a study.

    Parameters
    ----------
    table : polars.DataFrame
        A row for each cell that is done or failed, and for each choice among methods.
    study : Study
    path : Path
        Of the page; its folder is made.
    comparison : sequence of sections, or text, optional
        The comparison with the paper.
    facts : mapping
        ``command`` (text, or several), ``versions`` (name to version), ``machine``, ``digests`` (pairs of the digest of
        the sources and the cells that have it), ``scale``, and the cells ``done``, ``failed`` and ``pending``.

    Returns
    -------
    Path
        Where the page is.
    """
    absent = [name for name in FACTS if name not in facts]
    if absent:
        raise ValueError(f"The facts of a report lack {', '.join(absent)}: give {', '.join(FACTS)}.")
    rows = scored_rows(table, study)
    template = Template((FOLDER / "page.html").read_text(encoding="utf-8"))
    page = template.substitute(
        title=text(study.title),
        description=text(study.description),
        style=(FOLDER / "style.css").read_text(encoding="utf-8"),
        script=(FOLDER / "script.js").read_text(encoding="utf-8"),
        warnings=_warnings(table, rows, facts),
        facts=_facts(facts),
        paper="".join(map(paper_table, paper_tables(rows, study))) + _comparison(comparison),
        **_means(rows, study, uses_authors_form(table)),
        figures="".join(map(figure_element, drawings(rows))) or "<p>There are too few cells for a figure.</p>",
        failed=_failed(table, study),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".partial")
    unfinished.write_text(page, encoding="utf-8")
    unfinished.replace(path)
    return path


def _warnings(table: pl.DataFrame, rows: pl.DataFrame, facts: Mapping[str, Any]) -> str:
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
    if count := scoreless(table):
        found.append(f"{text(count)} rows are done and have no finite score: no mean counts them.")
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


def _comparison(comparison: Sequence[Section] | str | None) -> str:
    if isinstance(comparison, str):
        return f"<p>{text(comparison)}</p>"
    return "".join(
        f"<h3>{text(section.title)}</h3><p>{text(section.text)}</p>"
        + (plain_table(section.title, section.header, section.rows) if section.rows else "")
        for section in comparison or ()
    )


def _means(rows: pl.DataFrame, study: Study, authors_form: bool) -> dict[str, str]:
    if not rows.height:
        return {"score": "No cell is done yet.", "controls": "", "summary": "", "data": "null"}
    filters, methods = make_filters(rows, study), method_order(rows["method"].to_list())
    return {
        "score": text(f"Score: {score_words(rows, study, authors_form)}."),
        "controls": filter_controls(filters, methods, reference_method(methods)),
        "summary": summary_table(summarise(rows, filters)),
        "data": embedded_data(rows, filters),
    }


def _failed(table: pl.DataFrame, study: Study) -> str:
    failed = table.filter(pl.col("status") == "failed")
    cells, choices = failed.filter(pl.col("key").is_not_null()), failed.filter(pl.col("key").is_null()).height
    if not failed.height:
        return "<p>Nothing failed.</p>"
    reason = pl.col("reason").fill_null("no reason is known")
    groups = cells.group_by(reason).agg(pl.len().alias("cells"), pl.col("method").unique().sort())
    groups = groups.sort(["cells", "reason"], descending=[True, False])
    grouped = [[why, count, ", ".join(method_order(methods))] for why, count, methods in groups.iter_rows()]
    fields = instance_fields(table, study)
    listed = [
        [row["method"], _describe(row, fields), row["reason"] or "no reason is known"]
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


def _describe(row: Mapping[str, Any], fields: Sequence[str]) -> str:
    values = [f"{name} {words(row[name])}" for name in fields if name != "kind" and row[name] is not None]
    return f"{row['kind']}: {', '.join(values)}"
