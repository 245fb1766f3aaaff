"""The program of a partitioner on given rows, before it is solved."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from admiss.partition.base import Partition
from formulations.arrays import IntArray
from formulations.certificate import Certificate

# Indices of the variables that are 1: names of leaves, and pairs (box, feature) of splits.
Taken = set[Any]


@dataclass(frozen=True)
class StatedPartition:
    """A Pyomo model, and what its variables say.

    Attributes
    ----------
    model : pyomo.environ.ConcreteModel
        With Sets, Params, variables ``leaf`` (and ``split``), and an objective in units of ``unit``.
    members : dict of str to int array
        The patterns of each box or group.
    start : set
        The indices of the variables that are 1 in a good partition.
    partition : callable
        The partition of a set of such indices, with a certificate; a ValueError if they are not a partition.
    complete : bool
        Whether all partitions within the limits are solutions. If not, the bound of a solver proves nothing.
    may_refine : bool
        Whether costs may be replaced by higher lower ends of the intervals of leaf costs.
    """

    model: Any
    members: dict[str, IntArray]
    start: Taken
    partition: Callable[[Taken, Certificate], Partition] = field(repr=False)
    complete: bool = True
    may_refine: bool = True

    @property
    def variables(self) -> dict[Any, Any]:
        """The variables by index."""
        splits = self.model.component("split")
        return dict(self.model.leaf.items()) | (dict(splits.items()) if splits is not None else {})


def require_partition(leaves: list[IntArray], n_patterns: int) -> None:
    """Raise an error unless every pattern is in exactly one leaf."""
    holders = np.bincount(np.concatenate([np.zeros(0, dtype=np.int64), *leaves]), minlength=n_patterns)
    if (holders != 1).any():
        raise ValueError("The values of the variables are not a partition: is the constraint cover still active?")
