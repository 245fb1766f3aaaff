"""The variance of the noise, estimated from nearest neighbours within patterns.

Let N(i) be the nearest neighbour of row i among the rows of its pattern, and r the residuals of a model fitted to other
rows. Given all features, with noise that is independent between rows,

    E (r_i - r_N(i))^2 / 2 = (sigma_i^2 + sigma_N(i)^2) / 2 + (h_i - h_N(i))^2 / 2,     h = f* - that model.

The mean over rows estimates sigma^2 = E Var(Y | X, M). It is too large by half the squared change of h between
neighbours, for any model, and consistent if h is continuous within patterns (Devroye, Schaefer, Gyorfi and Walk, 2003;
Evans and Jones, 2008, on similar estimates without missing values). With many features neighbours are distant, and the
excess may dominate the estimate.

Rows connected in the graph of neighbours share noise, those in different components do not: the standard error of the
mean is computed from the sums over components.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors

from admiss.estimator.cv import Split
from admiss.estimator.scaling import observed_moments, observed_scale
from admiss.linear.estimators import AdaptiveRegressor
from admiss.patterns import PatternTable
from formulations.arrays import FloatArray, IntArray

# Fewest components for a standard error.
FEWEST_GROUPS = 10
# Scale of the noise that breaks ties between neighbours, in standard deviations of a feature.
TIE = 1e-6


@dataclass(frozen=True)
class RowTerms:
    """Values of rows whose mean is an estimate; rows of different groups are independent given the features."""

    rows: IntArray
    values: FloatArray
    groups: IntArray

    def mean(self) -> tuple[float, float]:
        """The mean and its standard error, from the sums over groups."""
        names, group = np.unique(self.groups, return_inverse=True)
        if len(names) < FEWEST_GROUPS:
            raise ValueError(
                f"Only {len(self.rows)} rows have a neighbour of the same pattern in their fold, in {len(names)} "
                f"groups that do not overlap; at least {FEWEST_GROUPS} are needed: use more rows or fewer features."
            )
        sums = np.bincount(group, self.values - self.values.mean())
        error = np.sqrt(len(sums) / (len(sums) - 1) * np.sum(sums**2)) / len(self.values)
        return float(self.values.mean()), float(error)


def neighbour_differences(
    X: FloatArray, y: FloatArray, model: Any, folds: list[Split], rng: np.random.RandomState
) -> RowTerms:
    """Half the squared difference of residuals to the nearest neighbour, for every row that has one."""
    model = AdaptiveRegressor("affine") if model is None else model
    mean, deviation, size, _ = observed_moments(X, np.ones(len(y)))
    Z = np.nan_to_num((X - mean) / observed_scale(deviation, size)[0])
    neighbour = np.full(len(y), -1)
    residual = np.full(len(y), np.nan)
    for fold in folds:
        held_out = fold[1]
        residual[held_out] = y[held_out] - predict_held_out(model, X, y, fold)
        codes = PatternTable.of(np.isnan(X[held_out])).codes
        for code in range(codes.max() + 1):
            rows = held_out[codes == code]
            if len(rows) > 1:
                # otherwise all rows with equal features could share one neighbour
                points = np.column_stack([Z[rows], TIE * rng.normal(size=len(rows))])
                found = NearestNeighbors(n_neighbors=1).fit(points).kneighbors(return_distance=False)[:, 0]
                neighbour[rows] = rows[found]
    rows = np.flatnonzero(neighbour >= 0)
    links = sparse.coo_array((np.ones(len(rows)), (rows, neighbour[rows])), shape=(len(y), len(y)))
    _, groups = connected_components(links, directed=False)
    return RowTerms(rows, (residual[rows] - residual[neighbour[rows]]) ** 2 / 2, groups[rows])


def predict_held_out(model: Any, X: FloatArray, y: FloatArray, fold: Split) -> FloatArray:
    """Predictions for the held-out rows of a fold."""
    train, held_out = fold
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about features that are never missing, or never observed, without this fold
        return np.asarray(clone(model).fit(X[train], y[train]).predict(X[held_out]))
