"""The best division of a few patterns into arbitrary groups, by subsets.

    best(U; q) = min over T, the group of the first pattern of U, of  cost(T) + best(U - T; q - 1)

over all subsets U, with the costs of all subsets as lower ends.
"""

import numpy as np
from flint import fmpz_mat

from admiss.terminal.progress import counter
from admiss.verification.pattern_sums import PatternSums
from admiss.verification.result import NotCoveredError
from formulations.arrays import IntArray

MOST_PATTERNS = 14
# More than any cost.
NEVER = 1 << 20_000


def best_groups_cost(sums: PatternSums, most_groups: int, min_rows: int) -> int:
    """Lower end of the cost of the best groups, at most ``most_groups``."""
    P = len(sums.grams)
    if P > MOST_PATTERNS:
        raise NotCoveredError(f"groups of at most {MOST_PATTERNS} patterns are verified, not of {P}")
    costs, everything = _subset_costs(sums, min_rows), (1 << P) - 1
    best = costs.copy()
    for q in range(2, min(most_groups, P) + 1):
        last, fewer = q == min(most_groups, P), best
        best = fewer.copy()
        for U in [everything] if last else range(1, everything + 1):
            groups = _with_first(U)
            best[U] = min(best[U], (costs[groups] + fewer[U ^ groups]).min())
    return int(best[everything])


def _subset_costs(sums: PatternSums, min_rows: int) -> np.ndarray:
    """Lower ends of the costs of all subsets; that of the empty set is 0."""
    P = len(sums.grams)
    costs = np.full(1 << P, NEVER, dtype=object)
    costs[0] = 0
    total, rows, subset = fmpz_mat(sums.reduced[0].nrows(), sums.reduced[0].ncols()), 0, 0
    with counter(f"verifying {1 << P:,} groups") as report:
        for step in range(1, 1 << P):  # in the order of a Gray code, one pattern comes or goes
            p = (step & -step).bit_length() - 1
            subset ^= 1 << p
            sign = 1 if subset >> p & 1 else -1
            total, rows = total + sign * sums.reduced[p], rows + sign * int(sums.rows[p])
            if rows >= max(1, min_rows) or subset == (1 << P) - 1:
                costs[subset] = sums.enclose(total)[0]
            report(step, 1 << P)
    return costs


def _with_first(U: int) -> IntArray:
    """The subsets of U that contain its smallest element."""
    first, rest = U & -U, U & (U - 1)
    subsets = np.array([first], dtype=np.int64)
    while rest:
        subsets = np.concatenate([subsets, subsets | (rest & -rest)])
        rest &= rest - 1
    return subsets
