"""Proofs of exact partitioners: the costs they enumerate, and the certificate that these justify.

Partitions are proven optimal from the costs of all boxes with at most D literals. If there are too many boxes, or time
runs out before their costs are known, a tree is returned with a cheap bound: the unpenalised residual of the polynomial
class of order D, which contains every tree of depth D.
"""

import warnings
from math import comb

import numpy as np

from admiss._version import __version__
from admiss.partition.base import Limits, Partition, tree_partition
from admiss.partition.greedy import grow_greedily, tree_objective
from admiss.terminal.progress import counter
from formulations.certificate import NOT_CLOSED, SOLVERS_BOUND, Certificate, certify
from formulations.jit import is_interrupt
from formulations.leaves.box_costs import BoxCosts, OutOfTimeError, box_costs, count_boxes
from formulations.leaves.cholesky import LOWER
from formulations.leaves.cost import LeafCost
from formulations.leaves.squared import SquaredLeafCost
from formulations.trees.dynamic_program import ILL_CONDITIONED, Tree, tolerance_of
from formulations.trees.polynomial_bound import polynomial_bound

# Largest number of boxes to enumerate: with costs in closed form, and with one program per cost.
MOST_BOXES = 2 * 10**7
MOST_PROGRAMS = 10**5
# Bytes that the statistics of the boxes may take.
MOST_MEMORY = 4 * 10**9
# Status of a tree on which two computations do not agree.
DISAGREE = "mixed-integer and dynamic program disagree"


def enumerated_boxes(
    leaf_cost: LeafCost, limits: Limits, depth: int, time_limit: float | None, start: float, end: int = LOWER
) -> tuple[BoxCosts | None, str]:
    """Ends of the costs of all boxes with at most ``depth`` literals; or None, and the reason."""
    count, width = count_boxes(len(limits.features), depth), leaf_cost.rows.A.shape[1] + 2
    subsets = sum(comb(len(limits.features), k) for k in range(depth))
    most = MOST_BOXES if isinstance(leaf_cost, SquaredLeafCost) else MOST_PROGRAMS
    if count > most or 4 * width**2 * subsets > MOST_MEMORY:
        warnings.warn(
            f"{count:,} boxes are too many to enumerate: the greedy tree is returned with the gap to a lower bound; "
            "lower max_depth or list split_features.",
            stacklevel=4,
        )
        return None, "too many boxes to enumerate"
    try:
        with counter("leaf costs") as report:
            moment = deadline(time_limit, start)
            return box_costs(leaf_cost, limits.features, depth, limits.rows, moment, report, end), ""
    except OutOfTimeError:
        return None, "time limit"
    except (KeyboardInterrupt, SystemError) as error:
        if not is_interrupt(error):
            raise
        return None, "interrupted"


def one_leaf(leaf_cost: LeafCost, start: float) -> Certificate:
    """The certificate of all patterns in a single leaf, if the limits allow no other partition."""
    lower, upper = leaf_cost.interval(np.arange(len(leaf_cost.rows.patterns)))
    tolerance, version = tolerance_of(leaf_cost, upper), f"of admiss {__version__}"
    return certify(upper, lower, tolerance, ILL_CONDITIONED, "one leaf", version, start)


def deadline(time_limit: float | None, start: float) -> float:
    """The moment on ``clock()`` at which a time limit since ``start`` ends."""
    return np.inf if time_limit is None else start + time_limit


def cheap_bound(leaf_cost: LeafCost, limits: Limits, status: str) -> float:
    """The bound on trees and boxes by polynomials; if time has run out 0, since no loss is negative."""
    return polynomial_bound(leaf_cost, limits.features, limits.depth) if status.startswith("too many") else 0.0


def unproven(leaf_cost: LeafCost, tree: Tree, bound: float, reason: str, start: float) -> Partition:
    """The partition by a tree in place of one that could not be computed."""
    objective, version = tree_objective(leaf_cost, tree), f"of admiss {__version__}"
    tolerance = tolerance_of(leaf_cost, objective)
    certificate = certify(objective, min(bound, objective), tolerance, reason, "greedy", version, start, rigorous=False)
    return tree_partition(leaf_cost.rows, tree, certificate)


def cheaper_greedy(leaf_cost: LeafCost, limits: Limits, certificate: Certificate, start: float) -> Partition | None:
    """The greedy partition, if it costs less than one that leaf costs are not accurate enough to prefer."""
    if certificate.status != ILL_CONDITIONED:
        return None
    tree = grow_greedily(leaf_cost, limits)
    if not tree_objective(leaf_cost, tree) < certificate.objective:
        return None
    return unproven(leaf_cost, tree, certificate.bound, ILL_CONDITIONED, start)


def certified(
    leaf_cost: LeafCost, objective: float, bound: float, found: Certificate, start: float, rigorous: bool
) -> Certificate:
    """The certificate of a partition that a solver found, with its cost from rows."""
    solved = found.status in ("optimal", SOLVERS_BOUND, NOT_CLOSED)
    reason = ILL_CONDITIONED if solved else found.status
    return certify(
        objective,
        bound,
        tolerance_of(leaf_cost, objective),
        reason,
        found.solver,
        found.version,
        start,
        rigorous=rigorous,
    )
