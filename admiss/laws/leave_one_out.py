"""Ridge regression with its penalty selected by exact leave-one-out errors (PRESS; Allen 1974), or on folds.

    min over c, w of   sum_i s_i |y_i - c - f_i'w|^2 + lambda |w|^2,        rows f_i = (g_1 f_i1, .., g_B f_iB)

for targets y_i in R^q (one column per class in classification). The columns form blocks with relative weights g; a
larger g_b is a smaller penalty on block b. With F~ = diag(sqrt s)(F - mean) = U diag(sigma) V' and y~ likewise,

    residuals          r = U diag(lambda / (sigma^2 + lambda)) U'y~ + r_0,          r_0 = y~ - U U'y~
    1 - leverages      1 - h_i = sum_k U_ik^2 lambda / (sigma_k^2 + lambda) + o_i,  o_i = 1 - s_i / S - sum_k U_ik^2

and leaving out row i changes its residual to exactly r_i / (1 - h_i). In 1 - h_i all terms are non-negative, and
r_0 = o = 0 if the columns span everything but the intercept: nothing cancels if columns outnumber rows and lambda is
small, so an interpolating fit is not mistaken for a good one.

Lambda is given as a share of the mean over columns of their sums of squares.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from formulations.arrays import FloatArray

SHARES = np.logspace(-7, 3, 31)
# Singular values, and eigenvalues of the Gram matrix, below this share of the largest count as 0.
SMALLEST_SINGULAR = 1e-10
SMALLEST_EIGENVALUE = 1e-13
# Smaller values of 1 - h_i count as this one, whose square is a number.
SMALLEST_REST = 1e-140

Blocks = Sequence[FloatArray]
# Summed squared errors for each share in SHARES, given the weights of the blocks.
Errors = Callable[[Sequence[float]], FloatArray]


@dataclass(frozen=True)
class Ridge:
    """A fitted ridge regression.

    Attributes
    ----------
    block_weights : tuple of float
    share : float
        Lambda as a share of the mean sum of squares of a column.
    mean : array of shape (p,)
        Subtracted from the columns.
    coefficients : array of shape (p, q)
        Of the columns without block weights.
    intercept : array of shape (q,)
    """

    block_weights: tuple[float, ...]
    share: float
    mean: FloatArray
    coefficients: FloatArray
    intercept: FloatArray

    def predict(self, blocks: Blocks) -> FloatArray:
        """Predictions of shape (rows, q)."""
        return self.intercept + (np.hstack(blocks) - self.mean) @ self.coefficients


def select_penalty(candidates: Sequence[Sequence[float]], errors: Errors) -> tuple[tuple[float, ...], float, float]:
    """Block weights and share with the smallest error, and that error.

    ``candidates`` lists the weights to try for each block. Blocks are varied one after the other, the last one first,
    with the first weights of the blocks still to come.
    """
    selected = [options[0] for options in candidates]
    best, index = np.inf, 0
    for b in reversed(range(len(candidates))):
        # the first weight of a block has been tried with the block before
        for g in candidates[b] if not np.isfinite(best) else candidates[b][1:]:
            trial = [*selected[:b], g, *selected[b + 1 :]]
            by_share = errors(trial)
            if by_share.min() < best:
                best, index, selected = float(by_share.min()), int(by_share.argmin()), trial
    return tuple(selected), float(SHARES[index]), best


class RidgeOnBlocks:
    """The ridge on some rows for any block weights: leave-one-out errors and fits."""

    def __init__(self, blocks: Blocks, Y: FloatArray, weights: FloatArray) -> None:
        F = np.hstack(blocks)
        self.sizes, self.weights, self.centred = [block.shape[1] for block in blocks], weights, _centred(F, Y, weights)
        self.mean, self.intercept = weights @ F / weights.sum(), weights @ Y / weights.sum()
        self._known: dict[tuple[float, ...], _Spectrum] = {}

    def leave_one_out(self, g: Sequence[float]) -> FloatArray:
        """Summed leave-one-out errors for each share."""
        parts = self.centred.decompose(np.repeat(g, self.sizes))
        self._known[tuple(g)] = parts.spectrum()
        return np.sum(_left_out(parts, parts.lambdas, self.weights) ** 2, axis=(1, 2))

    def fit(self, g: Sequence[float], share: float) -> Ridge:
        """The ridge for given block weights and share."""
        factors = np.repeat(g, self.sizes)
        known = self._known.get(tuple(g)) or self.centred.decompose(factors).spectrum()
        return Ridge(tuple(g), share, self.mean, factors[:, None] * known.solve(share), self.intercept)


def held_out(folds: Sequence[tuple[Blocks, FloatArray, FloatArray, Blocks, FloatArray, FloatArray]]) -> Errors:
    """Summed held-out errors; a fold has blocks, targets and weights of training rows, then of held-out rows."""

    def errors(g: Sequence[float]) -> FloatArray:
        total = np.zeros(len(SHARES))
        for blocks, Y, s, test_blocks, Y_test, s_test in folds:
            F = _weighted(blocks, g)
            parts = _decompose(F, Y, s)
            F_test = _weighted(test_blocks, g) - s @ F / s.sum()
            target, centre = parts.U.T @ parts.target, s @ Y / s.sum()
            directions = F_test @ parts.Vt.T
            for k, lam in enumerate(parts.lambdas):
                shrunk = (parts.sigma / (parts.sigma**2 + lam))[:, None] * target
                total[k] += float(s_test @ np.sum((Y_test - centre - directions @ shrunk) ** 2, axis=1))
        return total

    return errors


def leave_one_out_residuals(F: FloatArray, Y: FloatArray, weights: FloatArray, lam: float) -> FloatArray:
    """y_i minus its prediction from all other rows, of shape (n, q)."""
    return _left_out(_decompose(F, Y, weights), np.array([lam]), weights)[0] / np.sqrt(weights)[:, None]


def _weighted(blocks: Blocks, g: Sequence[float]) -> FloatArray:
    return np.hstack([factor * block for factor, block in zip(g, blocks, strict=True)])


@dataclass(frozen=True)
class _Spectrum:
    """Singular values, right singular vectors and U'y~, which are enough for a fit."""

    sigma: FloatArray
    Vt: FloatArray
    projected: FloatArray
    unit: float

    def solve(self, share: float) -> FloatArray:
        shrunk = (self.sigma / (self.sigma**2 + share * self.unit))[:, None] * self.projected
        return self.Vt.T @ shrunk


@dataclass(frozen=True)
class _Parts:
    """Singular value decomposition of the centred columns, and the centred targets, rows times the roots of weights."""

    U: FloatArray
    sigma: FloatArray
    Vt: FloatArray
    target: FloatArray
    unit: float

    @property
    def lambdas(self) -> FloatArray:
        return SHARES * self.unit

    def spectrum(self) -> _Spectrum:
        return _Spectrum(self.sigma, self.Vt, self.U.T @ self.target, self.unit)


@dataclass(frozen=True)
class _Centred:
    """The centred columns and targets, rows times the roots of weights; and, with more rows than columns, A'A."""

    A: FloatArray
    target: FloatArray
    gram: FloatArray | None

    def decompose(self, g: FloatArray) -> _Parts:
        """The parts of the columns times ``g``."""
        p = max(self.A.shape[1], 1)
        if self.gram is None:
            A = self.A * g
            U, sigma, Vt = np.linalg.svd(A, full_matrices=False)
            nonzero = sigma > SMALLEST_SINGULAR * sigma.max(initial=0.0)
            unit = float(np.sum(A**2)) / p or 1.0
            return _Parts(U[:, nonzero], sigma[nonzero], Vt[nonzero], self.target, unit)
        G = self.gram * np.outer(g, g)  # small, and all shares exceed its rounding
        values, V = np.linalg.eigh(G)
        nonzero = values > SMALLEST_EIGENVALUE * values.max(initial=0.0)
        sigma, V = np.sqrt(values[nonzero]), V[:, nonzero]
        U = self.A @ (g[:, None] * V / sigma)
        return _Parts(U, sigma, V.T, self.target, float(np.trace(G)) / p or 1.0)


def _centred(F: FloatArray, Y: FloatArray, weights: FloatArray) -> _Centred:
    root = np.sqrt(weights)[:, None]
    A = root * (F - weights @ F / weights.sum())
    return _Centred(A, root * (Y - weights @ Y / weights.sum()), A.T @ A if len(A) > A.shape[1] else None)


def _decompose(F: FloatArray, Y: FloatArray, weights: FloatArray) -> _Parts:
    return _centred(F, Y, weights).decompose(np.ones(F.shape[1]))


def _left_out(parts: _Parts, lambdas: FloatArray, weights: FloatArray) -> FloatArray:
    """Leave-one-out residuals times the roots of the weights, of shape (lambdas, n, q)."""
    shares = lambdas / (parts.sigma[:, None] ** 2 + lambdas)
    projected = parts.U.T @ parts.target
    squares = parts.U**2
    residuals = np.array([parts.U @ (shares * column[:, None]) for column in projected.T]).transpose(2, 1, 0)
    rest = squares @ shares
    if len(parts.sigma) < len(parts.U) - 1:
        residuals += parts.target - parts.U @ projected
        rest += np.maximum(1.0 - weights / weights.sum() - squares.sum(axis=1), 0.0)[:, None]
    return residuals / np.maximum(rest, SMALLEST_REST).T[:, :, None]
