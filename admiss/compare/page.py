"""A comparison as one web page: verdict, table, frontier, trees with the formulas of their leaves, settings, versions.

The page opens from disk and needs neither network nor scripts: style and drawings are embedded, and its content
security policy forbids everything else.
"""

import re
from collections.abc import Mapping, Sequence
from math import floor, isfinite, log10
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from admiss.atomic_write import write_atomically
from admiss.compare.comparison import Comparison
from admiss.compare.drawings import chart_figures, leaf_count, tree_figures
from admiss.compare.scores import SCORES
from admiss.compare.setting import EXACT_TREES, METHODS, description
from admiss.versions import versions
from admiss.web_page.markup import NOTHING, SHARED_STYLE, details, number, plain_table, scrolling, text

FOLDER = Path(__file__).parent
DIGITS = {"leaves": 0, "above_bound_percent": 2, "seconds": 2}
# Significant digits of costs, decimals of scores: as in the terminal.
COST_DIGITS, SCORE_DIGITS = 6, 3
# Lists with more entries are folded.
MOST_OPEN = 8


def write_page(comparisons: Sequence[Comparison], path: Path) -> None:
    """Write the page of some comparisons, completely or not at all."""
    titles = [comparison.title for comparison in comparisons]
    links = "".join(f'<a href="#comparison-{i}">{text(title)}</a>' for i, title in enumerate(titles))
    template = Template((FOLDER / "page.html").read_text(encoding="utf-8"))
    page = template.substitute(
        title=text(titles[0] if len(titles) == 1 else "Comparison of partitions"),
        style=SHARED_STYLE + (FOLDER / "page.css").read_text(encoding="utf-8"),
        navigation=f'<nav aria-label="Data sets">{links}</nav>' if len(titles) > 1 else "",
        sections="".join(_section(comparison, i, len(titles) > 1) for i, comparison in enumerate(comparisons)),
        versions=_facts(versions()),
    )
    # text from files may hold halves of surrogate pairs, which UTF-8 does not have
    write_atomically(path, page.encode("utf-8", "xmlcharrefreplace"))


def _section(comparison: Comparison, index: int, several: bool) -> str:
    """All about one data set."""
    heading = f"<h2>{text(comparison.title)}</h2>" if several else ""
    verdict = "".join(f"<p>{text(line)}</p>" for line in [comparison.verdict()] if line)
    references = "".join(f'<pre tabindex="0">{text(str(model))}</pre>' for model in comparison.references.values())
    parts = [
        f'<p class="size">{text(comparison.description)}</p>',
        '<p class="warning">Interrupted: unfinished methods are left out.</p>' if comparison.interrupted else "",
        f'<div class="verdict" role="note" aria-label="Verdict">{verdict}</div>' if verdict else "",
        _notes(comparison.notes),
        "<h3>Methods</h3>",
        _method_table(comparison),
        chart_figures(comparison),
        tree_figures(comparison),
        "<h3>Leaves and formulas</h3>" if comparison.models else "",
        *(_model(comparison, method) for method in comparison.models),
        "<h3>Settings</h3>",
        f'<dl class="facts">{_facts(comparison.setting.to_dict())}</dl>',
        details("References in scikit-learn", references) if references else "",
    ]
    return f'<section id="comparison-{index}" aria-label="{text(comparison.title)}">{heading}{"".join(parts)}</section>'


def _notes(notes: Sequence[str]) -> str:
    """What was done to the data, folded if that is much."""
    if not notes:
        return ""
    items = "".join(f"<li>{text(note)}</li>" for note in notes)
    folded = "" if len(notes) > MOST_OPEN else " open"
    return f"<details{folded}><summary>Notes on the data ({len(notes)})</summary><ul>{items}</ul></details>"


def _method_table(comparison: Comparison) -> str:
    """The table of methods; the best number of each score is bold, and references are set apart."""
    table = comparison.table
    methods = [str(method) for method in table["method"]]
    columns = {name: _words(name, values) for name, values in table.items() if name != "method"}
    head = "".join(
        f'<th scope="col"{_alignment(table[name])}>{text(_header(name))}</th>' for name in ("method", *columns)
    )
    best = {name: _best(name, table[name]) for name in columns}
    body = ""
    for row, method in enumerate(methods):
        cells = "".join(
            f"<td{_alignment(table[name])}>{_bold(text(words[row]), row in best[name])}</td>"
            for name, words in columns.items()
        )
        kind = ' class="reference"' if method in comparison.references else ""
        body += f'<tr{kind}><th scope="row">{_method(method)}</th>{cells}</tr>'
    legend = [
        "Training cost, the lower bound proven for it, and by how many per cent of the best bound known for such "
        "partitions the cost is above that bound."
    ]
    if any(map(_is_score, columns)):
        legend.append("Scores are cross-validated (cv) or on held-out rows (test); the best are bold.")
    if comparison.references:
        legend.append("Methods in italics are references without a partition.")
    whole = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<p class="soft">{" ".join(legend)}</p>{scrolling("Methods", whole)}'


def _method(name: str) -> str:
    """A method with its description, or a reference."""
    return f'{text(name)} <span class="soft">{text(METHODS[name][1])}</span>' if name in METHODS else text(name)


def _header(name: str) -> str:
    """A column in words."""
    kind, _, score = name.partition("_")
    if _is_score(name):
        return f"{score.replace('R2', 'R²').replace('_', '-')} {kind}"
    return name.replace("_percent", ",\N{NO-BREAK SPACE}%").replace("_", " ")


def _bold(markup: str, bold: bool) -> str:
    return f"<b>{markup}</b>" if bold else markup


def _is_score(name: str) -> bool:
    return name.startswith(("cv_", "test_"))


def _alignment(values: Any) -> str:
    return "" if np.asarray(values).dtype.kind in "fiu" else ' class="text"'


def _words(name: str, values: Any) -> list[str]:
    """The entries of a column, numbers with the same decimals; undefined ones are dashes."""
    if np.asarray(values).dtype.kind != "f":
        return list(map(str, values))
    largest = max((abs(float(value)) for value in values if isfinite(value)), default=0.0)
    decimals = DIGITS.get(name, SCORE_DIGITS)
    if name not in DIGITS and not _is_score(name):
        power = floor(log10(largest)) if largest else 0
        if not -4 <= power <= 11:
            return [f"{value:.{COST_DIGITS - 1}e}" if isfinite(value) else NOTHING for value in values]
        decimals = max(0, COST_DIGITS - 1 - power)
    return [number(value, decimals) if isfinite(value) else NOTHING for value in values]


def _best(name: str, values: Any) -> set[int]:
    """Rows with the best score as shown; none if the column is no score or all are the same."""
    if not _is_score(name) or np.asarray(values).dtype.kind != "f" or not np.isfinite(values).any():
        return set()
    shown = np.round(np.asarray(values, dtype=float), SCORE_DIGITS)
    largest = {score: larger for scores in SCORES.values() for score, larger in scores.items()}
    best = np.nanmax(shown) if largest[name.partition("_")[2]] else np.nanmin(shown)
    rows = set(np.flatnonzero(shown == best).tolist())
    return rows if len(rows) < np.isfinite(shown).sum() else set()


def _model(comparison: Comparison, method: str) -> str:
    """The leaves of a method with their formulas, its coefficients as a table, and the model as text."""
    model = comparison.models[method]
    facts, items = model.leaf_table(), ""
    for q in range(model.partition_.n_leaves):
        numbers = f"{facts['rows'][q]:,} rows · {facts['patterns'][q]:,} patterns · cost {facts['cost'][q]:.6g}"
        formulas = "".join(f"<div>{_formula(line)}</div>" for line in model.leaf_formulas(q, 4))
        items += (
            f'<li><div class="holds"><strong>Leaf {q}</strong> {_folded([str(facts["holds"][q])])}</div>'
            f'<div class="soft">{numbers}</div><div class="formula">{formulas}</div></li>'
        )
    is_open = model.partition_.n_leaves <= MOST_OPEN and method in ("greedy", *EXACT_TREES)
    title = f"<strong>{text(method)}</strong>: {text(description(method))}, {leaf_count(model)}"
    more = details("Coefficients as a table", _coefficients(model))
    more += details("Model as text", f'<pre tabindex="0">{text(model.to_text())}</pre>')
    listed = f'<ol class="leaves">{items}</ol>{more}'
    return f'<details class="model"{" open" * is_open}><summary>{title}</summary>{listed}</details>'


def _formula(line: str) -> str:
    """A formula that is broken between terms, folded after the first ones if there are many."""
    return _folded(re.split(r" (?=[+-] [\d.e+-]+ )", line))


def _folded(parts: list[str]) -> str:
    """Parts of a text; of more than 20 or very long ones the first, until all are shown."""
    first = parts[:10] if len(parts) > 20 else [part[:240] for part in parts]
    shown, whole = ("".join(f'<span class="part">{text(part)}</span> ' for part in some) for some in (first, parts))
    if first == parts:
        return whole
    return f'<details class="rest"><summary><span>{shown}… </span></summary>{whole}</details>'


def _coefficients(model: Any) -> str:
    """One row per term (and class), one column per leaf."""
    table = model.coef_table()
    keys = [name for name in ("feature", "term", "class") if name in table]
    cells: dict[tuple[Any, ...], dict[int, float]] = {}
    for row in range(table.n_rows):
        key = tuple(str(table[name][row]) for name in keys)
        cells.setdefault(key, {})[int(table["leaf"][row])] = float(table["coefficient"][row])
    leaves = range(model.partition_.n_leaves)
    rows = [[*key, *(f"{by[q]:.4g}" if q in by else NOTHING for q in leaves)] for key, by in cells.items()]
    return plain_table("Coefficients by leaf", [*keys, *(f"leaf {q}" for q in leaves)], rows)


def _facts(facts: Mapping[str, Any]) -> str:
    return "".join(
        f"<div><dt>{text(name.replace('_', ' '))}</dt><dd>{'not set' if value is None else text(str(value))}</dd></div>"
        for name, value in facts.items()
    )
