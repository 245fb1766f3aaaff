"""Held-out losses of finite models over a grid, and the selection of one.

Everything is recomputed in each fold: means, scales, leaf costs, the partition, the range to which predictions are
truncated. The held-out loss is averaged over the rows of all folds. Leaves in folds are fitted as accurately as
predictions need (:mod:`formulations.leaves.squared_estimates`); only the selected model is fitted with proofs.

Many partitions are tried, so the smallest held-out loss is optimistic for few rows. The rule of one standard error
selects the fewest splits whose loss is within one standard error of the smallest; the error is that of the difference
between the two losses, row by row. Ties, to a relative 1e-9, go to the simpler model: fewer splits, then the smaller
leaf model, then the larger ridge.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from admiss.estimator.cross_validation import FoldedRows
from admiss.estimator.scaling import power_of_two
from admiss.finite.base import LEAF_MODELS, LeafFeatures, leaf_scores
from admiss.partition.base import Partition, Partitioner
from admiss.terminal.progress import progress
from admiss.terminal.table import Table
from formulations.arrays import FloatArray
from formulations.leaves.cost import LeafCost, LeafModel
from formulations.losses import Loss

NO_SPLIT = 0
TIE = 1e-9
# Losses of rows are held in single precision, up to its largest number.
LARGEST_LOSS = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class FiniteGrid:
    """Candidates (partitioners by size, which is depth or leaves; ridges; leaf models) and what their fits share."""

    partitioners: dict[int, Partitioner]
    ridges: list[float]
    leaf_models: list[str]
    loss: Loss
    ridge_scale: str
    center: bool
    scale: bool
    truncate: bool


@dataclass(frozen=True)
class HeldOut:
    """Losses on held-out rows.

    Attributes
    ----------
    table : Table
        One row per cell: leaf model, size, ridge, mean leaves, mean coefficients, mean loss.
    losses : array of shape (cells, rows)
        Loss of every held-out row, in units of a typical one; or the mean of every fold.
    share : array of shape (rows,)
        Share of each in the mean.
    """

    table: Table
    losses: Any
    share: FloatArray

    def best(self, one_standard_error: bool) -> int:
        """The selected cell."""
        loss, sizes = np.nan_to_num(self.table["mean_loss"], nan=np.inf, posinf=np.inf), self.table["size"]
        candidates = np.arange(len(loss))
        if one_standard_error:
            smallest = int(loss.argmin())
            best_of_size = [candidates[sizes == size][loss[sizes == size].argmin()] for size in np.unique(sizes)]
            selected = next((cell for cell in best_of_size if self._within_one_error(cell, smallest)), smallest)
            candidates = candidates[sizes == sizes[selected]]
        least = loss[candidates].min()
        tied = candidates[loss[candidates] <= least + TIE * abs(least)]
        smaller = np.array([LEAF_MODELS[::-1].index(name) for name in self.table["leaf_model"][tied]])
        return int(tied[np.lexsort([-self.table["ridge"][tied], smaller, sizes[tied]])[0]])

    def _within_one_error(self, cell: int, best: int) -> bool:
        difference = self.losses[cell].astype(float) - self.losses[best]
        mean = self.share @ difference
        return bool(mean <= np.sqrt(self.share**2 @ (difference - mean) ** 2))


def held_out_losses(grid: FiniteGrid, rows: FoldedRows, n_jobs: int | None) -> HeldOut:
    """Fit every cell in every fold."""
    splits = rows.splits
    y = rows.targets[0] if grid.loss.task == "regression" else np.column_stack(rows.targets)
    tasks = [(leaf_model, fold) for leaf_model in grid.leaf_models for fold in range(len(splits))]
    runs = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
        delayed(_fold)(grid, leaf_model, rows, y, fold) for leaf_model, fold in tasks
    )
    folds = list(progress(runs, len(tasks), "cross-validation: folds"))
    return compared(grid, folds, [rows.fold_weights[fold][test] for fold, (_, test) in enumerate(splits)])


def compared(grid: FiniteGrid, folds: "list[FoldLosses]", weights: list[FloatArray]) -> HeldOut:
    """Losses of all cells, from those of each leaf model in each fold, with the weights of what was held out."""
    shares, n_folds = np.concatenate(weights), len(weights)
    weight = shares.sum()
    columns: dict[str, list[Any]] = {
        name: [] for name in ("leaf_model", "size", "ridge", "leaves", "columns", "mean_loss")
    }
    by_model = []
    for m, leaf_model in enumerate(grid.leaf_models):
        of_model = folds[m * n_folds : (m + 1) * n_folds]
        by_model.append(np.concatenate([fold.losses for fold in of_model], axis=2).reshape(-1, len(shares)))
        leaves = np.mean([fold.leaves for fold in of_model], axis=0)
        width = np.mean([fold.leaves * fold.width for fold in of_model], axis=0)
        mean = np.sum([fold.total for fold in of_model], axis=0) / weight
        for z, size in enumerate(grid.partitioners):
            for r, ridge in enumerate(grid.ridges):
                cell = (leaf_model, size, ridge, leaves[z, r], width[z, r], mean[z, r])
                for name, value in zip(columns, cell, strict=True):
                    columns[name].append(value)
    return HeldOut(Table(**columns), np.concatenate(by_model), shares / weight)


@dataclass(frozen=True)
class FoldLosses:
    """One leaf model in one fold: arrays of shape (sizes, ridges).

    The last axis of ``losses`` are the rows held out, or a single one for the mean over them.
    """

    losses: Any
    total: FloatArray
    leaves: FloatArray
    width: int


def _fold(grid: FiniteGrid, leaf_model: str, rows: FoldedRows, y: FloatArray, fold: int) -> FoldLosses:
    train, test = rows.splits[fold]
    X = rows.X
    s = rows.fold_weights[fold]
    features = LeafFeatures.fit(X[train], s[train], leaf_model, grid.center, grid.scale)
    filled, M = features.split(X[test])
    with np.errstate(over="ignore"):  # far beyond the training rows
        A = np.nan_to_num(features.columns(filled, M) / features.column_unit)
    targets = y[test].reshape(len(test), -1)
    shape = len(grid.partitioners), len(grid.ridges)
    losses = np.empty((*shape, len(test)), dtype=np.float32)
    total, leaves = np.empty(shape), np.empty(shape)
    _, unit = grid.loss.in_units(float(power_of_two(np.abs(y).max())) if grid.loss.task == "regression" else 1.0)
    training = X[train], y[train], s[train]
    any_ridge = features.leaf_cost(*training, grid.loss, grid.ridges[0], grid.ridge_scale, proofs=False)
    for cell, partition, models in fitted_cells(grid, any_ridge, rows.names):
        intercepts = np.array([model.intercept for model in models])
        weights = np.array([model.weights for model in models])
        scores = leaf_scores(intercepts, weights, partition.assign(M), A)
        if grid.truncate:
            scores = np.clip(scores, y[train].min(), y[train].max())
        by_row = grid.loss.value(targets, scores).sum(axis=1)
        leaves[cell] = partition.n_leaves
        total[cell] = s[test] @ by_row
        losses[cell] = np.minimum(by_row / unit, LARGEST_LOSS)
    return FoldLosses(losses, total, leaves, A.shape[1] + 1)


def fitted_cells(
    grid: FiniteGrid, any_ridge: LeafCost, names: list[str]
) -> Iterator[tuple[tuple[int, int], Partition, list[LeafModel]]]:
    """The partition and the models of its leaves for each size and ridge, by their indices."""
    for r, ridge in enumerate(grid.ridges):
        leaf_cost = any_ridge.with_ridge(ridge)
        for z, partitioner in enumerate(grid.partitioners.values()):
            allowed = partitioner.within(leaf_cost.rows.n_rows)
            partition = allowed.partition(leaf_cost.rows, leaf_cost, names)
            if partition.certificate.status == "interrupted":  # its loss is not that of a complete search
                raise KeyboardInterrupt
            yield (z, r), partition, leaf_cost.models(partition.leaf)
