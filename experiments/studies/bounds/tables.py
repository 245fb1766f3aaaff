"""Tables of the study of Theorem 1: the constant that it needs, and biases beside the printed formula."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl

from admiss.study.report.sections import Section
from experiments.studies.bounds.measures import BIAS_LAWS, HALVES, Record, plain, read
from experiments.studies.bounds.population import KINDS, LAWS

RULES = {"true": "true", "proved": "proved", "paper": "as printed"}
# Ranges at which the constant as printed, max{sigma^2, L}, is tried.
RANGES = (1.0, 10.0, 100.0)


def bounds_sections(table: pl.DataFrame) -> list[Section]:
    """All tables; those of a part are left out unless its cells are done in both halves."""
    records, biases = measured(table.to_dicts())
    sections = []
    if {record.half for record in records} == set(HALVES):
        sections.append(
            Section(
                "The constant of Theorem 1",
                f"Smallest c on one half of truths and sizes, and how often the bound with it fails on the other half. "
                f"{_largest(records)}",
                *_constants(records),
            )
        )
        sections.append(
            Section(
                "The constant as printed",
                "One c for all classes, where f* and noise are multiplied by L (true b).",
                *_ranges(records),
            )
        )
    if biases:
        sections.append(
            Section(
                "The bias as printed",
                "Truths whose bias is above b as printed, above 8 times that (more than the printed theorem allows as "
                "n grows, where truncation does not help), and above b as proved; x_j = +-1 independent of each other "
                f"and of M, of mean 0; patterns of the laws {', '.join(BIAS_LAWS)}.",
                *_biases(biases),
            )
        )
    on_paper_data = paper_rows(table)
    if on_paper_data:
        sections.append(
            Section(
                "Bounds and biases on the generated data of the paper",
                "MCAR, linear signal, means of replicates: b(F) as printed (L on the rows), both sides of the largest "
                "bias that L and the missing rates allow (L on a box that contains 0), the bias by second moments, and "
                "the test loss of least squares above the best linear predictor of each pattern, with its estimation "
                "error and without it.",
                *_on_paper_data(on_paper_data),
            )
        )
    return sections


# What a figure and a table show of the data of the paper.
COLUMNS = ("printed", "upper", "lower", "moments", "measured", "corrected", "error")


def paper_rows(table: pl.DataFrame) -> dict[float, dict[str, Any]]:
    """Means over replicates of each column by order, and n, by missing fraction."""
    rows = [row for row in table.to_dicts() if row["status"] == "done" and row["kind"] == "PaperRows"]
    result: dict[float, dict[str, Any]] = {}
    for p in sorted({row["missing_fraction"] for row in rows}):
        own = [row for row in rows if row["missing_fraction"] == p]
        result[p] = {name: np.mean([plain(row[name]) for row in own], axis=0) for name in COLUMNS}
        result[p]["error"] = result[p]["error"] / np.sqrt(len(own))
        result[p]["n"] = own[0]["n"]
    return result


def _on_paper_data(by_fraction: dict[float, dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    table = []
    for p, means in by_fraction.items():
        for t in range(len(means["moments"])):
            numbers = [f"{means[name][t]:.3g}" for name in ("printed", "upper", "lower")]
            found = [f"{means[name][t]:.4f}" for name in ("moments", "measured", "corrected")]
            table.append([f"{p:g}", str(t), *numbers, *found, f"{means['error'][t]:.4f}"])
    found = ["by moments", "measured excess", "without estimation error", "standard error"]
    return ["missing", "t", "printed b", "upper side", "lower side", *found], table


def measured(rows: Iterable[dict[str, Any]]) -> tuple[list[Record], list[dict[str, Any]]]:
    """Records, and rows of biases, of the cells that are done, in an order independent of the table."""
    kinds = ("SampledPopulation", "DrawnTruths")
    done = sorted((row for row in rows if row["status"] == "done" and row["kind"] in kinds), key=_order)
    records = [record for row in done if row["kind"] == "SampledPopulation" for record in read(row)]
    columns = ("true", "proved", "paper")
    biases = [
        {**row, **{column: plain(row[column]) for column in columns}} for row in done if row["kind"] == "DrawnTruths"
    ]
    return records, biases


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["d"], row.get("place") or "", LAWS.index(row["law"]), row.get("half") or "", row["method"]


def chosen_constant(
    records: list[Record], rule: str, L: float = 1.0, constant: str = "proved"
) -> tuple[Record, list[Record], int]:
    """The record of one half that needs the largest c, those of the other half that need more, and its size."""
    needed = {half: [r for r in records if r.half == half] for half in HALVES}
    worst = max(needed["choose"], key=lambda r: r.needed(rule, L, constant))
    c = worst.needed(rule, L, constant)
    return worst, [r for r in needed["check"] if r.needed(rule, L, constant) > c], len(needed["check"])


def by_class(records: list[Record]) -> dict[str, list[Record]]:
    """The records of each class, poorest class first."""
    groups: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: (-record.d, record.p, record.n)):
        groups.setdefault(record.name, []).append(record)
    return groups


def _constants(records: list[Record]) -> tuple[list[str], list[list[str]]]:
    groups = {**by_class(records), "one c for all": records}
    header = ["class", *(words for rule in RULES for words in (f"c, b {RULES[rule]}", f"fails, b {RULES[rule]}"))]
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
        f"sigma^2 = {worst.sigma2:g}, standard error {worst.error / worst.room():.2g}; as the largest of many noisy "
        f"values it is biased upwards. In brackets failures by more than two standard errors; truths of a population "
        f"share their samples, which makes failures come in groups."
    )


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
