"""One HTML page per study: main figure, means with filters, comparisons, other figures, failures, provenance.

The page opens from disk and needs no network: styles, script, figures and cells are embedded, and its content security
policy forbids everything else. Parts without content have neither a heading nor a link.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

import polars as pl

from admiss.atomic_write import write_atomically
from admiss.study.comparisons import overlap
from admiss.study.plan import EngineError
from admiss.study.report.drawing import Drawing
from admiss.study.report.labels import Labels
from admiss.study.report.markup import figure_element, filter_controls, reference_table, section_part, summary_table
from admiss.study.report.presentation import Presentation
from admiss.study.report.rows import instance_fields, repeated, scoreless
from admiss.study.report.summary import embedded_data, make_filters, metric_decimals, shown_metrics, summarise
from admiss.study.report.verdicts import comparison_section
from admiss.web_page.markup import SHARED_STYLE, details, plain_table, prose, text

FOLDER = Path(__file__).parent
FACTS = ("command", "versions", "machine", "digests", "scale", "done", "failed", "pending")
# Failed cells and digests that are listed one by one.
MOST_FAILED, MOST_DIGESTS = 500, 12
MEANS_WORDS = (
    "The mean of each method is over its own cells that pass the filters; differences to the reference are over the "
    "instances that both have. {} \u201cBetter on\u201d is the share of "
    "these instances with a larger value than the reference, a tie counting half."
)
INDEPENDENT = "Standard errors take instances as independent."
CORRECTED = "Standard errors are corrected for the rows that splits of the data set share (Nadeau and Bengio, 2003)."


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
        sources and its number of cells), ``scale``, and the numbers of cells ``done``, ``failed`` and ``pending``;
        optionally ``stale``, the number of cells whose sources have changed.
    """
    absent = [name for name in FACTS if name not in facts]
    if absent:
        raise ValueError(f"The facts of a report lack {', '.join(absent)}: give {', '.join(FACTS)}.")
    rows, study = presentation.rows(table), presentation.study
    parts = _parts(table, rows, presentation, facts)
    template = Template((FOLDER / "page.html").read_text(encoding="utf-8"))
    page = template.substitute(
        title=text(study.title),
        description=prose(study.description) if study.description else "",
        style=SHARED_STYLE + (FOLDER / "style.css").read_text(encoding="utf-8"),
        script=(FOLDER / "script.js").read_text(encoding="utf-8"),
        warnings=_warnings(rows, scoreless(table, presentation.value), facts),
        links="".join(f'<a href="#{name}">{heading}</a>' for name, heading, _ in parts),
        parts="".join(
            f'<section id="{name}" aria-labelledby="{name}-heading"><h2 id="{name}-heading">{heading}</h2>{content}'
            "</section>\n"
            for name, heading, content in parts
        ),
        data=_data(rows, presentation),
    )
    try:
        write_atomically(path, page.encode())
    except OSError as error:
        raise EngineError(
            f"The report cannot be written to {path} ({error.strerror}): name another file with --html."
        ) from None
    return path


def _parts(
    table: pl.DataFrame, rows: pl.DataFrame, presentation: Presentation, facts: Mapping[str, Any]
) -> list[tuple[str, str, str]]:
    """Name, heading and content of the parts that have any."""
    drawn = presentation.figures(rows)
    further = presentation.further_figures(table, rows)
    failures = [drawing for drawing in further if not drawing.metric]
    tables = []
    if rows.height and presentation.compared:
        compared = comparison_section(rows, presentation.study, presentation.labels)
        tables.append(section_part(compared, heading=False))
    tables += [reference_table(each) for each in presentation.comparison(rows)] if rows.height else []
    # those that conclude something, such as claims, first
    tables += map(section_part, sorted(presentation.sections(table), key=lambda section: not section.conclusion))
    others = [*map(figure_element, drawn[1:])]
    others += [details(drawing.title, figure_element(drawing)) for drawing in further if drawing.metric]
    parts = [
        ("main", "Main figure", "".join(map(figure_element, drawn[:1]))),
        ("means", "Means", _means(rows, presentation)),
        ("comparison", "Comparisons", "".join(tables)),
        ("figures", "Further figures", "".join(others)),
        ("failed", "Failures", _failed(table, presentation, failures)),
        ("provenance", "Provenance", details("Commands, versions, machine and sources", _facts(facts), "print")),
    ]
    return [part for part in parts if part[2]]


def _warnings(rows: pl.DataFrame, without_score: int, facts: Mapping[str, Any]) -> str:
    found = []
    if not rows.height:
        found.append("No cell is done yet.")
    if facts.get("stale"):
        found.append(
            f"{text(facts['stale'])} cells are stale: what computed them has changed. Recompute them with "
            "<code>run --stale</code> before comparing."
        )
    elif "stale" not in facts and len(facts["digests"]) > 1:
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
    digests = facts["digests"]
    entries = {
        "Scale": text(facts["scale"]),
        "Cells": ", ".join(f"{text(facts[name])} {name}" for name in ("done", "failed", "pending")),
        "Commands": "".join(f'<code class="command">{text(command)}</code>' for command in commands),
        "Machine": text(facts["machine"]),
        "Versions": ", ".join(f"{text(name)} {text(version)}" for name, version in facts["versions"].items()),
        "Digests of the sources": "<br>".join(
            [f"<code>{text(digest)}</code> ({text(count)} cells)" for digest, count in digests[:MOST_DIGESTS]]
            + [f"and {text(len(digests) - MOST_DIGESTS)} others"] * (len(digests) > MOST_DIGESTS)
        ),
    }
    return f"<dl>{''.join(f'<div><dt>{name}</dt><dd>{value}</dd></div>' for name, value in entries.items())}</dl>"


def _means(rows: pl.DataFrame, presentation: Presentation) -> str:
    if not rows.height:
        return ""
    study, labels = presentation.study, presentation.labels
    filters, methods = make_filters(rows, study, labels), labels.ordered(rows["method"].to_list())
    metrics = [labels.word(metric) for metric in shown_metrics(rows, study)]
    words = presentation.score_words(rows) if presentation.score_words else ", ".join(metrics)
    reading = MEANS_WORDS.format(CORRECTED if overlap(rows) else INDEPENDENT)
    shown = prose(f"{'Metrics' if len(metrics) > 1 else 'Metric'}: {words}; larger is better. {reading}")
    script = '<noscript><p class="warning">Filters need JavaScript: the table is without any.</p></noscript>'
    controls = filter_controls(filters, methods, labels.reference_among(methods), metrics)
    form = f'<form id="filters" aria-label="Filters">{controls}</form><p id="counted" role="status"></p>'
    lines = summarise(rows, filters, labels)
    return f"{form}{script}{summary_table(lines, metric_decimals(rows['value']))}{shown}"


def _data(rows: pl.DataFrame, presentation: Presentation) -> str:
    if not rows.height:
        return "null"
    study, labels = presentation.study, presentation.labels
    return embedded_data(rows, make_filters(rows, study, labels), study, labels)


def _failed(table: pl.DataFrame, presentation: Presentation, drawings: Sequence[Drawing]) -> str:
    labels = presentation.labels
    failed = table.filter(pl.col("status") == "failed")
    cells, choices = failed.filter(pl.col("key").is_not_null()), failed.filter(pl.col("key").is_null()).height
    if not failed.height:
        return ""
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
    parts = [*map(figure_element, drawings)]
    if listed:
        parts.append(plain_table("Failed cells by reason", ["Reason", "Cells", "Methods"], grouped))
        each = plain_table("Failed cells", ["Method", "Instance", "Reason"], listed)
        parts.append(details("Each failed cell", more + each))
    if choices:
        parts.append(f"<p>{choices:,} choices among methods have no number, as one of their members failed.</p>")
    return "".join(parts)


def _describe(row: Mapping[str, Any], fields: Sequence[str], labels: Labels) -> str:
    values = [f"{name} {labels.word(row[name])}" for name in fields if name != "kind" and row[name] is not None]
    return f"{row['kind']}: {', '.join(values)}"
