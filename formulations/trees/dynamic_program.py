"""The best tree over enumerated boxes by dynamic programming, and its proof.

V(B, q) is the smallest cost of a tree that divides box B into at most q leaves, with boxes of at most D literals:

    V(B, 1) = c(B)
    V(B, q) = min{ V(B, q - 1),  min over j, a of  V(B with m_j = 0, a) + V(B with m_j = 1, q - a) }.

It is computed from the deepest boxes up, and gives the best tree for every number of leaves up to Q at once. Ties are
broken by fewer leaves, then the first feature, then fewer leaves on the side where the feature is observed.

*Proof.* Every leaf cost lies between a lower and an upper end (:mod:`formulations.leaves.cost`). The lower ends of the
leaves of a tree sum to at most its cost: the minimum V of this sum over all trees is a lower bound on the optimum. The
tree that attains V costs at most the sum of its upper ends.

The lower ends of all boxes come from one pass in floating point, and are loose where a leaf is ill-conditioned, or
where there are very many patterns. So

1. take the tree that attains V; if its upper ends exceed V by no more than the tolerance, it is optimal;
2. otherwise replace the lower ends of its leaves by those computed from their rows, update V, and repeat.

A tree whose leaves have all been refined has the gap of its own intervals: then no refinement can close it further.
"""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate, combinations
from math import comb

import numpy as np

from formulations.arrays import FloatArray, IntArray
from formulations.certificate import clock
from formulations.jit import compiled
from formulations.leaves.box_costs import BoxCosts, Literals, members_of, subset_of_rank
from formulations.leaves.cholesky import LOWER
from formulations.leaves.cost import LeafCost
from formulations.leaves.subsets import binomials, next_subset, with_element
from formulations.rounding import UNIT

# A tree: None for a leaf, or the split feature with the trees where it is observed and where it is missing.
Tree = tuple[int, "Tree", "Tree"] | None


@compiled
def best_of_set(cost, below, S, k, n_features, n_leaves, binom, V, rank):  # type: ignore[no-untyped-def]
    """Write V[rank], the values of the boxes over the k elements of S, from V of the boxes with k + 1."""
    n_values, most = cost.shape[1], below.shape[2]
    for v in range(n_values):
        for q in range(n_leaves):
            V[rank, v, q] = cost[rank, v]
    for j in range(n_features):
        position, other = with_element(S, k, j, binom)
        if position < 0:
            continue
        low_bits = (1 << position) - 1
        for v in range(n_values):
            observed = (v & low_bits) | ((v & ~low_bits) << 1)
            missing = observed | (1 << position)
            for q in range(1, n_leaves):
                best = V[rank, v, q]
                for a in range(max(0, q - 1 - most + 1), min(q, most)):
                    value = below[other, observed, a] + below[other, missing, min(q - 1 - a, most - 1)]
                    if value < best:
                        best = value
                V[rank, v, q] = best
    for v in range(n_values):
        for q in range(1, n_leaves):
            V[rank, v, q] = min(V[rank, v, q], V[rank, v, q - 1])


@compiled
def best_of_level(cost, below, S, k, n_features, n_leaves, binom, V):  # type: ignore[no-untyped-def]
    """Write V of the boxes with k literals for 1 .. n_leaves leaves, from V of the boxes with k + 1; S is the first."""
    for rank in range(len(cost)):
        best_of_set(cost, below, S, k, n_features, n_leaves, binom, V, rank)
        next_subset(S, k, n_features)


def splits_of(S: tuple[int, ...], v: int, n_features: int, binom: IntArray) -> list[tuple[int, int, int, int]]:
    """For each feature j that is not in S, the rank of S + j, and the indices of its observed and missing side."""
    splits, k = [], len(S)
    from_below = [0, *accumulate(int(binom[S[i], i + 1]) for i in range(k))]
    from_above = [0, *accumulate(int(binom[S[i], i + 2]) for i in reversed(range(k)))]
    for j in range(n_features):
        position = bisect_left(S, j)
        if position < k and S[position] == j:
            continue
        rank = from_below[position] + int(binom[j, position + 1]) + from_above[k - position]
        low_bits = (1 << position) - 1
        observed = (v & low_bits) | ((v & ~low_bits) << 1)
        splits.append((j, rank, observed, observed | (1 << position)))
    return splits


def best_values(boxes: BoxCosts, max_leaves: int) -> list[FloatArray]:
    """V for each level, of shape (C(F, k), 2^k, leaves)."""
    binom, n_features = binomials(len(boxes.features)), len(boxes.features)
    values = [boxes.costs[-1][:, :, None]]
    for k in range(boxes.depth - 1, -1, -1):
        n_leaves = min(max_leaves, 1 << (boxes.depth - k))
        V = np.empty((*boxes.costs[k].shape, n_leaves))
        best_of_level(boxes.costs[k], values[0], np.arange(k), k, n_features, n_leaves, binom, V)
        values.insert(0, V)
    return values


def best_costs(boxes: BoxCosts, max_leaves: int) -> FloatArray:
    """Cost of the best tree with at most 1, 2, .. leaves."""
    return best_values(boxes, max_leaves)[0][0, 0].copy()


def update_values(values: list[FloatArray], boxes: BoxCosts, changed: list[Literals]) -> None:
    """Update V in place after the costs of some boxes have changed."""
    binom, n_features = binomials(len(boxes.features)), len(boxes.features)
    sets = [tuple(sorted(int(np.searchsorted(boxes.features, j)) for j, _ in literals)) for literals in changed]
    for k in range(boxes.depth - 1, -1, -1):
        for S in {part for held in sets for part in combinations(held, k)}:
            rank = sum(comb(j, i + 1) for i, j in enumerate(S))
            elements = np.array(S, dtype=np.int64)
            n_leaves = values[k].shape[2]
            best_of_set(boxes.costs[k], values[k + 1], elements, k, n_features, n_leaves, binom, values[k], rank)


def best_tree(boxes: BoxCosts, max_leaves: int) -> tuple[Tree, float]:
    """The best tree with at most ``max_leaves`` leaves, and its cost."""
    return tree_of_values(best_values(boxes, max_leaves), boxes)


def tree_of_values(values: list[FloatArray], boxes: BoxCosts) -> tuple[Tree, float]:
    """The best tree, from V of all boxes, and its cost."""
    binom, n_features = binomials(len(boxes.features)), len(boxes.features)

    def grow(k: int, rank: int, v: int, q: int) -> Tree:
        target = values[k][rank, v, q]
        while q and values[k][rank, v, q - 1] == target:
            q -= 1
        if q == 0:
            return None
        most = values[k + 1].shape[2]
        for j, other, observed, missing in splits_of(subset_of_rank(rank, k), v, n_features, binom):
            for a in range(max(0, q - most), min(q, most)):
                rest = min(q - 1 - a, most - 1)
                if values[k + 1][other, observed, a] + values[k + 1][other, missing, rest] == target:
                    left, right = grow(k + 1, other, observed, a), grow(k + 1, other, missing, rest)
                    return int(boxes.features[j]), left, right
        raise AssertionError("no split attains the value of its box")

    return grow(0, 0, 0, values[0].shape[2] - 1), float(values[0][0, 0, -1])


def leaves_of(tree: Tree) -> list[Literals]:
    """The literals of each leaf, the side with the feature observed first.

    Examples
    --------
    >>> leaves_of((3, None, (1, None, None)))
    [[(3, False)], [(3, True), (1, False)], [(3, True), (1, True)]]
    """
    if tree is None:
        return [[]]
    j, observed, missing = tree
    return [[(j, side), *rest] for side, below in ((False, observed), (True, missing)) for rest in leaves_of(below)]


def tree_cost(boxes: BoxCosts, tree: Tree) -> float:
    """Sum of the costs of the leaves."""
    return sum(boxes.cost(literals) for literals in leaves_of(tree))


# A gap below this share of the objective counts as closed, or below this share of the cost without a split.
CLOSED, NOISE = 1e-9, 1e-12
# Relative rounding error of sums of the costs of leaves, of which trees have one on each level.
ROUNDING = 100.0 * UNIT
# Reason for a gap that remains when all leaves of the tree have been computed from rows.
ILL_CONDITIONED = "not proven: leaf costs are not accurate enough; rescale features or use a larger ridge"


def tolerance_of(leaf_cost: LeafCost, objective: float) -> float:
    """The largest gap that counts as closed."""
    everything = np.arange(len(leaf_cost.rows.patterns))
    unsplit = leaf_cost.quick_end(everything, LOWER) or leaf_cost.interval(everything)[0]
    return max(CLOSED * abs(objective), NOISE * unsplit)


class Refinement:
    """Lower ends of boxes that are replaced, one leaf at a time, by those from rows."""

    def __init__(self, leaf_cost: LeafCost, boxes: BoxCosts) -> None:
        self.leaf_cost, self.boxes = leaf_cost, boxes
        self.refined: set[tuple[int, int, int]] = set()

    def upper(self, leaves: list[Literals]) -> float:
        """Cost of a partition, from the rows of its leaves."""
        patterns = self.leaf_cost.rows.patterns
        return self.leaf_cost.total([members_of(patterns, leaf) for leaf in leaves])

    def refine(self, leaves: list[Literals]) -> list[Literals]:
        """Raise the lower ends of these boxes; returns those that were not refined before."""
        new = [leaf for leaf in leaves if self.boxes.index(leaf) not in self.refined]
        for leaf in new:
            k, rank, v = self.boxes.index(leaf)
            lower, _ = self.leaf_cost.interval(members_of(self.leaf_cost.rows.patterns, leaf))
            self.boxes.costs[k][rank, v] = max(self.boxes.costs[k][rank, v], lower)
            self.refined.add((k, rank, v))
        return new


@dataclass(frozen=True)
class ProvenTree:
    """A tree, its cost, a lower bound on the cost of every tree, and why the gap is open if it is."""

    tree: Tree
    objective: float
    bound: float
    reason: str


def proven_tree(leaf_cost: LeafCost, boxes: BoxCosts, max_leaves: int, deadline: float = np.inf) -> ProvenTree:
    """The best tree with at most ``max_leaves`` leaves; lower ends in ``boxes`` are refined in place.

    If ``clock()`` is past the deadline, the gap may be open.
    """
    refinement = Refinement(leaf_cost, boxes)
    values = best_values(boxes, max_leaves)
    best, objective = None, np.inf
    while True:
        tree, bound = tree_of_values(values, boxes)
        leaves = leaves_of(tree)
        cost = refinement.upper(leaves)
        if cost < objective:
            best, objective = tree, cost
        bound *= 1.0 - ROUNDING
        late = clock() > deadline
        closed = objective - bound <= tolerance_of(leaf_cost, objective)
        if closed or late or not (changed := refinement.refine(leaves)):
            return ProvenTree(best, objective, bound, "time limit" if late else ILL_CONDITIONED)
        update_values(values, boxes, changed)
