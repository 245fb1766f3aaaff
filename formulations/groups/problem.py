"""The best partition of missingness patterns into arbitrary groups.

Sets and data
    p in P       patterns; M_p is the Gram matrix of its weighted rows (1, a, y), r_p and s_p its rows and weight
    G in 2^P     groups with at least r rows;  c_G = min over (b, w) of sum_{p in G} Q_p(b, w) + penalty_G |w|^2,
                 Q_p(b, w) = sum over the rows of p of s_i (y_i - b - w'a_i)^2,
                 penalty_G = ridge ("leaf") or ridge * sum_{p in G} s_p ("sample")
    Q            most groups
Variables
    leaf_G in {0, 1}   1 if G is one of the groups
Objective
    min  sum_G c_G leaf_G
Constraints
    cover    sum_{G with p in G} leaf_G = 1     for every p       (prices pi_p)
    leaves   sum_G leaf_G <= Q                                    (price sigma <= 0)

:mod:`formulations.set_partition` states this over a list of groups. If there are too many groups to list,
:mod:`formulations.groups.search` starts from partitions that no move of a single pattern improves, generates groups as
the relaxation needs them, and closes the remaining gap by enumeration of the few that matter. For few patterns,
:mod:`formulations.groups.subsets` computes the same optimum independently.

The bound is computed in floating point, and lowered by 1e-10 of the objective. It counts as proven only if the ridge
keeps every pivot of every group above 1e-6 of its diagonal entry, far above those that are treated as 0; otherwise the
status is "solver's bound". :mod:`formulations.groups.subsets` has the proof in exact arithmetic for few patterns.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.certificate import Certificate, certify
from formulations.groups.blocks import bound_by_blocks
from formulations.groups.pricing.quadratics import GroupChoice
from formulations.groups.search import GroupSearch, Progress
from formulations.leaves.cost import RIDGE_SCALES
from formulations.leaves.squared import WELL_CONDITIONED
from formulations.linear_solver import HIGHS_TOLERANCE, highs_version
from formulations.trees.dynamic_program import CLOSED, NOISE

# Smallest pivot, as a share of its diagonal entry, for which the bound counts as proven.
LEAST_PIVOT = WELL_CONDITIONED


@dataclass(frozen=True)
class PatternGroupsProblem:
    """Data of the program.

    Attributes
    ----------
    gram : array of shape (P, k + 2, k + 2)
        Gram matrix of the weighted rows (1, a_1 .. a_k, y) of each pattern; more accurate if columns are centred.
    rows : array of shape (P,)
        Number of rows of each pattern, positive.
    weights : array of shape (P,)
        Sum of the weights of these rows.
    ridge : float
        Weight of |w|^2.
    ridge_scale : {"sample", "leaf"}
        Whether the ridge of a group is multiplied by its weight.
    max_groups : int
        Most groups, Q.
    min_rows : int
        Fewest rows of a group; all patterns together are always allowed as a group.
    """

    gram: FloatArray
    rows: IntArray
    weights: FloatArray
    ridge: float = 1e-3
    ridge_scale: str = "sample"
    max_groups: int = 3
    min_rows: int = 1

    def __post_init__(self) -> None:
        P = len(self.rows)
        order = self.gram.shape[-1]
        if P < 1 or self.gram.shape != (P, order, order) or order < 2 or len(self.weights) != P:
            raise ValueError("gram, rows and weights need one entry per pattern, and gram square matrices.")
        if np.min(self.rows) < 1 or not np.isfinite(self.gram).all():
            raise ValueError("Every pattern needs at least one row and a finite Gram matrix.")
        if not 0 <= self.ridge < math.inf or self.max_groups < 1:
            raise ValueError("ridge must be a finite non-negative number and max_groups at least 1.")
        if self.ridge_scale not in RIDGE_SCALES:
            raise ValueError(f"Unknown ridge_scale {self.ridge_scale!r}: choose 'sample' or 'leaf'.")

    @property
    def patterns(self) -> int:
        return len(self.rows)

    @property
    def least_rows(self) -> int:
        """Rows that a group needs, at most the total number of rows."""
        return min(max(self.min_rows, 1), int(np.sum(self.rows)))

    @property
    def least_pivot(self) -> float:
        """A lower bound on the pivots of every group, as shares of their diagonal entries."""
        squares = np.diagonal(self.gram, axis1=1, axis2=2)[:, 1:-1]
        if self.ridge_scale == "sample":
            largest = (squares / np.asarray(self.weights, dtype=float)[:, None]).max(initial=0.0)
        else:
            largest = squares.sum(axis=0).max(initial=0.0)
        return float(self.ridge / (self.ridge + largest)) if self.ridge > 0 else 0.0

    def choice(self) -> GroupChoice:
        """The possible groups, as quadratics of the coefficients that include the penalty."""
        penalised = np.arange(1, self.gram.shape[1] - 1)
        quadratics = np.array(self.gram, dtype=float)
        base = np.zeros(self.gram.shape[1:])
        if self.ridge_scale == "sample":
            quadratics[:, penalised, penalised] += self.ridge * np.asarray(self.weights, dtype=float)[:, None]
        else:
            base[penalised, penalised] = self.ridge
        rows = np.asarray(self.rows, dtype=np.int64)
        return GroupChoice(quadratics, base, rows, self.least_rows)


def group_cost(problem: PatternGroupsProblem, members: Any) -> float:
    """c_G of the patterns ``members``, a mask or a list of indices."""
    member = np.zeros(problem.patterns, dtype=bool)
    member[members] = True
    return problem.choice().cost(member) if member.any() else 0.0


def solve_pattern_groups(
    problem: PatternGroupsProblem,
    start: IntArray | None = None,
    time_limit: float | None = None,
    random_state: int = 0,
    on_progress: Progress | None = None,
) -> tuple[IntArray, Certificate]:
    """Group of each pattern, numbered from 0 in order of appearance, and the certificate of the partition.

    Parameters
    ----------
    problem : PatternGroupsProblem
    start : array of shape (P,), optional
        Labels of a partition to start from.
    time_limit : float, optional
        Seconds, without compilation. With 0, the start or a single group is returned with a bound that needs no search.
    random_state : int
        Seed of the restarts; unless stopped by the time limit, the same seed gives the same result.
    on_progress : callable, optional
        Called from time to time with the current objective and bound.

    Examples
    --------
    >>> a, y = np.array([1.0, -1.0, 2.0, -2.0]), np.array([1.0, -1.0, -2.0, 2.0])
    >>> rows = [np.column_stack([np.ones(2), a[i : i + 2], y[i : i + 2]]) for i in (0, 2, 0)]
    >>> gram = np.array([r.T @ r for r in rows])
    >>> problem = PatternGroupsProblem(gram, np.full(3, 2), np.full(3, 2.0), ridge=0.01, max_groups=2)
    >>> labels, certificate = solve_pattern_groups(problem)
    >>> labels, certificate.status
    (array([0, 1, 0]), 'optimal')
    """
    first = None if start is None else _checked_start(problem, start)
    search = GroupSearch(
        problem.choice(), problem.max_groups, first, time_limit, random_state, on_progress, bound_by_blocks
    )
    try:
        status = search.run()
    except KeyboardInterrupt:
        status = "interrupted"
    labels = _in_order_of_appearance(search.labels)
    objective = sum(group_cost(problem, labels == g) for g in range(labels.max() + 1))
    bound = max(0.0, min(search.bound * search.unit, objective) - HIGHS_TOLERANCE * objective)
    tolerance = max(CLOSED * objective, NOISE * group_cost(problem, np.arange(problem.patterns)))
    rigorous = problem.least_pivot >= LEAST_PIVOT
    return labels, certify(
        objective, bound, tolerance, status, "HIGHS", highs_version(), search.started, rigorous=rigorous
    )


def generated_groups(
    problem: PatternGroupsProblem, start: IntArray, time_limit: float | None = None, random_state: int = 0
) -> BoolArray:
    """The groups that the search has met, those of the best partition found among them; one row of members each."""
    search = GroupSearch(problem.choice(), problem.max_groups, _checked_start(problem, start), time_limit, random_state)
    search.run()
    for labels in (search.labels, np.asarray(start)):
        search.learn(np.array([labels == g for g in np.unique(labels)]))
    return np.frombuffer(b"".join(search.known), dtype=bool).reshape(-1, problem.patterns)


def _checked_start(problem: PatternGroupsProblem, start: Any) -> IntArray:
    labels = np.unique(np.asarray(start), return_inverse=True)[1].astype(np.int64)
    if np.shape(start) != (problem.patterns,) or labels.max() >= problem.max_groups:
        raise ValueError("start needs one label per pattern, and no more labels than max_groups.")
    if np.bincount(labels, weights=problem.rows).min() < problem.least_rows:
        raise ValueError("start has a group with fewer rows than min_rows.")
    return labels


def _in_order_of_appearance(labels: IntArray) -> IntArray:
    _, first, label_of = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[label_of].astype(np.int64)
