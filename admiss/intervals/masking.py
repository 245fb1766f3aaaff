"""Calibration rows with further values deleted: MDA-exact and MDA-nested (Zaffran, Dieuleveut, Josse and Romano 2023).

Let m be the pattern of a test row and s_i(m') the score of calibration row i with the features of m' deleted.

*Exact.* Only rows with m_i <= m are used, with the features of m deleted, and their order statistic of rank
k = ceil((1 - a)(n_m + 1)) is the threshold. If M is independent of (X, Y), these rows and the test row are exchangeable
given the patterns, since what was missing in them says nothing about their values: the coverage is at least 1 - a given
every pattern. It is infinite where fewer than (1 - a) / a rows have m_i <= m.

*Nested.* All rows are used, and row i is compared with the test row under the same deletions m_i v m: y is in the set
if s_i(m_i v m) < s(y; m_i v m) for fewer than k rows, k = ceil((1 - a)(n + 1)). For numbers this is contained in the
interval from the k-th largest l - s_i to the k-th smallest h + s_i, which is returned. The comparison is symmetric in
the two rows, so that the tournament argument of the jackknife+ (Barber, Candes, Ramdas and Tibshirani 2021) gives a
coverage of at least 1 - 2 a over all exchangeable rows, whatever M depends on; by pattern more has to be assumed.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from admiss.patterns import PatternTable
from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.conformal.thresholds import conformal_rank, order_threshold

# Entries of the arrays of test rows and calibration rows that are built at once, in 34 MB.
BLOCK = 2**22
Outputs = Callable[[FloatArray], FloatArray]
Scores = Callable[[FloatArray, Any], FloatArray]


def masked(X: FloatArray, pattern: BoolArray) -> FloatArray:
    """Rows with the features of a pattern deleted."""
    return np.where(pattern, np.nan, X)


def exact_thresholds(
    X: FloatArray, y: Any, outputs: Outputs, scores: Scores, patterns: BoolArray, levels: list[float]
) -> FloatArray:
    """The thresholds of MDA-exact for test patterns, of shape (patterns, levels), from calibration rows X and y."""
    M = np.isnan(X)
    thresholds = np.full((len(patterns), len(levels)), np.inf)
    for p, m in enumerate(patterns):
        used = ~(M & ~m).any(axis=1)
        if used.any():
            of_pattern = scores(outputs(masked(X[used], m)), y[used])
            thresholds[p] = [order_threshold(of_pattern, level) for level in levels]
    return thresholds


def nested_comparisons(
    X: FloatArray, y: Any, outputs: Outputs, scores: Scores, X_test: FloatArray
) -> Iterator[tuple[IntArray, FloatArray, FloatArray, IntArray]]:
    """Blocks of test rows of one pattern, to be compared with every calibration row under the same deletions.

    Yields the test rows, their outputs of shape (rows, unions, outputs) under each union of patterns, the scores of the
    calibration rows, and the union of each calibration row.
    """
    calibration, test = PatternTable.of(np.isnan(X)), PatternTable.of(np.isnan(X_test))
    for p, m in enumerate(test.patterns):
        unions = PatternTable.of(calibration.patterns | m)
        codes = unions.codes[calibration.codes]
        of_rows = scores(outputs(np.where(unions.patterns[codes], np.nan, X)), y)
        rows = np.flatnonzero(test.codes == p)
        for block in np.array_split(rows, -(-len(rows) * len(y) // BLOCK)):
            deleted = np.where(unions.patterns, np.nan, X_test[block][:, None, :])
            values = outputs(deleted.reshape(-1, X.shape[1]))
            yield block, values.reshape(len(block), len(unions.patterns), -1), of_rows, codes


def nested_intervals(values: FloatArray, scores: FloatArray, codes: IntArray, levels: list[float]) -> FloatArray:
    """Intervals of shape (rows, 2, levels) from bands of shape (rows, unions, 3), for a block of test rows."""
    lower = values[:, codes, 0] - scores * values[:, codes, 2]
    upper = values[:, codes, 1] + scores * values[:, codes, 2]
    intervals = np.full((len(values), 2, len(levels)), np.inf)
    intervals[:, 0] = -np.inf
    for k, level in enumerate(levels):
        rank = conformal_rank(len(scores), level)
        if rank <= len(scores):
            intervals[:, 0, k] = np.partition(lower, len(scores) - rank, axis=1)[:, len(scores) - rank]
            intervals[:, 1, k] = np.partition(upper, rank - 1, axis=1)[:, rank - 1]
    return intervals


def nested_sets(values: FloatArray, scores: FloatArray, codes: IntArray, levels: list[float]) -> BoolArray:
    """Sets of shape (rows, classes, levels) from probabilities of shape (rows, unions, classes)."""
    smaller = (scores[:, None] < 1.0 - values[:, codes]).sum(axis=1)
    return np.stack([smaller < conformal_rank(len(scores), level) for level in levels], axis=-1)
