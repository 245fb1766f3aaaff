"""Partitions of missingness patterns into leaves.

A partition knows the leaf of every pattern seen in training. The splits of a tree give every other pattern a leaf.
Boxes are disjoint only on the patterns seen: a new pattern that lies in exactly one box is in that leaf. A new pattern
that lies in no box or in several, and any new pattern if leaves are arbitrary groups, takes the leaf of the nearest
pattern seen (in Hamming distance; ties go to the larger weight).
"""

from dataclasses import dataclass

import numpy as np

from admiss.patterns import lookup, nearest
from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.certificate import Certificate
from formulations.leaves.box_costs import members_of
from formulations.leaves.cost import PatternRows
from formulations.trees.dynamic_program import Tree, leaves_of

Literals = list[tuple[int, bool]]


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
