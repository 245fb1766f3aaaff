"""Partitioners: ways to divide missingness patterns into leaves with a linear model each."""

from admiss.partition.base import Limits, Partitioner
from admiss.partition.exact import BoxPartition, PatternGroups, SplitAssignTree
from admiss.partition.greedy import Greedy
from admiss.partition.optimal_tree import OptimalTree
from admiss.partition.partition import Partition

__all__ = [
    "BoxPartition",
    "Greedy",
    "Limits",
    "OptimalTree",
    "Partition",
    "Partitioner",
    "PatternGroups",
    "SplitAssignTree",
]
