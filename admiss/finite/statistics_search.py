"""Held-out losses of finite models over a grid, from row statistics with folds.

Every fold has its own means, scales, leaf costs and partitions, from the sums of the other folds. Its held-out loss is
a quadratic form in its own sums, see :mod:`admiss.finite.from_statistics`: that of predictions that are not truncated.
Losses of rows are not known; the rule of one standard error takes the error from the means of the folds.
"""

import numpy as np
from joblib import Parallel, delayed

from admiss.estimator.scaling import power_of_two
from admiss.finite.from_statistics import leaf_sums, residual
from admiss.finite.search import LARGEST_LOSS, FiniteGrid, FoldLosses, HeldOut, compared
from admiss.statistics.row_statistics import RowStatistics
from admiss.terminal.progress import progress
from formulations.arrays import IntArray


def statistics_losses(grid: FiniteGrid, statistics: RowStatistics, names: list[str], n_jobs: int | None) -> HeldOut:
    """Fit every cell in every fold."""
    n_folds = statistics.n_folds
    if statistics.folds is None:
        raise ValueError("These statistics have no folds: collect them with RowStatistics(folds=HashFolds(5)).")
    weights = [statistics.summary(np.array([fold])).weight for fold in range(n_folds)]
    empty = [fold for fold, weight in enumerate(weights) if not weight > 0]
    if empty:
        raise ValueError(f"Fold {empty[0]} has no rows: use fewer folds, or keys with more values.")
    # errors come before the work, and sums that wait for more rows are complete before threads read them
    leaf_sums(statistics, grid.partitioners.values(), np.arange(n_folds))
    tasks = [(leaf_model, fold) for leaf_model in grid.leaf_models for fold in range(n_folds)]
    runs = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
        delayed(_fold)(grid, leaf_model, statistics, names, fold) for leaf_model, fold in tasks
    )
    folds = list(progress(runs, len(tasks), "cross-validation: folds"))
    return compared(grid, folds, [np.array([weight]) for weight in weights])


def _fold(grid: FiniteGrid, leaf_model: str, statistics: RowStatistics, names: list[str], fold: int) -> FoldLosses:
    everything = np.arange(statistics.n_folds)
    return fold_losses(grid, leaf_model, statistics, names, everything[everything != fold], fold)


def fold_losses(
    grid: FiniteGrid, leaf_model: str, statistics: RowStatistics, names: list[str], folds: IntArray, fold: int
) -> FoldLosses:
    """Losses of every cell on the rows of a fold, fitted to the rows of other folds."""
    held = np.array([fold])
    training = leaf_sums(statistics, grid.partitioners.values(), folds)
    held_out = leaf_sums(statistics, grid.partitioners.values(), held)
    features = training.features(leaf_model, grid.center, grid.scale)
    C, shift = training.columns(features)
    shape = len(grid.partitioners), len(grid.ridges)
    total, leaves = np.empty(shape), np.empty(shape)
    any_ridge = training.leaf_cost(features, grid.ridges[0], grid.ridge_scale)
    for r, ridge in enumerate(grid.ridges):
        leaf_cost = any_ridge.with_ridge(ridge)
        for z, partitioner in enumerate(grid.partitioners.values()):
            allowed = partitioner.within(leaf_cost.rows.n_rows)
            partition = allowed.partition(leaf_cost.rows, leaf_cost, names)
            if partition.certificate.status == "interrupted":  # its loss is not that of a complete search
                raise KeyboardInterrupt
            moments = held_out.of_leaves(partition, features)
            models = [leaf_cost.fit(partition.members(leaf)) for leaf in range(partition.n_leaves)]
            T = np.array([residual(model, C, shift) for model in models])
            total[z, r] = max(0.0, float(np.einsum("li,lij,lj->", T, moments, T)))
            leaves[z, r] = partition.n_leaves
    weight = statistics.summary(held).weight
    unit = float(power_of_two(statistics.summary().size[-1])) ** 2
    losses = np.minimum(total / weight / unit, LARGEST_LOSS)[:, :, None]
    return FoldLosses(losses, total, leaves, len(C) - 1)
