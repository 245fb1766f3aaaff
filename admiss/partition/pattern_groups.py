"""The best division into arbitrary groups of patterns, by column generation (:mod:`formulations.groups`)."""

import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from admiss.partition.base import Limits, Partition, Partitioner, box_labels, group_partition
from admiss.partition.greedy import grow_greedily, tree_objective
from admiss.partition.optimal_tree import certified, deadline, one_leaf, unproven
from admiss.partition.program import StatedPartition, require_partition
from admiss.terminal.progress import gap_counter
from formulations.certificate import Certificate, clock
from formulations.groups.problem import LEAST_PIVOT, PatternGroupsProblem, generated_groups, solve_pattern_groups
from formulations.groups.subsets import is_provable, lower_ends, proven_groups
from formulations.leaves.cost import LeafCost, PatternRows
from formulations.leaves.squared import SquaredLeafCost
from formulations.names import feature_names_of, group_name, pattern_name, require_distinct
from formulations.set_partition import SetPartition, build_set_partition
from formulations.trees.dynamic_program import leaves_of

# Patterns up to which a program lists all groups: 16,383 of them.
MOST_LISTED = 14
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

    def _problem(self, leaf_cost: SquaredLeafCost, limits: Limits) -> PatternGroupsProblem:
        return PatternGroupsProblem(
            gram=leaf_cost.pattern_grams(),
            rows=leaf_cost.rows.counts,
            weights=leaf_cost.rows.weights,
            ridge=leaf_cost.ridge,
            ridge_scale=leaf_cost.ridge_scale,
            max_groups=limits.leaves,
            min_rows=limits.rows,
        )

    def program(
        self,
        leaf_cost: LeafCost,
        feature_names: Sequence[str] | None = None,
        integer: bool | None = None,
        last_splits: str = "all",
    ) -> StatedPartition:
        """The integer program over all groups of few patterns, or over those that column generation finds."""
        leaf_cost = _squared(leaf_cost)
        limits, rows = self.limits(leaf_cost.rows, feature_names), leaf_cost.rows
        P, greedy = len(rows.patterns), grow_greedily(leaf_cost, limits)
        labels, complete = box_labels(rows, leaves_of(greedy)), P <= MOST_LISTED
        if complete:
            ends = lower_ends(leaf_cost, limits.rows)
            for group in np.flatnonzero(ends[1:] == 0.0) + 1:  # their sums say nothing
                ends[group] = leaf_cost.interval(np.flatnonzero(group >> np.arange(P) & 1))[0]
            groups = (np.flatnonzero(np.isfinite(ends[1:]))[:, None] + 1 >> np.arange(P) & 1).astype(bool)
            costs = ends[1:][np.isfinite(ends[1:])]
        else:
            warnings.warn(
                f"There are {P} patterns, so the program lists the groups that column generation finds, not all: its "
                "solution is a heuristic one if it is changed.",
                stacklevel=3,
            )
            groups = generated_groups(self._problem(leaf_cost, limits), labels, self.time_limit, self.random_state)
            costs = np.array([leaf_cost.cost(np.flatnonzero(group)) for group in groups])
        names = feature_names_of(feature_names, rows.patterns.shape[1])
        patterns = [pattern_name(pattern, names) for pattern in rows.patterns]
        patterns_of = {
            group_name(patterns[p] for p in np.flatnonzero(group)): np.flatnonzero(group) for group in groups
        }
        require_distinct(patterns_of, len(groups))

        def partition(taken: set[Any], certificate: Certificate) -> Partition:
            require_partition([patterns_of[G] for G in taken], P)
            group = np.zeros(P, dtype=np.int64)
            for number, G in enumerate(taken):
                group[patterns_of[G]] = number
            return group_partition(rows, group, certificate)

        group_list = SetPartition(
            patterns=patterns,
            members={G: members.tolist() for G, members in patterns_of.items()},
            cost=dict(zip(patterns_of, costs.tolist(), strict=True)),
            rows={G: int(rows.counts[members].sum()) for G, members in patterns_of.items()},
            max_leaves=limits.leaves,
            unit=tree_objective(leaf_cost, greedy) or 1.0,
        )
        name_of = {members.tobytes(): G for G, members in patterns_of.items()}
        return StatedPartition(
            model=build_set_partition(group_list, bool(integer)),
            members=patterns_of,
            start={name_of[np.flatnonzero(labels == g).tobytes()] for g in np.unique(labels)},
            partition=partition,
            complete=complete,
        )

    def partition(
        self, statistics: PatternRows, leaf_cost: LeafCost, feature_names: Sequence[str] | None = None
    ) -> Partition:
        """Generate groups and choose among them."""
        leaf_cost = _squared(leaf_cost)
        limits = self.limits(statistics, feature_names)
        start = clock()
        if limits.leaves < 2:
            labels = np.zeros(len(statistics.patterns), dtype=np.int64)
            return group_partition(statistics, labels, one_leaf(leaf_cost, start))
        greedy = grow_greedily(leaf_cost, limits)
        if len(statistics.patterns) > MOST_PATTERNS:
            return unproven(leaf_cost, greedy, 0.0, "too many patterns", start)
        problem = self._problem(leaf_cost, limits)
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


def _squared(leaf_cost: LeafCost) -> SquaredLeafCost:
    if not isinstance(leaf_cost, SquaredLeafCost):
        raise ValueError("PatternGroups needs the squared loss: use BoxPartition or OptimalTree for other losses.")
    return leaf_cost
