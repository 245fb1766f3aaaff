"""Ridge regression whose penalty is chosen by exact leave-one-out errors (PRESS), or on folds.

    min over c, w of   sum_i s_i |y_i - c - f_i'w|^2 + lambda |w|^2,        rows f_i = (g_1 f_i1, .., g_B f_iB)

for targets y_i in R^q (one column a class in classification). The columns come in blocks with relative weights g; a
larger g_b is a smaller penalty on block b. With F~ = diag(sqrt s)(F - mean) = U diag(sigma) V' and y~ alike,

    residuals          r = U diag(lambda / (sigma^2 + lambda)) U'y~ + r_0,          r_0 = y~ - U U'y~
    1 - leverages      1 - h_i = sum_k U_ik^2 lambda / (sigma_k^2 + lambda) + o_i,  o_i = 1 - s_i / S - sum_k U_ik^2

and leaving out row i changes its residual to r_i / (1 - h_i), exactly. Both are sums of terms that are not negative,
and r_0 = o = 0 where the columns span all that the intercept leaves: nothing cancels where there are more columns than
rows and lambda is small, so that a fit that interpolates is not mistaken for a good one.

Lambda is a share of the mean over columns of their sums of squares. Allen (1974) has PRESS.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from formulations.arrays import FloatArray

SHARES = np.logspace(-7, 3, 31)
# Singular values, and eigenvalues of the Gram matrix, below this share of the largest do not count.
SMALLEST_SINGULAR = 1e-10
SMALLEST_EIGENVALUE = 1e-13

Blocks = Sequence[FloatArray]
# Summed squared errors for each share of SHARES, given the weights of the blocks.
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
        Of the columns before they are weighted.
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


def choose(candidates: Sequence[Sequence[float]], errors: Errors) -> tuple[tuple[float, ...], float, float]:
    """Block weights and share with the smallest error, and that error.

    ``candidates`` has for each block the weights to be tried. One block after the other is varied, the last one first,
    with the first weight of the blocks that are yet to come.
    """
    chosen = [options[0] for options in candidates]
    best, found = np.inf, 0
    for b in reversed(range(len(candidates))):
        # the first weight of a block has been tried with the block before
        for g in candidates[b] if not np.isfinite(best) else candidates[b][1:]:
            trial = [*chosen[:b], g, *chosen[b + 1 :]]
            by_share = errors(trial)
            if by_share.min() < best:
                best, found, chosen = float(by_share.min()), int(by_share.argmin()), trial
    return tuple(chosen), float(SHARES[found]), best


def leave_one_out(blocks: Blocks, Y: FloatArray, weights: FloatArray) -> Errors:
    """The summed leave-one-out errors as a function of the weights of the blocks."""

    def errors(g: Sequence[float]) -> FloatArray:
        parts = _decompose(_weighted(blocks, g), Y, weights)
        return np.sum(_left_out(parts, parts.lambdas, weights) ** 2, axis=(1, 2))

    return errors


def held_out(folds: Sequence[tuple[Blocks, FloatArray, FloatArray, Blocks, FloatArray, FloatArray]]) -> Errors:
    """The summed errors on held-out rows: blocks, targets and weights of training and of held-out rows of each fold."""

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


def fit_ridge(blocks: Blocks, Y: FloatArray, weights: FloatArray, g: Sequence[float], share: float) -> Ridge:
    """The ridge of given block weights and share."""
    F = _weighted(blocks, g)
    parts = _decompose(F, Y, weights)
    lam = share * parts.unit
    w = parts.Vt.T @ ((parts.sigma / (parts.sigma**2 + lam))[:, None] * (parts.U.T @ parts.target))
    factors = np.repeat(g, [block.shape[1] for block in blocks])
    mean = weights @ np.hstack(blocks) / weights.sum()
    return Ridge(tuple(g), share, mean, factors[:, None] * w, weights @ Y / weights.sum())


def leave_one_out_residuals(F: FloatArray, Y: FloatArray, weights: FloatArray, lam: float) -> FloatArray:
    """y_i minus its prediction from all other rows, of shape (n, q)."""
    return _left_out(_decompose(F, Y, weights), np.array([lam]), weights)[0] / np.sqrt(weights)[:, None]


def _weighted(blocks: Blocks, g: Sequence[float]) -> FloatArray:
    return np.hstack([factor * block for factor, block in zip(g, blocks, strict=True)])


@dataclass(frozen=True)
class _Parts:
    """Singular value decomposition of the centred columns, and the centred targets, rows times the root of weights."""

    U: FloatArray
    sigma: FloatArray
    Vt: FloatArray
    target: FloatArray
    unit: float

    @property
    def lambdas(self) -> FloatArray:
        return SHARES * self.unit


def _decompose(F: FloatArray, Y: FloatArray, weights: FloatArray) -> _Parts:
    root = np.sqrt(weights)[:, None]
    target = root * (Y - weights @ Y / weights.sum())
    A = root * (F - weights @ F / weights.sum())
    n, p = A.shape
    unit = float(np.sum(A**2)) / max(p, 1) or 1.0
    if n > p:  # the Gram matrix is small, and all shares are well above its rounding
        values, V = np.linalg.eigh(A.T @ A)
        kept = values > SMALLEST_EIGENVALUE * values.max(initial=0.0)
        sigma, V = np.sqrt(values[kept]), V[:, kept]
        return _Parts((A @ V) / sigma, sigma, V.T, target, unit)
    U, sigma, Vt = np.linalg.svd(A, full_matrices=False)
    kept = sigma > SMALLEST_SINGULAR * sigma.max(initial=0.0)
    return _Parts(U[:, kept], sigma[kept], Vt[kept], target, unit)


def _left_out(parts: _Parts, lambdas: FloatArray, weights: FloatArray) -> FloatArray:
    """Leave-one-out residuals times the root of the weights, of shape (lambdas, n, q)."""
    shares = lambdas / (parts.sigma[:, None] ** 2 + lambdas)
    projected = parts.U.T @ parts.target
    squares = parts.U**2
    residuals = np.array([parts.U @ (shares * column[:, None]) for column in projected.T]).transpose(2, 1, 0)
    rest = squares @ shares
    if len(parts.sigma) < len(parts.U) - 1:
        residuals += parts.target - parts.U @ projected
        rest += np.maximum(1.0 - weights / weights.sum() - squares.sum(axis=1), 0.0)[:, None]
    return residuals / np.maximum(rest, np.finfo(float).tiny).T[:, :, None]
