"""Costs of all boxes; the best tree, the best cover by disjoint boxes, and the best groups of a few patterns.

A box (S, v) fixes the features of S to be missing or observed, |S| <= D; bit i of v says whether the i-th smallest of
them is missing. Sums over boxes come from sums over fewer:

    all of S missing         the sum over the patterns in which they are
    some j of S observed     sum of (S - j, v without j)  minus  sum of (S, v with j missing)

Costs are lower ends, in the integer units of :mod:`admiss.verification.exact`; a box with too few rows is not
allowed, and absent. The root may be a leaf with any number of rows.

    best(S, v; q) = min{ cost(S, v),  min over j not in S, q_0 + q_1 = q of  best(S + j, v + observed; q_0)
                                                                            + best(S + j, v + missing; q_1) }

A cover of all cells by disjoint boxes is proven to cost no less than a given bound. For any prices u of the cells and
any price t >= 0 of a box, a cover by at most Q boxes costs

    sum_B c_B  >=  sum u - Q t + sum_B r_B,       r_B = c_B - sum_{cells of B} u + t.

The prices are those of the linear relaxation. They come from a solver in floating point and are not trusted: they are
rounded to integers, t is raised until no r_B is negative, and r_B is exact. If the first two terms reach the bound, it
is proven. Otherwise a cover below the bound consists of boxes with r_B less than the difference, and a search through
these decides.

*Groups* are arbitrary sets of patterns. With the costs of all subsets as lower ends,

    best(U; q) = min over T, the group of the first pattern of U, of  cost(T) + best(U - T; q - 1).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
import scipy.sparse as sp
from flint import fmpz_mat
from scipy.optimize import linprog

from admiss.terminal.progress import counter
from admiss.verification.claim import NotCoveredError
from admiss.verification.exact import PatternSums
from formulations.arrays import BoolArray, IntArray

Box = tuple[tuple[int, ...], int]
# Sum, rows, and cost of a box, None if it is not allowed.
Priced = tuple[fmpz_mat, int, int | None]
# Entries of the Gram matrices of all boxes: these take half an hour, and those of one level at most 4 GB.
MOST_ENTRIES = 3 * 10**8
# Nodes of the search.
MOST_NODES = 200_000
# Patterns of groups: 2^14 subsets take seconds.
MOST_PATTERNS = 14
# More than any cost.
NEVER = 1 << 20_000


@dataclass(frozen=True)
class BoxSums:
    """What the boxes are made of: patterns on the features that may be split on, merged into cells.

    Attributes
    ----------
    sums : PatternSums
    cells : bool array of shape (C, F)
        Distinct patterns on these features.
    rows : int array of shape (C,)
    grams : list of fmpz_mat
    depth : int
        Most literals of a box.
    min_rows : int
        Fewest rows of a box, at least 1.
    """

    sums: PatternSums
    cells: BoolArray
    rows: IntArray
    grams: list[fmpz_mat]
    depth: int
    min_rows: int

    @classmethod
    def of(cls, sums: PatternSums, features: IntArray, depth: int, min_rows: int) -> "BoxSums":
        """Merge the patterns that agree on ``features``."""
        cells, codes = np.unique(sums.patterns[:, features], axis=0, return_inverse=True)
        codes = codes.ravel()
        grams = [fmpz_mat(sums.reduced[0].nrows(), sums.reduced[0].ncols()) for _ in cells]
        for p, cell in enumerate(codes.tolist()):
            grams[cell] += sums.reduced[p]
        rows = np.bincount(codes, sums.rows, len(cells)).astype(np.int64)
        return cls(sums, cells, rows, grams, min(depth, len(features)), max(1, min_rows))

    @property
    def count(self) -> int:
        """Number of boxes."""
        return sum(comb(self.cells.shape[1], k) << k for k in range(self.depth + 1))

    def costs(self) -> dict[Box, int]:
        """Lower ends of the costs of all boxes that are allowed."""
        if self.count * self.grams[0].nrows() ** 2 > MOST_ENTRIES:
            raise NotCoveredError(f"{self.count:,} boxes are too many to verify: lower max_depth")
        costs: dict[Box, int] = {}
        with counter(f"verifying {self.count:,} boxes") as report:
            for done, (box, cost) in enumerate(self._enclosed(), start=1):
                if cost is not None:
                    costs[box] = cost
                report(done, self.count)
        return costs

    def _sum(self, members: "range | IntArray") -> fmpz_mat:
        total = fmpz_mat(self.grams[0].nrows(), self.grams[0].ncols())
        for cell in members:
            total += self.grams[cell]
        return total

    def _enclosed(self) -> Iterator[tuple[Box, int | None]]:
        """All boxes, level by level, with their costs if they are allowed."""
        everything = self._sum(range(len(self.cells)))
        cost = self.sums.enclose(everything)[0]
        yield ((), 0), cost
        above: dict[Box, Priced] = {((), 0): (everything, int(self.rows.sum()), cost)}
        for k in range(1, self.depth + 1):
            level: dict[Box, Priced] = {}
            for S in combinations(range(self.cells.shape[1]), k):
                inside: dict[Box, Priced] = {}
                for v in range((1 << k) - 1, -1, -1):
                    inside[S, v] = self._one(S, v, inside, above)
                    yield (S, v), inside[S, v][2]
                if k < self.depth:
                    level |= inside
            above = level

    def _one(self, S: tuple[int, ...], v: int, inside: dict[Box, Priced], above: dict[Box, Priced]) -> Priced:
        """A box, from the one that also misses its first observed feature, and the one without that literal."""
        if v == (1 << len(S)) - 1:
            members = np.flatnonzero(self.cells[:, S].all(axis=1))
            total, rows = self._sum(members), int(self.rows[members].sum())
        else:
            i = (~v & (v + 1)).bit_length() - 1  # the first feature that is observed
            larger, larger_rows, larger_cost = above[S[:i] + S[i + 1 :], (v >> i + 1 << i) | (v & ((1 << i) - 1))]
            other, other_rows, _ = inside[S, v | 1 << i]
            total, rows = larger - other, larger_rows - other_rows
            if not other_rows and larger_cost is not None and rows >= self.min_rows:
                return total, rows, larger_cost
        return total, rows, self.sums.enclose(total)[0] if rows >= self.min_rows else None

    def members(self, box: Box) -> IntArray:
        """Cells in a box."""
        S, v = box
        return np.flatnonzero((self.cells[:, S] == [bool(v >> i & 1) for i in range(len(S))]).all(axis=1))


def best_tree_cost(boxes: BoxSums, costs: dict[Box, int], most_leaves: int) -> int:
    """Lower end of the cost of the best tree with at most ``most_leaves`` leaves."""
    F, below = boxes.cells.shape[1], dict[Box, list[int | None]]()
    for k in range(boxes.depth, -1, -1):
        level: dict[Box, list[int | None]] = {}
        largest = min(most_leaves, 1 << (boxes.depth - k))
        for S in combinations(range(F), k):
            for v in range(1 << k):
                best: list[int | None] = [costs.get((S, v))] * largest
                if k < boxes.depth and largest > 1:
                    for j in set(range(F)) - set(S):
                        i = sum(other < j for other in S)
                        larger, values = (*S[:i], j, *S[i:]), v >> i << i + 1 | v & ((1 << i) - 1)
                        _join(best, below[larger, values], below[larger, values | 1 << i])
                level[S, v] = best
        below = level
    cost = below[(), 0][-1]
    assert cost is not None  # the root is always allowed
    return cost


def _join(best: list[int | None], observed: list[int | None], missing: list[int | None]) -> None:
    """Lower the entry for at most q + 1 leaves by a split whose sides have at most a + 1 and b + 1, a + b + 1 = q."""
    for a, first in enumerate(observed):
        if first is None:
            continue
        for b, second in enumerate(missing):
            q = a + b + 1
            if second is not None and q < len(best):
                total, known = first + second, best[q]
                if known is None or total < known:
                    best[q] = total
    for q in range(1, len(best)):  # at most q leaves are at most q + 1
        earlier, here = best[q - 1], best[q]
        if earlier is not None and (here is None or earlier < here):
            best[q] = earlier


def no_cover_below(boxes: BoxSums, costs: dict[Box, int], most_boxes: int, bound: int) -> int:
    """A proven lower bound on the cost of covers that is ``bound`` if none costs less, and less than it otherwise."""
    members = [boxes.members(box) for box in costs]
    values = list(costs.values())
    prices, price = _prices(members, values, len(boxes.cells), most_boxes)
    reduced = [c - sum(prices[cell] for cell in cells) + price for c, cells in zip(values, members, strict=True)]
    lift = max(0, -min(reduced))
    reduced, price = [r + lift for r in reduced], price + lift
    base = sum(prices) - most_boxes * price
    if base >= bound:
        return bound
    allowed = [b for b, r in enumerate(reduced) if r < bound - base]
    cheaper = _search(members, values, reduced, allowed, len(boxes.cells), most_boxes, bound, base)
    return bound if cheaper is None else cheaper


def _prices(members: list[np.ndarray], values: list[int], cells: int, most_boxes: int) -> tuple[list[int], int]:
    """Dual prices of the linear relaxation, rounded to integers."""
    unit = max(max(values), 1)
    c = np.array([value / unit for value in values])
    columns = np.repeat(np.arange(len(members)), [len(part) for part in members])
    cover = sp.csr_array((np.ones(len(columns)), (np.concatenate(members), columns)), shape=(cells, len(members)))
    count = np.ones((1, len(members)))
    solution = linprog(c, A_ub=count, b_ub=[most_boxes], A_eq=cover, b_eq=np.ones(cells), method="highs")
    if solution.status != 0:  # any prices are valid
        return [0] * cells, 0
    exact = [int(float(u) * 2**60) * unit >> 60 for u in solution.eqlin.marginals]
    return exact, max(0, int(-float(solution.ineqlin.marginals[0]) * 2**60) * unit >> 60)


def _search(
    members: list[np.ndarray],
    values: list[int],
    reduced: list[int],
    allowed: list[int],
    cells: int,
    most_boxes: int,
    bound: int,
    base: int,
) -> int | None:
    """The cost of a cover below the bound, or None if there is none."""
    masks = {b: sum(1 << int(cell) for cell in members[b]) for b in allowed}
    holders: list[list[int]] = [[] for _ in range(cells)]
    for b in sorted(allowed, key=lambda b: reduced[b]):
        for cell in members[b]:
            holders[cell].append(b)
    everything, nodes = (1 << cells) - 1, 0

    def extend(covered: int, cost: int, spent: int, count: int) -> int | None:
        nonlocal nodes
        nodes += 1
        if nodes > MOST_NODES:
            raise NotCoveredError("the search through box partitions is too long")
        if covered == everything:
            return cost if cost < bound else None
        if count == most_boxes:
            return None
        open_cells = [cell for cell in range(cells) if not covered >> cell & 1]
        choices = min(
            ([b for b in holders[cell] if not masks[b] & covered] for cell in open_cells), key=len, default=[]
        )
        for b in choices:
            if base + spent + reduced[b] < bound:
                cheaper = extend(covered | masks[b], cost + values[b], spent + reduced[b], count + 1)
                if cheaper is not None:
                    return cheaper
        return None

    return extend(0, 0, 0, 0)


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
    total = fmpz_mat(sums.reduced[0].nrows(), sums.reduced[0].ncols())
    rows = 0
    subset = 0
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
