"""Figure of the study of Theorem 1: the constant that records need, and biases against the formulas."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from admiss.drawing import BLUE, GREEN, GREY, ORANGE, STYLES, pyplot
from experiments.studies.bounds.measures import HALVES, KINDS, SIZES, Record
from experiments.studies.bounds.tables import by_class, chosen_constant, measured


def plot_bounds_study(table: pl.DataFrame, path: Path) -> None:
    """Draw the largest c that records need, and biases against the formulas at the largest d."""
    records, biases = measured(table.to_dicts())
    plt = pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    _plot_constants(left, records)
    _plot_biases(right, biases)
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _plot_constants(ax: Any, records: list[Record]) -> None:
    for (name, group), (colour, marker, line) in zip(by_class(records).items(), STYLES, strict=False):
        sizes = sorted({r.n for r in group})
        needed = {n: max(r.needed("true") for r in group if r.n == n) for n in sizes}
        ax.plot(sizes, [needed[n] for n in sizes], linestyle=line, color=colour, linewidth=1, zorder=1)
        for half, face in zip(HALVES, (colour, "white"), strict=True):
            own = [n for n in sizes if n in SIZES[half]]
            ax.plot(own, [needed[n] for n in own], marker, color=colour, markerfacecolor=face, markersize=5,
                    label=name if half == HALVES[0] else None)  # fmt: skip
    n = np.geomspace(min(r.n for r in records), max(r.n for r in records), 100)
    ax.plot(n, 1 / (1 + np.log(n)), ":", color=GREY, label="excess $\\sigma^2 p / n$")
    worst, failed, checked = chosen_constant(records, "true")
    c = worst.needed("true")
    ax.axhline(c, color=GREY, linestyle="--", linewidth=1.2)
    words = f"smallest c of the filled half: {c:.3g}, fails on {len(failed)} of {checked:,} of the other"
    ax.annotate(words, (1, c), xycoords=("axes fraction", "data"), xytext=(0, 4), textcoords="offset points",
                ha="right", fontsize=8)  # fmt: skip
    ax.set_xscale("log")
    ax.set_ylim(0, 1.5 * c)
    ax.set_xlabel("training rows n")
    ax.set_ylabel("largest c that is needed, with the true bias")
    ax.legend(fontsize=8, frameon=False, ncols=2, loc="upper right")


def _plot_biases(ax: Any, biases: list[dict[str, Any]]) -> None:
    d = max(row["d"] for row in biases)
    rows = [row for row in biases if row["d"] == d]
    orders = np.arange(d - 1)
    for kind, colour, marker in zip(KINDS, (BLUE, ORANGE, GREEN), ("o", "s", "^"), strict=True):
        largest = np.array([truth for row in rows for truth in row["true"][kind]]).max(axis=0)
        ax.plot(orders, largest, marker + "-", color=colour, markersize=5, label=f"{kind}, largest true bias")
    ax.plot(orders, rows[0]["proved"], color="black", linewidth=1.4, label=f"proved bound, {rows[0]['law']} missing")
    printed = np.array(rows[0]["paper"])
    ax.plot(orders, printed, "--", color=GREY, label="as printed, not a bound")
    ax.plot(orders, 8 * printed, ":", color=GREY, label="8 times as printed, as in the theorem")
    ax.set_yscale("log")
    ax.set_xlabel(f"order t of the weights, d = {d}, L = 1")
    ax.set_ylabel("bias b(F)")
    ax.legend(fontsize=8, frameon=False)
