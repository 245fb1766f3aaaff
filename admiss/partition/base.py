"""Partitions of missingness patterns into leaves, and the base class of partitioners: limits, and one method.

    partitioner.partition(statistics, leaf_cost) -> Partition

``statistics`` are the patterns with their rows, ``leaf_cost`` gives the cost of a set of patterns as a leaf. Both are
the same for all partitioners, so their certificates can be compared. A new partitioner is a class with this method.

A partition knows the leaf of every pattern seen in training. The splits of a tree give every other pattern a leaf.
Boxes are disjoint only on the patterns seen: a new pattern that lies in exactly one box is in that leaf. A new pattern
that lies in no box or in several, and any new pattern if leaves are arbitrary groups, takes the leaf of the nearest
pattern seen (in Hamming distance; ties go to the larger weight).
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from admiss.estimator.by_value import EqualByValue
from admiss.estimator.validation import is_number
from admiss.patterns import alike, is_first, lookup, nearest
from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.certificate import Certificate
from formulations.leaves.box_costs import Literals, members_of
from formulations.leaves.cost import LeafCost, PatternRows
from formulations.trees.dynamic_program import Tree, leaves_of


@dataclass(frozen=True)
class Partition:
    """A partition of the patterns of a data set, with its certificate.

    Attributes
    ----------
    patterns : bool array of shape (P, d)
        Patterns seen in training.
    weights : array of shape (P,)
        Their weights.
    leaf : int array of shape (P,)
        Their leaves, 0 .. n_leaves - 1.
    certificate : Certificate
        Training cost and its lower bound over the partitions of the same kind within the same limits.
    boxes : list of lists of (feature, missing), optional
        The literals of each leaf, if leaves are boxes.
    tree : tuple or None
        ``(feature, where observed, where missing)``, None for a leaf.
    is_tree : bool
        Whether the leaves are those of ``tree``.
    complete : bool
        Whether ``patterns`` are those of the training rows. If not, they are examples of the patterns of each leaf,
        whose weights are those of rows only if they are summed over a leaf.
    """

    patterns: BoolArray
    weights: FloatArray
    leaf: IntArray
    certificate: Certificate
    boxes: list[Literals] | None = None
    tree: Tree = None
    is_tree: bool = False
    complete: bool = True

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(self.leaf.max()) + 1

    @property
    def depth(self) -> int:
        """Largest number of literals of a leaf."""
        return max(map(len, self.boxes)) if self.boxes else 0

    def members(self, leaf: int) -> IntArray:
        """Indices of the patterns of a leaf."""
        return np.flatnonzero(self.leaf == leaf)

    def assign(self, M: BoolArray) -> IntArray:
        """The leaf of each row of a 0/1 matrix."""
        leaves = self._decided(M)
        open_rows = leaves < 0
        if open_rows.any():
            leaves[open_rows] = self.leaf[nearest(self.patterns, self.weights, M[open_rows])]
        return leaves

    def seen(self, M: BoolArray) -> BoolArray:
        """Whether the leaf of each row is certain: its pattern was seen in training or lies in one leaf only."""
        return self._decided(M) >= 0

    def _decided(self, M: BoolArray) -> IntArray:
        """The leaf of each row, -1 if it is that of the nearest pattern."""
        if self.boxes is None:
            known = lookup(self.patterns, M)
            return np.where(known >= 0, self.leaf[known], -1)
        leaves, holders = np.full(len(M), -1), np.zeros(len(M), dtype=np.int64)
        for number, literals in enumerate(self.boxes):
            inside = members_of(M, literals)
            leaves[inside] = number
            holders[inside] += 1
        leaves[holders > 1] = -1
        return leaves


def tree_partition(rows: PatternRows, tree: Tree, certificate: Certificate) -> Partition:
    """The partition by the leaves of a tree."""
    boxes = leaves_of(tree)
    labels = box_labels(rows, boxes)
    return Partition(rows.patterns, rows.weights, labels, certificate, boxes, tree, True, rows.complete)


def box_partition(rows: PatternRows, boxes: list[Literals], certificate: Certificate) -> Partition:
    """The partition by boxes that are disjoint on the patterns seen."""
    return Partition(rows.patterns, rows.weights, box_labels(rows, boxes), certificate, boxes)


def box_labels(rows: PatternRows, boxes: list[Literals]) -> IntArray:
    """For each pattern the index of its box."""
    labels = np.full(len(rows.patterns), -1)
    for index, literals in enumerate(boxes):
        labels[members_of(rows.patterns, literals)] = index
    return labels


def group_partition(rows: PatternRows, labels: IntArray, certificate: Certificate) -> Partition:
    """The partition by arbitrary groups, numbered in the order of their first patterns."""
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))
    return Partition(rows.patterns, rows.weights, order[codes], certificate)


Features = Sequence[int] | Sequence[str]
# The default least number of rows of a leaf is this times d + 1.
ROWS_PER_COEFFICIENT = 10


@dataclass(frozen=True)
class Limits:
    """The limits of a partitioner on given data, as numbers.

    Attributes
    ----------
    depth : int
        Most literals of a leaf.
    leaves : int
        Most leaves.
    rows : int
        Fewest rows of a leaf.
    features : int array
        Features that may be split on.
    """

    depth: int
    leaves: int
    rows: int
    features: IntArray


class Partitioner(EqualByValue, BaseEstimator):
    """A way to divide missingness patterns into leaves.

    Parameters
    ----------
    max_depth : int, optional
        Largest number of splits above a leaf, or of literals of a box; the number of features by default.
    max_leaves : int, optional
        Largest number of leaves.
    min_rows : int, optional
        Smallest number of rows of a leaf; 10 (d + 1) by default, ten rows per coefficient of a leaf's linear model:
        smaller leaves overfit. In classification it is divided by 2 q, with q the share of the rarest class (or of the
        rest, if that is less). Rows are counted, whatever their weights.
    split_features : list of int or str, optional
        Features that may be split on; all by default. Of features that are always missing together the first is split
        on.
    """

    def __init__(
        self,
        max_depth: int | None = 3,
        max_leaves: int | None = None,
        min_rows: int | None = None,
        split_features: Features | None = None,
    ) -> None:
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_rows = min_rows
        self.split_features = split_features

    @abstractmethod
    def partition(
        self, statistics: PatternRows, leaf_cost: LeafCost, feature_names: Sequence[str] | None = None
    ) -> Partition:
        """Divide the patterns into leaves."""

    def program(
        self,
        leaf_cost: LeafCost,
        feature_names: Sequence[str] | None = None,
        integer: bool | None = None,
        last_splits: str = "all",
    ) -> Any:
        """The program whose solution is the partition, for partitioners that solve one."""
        raise ValueError(
            f"{type(self).__name__} has no program to open: use OptimalTree, BoxPartition or PatternGroups."
        )

    def check_limits(self) -> None:
        """Raise an error for a limit that makes no sense on any data."""
        for name in ("max_depth", "max_leaves", "min_rows"):
            value = getattr(self, name, None)
            if value is not None and (not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1):
                hint = "; for no split use max_leaves=1" if name == "max_depth" else ""
                raise ValueError(f"{name} must be a positive whole number or None, not {value!r}{hint}.")
        time_limit = getattr(self, "time_limit", None)
        unlimited = time_limit is None or (isinstance(time_limit, float) and time_limit == np.inf)
        if not unlimited and not is_number(time_limit):
            raise ValueError(f"time_limit must be a non-negative number of seconds or None, not {time_limit!r}.")

    def within(self, n: int) -> Self:
        """The partitioner for ``n`` rows: ``min_rows`` is lowered to n, which allows no split, if it is larger."""
        least = getattr(self, "min_rows", None)
        return clone(self).set_params(min_rows=n) if least is not None and least > n else self

    def limits(self, statistics: PatternRows, feature_names: Sequence[str] | None = None) -> Limits:
        """The limits on this data."""
        self.check_limits()
        n_patterns, d = statistics.patterns.shape
        features = self._splittable(d, feature_names)
        n = statistics.n_rows
        if self.min_rows is not None:
            if self.min_rows > n:
                raise ValueError(
                    f"min_rows={self.min_rows} is more than the {n} rows of the data: use a smaller number."
                )
            rows = int(self.min_rows)
        else:
            rows, rarest = ROWS_PER_COEFFICIENT * (d + 1), statistics.rarest_class
            if rarest is not None:
                rows = math.ceil(rows * n / (2 * max(1, rarest)))
        varies = np.asarray(statistics.patterns.any(axis=0) & ~statistics.patterns.all(axis=0))
        features = features[varies[features]]
        features = features[is_first(alike(statistics.patterns[:, features]))]
        depth = len(features) if self.max_depth is None else min(int(self.max_depth), len(features))
        most = min(n_patterns, max(1, n // rows), 1 << depth)
        return Limits(depth, min(most, self.max_leaves or most), rows, features)

    def _splittable(self, d: int, feature_names: Sequence[str] | None) -> IntArray:
        split_features: Any = getattr(self, "split_features", None)
        if split_features is None:
            return np.arange(d)
        if isinstance(split_features, str) or np.ndim(split_features) != 1:
            raise ValueError(f"split_features must be a list of names or numbers, not {split_features!r}.")
        names = list(feature_names) if feature_names is not None else []
        indices = [names.index(item) if isinstance(item, str) and item in names else item for item in split_features]
        unknown = [
            item
            for item in indices
            if not isinstance(item, int | np.integer) or isinstance(item, bool) or not 0 <= item < d
        ]
        if unknown or len(set(indices)) < len(indices):
            what = ", ".join(map(repr, unknown)) or "a feature twice"
            raise ValueError(f"split_features lists {what}: give distinct names or numbers from 0 to {d - 1}.")
        return np.sort(np.asarray(indices, dtype=np.int64))
