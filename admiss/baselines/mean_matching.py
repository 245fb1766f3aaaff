"""Predictive mean matching: imputation of one column given all others.

    V      = (A' A + kappa I)^-1,  gamma = V A' x         x the observed values of the column; A the other columns in
                                                          the same rows, centred and of norm 1
    sigma* = |x - mean(x) - A gamma| / sqrt(g)            g from chi-square with n - 1 - |columns of A| degrees of
                                                          freedom, at least 1
    gamma* = gamma + sigma* V^1/2 z                       z from N(0, I)
    mean*  = mean(x) + sigma* z_0 / sqrt(n)               z_0 from N(0, 1)

A row a without the column gets the value of one of n_donors rows o, drawn at random among those with the smallest
distances | mean(x) + A_o gamma - mean* - a'gamma* |.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from formulations.arrays import BoolArray, FloatArray
from formulations.jit import compiled

# Ridge added to the diagonal of the correlations.
KAPPA = 1e-5
# A column is constant in the rows of a regression if its variance there is below this share of its variance.
CONSTANT = 1e-12


@dataclass(frozen=True)
class Matching:
    """Imputation of a column: a drawn regression, and the donors in the order of their predictions.

    Attributes
    ----------
    coefficients : array of shape (d,)
        Drawn coefficients of the standardised columns; 0 for the column itself.
    intercept : float
    predictions : array of shape (n_observed,)
        Predictions of the donors by the point estimate, ascending.
    values : array of shape (n_observed,)
        The observed values of these donors.
    """

    coefficients: FloatArray
    intercept: float
    predictions: FloatArray
    values: FloatArray

    def draw(self, Z: FloatArray, n_donors: int, chance: FloatArray, tie_chance: FloatArray) -> FloatArray:
        """A donor's value for each standardised row, given two random numbers in [0, 1) per row."""
        targets = _predictions(Z, self.coefficients, self.intercept)
        rank = (chance * min(n_donors, len(self.values))).astype(np.int64)
        return self.values[_nearest(self.predictions, targets, rank, tie_chance)]


def match(Z: FloatArray, x: FloatArray, observed: BoolArray, j: int, rng: np.random.RandomState) -> Matching:
    """Regress column j on the others in the rows where it is observed, and draw from the posterior."""
    Z_observed = Z[observed]
    n = len(Z_observed)
    centre = Z_observed.mean(axis=0)
    A = Z_observed - centre
    target = A[:, j].copy()
    square = np.einsum("ij,ij->j", A, A)
    square[j] = 0.0
    varies = square > CONSTANT * n
    inverse_norm = np.where(varies, 1.0 / np.sqrt(np.where(varies, square, 1.0)), 0.0)
    A *= inverse_norm
    C = A.T @ A
    C[np.diag_indices_from(C)] += KAPPA
    L = cholesky(C, lower=True, check_finite=False)
    gamma = _backward(L, solve_triangular(L, A.T @ target, lower=True, check_finite=False))
    residual = target - A @ gamma
    degrees = max(n - 1 - int(varies.sum()), 1)
    sigma = np.sqrt(residual @ residual / rng.chisquare(degrees))
    drawn = gamma + sigma * _backward(L, rng.normal(size=len(L)))
    drawn_mean = centre[j] + sigma * rng.normal() / np.sqrt(n)

    estimate, coefficients = inverse_norm * gamma, inverse_norm * drawn
    predictions = _predictions(Z_observed, estimate, centre[j] - centre @ estimate)
    order = np.argsort(predictions, kind="stable")
    return Matching(coefficients, drawn_mean - centre @ coefficients, predictions[order], x[observed][order])


def _backward(L: FloatArray, b: FloatArray) -> FloatArray:
    """Solution of L'x = b; for b from N(0, I) a draw from N(0, (L L')^-1)."""
    return solve_triangular(L, b, lower=True, trans="T", check_finite=False)


@compiled
def _predictions(Z, coefficients, intercept):  # type: ignore[no-untyped-def]
    """Predictions row by row, which makes those of equal rows equal to the last bit, as BLAS does not."""
    predictions = np.empty(len(Z))
    for i in range(len(Z)):
        total = intercept
        for j in range(len(coefficients)):
            total += Z[i, j] * coefficients[j]
        predictions[i] = total
    return predictions


@compiled
def _nearest(predictions, targets, rank, tie_chance):  # type: ignore[no-untyped-def]
    """For each target the index of the prediction of a rank (0 the nearest) among ascending predictions.

    One of equal predictions is drawn, as if they were in random order; of two at the same distance on both sides the
    larger comes first.
    """
    n = len(predictions)
    found = np.empty(len(targets), dtype=np.int64)
    for i in range(len(targets)):
        target = targets[i]
        right = np.searchsorted(predictions, target)
        left = right - 1
        index = right
        for _ in range(rank[i] + 1):
            if right >= n or (left >= 0 and target - predictions[left] < predictions[right] - target):
                index, left = left, left - 1
            else:
                index, right = right, right + 1
        first = np.searchsorted(predictions, predictions[index], side="left")
        last = np.searchsorted(predictions, predictions[index], side="right")
        found[i] = first + int(tie_chance[i] * (last - first))
    return found
