"""Robust programs over the law of missingness, stated in cvxpy: tried, and not part of the package.

Static weights w on centred features z in standard units, 0 if missing, an intercept b without penalty, and the ridge
lam / (2 n) |w|^2. With r_i = y_i - b - z_i'w:

*CVaR over patterns* with level beta, for patterns p of n_p rows and losses L_p(w) = (1 / n_p) sum_{i in p} r_i^2:

    minimise  t + 1 / (1 - beta) sum_p (n_p / n) (L_p(w) - t)_+ + lam / (2 n) |w|^2

the mean loss of the worst patterns that make up the share 1 - beta of the rows.

*Worst deletions* of up to k features of every row:

    minimise  (1/n) sum_i max_{|D| <= k} (r_i + sum_{j in D} z_ij w_j)^2 + lam / (2 n) |w|^2

The inner maximum is that of two sums of the k largest positive parts, of z_ij w_j added to r_i and of -z_ij w_j added
to -r_i; by duality the sum of the k largest (v_j)_+ is

    min { k theta + sum_j mu_j :  theta >= 0, mu >= 0, mu_j >= v_j - theta }.
"""

from typing import Any, Self

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, RegressorMixin

from admiss.datasets.mechanisms.single import standardise
from admiss.patterns import PatternTable
from formulations.arrays import FloatArray


class RobustStatic(RegressorMixin, BaseEstimator):
    """The static model of a robust program; ``level`` is beta, ``deletions`` is k, both 0 for the usual risk."""

    def __init__(self, level: float = 0.0, deletions: int = 0, lam: float = 1.0) -> None:
        self.level = level
        self.deletions = deletions
        self.lam = lam

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Solve the program with Clarabel."""
        self.mean_, self.scale_ = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        Z, unit = np.nan_to_num(standardise(X)), float(np.std(y)) or 1.0
        target = (y - np.mean(y)) / unit
        w, b = cp.Variable(Z.shape[1]), cp.Variable()
        r = target - b - Z @ w
        if self.deletions:
            risk, constraints = _worst_deletions(Z, r, w, self.deletions)
        else:
            risk, constraints = _cvar(PatternTable.of(np.isnan(X)), r, self.level)
        problem = cp.Problem(cp.Minimize(risk + self.lam / (2 * len(y)) * cp.sum_squares(w)), constraints)
        problem.solve(solver=cp.CLARABEL)
        if problem.status != cp.OPTIMAL:
            raise ValueError(f"The robust program ended as {problem.status}.")
        self.coef_, self.intercept_ = unit * np.asarray(w.value), float(np.mean(y) + unit * b.value)
        self.value_ = float(problem.value)
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """Predictions, missing values at the mean."""
        scale = np.where(self.scale_ > 0, self.scale_, 1.0)
        return np.asarray(self.intercept_ + np.nan_to_num((X - self.mean_) / scale) @ self.coef_)


def _cvar(table: PatternTable, r: Any, level: float) -> tuple[Any, list[Any]]:
    """CVaR of the losses of the patterns."""
    n, P = len(table.codes), len(table.patterns)
    loss, t, above = cp.Variable(P), cp.Variable(), cp.Variable(P, nonneg=True)
    share = table.counts / n
    squares = cp.Variable(n)
    means = sp.csr_array((1.0 / table.counts[table.codes], (table.codes, np.arange(n))), shape=(P, n))
    constraints = [squares >= cp.square(r), loss >= means @ squares, above >= loss - t]
    return t + share @ above / (1.0 - level), constraints


def _worst_deletions(Z: FloatArray, r: Any, w: Any, k: int) -> tuple[Any, list[Any]]:
    """Mean square of the largest residuals after k deletions."""
    n, d = Z.shape
    added, worst = cp.multiply(Z, np.ones((n, 1)) @ cp.reshape(w, (1, d), order="C")), cp.Variable(n)
    constraints = []
    for sign in (1.0, -1.0):
        theta, mu = cp.Variable((n, 1), nonneg=True), cp.Variable((n, d), nonneg=True)
        constraints += [mu >= sign * added - theta @ np.ones((1, d))]
        constraints += [worst >= sign * r + k * theta[:, 0] + cp.sum(mu, axis=1)]
    return cp.sum_squares(worst) / n, constraints
