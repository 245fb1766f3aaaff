"""Coverage of prediction sets on test rows, in the groups that a user would ask about.

Over all rows; by feature, missing and observed; by the number of missing features; by pattern with at least 50 rows.
The intervals are those of Clopper and Pearson (1934) for a share at 95 %, each by itself: of twenty correct ones, one
is expected to miss.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta

from admiss.drawing import BLUE, GREY, ORANGE, pyplot
from admiss.patterns import PatternTable, pattern_name
from admiss.terminal.table import Table
from formulations.arrays import BoolArray, FloatArray

# Fewest rows of a pattern that is reported.
FEWEST_ROWS = 50
# Level of the intervals of the coverage.
CONFIDENCE = 0.95
# Width of a letter of the labels of groups, in inches.
LETTER = 0.065


@dataclass(frozen=True)
class CoverageReport:
    """Coverage by group.

    Attributes
    ----------
    table : Table
        For each level and group: rows, coverage with its interval (low, high), the mean width of finite intervals (or
        mean size of sets) and the share of infinite ones. Groups are of the kinds all, missing, observed, n_missing and
        pattern.
    """

    table: Table

    def __repr__(self) -> str:
        return repr(self.table)

    def plot(self, level: float | None = None, ax: Any = None) -> Any:
        """Draw the coverage of each group at one level, by default the first: dots with their intervals.

        Returns
        -------
        matplotlib axes
        """
        level = float(self.table["level"][0] if level is None else level)
        rows = np.flatnonzero(self.table["level"] == level)
        if not len(rows):
            known = ", ".join(f"{value:g}" for value in np.unique(self.table["level"]))
            raise ValueError(f"There are no sets of level {level:g}: choose one of {known}.")
        part = {name: values[rows] for name, values in self.table.items()}
        labels = [f"{group}  ({n:,})" for group, n in zip(part["group"], part["rows"], strict=True)]
        if ax is None:
            width = 4.2 + LETTER * max(map(len, labels))
            ax = pyplot().figure(figsize=(width, 1.2 + 0.22 * len(rows)), layout="constrained").gca()
        place = -np.arange(len(rows), dtype=float)
        below = part["high"] < level
        for colour, chosen, marker in ((BLUE, ~below, "o"), (ORANGE, below, "s")):
            ends = [part["coverage"] - part["low"], part["high"] - part["coverage"]]
            ax.errorbar(part["coverage"][chosen], place[chosen], xerr=[end[chosen] for end in ends], fmt=marker,
                        color=colour, markersize=4, linewidth=1, capsize=2)  # fmt: skip
        ax.axvline(level, color=GREY, linewidth=1, linestyle="--")
        ax.set_yticks(place, labels, fontsize=8)
        ax.set_ylim(place[-1] - 0.7, 0.7)
        ax.set_xlabel(f"coverage at level {level:g}, with {CONFIDENCE:.0%} intervals\n(squares: below the level)")
        return ax


def coverage_report(
    M: BoolArray, covered: BoolArray, widths: FloatArray, levels: list[float], names: list[str], measure: str
) -> CoverageReport:
    """The report for patterns M, whether each row is covered and the width of its set, both of shape (n, levels)."""
    records = []
    for k, level in enumerate(levels):
        for kind, group, rows in _groups(M, names):
            low, high = share_interval(int(covered[rows, k].sum()), len(rows))
            finite = widths[rows, k][np.isfinite(widths[rows, k])]
            mean = float(finite.mean()) if len(finite) else np.inf
            infinite = 1 - len(finite) / len(rows)
            records.append((level, kind, group, len(rows), covered[rows, k].mean(), low, high, mean, infinite))
    columns = ("level", "kind", "group", "rows", "coverage", "low", "high", f"mean_{measure}", "infinite")
    return CoverageReport(Table(**dict(zip(columns, map(list, zip(*records, strict=True)), strict=True))))


def _groups(M: BoolArray, names: list[str]) -> Iterator[tuple[str, str, Any]]:
    """Kind, name and rows of each group that is not empty."""
    yield "all", "all rows", np.arange(len(M))
    for j in np.flatnonzero(M.any(axis=0)).tolist():
        for kind, rows in (("missing", M[:, j]), ("observed", ~M[:, j])):
            if rows.any():
                yield kind, f"{names[j]} {kind}", np.flatnonzero(rows)
    numbers = M.sum(axis=1)
    for number in np.unique(numbers).tolist():
        yield "n_missing", f"{number} missing", np.flatnonzero(numbers == number)
    table = PatternTable.of(M)
    for p in np.argsort(-table.counts, kind="stable").tolist():
        if table.counts[p] >= FEWEST_ROWS:
            yield "pattern", pattern_name(table.patterns[p], names), np.flatnonzero(table.codes == p)


def share_interval(successes: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The interval of Clopper and Pearson for a share.

    Examples
    --------
    >>> [round(end, 4) for end in share_interval(9, 10)]
    [0.555, 0.9975]
    """
    tail = (1 - confidence) / 2
    low = float(beta.ppf(tail, successes, n - successes + 1)) if successes else 0.0
    high = float(beta.ppf(1 - tail, successes + 1, n - successes)) if successes < n else 1.0
    return low, high
