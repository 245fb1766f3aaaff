"""Penalised linear models for every lambda, read off one path.

    minimise over (w, b)  (1/S) sum_i s_i l(y_i, a_i'w + b) + (lambda / S) sum_j [ alpha |w_j| + (1 - alpha) w_j^2 / 2 ]

on complete rows, a_ij = (x_ij - mean_j) / deviation_j, with the squared or the logistic loss. This is the static
adaptivity class without the handling of patterns: the solution at each lambda is that of
``AdaptiveRegressor("static")`` or ``AdaptiveClassifier("static")``, with more than two classes one against the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from admiss.estimator.labels import class_probabilities
from admiss.estimator.scaling import standardised
from admiss.linear.grid_paths import PATH_TOLERANCE, SMALLEST_ALPHA, UNFINISHED
from formulations.arrays import FloatArray, IntArray
from formulations.erm.logistic_path import logistic_path
from formulations.erm.quadratic_path import quadratic_path

# Number of lambdas in a path, and the smallest as a share of the largest (also with fewer rows than columns).
N_LAMBDAS = 100
SMALLEST, SMALLEST_WIDE = 1e-4, 1e-2


@dataclass(frozen=True)
class LinearPath:
    """Fitted models, one for each lambda.

    Attributes
    ----------
    mean, scale : arrays of shape (d,)
    w : array of shape (n_targets, n_lambdas, d)
        Coefficients of the scaled features; NaN if the optimality conditions are not met.
    b : array of shape (n_targets, n_lambdas)
    is_classifier : bool
    """

    mean: FloatArray
    scale: FloatArray
    w: FloatArray
    b: FloatArray
    is_classifier: bool

    def outputs(self, X: FloatArray) -> FloatArray:
        """Predictions of shape (n_lambdas, n), or probabilities of shape (n_lambdas, n, K)."""
        A = (X - self.mean) / self.scale
        scores = np.einsum("tlj,ij->lit", self.w, A, optimize=True) + self.b.T[:, None, :]
        if not self.is_classifier:
            return scores[:, :, 0]
        return np.stack([class_probabilities(z[:, 0] if z.shape[1] == 1 else z) for z in scores])


def fit_linear_path(
    X: FloatArray, y: FloatArray | IntArray, s: FloatArray, n_classes: int, l1_ratio: float, lambdas: Sequence[float]
) -> LinearPath:
    """Models for decreasing lambdas.

    Parameters
    ----------
    X : array of shape (n, d)
        Complete rows.
    y : array of shape (n,)
        Numbers, or codes 0 .. K - 1 of classes that all occur.
    s : array of shape (n,)
        Positive weights.
    n_classes : int
        K; 0 in regression.
    l1_ratio : float
        alpha.
    lambdas : sequence of float
        Decreasing.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1.0, 3.0, 5.0, 7.0])
    >>> path = fit_linear_path(X, y, np.ones(4), 0, 1.0, [1e3, 1e-9])
    >>> path.outputs(np.array([[4.0]])).round(6).ravel().tolist()
    [4.0, 9.0]
    """
    A, mean, scale = standardised(X, s)
    q = s / s.sum()
    grid = np.asarray(lambdas, dtype=float)
    v1 = np.full(A.shape[1], l1_ratio / s.sum())
    v2 = np.full(A.shape[1], (1.0 - l1_ratio) / s.sum())
    w, b = [], []
    for target in _targets(y, n_classes):
        if n_classes:
            fitted = logistic_path(A, np.ones((len(A), 1)), target, q, v1, v2, grid, PATH_TOLERANCE)
            coefficients, violation, free = fitted.w, fitted.violation, fitted.free[:, 0]
        else:
            centre = float(q @ target)
            coefficients, violation = quadratic_path(
                2.0 * (A.T * q) @ A, 2.0 * A.T @ (q * (target - centre)), v1, v2, grid
            )
            free = np.full(len(grid), centre)
        w.append(np.where(violation[:, None] > UNFINISHED, np.nan, coefficients))
        b.append(free)
    return LinearPath(mean, scale, np.array(w), np.array(b), n_classes > 0)


def _targets(y: FloatArray | IntArray, n_classes: int) -> list[FloatArray]:
    if not n_classes:
        return [np.asarray(y, dtype=float)]
    return [np.where(y == k, 1.0, -1.0) for k in ([1] if n_classes == 2 else range(n_classes))]


def path_lambdas(
    X: FloatArray, y: FloatArray | IntArray, s: FloatArray, n_classes: int, l1_ratio: float
) -> list[float]:
    """Decreasing geometric lambdas, from the smallest at which all coefficients are 0.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1.0, 3.0, 5.0, 7.0])
    >>> lambdas = path_lambdas(X, y, np.ones(4), 0, 1.0)
    >>> path = fit_linear_path(X, y, np.ones(4), 0, 1.0, lambdas)
    >>> len(lambdas), bool(abs(path.w[0, 0, 0]) < 1e-9), bool(path.w[0, 1, 0] > 0)
    (100, True, True)
    """
    A, _, _ = standardised(X, s)
    q = s / s.sum()
    # at the optimal intercept the squared loss has derivative 2 (mean of y - y), the logistic loss a quarter of that
    factor = 0.5 if n_classes else 2.0
    slopes = [factor * np.abs(A.T @ (q * (target - q @ target))).max() for target in _targets(y, n_classes)]
    largest = max(slopes) * s.sum() / max(l1_ratio, SMALLEST_ALPHA)
    share = SMALLEST_WIDE if len(X) < X.shape[1] else SMALLEST
    return np.geomspace(largest or 1.0, share * (largest or 1.0), N_LAMBDAS).tolist()
