"""Bounds on the generated data of the paper beside what can be measured there.

On the authors' MCAR instances with a linear signal, of rank 5 in 10 features, for every order t:

    printed       b(F) as printed, with L the largest |f*| on the rows
    lower, upper  the sides of the largest bias that L and the missing rates allow, with L for a box that contains 0
    moments       the bias by second moments of the 5,000 + n rows without missing values
    measured      the test loss of least squares on n rows minus that of f*

f* is the best linear predictor of each pattern by these moments. Features are centred at their observed means in
training, as in the package. What is measured includes the estimation error of least squares. ``corrected`` is without
it, with ``error`` as its standard error: the mean over the training rows, with residuals r and leverages h, of

    r^2 / (1 - h) - (y - f*)^2,

as the fitted rows have losses that are too small by this factor if all have the same variance.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from admiss.bounds import BoundSetting, bias_bound, moment_bias
from admiss.bounds.bias import bias_sides
from admiss.bounds.counts import all_patterns, read_class
from admiss.datasets import SyntheticData, paper_instance
from admiss.patterns import PatternTable
from admiss.study import Scores
from formulations.arrays import FloatArray

# Orders that are fitted; beyond, columns are no longer few against the rows, and there are formulas only.
FITTED = 2
# Eigenvalues below this share of the largest count as 0: five of the ten are rounding errors.
CUTOFF = 1e-9
# Least 1 - h: a row that alone determines a coefficient has a residual of 0.
LEAST_FREE = 1e-6


@dataclass(frozen=True)
class PaperRows:
    """An MCAR instance of the paper with n training and 5,000 test rows.

    Attributes
    ----------
    missing_fraction : float
    n : int
    replicate : int
    """

    missing_fraction: float
    n: int
    replicate: int

    def make(self) -> SyntheticData:
        """Make the rows."""
        return paper_instance(self.n, "mcar", "linear", self.missing_fraction, self.replicate)


def bounds_on_paper_data(data: SyntheticData, seed: int) -> Scores:
    """Formulas and measurements for every order; the score is the largest ratio of corrected to moments."""
    start = time.process_time()
    centre = np.nanmean(data.X_train, axis=0)
    X, test, full = (
        data.X_train - centre,
        data.X_test - centre,
        np.vstack([data.X_full_train, data.X_full_test]) - centre,
    )
    y = np.concatenate([data.y_train, data.y_test])
    d = X.shape[1]
    mean, covariance = full.mean(axis=0), np.cov(full.T, bias=True)
    beta = np.linalg.pinv(covariance, CUTOFF, hermitian=True) @ ((full - mean).T @ (y - y.mean())) / len(y)
    rates = np.isnan(np.vstack([X, test])).mean(axis=0)
    truth = PatternWise(mean, covariance, beta, float(y.mean()))
    best = truth.predict(test)
    L = {"data": float(np.abs(np.concatenate([truth.predict(X), best])).max()), "box": truth.range_on_box(full)}
    setting = BoundSetting(d, sigma2=0.0, L=L["box"], missing=rates)
    columns: dict[str, list[float]] = {}
    for t in range(d + 1):
        F = read_class(("polynomial", t), d)
        lower, upper = bias_sides(setting, F)
        printed = bias_bound(F, d, L["data"], bias="paper")
        row: dict[str, Any] = {"printed": printed, "lower": lower, "upper": upper}
        if t <= FITTED:
            row["moments"] = moment_bias(F, (mean, covariance), missing=rates, beta=beta).value
            predicted, losses = _least_squares(F, X, data.y_train, test)
            row["measured"] = np.mean((data.y_test - predicted) ** 2 - (data.y_test - best) ** 2)
            excess = losses - (data.y_train - truth.predict(X)) ** 2
            row["corrected"], row["error"] = excess.mean(), excess.std(ddof=1) / np.sqrt(len(excess))
        for name, value in row.items():
            columns.setdefault(name, []).append(float(value))
    ratio = max(c / m for c, m in zip(columns["corrected"], columns["moments"], strict=True))
    return {"score": ratio, "seconds": time.process_time() - start, "L": [L["data"], L["box"]], **columns}


class PatternWise:
    """The best linear predictor of each pattern, y_0 + beta'E[x - mu | x_obs] by second moments."""

    def __init__(self, mean: FloatArray, covariance: FloatArray, beta: FloatArray, level: float) -> None:
        self.mean, self.covariance, self.beta, self.level = mean, covariance, beta, level

    def weights(self, missing: Any) -> FloatArray:
        """Slopes of the observed features at a pattern, 0 for the others."""
        o = ~np.asarray(missing, dtype=bool)
        w = np.zeros(len(o))
        inverse = np.linalg.pinv(self.covariance[np.ix_(o, o)], CUTOFF, hermitian=True)
        w[o] = inverse @ self.covariance[o] @ self.beta
        return w

    def predict(self, X: FloatArray) -> FloatArray:
        """Predictions for rows with NaN where missing."""
        table = PatternTable.of(np.isnan(X))
        W = np.array([self.weights(pattern) for pattern in table.patterns])[table.codes]
        return np.asarray(self.level + (W * np.nan_to_num(X - self.mean)).sum(axis=1))

    def range_on_box(self, full: FloatArray) -> float:
        """The largest |f*| at any pattern on the box of the features, extended to 0."""
        low, high = np.minimum(full.min(axis=0), 0.0), np.maximum(full.max(axis=0), 0.0)
        W = np.array([self.weights(pattern) for pattern in all_patterns(len(self.mean))])
        level = self.level - W @ self.mean
        above = level + np.maximum(W * low, W * high).sum(axis=1)
        below = level + np.minimum(W * low, W * high).sum(axis=1)
        return float(np.maximum(np.abs(above), np.abs(below)).max())


def _least_squares(adaptivity: Any, X: FloatArray, y: FloatArray, new: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Predictions of least squares for new rows, and losses on the fitted rows, corrected by their leverages."""
    fitted = adaptivity.fit(X, np.isnan(X))
    A, B = (np.asarray(fitted.columns(rows, np.isnan(rows))) for rows in (X, new))
    left, size, right = np.linalg.svd(A, full_matrices=False)
    rank = int(np.sum(size > CUTOFF * size[0]))
    left, right = left[:, :rank], right[:rank] / size[:rank, None]
    fit = left.T @ y
    free = np.maximum(1 - (left**2).sum(axis=1), LEAST_FREE)
    return B @ (right.T @ fit), (y - left @ fit) ** 2 / free
