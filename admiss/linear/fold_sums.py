"""The folds of one adaptivity class from statistics by fold, ready for paths of lambda.

As in :mod:`admiss.linear.fold_paths`, everything that a fit learns is learned on the training rows of the fold: the
moments of these are the sum of those of the other folds, and centres, scales, counts and shifts follow from them. The
squared error on the held-out rows follows from the moments of these, under the same map of columns.
"""

import numpy as np

from admiss.adaptivity import Adaptivity
from admiss.estimator.folds import FoldedRows
from admiss.estimator.observed import power_of_two
from admiss.linear.fold_paths import check_narrow, class_folds, squared_fold, squared_folds
from admiss.linear.from_statistics import TrainingSums, has_many_rows
from admiss.linear.grid_paths import ClassFolds, GridOptions
from admiss.linear.moments import curvature, eliminate, error_by_moments, linear_term
from formulations.arrays import IntArray


def folds_of_rows(rows: FoldedRows, adaptivity: Adaptivity, options: GridOptions) -> ClassFolds:
    """The folds of one class for rows in memory: by their statistics if there are many, else by the rows."""
    fold = _fold_of_rows(rows)
    if fold is not None and options.penalty_weights == "count" and has_many_rows(rows.X, adaptivity):
        return folds_of_sums(
            TrainingSums.of_rows(rows.X, rows.targets[0], rows.s, fold, adaptivity), adaptivity, options
        )
    return squared_folds(rows, adaptivity, options)


def _fold_of_rows(rows: FoldedRows) -> IntArray | None:
    """The fold in which each row is held out; None if rows are not held out once, and in training otherwise."""
    fold = np.full(len(rows.X), -1)
    for f, (train, test) in enumerate(rows.splits):
        if len(train) + len(test) != len(fold) or np.any(fold[test] >= 0):
            return None
        fold[test] = f
    is_partition = fold.min() >= 0 and all(np.all(fold[train] != f) for f, (train, _) in enumerate(rows.splits))
    return fold if is_partition else None


def folds_of_sums(sums: TrainingSums, adaptivity: Adaptivity, options: GridOptions) -> ClassFolds:
    """The folds of one class for the squared loss; ``sums`` are those of all folds."""
    summary = sums.summary()
    unit = float(power_of_two(summary.size[-1]))
    paths = []
    for f in sums.folds:
        held = sums.within(np.array([f]))
        if not held.summary().n_rows:
            raise ValueError(f"Fold {f} has no rows: collect the statistics with fewer folds (--cv).")
        train = sums.within(np.delete(sums.folds, f))
        own = options.in_units(train.design(adaptivity, **options.of_design))
        column_map = train.column_map(own, unit)
        quadratic = eliminate(column_map.moments(train), own.free, column_map.shift)
        error = error_by_moments(column_map.moments(held), quadratic)
        paths.append(squared_fold(quadratic, options.weights(own), error, unit))
    design = check_narrow(options.in_units(sums.design(adaptivity, **options.of_design)), adaptivity)
    moments = sums.column_map(design, unit).moments(sums)
    slope = unit * linear_term(moments, design.free), curvature(moments, design.free)
    rows = summary.n_rows, summary.weight
    return class_folds(adaptivity, design, *rows, options.weights(design), *slope, paths, options, exact=True)
