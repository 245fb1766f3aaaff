"""The answer of a study: its best methods by mean, and their differences to the reference."""

from typing import TYPE_CHECKING

import polars as pl

from admiss.estimates import Estimate
from admiss.study.comparisons import compare, group_estimates
from admiss.study.sections import decimals, digits, signed
from admiss.study.store import Store
from admiss.study.table import read_table

if TYPE_CHECKING:
    from admiss.study.report.presentation import Presentation


def answer(store: Store, presentation: "Presentation", count: int = 3) -> list[str]:
    """Lines with the best methods; none if the study compares nothing.

    A mean is that over units, a difference that of the paired comparison, as in the tables of the study.

    Parameters
    ----------
    store : Store
    presentation : Presentation
    count : int
        Number of methods.
    """
    labels = presentation.labels
    rows = labels.inside(presentation.rows(read_table(store, presentation.study)))
    methods = labels.ordered(rows["method"].to_list())
    if len(methods) < 2 or not presentation.compared:
        return []
    reference = labels.reference_among(methods)
    means = {name: found.mean for (name,), found in group_estimates(rows, ["method"], "value").items()}
    differences = {each.method: each.estimate for each in compare(rows, reference, methods, {})}
    best = sorted(methods, key=lambda name: -means[name])[:count]
    width = max(map(len, best))
    places = decimals([means[name] for name in best])
    lines = [f"best mean {presentation.study.metrics[0]}, and the difference to {reference} with its 95 % interval:"]
    for name in best:
        words = "the reference" if name == reference else _difference(differences.get(name), places)
        lines.append(f"  {name:<{width}}  {digits(means[name], places)}  {words}")
    instances = dict(rows.group_by("method").agg(pl.col("instance").n_unique()).iter_rows())
    if len({instances[name] for name in (*best, reference)}) > 1:
        lines.append("Not all of these have a score on every instance: a difference is over those that both have.")
    return lines


def _difference(found: Estimate | None, places: int) -> str:
    if found is None:
        return "no instance in common with the reference"
    if found.low is None or found.high is None:
        return (
            f"{signed(found.mean, places)} (no interval: {'the same on all units' if found.identical else 'one unit'})"
        )
    return f"{signed(found.mean, places)} ({signed(found.low, places)} to {signed(found.high, places)})"
