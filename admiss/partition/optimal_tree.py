"""The best tree of missingness patterns, with the proof that there is none better.

Leaf costs of all boxes with at most D literals come first; then a mixed-integer program or a dynamic program, two
independent computations, choose the tree. Where boxes are too many or time runs out before their costs are known, the
greedy tree is returned with the bound that there is: the unpenalised residual of the polynomial class of order D, which
holds every tree of depth D.
"""

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from math import comb

import numpy as np

from admiss._version import __version__
from admiss.partition.base import Limits, Partitioner
from admiss.partition.greedy import grow_greedily, tree_objective
from admiss.partition.partition import Partition, tree_partition
from admiss.terminal.progress import counter
from formulations.certificate import Certificate
from formulations.jit import is_interrupt
from formulations.leaves.boxes import BoxCosts, OutOfTimeError, box_costs, count_boxes
from formulations.leaves.cost import LeafCost, PatternRows, SquaredLeafCost
from formulations.linear_solver import time_left
from formulations.trees.dynamic_program import Tree, best_tree
from formulations.trees.flow import CLOSED, NOISE, solve_optimal_tree
from formulations.trees.polynomial_bound import polynomial_bound

METHODS = ("dp", "mio", "both")
# Boxes that are enumerated at most: in closed form, and one program each.
MOST_BOXES = 2 * 10**7
MOST_PROGRAMS = 10**5
# A difference between costs from rows and from statistics, as a share, beyond which nothing is proven.
ROUNDED = 1e-6
# Bytes that the statistics of the boxes may take.
MOST_MEMORY = 4 * 10**9


class OptimalTree(Partitioner):
    """The best tree of a given depth and number of leaves.

    Parameters
    ----------
    max_depth, max_leaves, min_rows, split_features
        Limits, see :class:`~admiss.partition.Partitioner`.
    method : {"dp", "mio", "both"}
        Dynamic program, mixed-integer program (Pyomo), or both, compared.
    solver : str
        What solves the mixed-integer program: "highs", or any mixed-integer solver that Pyomo knows.
    time_limit : float, optional
        Seconds after which the best tree found is returned with its gap.

    Examples
    --------
    >>> from admiss import FiniteRegressor
    >>> from admiss.datasets import make_synthetic
    >>> from admiss.partition import OptimalTree
    >>> data = make_synthetic(n=500, mechanism="censoring", random_state=0)
    >>> model = FiniteRegressor(OptimalTree(max_depth=2, method="both")).fit(data.X_train, data.y_train)
    >>> model.certificate_.status
    'optimal'
    """

    def __init__(
        self,
        max_depth: int | None = 3,
        max_leaves: int | None = None,
        min_rows: int | None = None,
        split_features: Sequence[int] | Sequence[str] | None = None,
        method: str = "dp",
        solver: str = "highs",
        time_limit: float | None = None,
    ) -> None:
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_rows = min_rows
        self.split_features = split_features
        self.method = method
        self.solver = solver
        self.time_limit = time_limit

    def check_limits(self) -> None:
        super().check_limits()
        if self.method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, not {self.method!r}.")

    def partition(
        self, statistics: PatternRows, leaf_cost: LeafCost, feature_names: Sequence[str] | None = None
    ) -> Partition:
        """Find the tree."""
        began = time.perf_counter()
        limits = self.limits(statistics, feature_names)
        depth = min(limits.depth, max(0, limits.leaves - 1))  # a tree with Q leaves has depth Q - 1 at most
        boxes, stopped = enumerated_boxes(leaf_cost, limits, depth, self.time_limit, began)
        if boxes is None:
            greedy = grow_greedily(leaf_cost, limits)
            bound = cheap_bound(leaf_cost, limits, stopped)
            return tree_partition(statistics, greedy, unproven(leaf_cost, greedy, bound, stopped, began))
        tree, certificate = self._choose(leaf_cost, boxes, limits, began)
        partition = tree_partition(statistics, tree, replace(certificate, seconds=time.perf_counter() - began))
        objective = leaf_cost.total(partition.members(leaf) for leaf in range(partition.n_leaves))
        return replace(partition, certificate=settled(partition.certificate, leaf_cost, objective))

    def _choose(self, leaf_cost: LeafCost, boxes: BoxCosts, limits: Limits, began: float) -> tuple[Tree, Certificate]:
        if self.method != "mio":
            tree, value = best_tree(boxes, limits.leaves)
            by_program = Certificate(value, value, "optimal", "dynamic program", f"of admiss {__version__}", 0.0)
            if self.method == "dp":
                return tree, by_program
        greedy = grow_greedily(leaf_cost, limits)
        left = time_left(self.time_limit, began)
        found, certificate = solve_optimal_tree(boxes, limits.leaves, start=greedy, solver=self.solver, time_limit=left)
        if self.method == "both":
            agree = abs(value - certificate.objective) <= CLOSED * max(abs(value), abs(certificate.objective))
            if certificate.status == "optimal" and not agree:
                low, status = min(value, certificate.bound), "mixed-integer and dynamic program disagree"
                better = found if certificate.objective < value else tree
                return better, replace(certificate, bound=low, status=status)
            if certificate.status != "optimal":  # the dynamic program has the proof that the solver did not finish
                return tree, by_program
        return found, certificate


def enumerated_boxes(
    leaf_cost: LeafCost, limits: Limits, depth: int, time_limit: float | None, began: float
) -> tuple[BoxCosts | None, str]:
    """Costs of all boxes with at most ``depth`` literals, or None and why there are none."""
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
    deadline = np.inf if time_limit is None else time.monotonic() + time_limit - (time.perf_counter() - began)
    try:
        with counter("leaf costs") as tell:
            return box_costs(leaf_cost, limits.features, depth, limits.rows, deadline, tell), ""
    except OutOfTimeError:
        return None, "time limit"
    except (KeyboardInterrupt, SystemError) as error:
        if not is_interrupt(error):
            raise
        return None, "interrupted"


def unproven(leaf_cost: LeafCost, tree: Tree, bound: float, status: str, began: float) -> Certificate:
    """Certificate of a tree that stands in for what could not be computed."""
    objective, seconds = tree_objective(leaf_cost, tree), time.perf_counter() - began
    return Certificate(objective, min(bound, objective), status, "greedy", f"of admiss {__version__}", seconds)


def cheap_bound(leaf_cost: LeafCost, limits: Limits, stopped: str) -> float:
    """Bound on trees and boxes by polynomials; 0, as no loss is negative, where time has run out."""
    return polynomial_bound(leaf_cost, limits.features, limits.depth) if stopped.startswith("too many") else 0.0


def settled(certificate: Certificate, leaf_cost: LeafCost, objective: float) -> Certificate:
    """The certificate with the objective as recomputed from the rows.

    A difference to the bound that is rounding is closed. Where leaf costs are not accurate enough for a proof, because
    that difference is large or the data say so, the bound is given up.
    """
    size = max(abs(objective), abs(certificate.bound))
    noise = NOISE * leaf_cost.cost(np.arange(len(leaf_cost.rows.patterns)))
    difference = max(0.0, abs(objective - certificate.bound) - noise)
    if certificate.status != "optimal":
        bound = 0.0 if leaf_cost.inaccuracy_reason else min(certificate.bound, objective)
        return replace(certificate, objective=objective, bound=bound)
    if leaf_cost.inaccuracy_reason or difference > ROUNDED * size:
        reason = leaf_cost.inaccuracy_reason or "leaf costs are ill-conditioned, use a larger ridge"
        return replace(certificate, objective=objective, bound=0.0, status=f"not proven: {reason}")
    status = "optimal" if difference <= CLOSED * size else "optimal up to rounding in the leaf costs"
    return replace(certificate, objective=objective, bound=min(certificate.bound, objective), status=status)
