"""Optimal partitions by brute force, over leaf costs in fixed point.

Sets of patterns are bit masks. A leaf needs ``min_rows`` rows, but all patterns together are always allowed as a leaf.
The optimum is taken over lower ends of the costs; it is below the optimum over upper ends by at most the number of
leaves times the largest width of a cost that was used.

    trees    V(G, D, q) = min{ c(G), min over j, a of V(G and m_j = 0, D - 1, a) + V(G and m_j = 1, D - 1, q - a) }
    boxes    W(R, q) = min over boxes B inside R that hold its lowest pattern of  c(B) + W(R - B, q - 1)
    groups   the same with all subsets in place of boxes
"""

from functools import cache
from itertools import combinations, product

import numpy as np
from flint import fmpq

# The cost of what is not allowed.
FORBIDDEN = 1 << 10000


class ExactOptimum:
    """Optima of one program over ``leaves`` (:class:`LeafRows`), as enclosures (low, high) of two fractions."""

    def __init__(self, leaves, min_rows=None):
        self.leaves = leaves
        d = leaves.patterns.shape[1]
        self.min_rows = 10 * (d + 1) if min_rows is None else min_rows
        self.varying = [j for j in range(d) if 0 < leaves.patterns[:, j].sum() < len(leaves.patterns)]
        self.missing = {j: leaves.missing(j) for j in self.varying}

    def allowed(self, mask):
        return mask == self.leaves.everything or self.leaves.n_rows(mask) >= self.min_rows

    def low(self, mask):
        """Lower end of the cost of a leaf."""
        return self.leaves.cost(mask)[0] if self.allowed(mask) else FORBIDDEN

    def fraction(self, fixed):
        """A number in fixed point as a fraction."""
        return fmpq(fixed, 1) / fmpq(2) ** self.leaves.shift

    def enclosure(self, fixed, n_leaves):
        width = max(hi - lo for lo, hi in self.leaves.known.values())
        return self.fraction(fixed), self.fraction(fixed + n_leaves * width)

    def partition_cost(self, masks):
        """Enclosure of the cost of a partition."""
        costs = [self.leaves.cost(mask) for mask in masks]
        return self.fraction(sum(lo for lo, _ in costs)), self.fraction(sum(hi for _, hi in costs))

    def most_leaves(self, max_leaves):
        return min(max_leaves or len(self.leaves.patterns), len(self.leaves.patterns))

    def tree(self, max_depth, max_leaves):
        @cache
        def V(mask, depth, q):
            best = self.low(mask)
            if depth and q > 1:
                for missing in self.missing.values():
                    observed_side, missing_side = mask & ~missing, mask & missing
                    if observed_side and missing_side:
                        for a in range(1, q):
                            best = min(best, V(observed_side, depth - 1, a) + V(missing_side, depth - 1, q - a))
            return best

        depth = len(self.varying) if max_depth is None else min(max_depth, len(self.varying))
        q = min(self.most_leaves(max_leaves), 1 << depth)
        return self.enclosure(V(self.leaves.everything, depth, q), q)

    def boxes(self, max_depth, max_leaves):
        depth = len(self.varying) if max_depth is None else min(max_depth, len(self.varying))
        listed = set()
        for k in range(depth + 1):
            for S, sides in product(combinations(self.varying, k), product((False, True), repeat=k)):
                mask = self.leaves.everything
                for j, is_missing in zip(S, sides, strict=True):
                    mask &= self.missing[j] if is_missing else ~self.missing[j]
                if mask and self.allowed(mask):
                    listed.add(mask)
        holding = [
            [(mask, self.low(mask)) for mask in sorted(listed) if mask >> p & 1]
            for p in range(len(self.leaves.patterns))
        ]

        @cache
        def W(rest, q):
            if not rest or not q:
                return FORBIDDEN if rest else 0
            lowest = (rest & -rest).bit_length() - 1
            inside = [(mask, cost) for mask, cost in holding[lowest] if not mask & ~rest]
            return min((cost + W(rest ^ mask, q - 1) for mask, cost in inside), default=FORBIDDEN)

        q = self.most_leaves(max_leaves)
        return self.enclosure(W(self.leaves.everything, q), q)

    def groups(self, max_leaves):
        P, q = len(self.leaves.patterns), self.most_leaves(max_leaves)
        cost = np.array([0] + [self.low(mask) for mask in range(1, 1 << P)], dtype=object)
        if q == 1 or P == 1:
            return self.enclosure(cost[-1], q)
        level = cost.copy()  # the best partition of each set without pattern 0 into at most 1, 2, .. groups
        for _ in range(2, q):
            level[2::2] = [first_group_and_rest(cost, level, mask) for mask in range(2, 1 << P, 2)]
        return self.enclosure(first_group_and_rest(cost, level, (1 << P) - 1), q)


def first_group_and_rest(cost, level, whole):
    """The smallest cost of the group that holds the lowest pattern, and a partition of the rest."""
    lowest = whole & -whole
    parts = submasks(whole ^ lowest)
    return (cost[parts | lowest] + level[parts[::-1]]).min()


@cache
def submasks(mask):
    """All subsets of a mask, ascending: the complement of each is its mirror image in the list."""
    parts = np.zeros(1, dtype=np.int64)
    while mask:
        lowest = mask & -mask
        parts, mask = np.concatenate([parts, parts | lowest]), mask ^ lowest
    return parts
