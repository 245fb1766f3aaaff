"""Adjusted verdicts of stored claims: the numbers are rounded, and the cells they come from are not stored.

A row of ``claims.csv`` has a quantity g with its standard error s and its 95 % interval g - h, g + h, where h = t s and
t is the .975 quantile of Student's distribution with f degrees of freedom. With r half a unit of the last digit, the
four stored numbers give

    |g - value| <= r,  |g - h - low| <= r,  |g + h - high| <= r,  |h / t - s.e.| <= r,

a polygon of pairs (g, h) for each f. The p value of :mod:`experiments.paper.adjustment` falls with d / h, where d is
the distance of g from an end of the values for which the claim is true. As d / h is a ratio of linear functions, its
extremes are at corners of the polygon. The stored verdict says on which side of 5 % p is. Holm's adjustment increases
with every p: adjusting all lower bounds, and all upper ones, bounds the adjusted p values. Where both have the same
verdict it is that of the exact numbers; otherwise both are named.

f is units - 1; for a mean over two strata it is Welch's, between the smaller f of a stratum and the sum of both.

    python -m experiments.paper.stored_claims experiments/results/synthetic/claims.csv
"""

import csv
import io
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from admiss.atomic_write import write_atomically
from experiments.paper.adjustment import adjust
from experiments.paper.claims import LEVEL, NOT_MEASURED, UNDECIDED, true_values

# Degrees of freedom of the two strata, by the end of the quantity: five signals of each kind; 12 and 24 sets.
STRATA = {"both signals": (4, 4), "in regression minus in classification": (11, 23)}
STEPS = 101
SLACK = 1e-12
Row = Mapping[str, str]


def with_adjusted_verdicts(rows: Sequence[Row]) -> list[dict[str, str]]:
    """Fill the columns ``adjusted`` and ``adjusted p`` of stored claims."""
    verdicts = [row["verdict"] for row in rows]
    bounds = [_p_bounds(row) for row in rows]
    ends = [adjust(verdicts, [None if each is None else each[side] for each in bounds]) for side in (0, 1)]
    return [
        {
            **row,
            "adjusted": " or ".join(dict.fromkeys(each.verdict for each in pair)),
            "adjusted p": " to ".join(dict.fromkeys(f"{each.p:.4f}" for each in pair if each.p is not None)),
        }
        for row, pair in zip(rows, zip(*ends, strict=True), strict=True)
    ]


def _p_bounds(row: Row) -> tuple[float, float] | None:
    """Smallest and largest p value that the stored digits allow, or ``None`` without a test."""
    if row["verdict"] == NOT_MEASURED or not row["low"]:
        return None
    rule, _, margin = row["rule"].partition(", margin ")
    ends = [end for end in true_values(rule, float(margin or 0)) if np.isfinite(end)]
    found = []
    for freedom in _degrees_of_freedom(row):
        quantile = float(student.ppf((1 + LEVEL) / 2, freedom))
        corners = list(_corners(row, quantile))
        if corners:
            ratios = [[(g - end) / h for g, h in corners] for end in ends]
            nearest = min(max(0.0, min(each), -max(each)) for each in ratios)  # 0 if the corners are on both sides
            farthest = min(max(map(abs, each)) for each in ratios)
            found += [2 * float(student.sf(ratio * quantile, freedom)) for ratio in (nearest, farthest)]
    if not found:
        raise ValueError(f"The stored numbers contradict each other: {row['claim']}.")
    sides = (1 - LEVEL, 1.0) if row["verdict"] == UNDECIDED else (0.0, 1 - LEVEL)
    low, high = (float(np.clip(end, *sides)) for end in (min(found), max(found)))
    return low, high


def _degrees_of_freedom(row: Row) -> Sequence[float]:
    for words, (first, second) in STRATA.items():
        if row["quantity"].endswith(words):
            return [float(each) for each in np.linspace(min(first, second), first + second, STEPS)]
    return [float(row["units"]) - 1]


def _corners(row: Row, quantile: float) -> Iterator[tuple[float, float]]:
    """Corners of the pairs (g, h), h > 0, that round to the stored numbers."""
    places = len(row["low"].partition(".")[2])
    half = 0.5 * 10.0**-places
    normals = np.array([[1.0, 0.0], [1.0, -1.0], [1.0, 1.0], [0.0, 1 / quantile]])
    stored = np.array([float(row[name]) for name in ("value", "low", "high", "s.e.")])
    lines = [(normal, at + sign * half) for normal, at in zip(normals, stored, strict=True) for sign in (-1, 1)]
    for (first, a), (second, b) in itertools.combinations(lines, 2):
        matrix = np.array([first, second])
        if abs(np.linalg.det(matrix)) > SLACK:
            corner = np.linalg.solve(matrix, [a, b])
            if corner[1] > SLACK and np.all(np.abs(normals @ corner - stored) <= half + SLACK):
                yield float(corner[0]), float(corner[1])


def main(paths: Sequence[str]) -> None:
    """Fill the adjusted verdicts of files of claims."""
    for path in map(Path, paths):
        rows = with_adjusted_verdicts(list(csv.DictReader(io.StringIO(path.read_text()))))
        out = io.StringIO(newline="")
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_atomically(path, out.getvalue().encode())


if __name__ == "__main__":
    main(sys.argv[1:])
