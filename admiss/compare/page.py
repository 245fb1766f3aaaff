"""A comparison as a web page: verdict, table, figures, trees with the formulas of their leaves, settings, versions."""

import re
from collections.abc import Mapping, Sequence
from math import floor, isfinite, log10
from pathlib import Path
from typing import Any

import numpy as np

from admiss.compare.comparison import Comparison
from admiss.compare.figures import chart_drawings, has_one_tree, no_split_cost, tree_drawings
from admiss.compare.scores import SCORES
from admiss.compare.setting import EXACT_TREES, METHODS, description
from admiss.report.page import write_page as write_template
from admiss.terminal.table import ABSENT, number
from admiss.versions import versions

DIGITS = {"leaves": 0, "above_bound_percent": 2, "seconds": 2}
# Costs in per cent of no split.
COSTS = ("cost", "bound")


def write_page(comparisons: Sequence[Comparison], path: Path) -> None:
    """Write the page of some comparisons, completely or not at all."""
    titles = [comparison.title for comparison in comparisons]
    title = titles[0] if len(titles) == 1 else "Comparison of partitions"
    sections = [_section(comparison, f"c{i}-") for i, comparison in enumerate(comparisons)]
    write_template("comparison.html", path, title=title, sections=sections, versions=_facts(versions()))


def _section(comparison: Comparison, prefix: str) -> dict[str, Any]:
    """All about one data set."""
    columns, methods = _method_table(comparison)
    return {
        "title": comparison.title,
        "description": comparison.description,
        "interrupted": comparison.interrupted,
        "verdict": comparison.verdict(),
        "notes": comparison.notes,
        "reading": _reading(comparison),
        "columns": columns,
        "methods": methods,
        "charts": chart_drawings(comparison, prefix),
        "near": comparison.near.lines() if comparison.near else [],
        "trees": tree_drawings(comparison, prefix),
        "models": [_model(comparison, method) for method in comparison.models],
        "settings": _facts(comparison.setting.to_dict()),
        "references": list(map(str, comparison.references.values())),
    }


def _facts(facts: Mapping[str, Any]) -> dict[str, list[str]]:
    return {name.replace("_", " "): ["not set" if value is None else str(value)] for name, value in facts.items()}


def _reading(comparison: Comparison) -> str:
    """How to read the table of methods."""
    unit = "in per cent of the cost without a split" if isfinite(no_split_cost(comparison)) else "as in the program"
    words = [
        f"Training cost and the lower bound proven for it, {unit}; by how many per cent of the best bound known for "
        "such partitions the cost is above that bound."
    ]
    if any(map(_is_score, comparison.table)):
        words.append("Scores are cross-validated (cv) or on held-out rows (test); the best are bold.")
    if comparison.references:
        words.append("Methods in italics are references without a partition.")
    return " ".join(words)


def _method_table(comparison: Comparison) -> tuple[list[dict[str, str]], list[dict[str, Any]]]:
    """Columns, and methods with their cells; the best number of each score is marked."""
    table, whole = comparison.table, no_split_cost(comparison)
    columns = [{"name": _header(name, isfinite(whole)), "kind": _kind(values)} for name, values in table.items()]
    cells = [_cells(name, values, whole) for name, values in table.items() if name != "method"]
    methods = [
        {
            "name": str(method),
            "description": METHODS[method][1] if method in METHODS else "",
            "is_reference": method in comparison.references,
            "cells": [column[row] for column in cells],
        }
        for row, method in enumerate(table["method"])
    ]
    return columns, methods


def _header(name: str, is_percent: bool) -> str:
    """A column in words."""
    kind, _, score = name.partition("_")
    if _is_score(name):
        return f"{score.replace('R2', 'R²').replace('_', '-')} {kind}"
    if name in COSTS and is_percent:
        return f"{name}, %"
    return name.replace("_percent", ", %").replace("_", " ")


def _is_score(name: str) -> bool:
    return name.startswith(("cv_", "test_"))


def _kind(values: Any) -> str:
    return "" if np.asarray(values).dtype.kind in "fiu" else "text"


def _cells(name: str, values: Any, whole: float) -> list[dict[str, Any]]:
    """The entries of a column, numbers with the same decimals; costs have their exact number at the pointer."""
    if _kind(values):
        return [{"text": str(value), "exact": "", "best": False} for value in values]
    best = _best(name, values)
    is_percent = name in COSTS and isfinite(whole)
    shown = 100 * np.asarray(values, dtype=float) / whole if is_percent else np.asarray(values, dtype=float)
    digits = DIGITS.get(name, 2 if is_percent else 3)
    if name in COSTS and not is_percent:
        largest = max((abs(value) for value in shown if isfinite(value)), default=0.0)
        digits = max(0, 5 - floor(log10(largest))) if largest else 0
    return [
        {
            "text": number(float(value), digits) if isfinite(value) else ABSENT,
            "exact": f"{given:.10g}" if is_percent and isfinite(given) else "",
            "best": row in best,
        }
        for row, (value, given) in enumerate(zip(shown, values, strict=True))
    ]


def _best(name: str, values: Any) -> set[int]:
    """Rows with the best score as shown; none if the column is not a score or all are the same."""
    if not _is_score(name) or not np.isfinite(values).any():
        return set()
    shown = np.round(np.asarray(values, dtype=float), 3)
    largest = {score: larger for scores in SCORES.values() for score, larger in scores.items()}
    best = np.nanmax(shown) if largest[name.partition("_")[2]] else np.nanmin(shown)
    rows = set(np.flatnonzero(shown == best).tolist())
    return rows if len(rows) < np.isfinite(shown).sum() else set()


def _model(comparison: Comparison, method: str) -> dict[str, Any]:
    """The leaves of a method with their formulas, its coefficients as a table, and the model as text."""
    model = comparison.models[method]
    facts, whole = model.leaf_table(), no_split_cost(comparison)
    leaves = []
    for q in range(model.n_leaves_):
        cost = f"{100 * facts['cost'][q] / whole:.3g}% of no split" if isfinite(whole) else f"{facts['cost'][q]:.6g}"
        leaves.append(
            {
                "name": f"Leaf {q}",
                "holds": _folded([str(facts["holds"][q])]),
                "numbers": f"{facts['rows'][q]:,} rows · {facts['patterns'][q]:,} patterns · cost {cost}",
                # broken between terms
                "formulas": [_folded(re.split(r" (?=[+-] [\d.e+-]+ )", line)) for line in model.leaf_formulas(q, 4)],
            }
        )
    is_repeated = method == "greedy" and has_one_tree(comparison)
    return {
        "name": method,
        "description": f"{description(method)}, {model.n_leaves_:,} {'leaf' if model.n_leaves_ == 1 else 'leaves'}",
        "is_open": model.n_leaves_ <= 8 and method in ("greedy", *EXACT_TREES) and not is_repeated,
        "leaves": leaves,
        "coefficients": _coefficients(model),
        "text": model.to_text(),
    }


def _folded(parts: list[str]) -> dict[str, Any]:
    """Parts of a text; of more than 20 or very long ones the first, until all are shown."""
    first = parts[:10] if len(parts) > 20 else [part[:240] for part in parts]
    return {"first": first, "parts": parts, "rest": first != parts}


def _coefficients(model: Any) -> tuple[list[str], list[list[Any]]]:
    """One row per term (and class), one column per leaf."""
    table = model.coef_table()
    keys = [name for name in ("feature", "term", "class") if name in table]
    cells: dict[tuple[Any, ...], dict[int, float]] = {}
    for row in range(table.n_rows):
        key = tuple(str(table[name][row]) for name in keys)
        cells.setdefault(key, {})[int(table["leaf"][row])] = float(table["coefficient"][row])
    leaves = range(model.n_leaves_)
    rows = [[*key, *(f"{by[q]:.4g}" if q in by else None for q in leaves)] for key, by in cells.items()]
    return [*keys, *(f"leaf {q}" for q in leaves)], rows
