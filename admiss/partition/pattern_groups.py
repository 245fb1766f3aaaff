"""The best division into arbitrary groups of patterns, by column generation (:mod:`formulations.groups`)."""

from collections.abc import Sequence
from numbers import Integral

import numpy as np

from admiss.partition.base import Partition, Partitioner, box_labels, group_partition
from admiss.partition.greedy import grow_greedily
from admiss.partition.optimal_tree import certified, deadline, one_leaf, unproven
from admiss.terminal.progress import gap_counter
from formulations.certificate import clock
from formulations.groups.problem import LEAST_PIVOT, PatternGroupsProblem, solve_pattern_groups
from formulations.groups.subsets import is_provable, proven_groups
from formulations.leaves.cost import LeafCost, PatternRows
from formulations.leaves.squared import SquaredLeafCost
from formulations.trees.dynamic_program import leaves_of

# Patterns beyond which a tree is returned with its gap.
MOST_PATTERNS = 5000


class PatternGroups(Partitioner):
    """The best division of the observed patterns into arbitrary groups, by column generation.

    For the squared loss and a few tens of patterns. The bound is strongest with ``ridge_scale="sample"``.

    Parameters
    ----------
    max_leaves : int
        Largest number of groups.
    min_rows : int, optional
        Smallest number of rows of a group; 10 (d + 1) by default.
    time_limit : float, optional
        Seconds after which the best groups found are returned with their gap.
    random_state : int
        Seed of the restarts of the exchange heuristic.

    Examples
    --------
    >>> from admiss import FiniteRegressor
    >>> from admiss.datasets import make_synthetic
    >>> from admiss.partition import PatternGroups
    >>> data = make_synthetic(n=300, d=4, rank=3, n_active=3, random_state=0)
    >>> model = FiniteRegressor(PatternGroups(max_leaves=3), ridge_scale="sample", ridge=1e-3)
    >>> model.fit(data.X_train, data.y_train).certificate_.status
    'optimal'
    """

    def __init__(
        self,
        max_leaves: int = 4,
        min_rows: int | None = None,
        time_limit: float | None = 60.0,
        random_state: int = 0,
    ) -> None:
        super().__init__(None, max_leaves, min_rows)
        self.time_limit = time_limit
        self.random_state = random_state

    def check_limits(self) -> None:
        super().check_limits()
        if not isinstance(self.random_state, Integral) or not 0 <= self.random_state < 2**63:
            raise ValueError(f"random_state must be a non-negative whole number, not {self.random_state!r}.")

    def partition(
        self, statistics: PatternRows, leaf_cost: LeafCost, feature_names: Sequence[str] | None = None
    ) -> Partition:
        """Generate groups and choose among them."""
        if not isinstance(leaf_cost, SquaredLeafCost):
            raise ValueError("PatternGroups needs the squared loss: use BoxPartition or OptimalTree for other losses.")
        limits = self.limits(statistics, feature_names)
        start = clock()
        if limits.leaves < 2:
            labels = np.zeros(len(statistics.patterns), dtype=np.int64)
            return group_partition(statistics, labels, one_leaf(leaf_cost, start))
        greedy = grow_greedily(leaf_cost, limits)
        if len(statistics.patterns) > MOST_PATTERNS:
            return unproven(leaf_cost, greedy, 0.0, "too many patterns", start)
        problem = PatternGroupsProblem(
            gram=leaf_cost.pattern_grams(),
            rows=statistics.counts,
            weights=statistics.weights,
            ridge=leaf_cost.ridge,
            ridge_scale=leaf_cost.ridge_scale,
            max_groups=limits.leaves,
            min_rows=limits.rows,
        )
        with gap_counter("pattern groups") as report:
            labels, certificate = solve_pattern_groups(
                problem,
                start=box_labels(statistics, leaves_of(greedy)),
                time_limit=self.time_limit,
                random_state=self.random_state,
                on_progress=report,
            )
        moment = deadline(self.time_limit, start)
        objective, bound = leaf_cost.total(np.flatnonzero(labels == g) for g in np.unique(labels)), certificate.bound
        rigorous = problem.least_pivot >= LEAST_PIVOT
        if is_provable(leaf_cost):
            rigorous, bound = True, 0.0
            if self.time_limit != 0:
                labels, objective, bound = proven_groups(leaf_cost, labels, limits.leaves, limits.rows, moment)
        certificate = certified(leaf_cost, objective, bound, certificate, start, rigorous)
        return group_partition(statistics, labels, certificate)
