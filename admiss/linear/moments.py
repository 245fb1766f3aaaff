"""Sufficient statistics of the squared loss.

    G = sum_i s_i a_i a_i',   c = sum_i s_i a_i y_i,   r = sum_i s_i y_i^2,   a = sum_i s_i a_i,   S = sum_i s_i

over the columns a of a design, shifted by multiples of a free column, a_k - mu_k a_f(k), and y by mu_y. The free
coefficients compensate:  v_f = w_f + sum_k C_fk w_k - mu_y.  This keeps sums accurate wherever the data lie.

With f the free columns and k the others, the risk as a function of w_k alone, at the best w_f, is

    w'H w / 2 - b'w + rho,     H = 2 (G_kk - G_kf G_ff^+ G_fk) / S,   b = 2 (c_k - G_kf G_ff^+ c_f) / S,
                               rho = (r - c_f' G_ff^+ c_f) / S.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from admiss.linear.penalty import Penalty
from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.erm.quadratic_path import Path, RidgeProblem, quadratic_path
from formulations.erm.rounding import exact_sum
from formulations.jit import compiled

# A column whose variation is below this share of its size is constant up to rounding.
CONSTANT = 1e-13
# Up to this many free columns are eliminated in one pass over the matrix.
FEW = 4


@dataclass(frozen=True)
class Shift:
    """A_f C is subtracted from the columns (C has one row per free column), and a number from y."""

    C: sp.csr_array
    y: float

    def selected(self, columns: IntArray) -> "Shift":
        """The shift of some of the columns."""
        return Shift(self.C[:, columns], self.y)

    def applied(self, w: FloatArray, free: BoolArray) -> FloatArray:
        """The coefficients of the shifted columns, each rounded once."""
        v, C = w.copy(), self.C
        for i, f in enumerate(np.flatnonzero(free)):
            part = slice(C.indptr[i], C.indptr[i + 1])
            v[f] = exact_sum(np.array([w[f], -self.y]), C.data[part], w[C.indices[part]])
        return v


@dataclass(frozen=True)
class Moments:
    """Sums over rows of shifted columns."""

    S: float
    G: FloatArray
    c: FloatArray
    r: float
    a: FloatArray

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(self.S + other.S, self.G + other.G, self.c + other.c, self.r + other.r, self.a + other.a)

    @property
    def matrix(self) -> FloatArray:
        """The second moments of the columns and y."""
        return np.block([[self.G, self.c[:, None]], [self.c, np.array([self.r])]])

    def selected(self, columns: IntArray) -> "Moments":
        """The moments of some of the columns."""
        if len(columns) == len(self.c):
            return self
        return Moments(self.S, self.G[np.ix_(columns, columns)], self.c[columns], self.r, self.a[columns])

    def squared_errors(self, W: FloatArray) -> FloatArray:
        """sum_i s_i (y_i - a_i'w)^2 for each row w of W."""
        return np.asarray(self.r - 2.0 * W @ self.c + np.sum((W @ self.G) * W, axis=1))


@dataclass(frozen=True)
class Quadratic:
    """The risk w'H w / 2 - b'w + rho of the penalised columns, and how the free coefficients follow.

    w_f = at_zero - response @ w in shifted columns; ``one`` are the free coefficients of the constant 1.
    """

    H: FloatArray
    b: FloatArray
    rho: float
    at_zero: FloatArray
    response: FloatArray
    one: FloatArray
    free: BoolArray
    shift: Shift

    def shifted_free_coefficients(self, W: FloatArray, columns: slice | IntArray = slice(None)) -> FloatArray:
        """The free coefficients in shifted columns for rows of penalised ones (only ``columns`` of these)."""
        return np.asarray(self.at_zero - W @ self.response[:, columns].T)

    def free_coefficients(self, W: FloatArray, columns: slice | IntArray = slice(None)) -> FloatArray:
        """The free coefficients in the columns as they are."""
        C = self.shift.C[:, ~self.free][:, columns]
        return self.shifted_free_coefficients(W, columns) + self.shift.y * self.one - (C @ W.T).T

    def restore(self, w: FloatArray) -> FloatArray:
        """The coefficients of all columns from the penalised ones."""
        full = np.empty(len(self.free))
        full[~self.free], full[self.free] = w, self.free_coefficients(w)
        return full


def eliminate(moments: Moments, free: BoolArray, shift: Shift) -> Quadratic:
    """The quadratic in the penalised columns, at the best free coefficients."""
    G, c, S = moments.G, moments.c, moments.S
    f, k = np.flatnonzero(free), np.flatnonzero(~free)
    G_fk = G[f][:, k]
    inverse = _pseudo_inverse(G[np.ix_(f, f)])
    response, at_zero = inverse @ G_fk, inverse @ c[f]
    squares = np.diag(G)[k]
    if len(f) <= FEW:
        H = _schur_complement(G, k, np.ascontiguousarray(G_fk), np.ascontiguousarray(response), 2.0 / S)
    else:
        H = (G[k][:, k] - G_fk.T @ response) * (2.0 / S)
    b = linear_term(moments, free)
    # a column that is constant on these rows has no coefficient; rounding must not give it one
    gone = np.flatnonzero(np.diag(H) <= CONSTANT * 2.0 * squares / S)
    H[gone], H[:, gone], b[gone] = 0.0, 0.0, 0.0
    rho = max(0.0, moments.r - float(c[f] @ at_zero)) / S
    return Quadratic(H, b, rho, at_zero, response, inverse @ moments.a[f], free, shift)


@compiled
def _schur_complement(G, k, G_fk, response, factor):  # type: ignore[no-untyped-def]
    """factor (G_kk - G_kf response), in one pass."""
    p, n_free = len(k), len(G_fk)
    H = np.empty((p, p))
    for i in range(p):
        row = k[i]
        for j in range(p):
            value = G[row, k[j]]
            for f in range(n_free):
                value -= G_fk[f, i] * response[f, j]
            H[i, j] = factor * value
    return H


def linear_term(moments: Moments, free: BoolArray) -> FloatArray:
    """b alone, without the cost of H."""
    f, k = np.flatnonzero(free), np.flatnonzero(~free)
    at_zero = _pseudo_inverse(moments.G[np.ix_(f, f)]) @ moments.c[f]
    return np.asarray(2.0 * (moments.c[k] - at_zero @ moments.G[f][:, k]) / moments.S)


def curvature(moments: Moments, free: BoolArray) -> FloatArray:
    """The diagonal of H alone, which does not depend on the shift."""
    f, k = np.flatnonzero(free), np.flatnonzero(~free)
    G_fk = moments.G[f][:, k]
    explained = np.sum(G_fk * (_pseudo_inverse(moments.G[np.ix_(f, f)]) @ G_fk), axis=0)
    return np.asarray(2.0 * np.maximum(np.diag(moments.G)[k] - explained, 0.0) / moments.S)


def _pseudo_inverse(G: FloatArray) -> FloatArray:
    diagonal = np.diag(G)
    if np.count_nonzero(G) <= np.count_nonzero(diagonal):  # one intercept, or cells
        return np.diag(np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0))
    return np.asarray(np.linalg.pinv(G, hermitian=True))


def error_by_moments(moments: Moments, quadratic: Quadratic) -> Callable[[FloatArray], FloatArray]:
    """The summed squared error on rows with these moments as a function of rows of penalised coefficients."""
    f, k = np.flatnonzero(quadratic.free), np.flatnonzero(~quadratic.free)

    def by_moments(W: FloatArray) -> FloatArray:
        used = np.flatnonzero(W.any(axis=0))
        columns = np.concatenate([k[used], f])
        full = np.hstack([W[:, used], quadratic.shifted_free_coefficients(W[:, used], used)])
        order = np.argsort(columns)
        return moments.selected(columns[order]).squared_errors(full[:, order])

    return by_moments


def squared_path(
    quadratic: Quadratic, penalty: Penalty, lambdas: FloatArray, state: RidgeProblem | FloatArray | None = None
) -> tuple[Path, RidgeProblem | FloatArray]:
    """Coefficients of the penalised columns for multiples ``lambdas`` of the penalty; a state to continue from."""
    k, H, b = ~quadratic.free, quadratic.H, quadratic.b
    l1, l2 = penalty.l1[k], penalty.l2[k]
    if not np.any(l1):
        ridge = state if isinstance(state, RidgeProblem) else RidgeProblem.of(H, b, l2)
        return ridge.path(lambdas), ridge
    path = quadratic_path(H, b, l1, l2, lambdas, state if isinstance(state, np.ndarray) else None)
    return path, path.w[-1]
