"""The best tree of missingness patterns, proven optimal, and the proofs that other exact partitioners share with it.

Intervals of the costs of all boxes with at most D literals come first; then a dynamic program, whose bound holds in
exact arithmetic, or a mixed-integer program, whose bound is the solver's, choose the tree. These are two independent
computations.

If there are too many boxes, or time runs out before their costs are known, a tree is returned with a cheap bound: the
unpenalised residual of the polynomial class of order D, which contains every tree of depth D.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from math import comb
from typing import Any

import numpy as np

from admiss._version import __version__
from admiss.estimator.validation import require_choice
from admiss.partition.base import Features, Limits, Partition, Partitioner, tree_partition
from admiss.partition.greedy import grow_greedily, tree_objective
from admiss.partition.program import StatedPartition
from admiss.terminal.progress import counter
from formulations.certificate import NOT_CLOSED, SOLVERS_BOUND, Certificate, certify, clock
from formulations.jit import is_interrupt
from formulations.leaves.box_costs import BoxCosts, OutOfTimeError, box_costs, count_boxes, members_of
from formulations.leaves.cholesky import LOWER
from formulations.leaves.cost import LeafCost, PatternRows
from formulations.leaves.squared import SquaredLeafCost
from formulations.linear_solver import closed_gap, time_left
from formulations.trees.dynamic_program import (
    CLOSED,
    ILL_CONDITIONED,
    ROUNDING,
    Refinement,
    Tree,
    best_tree,
    leaves_of,
    proven_tree,
    tolerance_of,
)
from formulations.trees.flow import (
    LAST_SPLITS,
    build_optimal_tree,
    optimal_tree_problem,
    solve_optimal_tree,
    tree_of,
    variables_of,
)
from formulations.trees.polynomial_bound import polynomial_bound

METHODS = ("dp", "mio", "both")
# Largest number of boxes to enumerate: with costs in closed form, and with one program per cost.
MOST_BOXES = 2 * 10**7
MOST_PROGRAMS = 10**5
# Boxes of a program in Pyomo, which takes 10 KB and some 0.1 ms for each.
MOST_STATED = 3 * 10**5
# Bytes that the statistics of the boxes may take.
MOST_MEMORY = 4 * 10**9
# Status of a tree on which two computations do not agree.
DISAGREE = "mixed-integer and dynamic program disagree"


class OptimalTree(Partitioner):
    """The best tree of a given depth and number of leaves.

    If there are too many boxes to enumerate or time runs out, the greedy tree is returned with a lower bound.

    Parameters
    ----------
    max_depth, max_leaves, min_rows, split_features
        As in :class:`~admiss.partition.Partitioner`.
    method : {"dp", "mio", "both"}
        Dynamic program, mixed-integer program (Pyomo), or both, compared. The bound of the mixed-integer program alone
        is computed in floating point by the solver: its status is "solver's bound", not "optimal".
    solver : str
        Solver of the mixed-integer program: "highs", or any mixed-integer solver that Pyomo knows.
    time_limit : float, optional
        Seconds after which the best tree found is returned with its gap.
    last_splits : {"best", "all"}
        Which of the last splits of each box the mixed-integer program of ``method="mio"`` contains: the cheapest, which
        is enough, or all. See :mod:`formulations.trees.flow`.

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
        split_features: Features | None = None,
        method: str = "dp",
        solver: str = "highs",
        time_limit: float | None = None,
        last_splits: str = "best",
    ) -> None:
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.min_rows = min_rows
        self.split_features = split_features
        self.method = method
        self.solver = solver
        self.time_limit = time_limit
        self.last_splits = last_splits

    def check_limits(self) -> None:
        super().check_limits()
        require_choice(self, "method", METHODS)
        require_choice(self, "last_splits", LAST_SPLITS)

    def partition(
        self, statistics: PatternRows, leaf_cost: LeafCost, feature_names: Sequence[str] | None = None
    ) -> Partition:
        """Find the tree."""
        limits = self.limits(statistics, feature_names)
        start = clock()
        if limits.leaves < 2:
            return tree_partition(statistics, None, one_leaf(leaf_cost, start))
        depth = min(limits.depth, max(0, limits.leaves - 1))  # a tree with Q leaves has depth Q - 1 at most
        boxes, reason = enumerated_boxes(leaf_cost, limits, depth, self.time_limit, start)
        if boxes is None:
            greedy = grow_greedily(leaf_cost, limits)
            return unproven(leaf_cost, greedy, cheap_bound(leaf_cost, limits, reason), reason, start)
        choose = {"dp": self._by_dynamic_program, "mio": self._by_integer_program, "both": self._by_both}[self.method]
        tree, certificate = choose(leaf_cost, boxes, limits, start)
        partition = tree_partition(statistics, tree, certificate)
        return (
            partition
            if certificate.status != ILL_CONDITIONED
            else greedy_if_cheaper(leaf_cost, limits, partition, start)
        )

    def _by_dynamic_program(
        self, leaf_cost: LeafCost, boxes: BoxCosts, limits: Limits, start: float
    ) -> tuple[Tree, Certificate]:
        proof = proven_tree(leaf_cost, boxes, limits.leaves, deadline(self.time_limit, start))
        tolerance, version = tolerance_of(leaf_cost, proof.objective), f"of admiss {__version__}"
        return proof.tree, certify(
            proof.objective, proof.bound, tolerance, proof.reason, "dynamic program", version, start
        )

    def _by_integer_program(
        self, leaf_cost: LeafCost, boxes: BoxCosts, limits: Limits, start: float
    ) -> tuple[Tree, Certificate]:
        """Solve the program, refining the lower ends of the leaves of its tree until these settle its cost.

        The bound of the solver is not taken if it is above that of the dynamic program.
        """
        refinement, tree = Refinement(leaf_cost, boxes), grow_greedily(leaf_cost, limits)
        while True:
            tree, solved = self._solved(leaf_cost, boxes, limits, tree, self.last_splits, start)
            objective = refinement.upper(leaves_of(tree))
            bound = min(solved.bound, best_tree(boxes, limits.leaves)[1] * (1.0 - ROUNDING))
            certificate = certified(leaf_cost, objective, bound, solved, start, rigorous=False)
            ended = certificate.status == SOLVERS_BOUND or solved.status != SOLVERS_BOUND
            if ended or not refinement.refine(leaves_of(tree)):
                return tree, certificate

    def _solved(
        self, leaf_cost: LeafCost, boxes: BoxCosts, limits: Limits, tree: Tree, last_splits: str, start: float
    ) -> tuple[Tree, Certificate]:
        """The tree of the integer program, from a tree to start with."""
        problem = optimal_tree_problem(boxes, leaf_cost.rows, limits.leaves, None, last_splits, tree)
        left = time_left(self.time_limit, start)
        return solve_optimal_tree(problem, start=tree, solver=self.solver, time_limit=left)

    def program(
        self,
        leaf_cost: LeafCost,
        feature_names: Sequence[str] | None = None,
        integer: bool | None = None,
        last_splits: str = "all",
    ) -> StatedPartition:
        """The mixed-integer program, with the greedy tree to start from."""
        limits = self.limits(leaf_cost.rows, feature_names)
        boxes = stated_boxes(leaf_cost, limits)
        greedy = grow_greedily(leaf_cost, limits)
        problem = optimal_tree_problem(boxes, leaf_cost.rows, limits.leaves, feature_names, last_splits, greedy)

        def partition(taken: set[Any], certificate: Certificate) -> Partition:
            tree = tree_of(problem, taken)
            if variables_of(tree, problem) != taken:
                raise ValueError("The values of the variables are not a tree: is the constraint flow still active?")
            return tree_partition(leaf_cost.rows, tree, certificate)

        return StatedPartition(
            model=build_optimal_tree(problem, bool(integer)),
            members={B: members_of(leaf_cost.rows.patterns, literals) for B, literals in problem.literals.items()},
            start=variables_of(greedy, problem),
            partition=partition,
            may_refine=last_splits == "all",
        )

    def _by_both(self, leaf_cost: LeafCost, boxes: BoxCosts, limits: Limits, start: float) -> tuple[Tree, Certificate]:
        """The dynamic program has the proof; the integer program must find the same least sum of lower ends.

        The tree of the proof has the least upper ends found. Where intervals are loose, its lower ends sum to more.
        """
        tree, proof = self._by_dynamic_program(leaf_cost, boxes, limits, start)
        greedy = grow_greedily(leaf_cost, limits)
        other, certificate = self._solved(leaf_cost, boxes, limits, greedy, "best", start)
        if certificate.status != SOLVERS_BOUND:
            return tree, proof
        value = best_tree(boxes, limits.leaves)[1]
        if abs(value - certificate.objective) > CLOSED * max(value, certificate.objective) + certificate.tolerance:
            low = min(proof.bound, certificate.bound)
            return (other if certificate.objective < value else tree), replace(proof, bound=low, status=DISAGREE)
        return tree, replace(proof, solver=f"dynamic program and {certificate.solver}", version=certificate.version)


def stated_boxes(leaf_cost: LeafCost, limits: Limits) -> BoxCosts:
    """Lower ends of the costs of all boxes of a program that is to be stated in Pyomo."""
    count = count_boxes(len(limits.features), limits.depth)
    if count > (MOST_STATED if isinstance(leaf_cost, SquaredLeafCost) else MOST_PROGRAMS):
        raise ValueError(f"{count:,} boxes are too many for a program: lower max_depth or list split_features.")
    return box_costs(leaf_cost, limits.features, limits.depth, limits.rows)


def enumerated_boxes(
    leaf_cost: LeafCost, limits: Limits, depth: int, time_limit: float | None, start: float, end: int = LOWER
) -> tuple[BoxCosts | None, str]:
    """Ends of the costs of all boxes with at most ``depth`` literals; or None, and the reason."""
    width, moment = leaf_cost.rows.A.shape[1] + 2, deadline(time_limit, start)
    subsets = sum(comb(len(limits.features), k) for k in range(depth))
    most = MOST_BOXES if isinstance(leaf_cost, SquaredLeafCost) else MOST_PROGRAMS
    count = count_boxes(len(limits.features), depth)
    if count > most or 4 * width**2 * subsets > MOST_MEMORY:
        warnings.warn(
            f"{count:,} boxes are too many to enumerate: the greedy tree is returned with the gap to a lower bound; "
            "lower max_depth or list split_features.",
            stacklevel=4,
        )
        return None, "too many boxes to enumerate"
    try:
        with counter("leaf costs") as report:
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


def greedy_if_cheaper(leaf_cost: LeafCost, limits: Limits, found: Partition, start: float) -> Partition:
    """The greedy partition in place of one that leaf costs are not accurate enough to prefer, if it costs less."""
    tree = grow_greedily(leaf_cost, limits)
    if not tree_objective(leaf_cost, tree) < found.certificate.objective:
        return found
    return unproven(leaf_cost, tree, found.certificate.bound, ILL_CONDITIONED, start)


def certified(
    leaf_cost: LeafCost, objective: float, bound: float, found: Certificate, start: float, rigorous: bool
) -> Certificate:
    """The certificate of a partition that a solver found, with its cost from rows."""
    solved = found.status in ("optimal", SOLVERS_BOUND, NOT_CLOSED)
    reason = ILL_CONDITIONED if solved else found.status
    tolerance = tolerance_of(leaf_cost, objective)
    return certify(
        objective,
        bound,
        tolerance if rigorous else closed_gap(tolerance, objective, found.solver),
        reason,
        found.solver,
        found.version,
        start,
        rigorous=rigorous,
    )
