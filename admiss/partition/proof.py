"""Proofs of exact partitioners: the costs they enumerate, and the certificate that these justify.

Partitions are proven optimal from the costs of all boxes with at most D literals. If there are too many boxes, or time
runs out before their costs are known, a tree is returned with a cheap bound: the unpenalised residual of the polynomial
class of order D, which contains every tree of depth D.
"""

import time
import warnings
from dataclasses import replace
from math import comb

import numpy as np

from admiss._version import __version__
from admiss.partition.base import Limits
from admiss.partition.greedy import tree_objective
from admiss.partition.partition import Partition, tree_partition
from admiss.terminal.progress import counter
from formulations.certificate import Certificate
from formulations.jit import is_interrupt
from formulations.leaves.box_costs import BoxCosts, OutOfTimeError, box_costs, count_boxes
from formulations.leaves.cost import LeafCost, SquaredLeafCost
from formulations.trees.dynamic_program import Tree
from formulations.trees.flow import CLOSED, NOISE
from formulations.trees.polynomial_bound import polynomial_bound

# Largest number of boxes to enumerate: with costs in closed form, and with one program per cost.
MOST_BOXES = 2 * 10**7
MOST_PROGRAMS = 10**5
# Bytes that the statistics of the boxes may take.
MOST_MEMORY = 4 * 10**9
# Relative difference between costs from rows and from statistics beyond which nothing is proven.
ROUNDED = 1e-6


def enumerated_boxes(
    leaf_cost: LeafCost, limits: Limits, depth: int, time_limit: float | None, start: float
) -> tuple[BoxCosts | None, str]:
    """Costs of all boxes with at most ``depth`` literals; or None, and the reason."""
    count, width = count_boxes(len(limits.features), depth), leaf_cost.rows.A.shape[1] + 2
    subsets = sum(comb(len(limits.features), k) for k in range(depth)) + comb(len(limits.features), max(0, depth - 1))
    most = MOST_BOXES if isinstance(leaf_cost, SquaredLeafCost) else MOST_PROGRAMS
    if count > most or 4 * width**2 * subsets > MOST_MEMORY:
        warnings.warn(
            f"{count:,} boxes are too many to enumerate: the greedy tree is returned with the gap to a lower bound; "
            "lower max_depth or list split_features.",
            stacklevel=4,
        )
        return None, "too many boxes to enumerate"
    deadline = np.inf if time_limit is None else time.monotonic() + time_limit - (time.perf_counter() - start)
    try:
        with counter("leaf costs") as report:
            return box_costs(leaf_cost, limits.features, depth, limits.rows, deadline, report), ""
    except OutOfTimeError:
        return None, "time limit"
    except (KeyboardInterrupt, SystemError) as error:
        if not is_interrupt(error):
            raise
        return None, "interrupted"


def cheap_bound(leaf_cost: LeafCost, limits: Limits, status: str) -> float:
    """The bound on trees and boxes by polynomials; if time has run out 0, since no loss is negative."""
    return polynomial_bound(leaf_cost, limits.features, limits.depth) if status.startswith("too many") else 0.0


def unproven(leaf_cost: LeafCost, tree: Tree, bound: float, status: str, start: float) -> Partition:
    """The partition by a tree in place of one that could not be computed."""
    objective, seconds = tree_objective(leaf_cost, tree), time.perf_counter() - start
    bound, version = min(bound, objective), f"of admiss {__version__}"
    return tree_partition(leaf_cost.rows, tree, Certificate(objective, bound, status, "greedy", version, seconds))


def settled(partition: Partition, leaf_cost: LeafCost) -> Partition:
    """The partition with its objective as recomputed from the rows.

    A difference to the bound that is only rounding is closed. If leaf costs are too inaccurate for a proof, because the
    difference is large or the data are ill-conditioned, the bound is given up.
    """
    certificate = partition.certificate
    objective = leaf_cost.total(partition.members(leaf) for leaf in range(partition.n_leaves))
    size = max(abs(objective), abs(certificate.bound))
    noise = NOISE * leaf_cost.cost(np.arange(len(leaf_cost.rows.patterns)))
    difference = max(0.0, abs(objective - certificate.bound) - noise)
    inaccurate = leaf_cost.inaccuracy_reason
    bound, status = min(certificate.bound, objective), certificate.status
    if status != "optimal":
        bound = 0.0 if inaccurate else bound
    elif inaccurate or difference > ROUNDED * size:
        bound, status = 0.0, f"not proven: {inaccurate or 'leaf costs are ill-conditioned, use a larger ridge'}"
    elif difference > CLOSED * size:
        status = "optimal up to rounding in the leaf costs"
    return replace(partition, certificate=replace(certificate, objective=objective, bound=bound, status=status))
