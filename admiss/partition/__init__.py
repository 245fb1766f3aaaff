"""Partitioners: ways to divide missingness patterns into leaves with one linear model per leaf."""

from admiss.partition.base import Limits, Partition, Partitioner
from admiss.partition.box_partition import BoxPartition
from admiss.partition.greedy import Greedy
from admiss.partition.optimal_tree import OptimalTree
from admiss.partition.pattern_groups import PatternGroups
from admiss.partition.split_assign_tree import SplitAssignTree

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
