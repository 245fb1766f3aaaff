"""Tables of the study of Theorem 1: the constant that it needs, and biases beside the printed formula."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl

from admiss.study.sections import Section
from experiments.studies.bounds.measures import BIAS_LAWS, HALVES, KINDS, Record, plain, read
from experiments.studies.bounds.population import LAWS

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
    return sections


def measured(rows: Iterable[dict[str, Any]]) -> tuple[list[Record], list[dict[str, Any]]]:
    """Records, and rows of biases, of the cells that are done, in an order independent of the table."""
    done = sorted((row for row in rows if row["status"] == "done"), key=_order)
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
