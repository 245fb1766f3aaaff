"""Coverage of groups of test rows, pooled over the draws of a case or the splits of a set.

The lowest coverage of many groups in one draw is low by chance; counts are therefore pooled first.
"""

import json
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import polars as pl

# Fewest pooled rows of a group that counts.
FEWEST = 500


@dataclass(frozen=True)
class Pooled:
    """One method in one case.

    ``error`` is the standard error of the mean coverage over draws. ``lowest_feature`` and ``lowest_pattern`` are a
    group and its coverage, or None if no group has enough rows; ``width`` is that of finite sets.
    """

    draws: int
    coverage: float
    error: float
    lowest_feature: tuple[str, float] | None
    lowest_pattern: tuple[str, float] | None
    width: float | None
    infinite: float


def pooled(rows: pl.DataFrame, fewest: int = FEWEST) -> Pooled:
    """Pool the cells of one method in one case."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for text in rows["counts"]:
        for group, (n, covered) in json.loads(text).items():
            counts[group][0] += n
            counts[group][1] += covered
    shares = {group: covered / n for group, (n, covered) in counts.items() if n >= fewest}
    patterns = {group: share for group, share in shares.items() if group.startswith(("missing ", "nothing "))}
    features = {group: share for group, share in shares.items() if group not in patterns}
    coverage = rows["score"].to_numpy()
    widths = rows["width"].drop_nulls()
    return Pooled(
        len(rows), float(coverage.mean()), float(coverage.std(ddof=1) / np.sqrt(len(rows))) if len(rows) > 1 else 0.0,
        _lowest(features), _lowest(patterns), float(widths.mean()) if len(widths) else None,  # type: ignore[arg-type]
        float(rows["infinite"].mean()),  # type: ignore[arg-type]
    )  # fmt: skip


def _lowest(shares: dict[str, float]) -> tuple[str, float] | None:
    return min(((group, share) for group, share in shares.items()), key=lambda pair: pair[1]) if shares else None
