"""Figures of the study of Theorem 1: the constant that records need, biases against the formulas, the paper's data."""

from typing import Any

import numpy as np
import polars as pl

from admiss.drawing import BLACK, BLUE, GREEN, GREY, ORANGE, SKY, STYLES
from admiss.report.figures import Drawing, legend, panels
from experiments.studies.bounds.measures import HALVES, SIZES, Record
from experiments.studies.bounds.population import KINDS
from experiments.studies.bounds.tables import COLUMNS, by_class, chosen_constant, measured, paper_rows

BELOW: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "frameon": False}


def bounds_drawing(rows: pl.DataFrame) -> Drawing | None:
    """Draw the largest c that records need, and biases against the formulas at the largest d."""
    records, biases = measured(rows.to_dicts())
    if not records or not biases or {record.half for record in records} != set(HALVES):
        return None
    figure, (left, right) = panels(2, height=3.4)
    _plot_constants(left, records)
    _plot_biases(right, biases)
    worst, failed, checked = chosen_constant(records, "true")
    c = worst.needed("true")
    numbers: list[list[Any]] = [
        [name, n, max(record.needed("true") for record in group if record.n == n)]
        for name, group in by_class(records).items()
        for n in sorted({record.n for record in group})
    ]
    title = "The constant that records need, and biases against the formulas"
    caption = (
        f"Left: filled markers are the half of truths and sizes on which c = {c:.3g} was chosen, which fails on "
        f"{len(failed)} of {checked:,} records of the other half. Right: biases at the largest d."
    )
    return Drawing("bounds", title, caption, figure, ["class", "n", "largest c"], numbers)


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
    c = chosen_constant(records, "true")[0].needed("true")
    ax.axhline(c, color=GREY, linestyle="--", linewidth=1.2)
    ax.annotate(f"smallest c of the filled half: {c:.3g}", (1, c), xycoords=("axes fraction", "data"), xytext=(0, 4),
                textcoords="offset points", ha="right")  # fmt: skip
    ax.set_xscale("log")
    ax.set_ylim(0, 1.5 * c)
    ax.set_xlabel("training rows n")
    ax.set_ylabel("largest c needed, with the true bias")
    ax.legend(ncols=2, **BELOW)


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
    ax.legend(**BELOW)


def paper_data_drawing(rows: pl.DataFrame) -> Drawing | None:
    """Draw printed bound, two-sided bound, bias by moments and measured excess risk on the data of the paper."""
    by_fraction = paper_rows(rows)
    if not by_fraction:
        return None
    figure, axes = panels(len(by_fraction), height=3.6)
    numbers: list[list[Any]] = []
    for ax, (p, means) in zip(axes, by_fraction.items(), strict=True):
        orders, fitted = np.arange(len(means["upper"])), np.arange(len(means["moments"]))
        ax.plot(orders, means["printed"], "--", color=GREY, label="b(F) as printed, not a bound")
        positive = means["upper"] > 0
        ax.fill_between(orders[positive], means["lower"][positive], means["upper"][positive], color=SKY, alpha=0.4,
                        linewidth=0, label="largest bias that L and p allow, both sides")  # fmt: skip
        ax.plot(orders[positive], means["upper"][positive], color=BLUE, linewidth=1)
        ax.plot(orders[positive], means["lower"][positive], color=BLUE, linewidth=1)
        ax.plot(fitted, means["moments"], "s-", color=ORANGE, markersize=7, label="bias by second moments")
        ax.plot(fitted, means["measured"], "^", color=GREEN, markersize=5,
                label=f"measured excess risk, n = {means['n']:,}")  # fmt: skip
        ax.errorbar(fitted, means["corrected"], 2 * means["error"], color=BLACK, marker="o", linestyle="none",
                    markersize=3, capsize=3, label="without its estimation error, ± 2 standard errors")  # fmt: skip
        ax.set_yscale("log")
        ax.set_xlabel("order t of the weights")
        ax.set_title(f"{p:.0%} missing", fontsize=9)
        ax.set_ylim(bottom=min(means["moments"].min(), means["corrected"].clip(1e-3).min()) / 3)
        numbers += [[p, int(t), *(float(means[name][t]) for name in COLUMNS)] for t in fitted]
    axes[0].set_ylabel("bias b(F), excess risk")
    legend(figure, axes)
    title = "Bounds, biases and measured excess risks on the generated data of the paper"
    caption = (
        "MCAR, linear signal, d = 10 of rank 5. The band is between the sides of the largest bias of all truths with "
        "the same L on a box that contains 0, where large weights no longer cancel; the printed formula has the L of "
        "the rows. The excess risk is that of least squares over the best linear predictor of each pattern."
    )
    return Drawing("paper-data", title, caption, figure, ["missing", "t", *COLUMNS], numbers)
