"""Theorem 1 of the paper, measured: how large c must be, and where the printed bias is below the true one.

The smallest c for which

    excess risk <= 8 b(F) + c max{sigma^2, L^2} (1 + log n) / n p(F)

holds is found on half of the truths and sizes; how often the inequality with that c fails is counted on the other half.
b(F) is the true bias, the proved bound on it, or what the paper prints. What is measured is in
:mod:`experiments.studies.bounds.measures`; for the part on biases no fits are needed, and more features can be had.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from admiss.bounds.figures import STYLES
from admiss.drawing import BLUE, GREEN, GREY, ORANGE, pyplot
from admiss.study.study import Method, Product, Study
from experiments.studies.bounds.measures import (
    BIAS_LAWS,
    HALVES,
    KINDS,
    PLACES,
    SIZES,
    DrawnTruths,
    Record,
    SampledPopulation,
    by_class,
    chosen_constant,
    class_methods,
    exact_biases,
    plain,
    read,
)
from experiments.studies.bounds.population import LAWS

RULES = ("true", "proved", "paper")
# Ranges at which the constant as printed, max{sigma^2, L}, is tried.
RANGES = (1.0, 10.0, 100.0)
BIASES = Method("all orders", exact_biases)


def products(scale: str) -> list[Product]:
    """The grids of a scale."""
    features, replicates, truths, bias_features, bias_truths = {
        "smoke": ((4,), 2, 1, (4, 6, 8), 2),
        "laptop": ((2, 4, 6), 30, 7, (4, 6, 8, 10), 20),
        "paper": ((2, 4, 6), 100, 20, (4, 6, 8, 10, 12), 50),
    }[scale]
    sampled = [
        Product(
            [
                SampledPopulation(d, place, law, half, replicates, truths)
                for place in PLACES
                for law in LAWS
                for half in HALVES
            ],
            class_methods(d),
        )
        for d in features
    ]
    return [*sampled, Product([DrawnTruths(d, law, bias_truths) for d in bias_features for law in BIAS_LAWS], [BIASES])]


STUDY = Study(
    name="bounds",
    title="Generalization bounds against true risks",
    description=(
        "Theorem 1 of the paper on truths with known risk: the constant c that truncated least squares needs, and the "
        "bias of each order beside the proved and the printed bound. The score of a cell is the largest c that its "
        "class needs with the true bias, or the largest true bias as a share of the proved bound."
    ),
    products=products,
    settings=("d", "law", "place", "half"),
    seconds=1800.0,
)


def sections(table: Any) -> list[Any]:
    """The tables, from the table of the study; none of a part whose cells are not all there in both halves."""
    from experiments.tables import Section

    records, biases = measured(table.to_dicts())
    result = []
    if {record.half for record in records} == set(HALVES):
        result.append(
            Section(
                "The constant of Theorem 1",
                f"Smallest c on one half of truths and sizes, and how often the bound with it fails on the other half. "
                f"{_largest(records)}",
                *_constants(records),
            )
        )
        result.append(
            Section(
                "The constant as printed",
                "One c for all classes, where f* and noise are multiplied by L (true b).",
                *_ranges(records),
            )
        )
    if biases:
        result.append(
            Section(
                "The bias as printed",
                "Truths whose bias is above b as printed, above 8 times that (more than the printed theorem allows as "
                "n grows, where truncation does not help), and above b as proved; x_j = +-1 independent of each other "
                f"and of M, of mean 0; patterns of the laws {', '.join(BIAS_LAWS)}.",
                *_biases(biases),
            )
        )
    return result


def measured(rows: Iterable[dict[str, Any]]) -> tuple[list[Record], list[dict[str, Any]]]:
    """Records, and rows of biases, of the cells that are done, in an order that is not that of the table."""
    done = sorted((row for row in rows if row["status"] == "done"), key=_place)
    records = [record for row in done if row["kind"] == "SampledPopulation" for record in read(row)]
    columns = ("true", "proved", "paper")
    biases = [
        {**row, **{column: plain(row[column]) for column in columns}} for row in done if row["kind"] == "DrawnTruths"
    ]
    return records, biases


def _place(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["d"], row.get("place") or "", LAWS.index(row["law"]), row.get("half") or "", row["method"]


def _constants(records: list[Record]) -> tuple[list[str], list[list[str]]]:
    groups = {**by_class(records), "one c for all": records}
    header = ["class", *(words for rule in RULES for words in (f"c, b {_word(rule)}", f"fails, b {_word(rule)}"))]
    table = []
    for name, group in groups.items():
        row = [name]
        for rule in RULES:
            worst, failed, checked = chosen_constant(group, rule)
            c = worst.needed(rule)
            clear = sum(r.excess - 8 * r.biases[rule] - c * r.room() > 2 * r.error for r in failed)
            row += [f"{c:.3g}", f"{len(failed)} ({clear}) of {checked:,}"]
        table.append(row)
    return header, table


def _largest(records: list[Record]) -> str:
    worst, _, _ = chosen_constant(records, "true")
    return (
        f"The largest c, b true: {worst.name}, {worst.kind}, d = {worst.d}, {worst.place}, {worst.law}, n = {worst.n}, "
        f"sigma^2 = {worst.sigma2:g}, standard error {worst.error / worst.room():.2g}; as the largest of many that are "
        f"measured with error it is too large. In brackets failures by more than two standard errors; truths of a "
        f"population share their samples, so that failures come in groups."
    )


def _word(rule: str) -> str:
    return {"true": "true", "proved": "proved", "paper": "as printed"}[rule]


def _ranges(records: list[Record]) -> tuple[list[str], list[list[str]]]:
    table = []
    for L in RANGES:
        row = [f"{L:g}"]
        for constant in ("proved", "paper"):
            worst, failed, checked = chosen_constant(records, "true", L, constant)
            row += [f"{worst.needed('true', L, constant):.3g}", f"{len(failed)} of {checked:,}"]
        table.append(row)
    constants = "max{sigma^2, L^2}", "max{sigma^2, L}, as printed"
    return ["L", *(f"{what} with {constant}" for constant in constants for what in ("c", "fails"))], table


def _biases(biases: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    table = []
    for d in sorted({row["d"] for row in biases}):
        rows = [row for row in biases if row["d"] == d]
        for t in range(d - 1):
            printed = np.array([row["paper"][t] for row in rows])
            proved = np.array([row["proved"][t] for row in rows])
            above, theorem, wrong, worst = [], [], 0, 0.0
            for kind in KINDS:
                true = np.array([[truth[t] for truth in row["true"][kind]] for row in rows])
                above.append(f"{np.sum(true > printed[:, None] * (1 + 1e-9))} of {true.size}")
                theorem.append(int(np.sum(true > 8 * printed[:, None] * (1 + 1e-9))))
                wrong += int(np.sum(true > proved[:, None] * (1 + 1e-9)))
                worst = max(worst, float(true.max()))
            table.append(
                [
                    str(d),
                    str(t),
                    *above,
                    str(sum(theorem)),
                    str(wrong),
                    *(f"{b:.3g}" for b in (worst, printed[0], proved.min())),
                ]
            )
    header = ["d", "t", *(f"{kind} above printed" for kind in KINDS), "above 8 x printed", "above proved"]
    return [*header, "largest true b", "printed b", "proved b, least"], table


def plot(table: Any, path: Path) -> None:
    """Draw the c that every record needs, and biases against the formulas at the largest d."""
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
