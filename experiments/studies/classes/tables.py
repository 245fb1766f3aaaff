"""One table: the score of every class by group of instances, and its difference to the affine intercept.

Groups are linear signals under MCAR and censoring, neural networks under MCAR, interacting patterns, the instances of
the paper's authors, and real sets. Units are draws; the signals of the authors, which several instances share; and real
sets. A class that was left out on wide sets is compared on the others. Differences are paired over units, and their
tests are adjusted (Holm) within a group; reliance is the share of test rows whose prediction uses a missing value.
"""

import numpy as np
import polars as pl

from admiss.estimates import Estimate, estimate
from admiss.study.report.comparisons import BETTER, WORSE
from admiss.study.report.sections import Section
from admiss.terminal.table import ABSENT, number, signed
from experiments.studies.classes.grid import METHODS, REFERENCE
from experiments.studies.gains import adjusted, verdict

# The authors' replicates r and r + 5 have the same signal.
SIGNALS = 5
GROUPS: dict[str, tuple[pl.Expr, pl.Expr]] = {
    "MCAR": (
        (pl.col("kind") == "TextInstance") & (pl.col("mechanism") == "mcar") & (pl.col("signal") == "linear"),
        pl.col("replicate"),
    ),
    "censoring": ((pl.col("kind") == "TextInstance") & (pl.col("mechanism") == "censoring"), pl.col("replicate")),
    "neural network": ((pl.col("kind") == "TextInstance") & (pl.col("signal") == "nn"), pl.col("replicate")),
    "interacting": (pl.col("kind") == "InteractingDraw", pl.col("replicate")),
    "paper": (pl.col("kind") == "AuthorsInstance", (pl.col("replicate") - 1) % SIGNALS),
    "real": (pl.col("kind") == "RealTarget", pl.col("dataset")),
}
IDENTITY = ("kind", "mechanism", "signal", "n", "replicate", "dataset", "split")


def classes_sections(table: pl.DataFrame) -> list[Section]:
    """The table of the study, and that of reliance and seconds."""
    done = table.filter(pl.col("status") == "done")
    if REFERENCE not in done["method"]:
        return []
    present = [name for name, (here, _) in GROUPS.items() if _has(done, name) and not done.filter(here).is_empty()]
    found = {name: {method.name: _paired(done, name, method.name) for method in METHODS} for name in present}
    verdicts = {name: _verdicts(each) for name, each in found.items()}
    rows = []
    for method in METHODS:
        row = [method.name]
        for name in present:
            row += _cells(found[name][method.name], verdicts[name].get(method.name, ABSENT))
        rows.append(row)
    header = ["method", *(word for name in present for word in (name, f"{name}: difference", f"{name}: verdict"))]
    text = (
        "Mean score (R2, or 2 AUC - 1 for classes) on the instances that a class shares with the affine intercept, and "
        "the paired difference to it with its 95 % interval over units (in brackets their number); verdicts at 5 % are "
        "adjusted (Holm) for the methods of a group."
    )
    return [Section("Classes", text, header, rows, _conclusion(verdicts)), _costs(done, present)]


def _has(table: pl.DataFrame, name: str) -> bool:
    needed = {column for part in GROUPS[name] for column in part.meta.root_names()}
    return needed <= set(table.columns)


def _paired(done: pl.DataFrame, group: str, method: str) -> tuple[float, Estimate | None] | None:
    """The mean of a method, and the estimate of its difference to the reference, which has none itself."""
    here, unit = GROUPS[group]
    keys = [column for column in IDENTITY if column in done.columns]
    rows = done.filter(here).with_columns(unit.alias("unit"))
    own, base = (rows.filter(pl.col("method") == name).select(*keys, "unit", "score") for name in (method, REFERENCE))
    both = own.join(base, on=[*keys, "unit"], suffix="_base", nulls_equal=True)
    if both.is_empty():
        return None
    units = both.group_by("unit").agg(pl.col("score", "score_base").mean()).sort("unit")
    mean, gains = float(units["score"].to_numpy().mean()), (units["score"] - units["score_base"]).to_numpy()
    return mean, None if method == REFERENCE else estimate(gains)


def _verdicts(found: dict[str, tuple[float, Estimate | None] | None]) -> dict[str, str]:
    tested = {name: pair[1] for name, pair in found.items() if pair is not None and pair[1] is not None}
    p_values = adjusted(list(tested.values()))
    return {name: verdict(each, p) for (name, each), p in zip(tested.items(), p_values, strict=True)}


def _cells(pair: tuple[float, Estimate | None] | None, decided: str) -> list[str]:
    if pair is None:
        return [ABSENT] * 3
    mean, each = pair
    if each is None:
        return [number(mean), ABSENT, ABSENT]
    interval = "" if each.low is None else f" [{signed(each.low)}, {signed(each.high)}]"
    return [number(mean), f"{signed(each.mean)}{interval} ({each.units})", decided]


def _conclusion(verdicts: dict[str, dict[str, str]]) -> str:
    sentences = []
    for group, of_group in verdicts.items():
        for decided in (BETTER, WORSE):
            names = [name for name, found in of_group.items() if found == decided]
            if names:
                sentences.append(f"{group}: {decided} than the {REFERENCE} are {', '.join(names)}.")
    return " ".join(sentences) or f"No difference to the {REFERENCE} is decided."


def _costs(done: pl.DataFrame, present: list[str]) -> Section:
    """Reliance and CPU seconds by group."""
    rows = []
    for method in METHODS:
        row = [method.name]
        for name in present:
            own = done.filter(GROUPS[name][0], pl.col("method") == method.name)
            values = [_mean(own, column) for column in ("reliance", "seconds")]
            row += [number(values[0], 2), number(values[1], 1)]
        rows.append(row)
    header = ["method", *(f"{name}: {what}" for name in present for what in ("reliance", "seconds"))]
    text = "Share of test rows whose prediction relies on a missing value, and mean CPU seconds of fit and search."
    return Section("Reliance and seconds", text, header, rows)


def _mean(rows: pl.DataFrame, column: str) -> float | None:
    if column not in rows.columns:
        return None
    values = rows[column].cast(pl.Float64, strict=False).drop_nulls().to_numpy()
    return float(np.mean(values)) if len(values) else None
