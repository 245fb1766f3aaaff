"""Sufficient statistics of the squared loss.

    G = sum_i s_i a_i a_i',   c = sum_i s_i a_i y_i,   r = sum_i s_i y_i^2,   a = sum_i s_i a_i,   S = sum_i s_i

over the columns a of a design. They add over rows: those of a training fold are the total minus the held-out ones. The
columns are shifted by multiples of a free column, a_k - mu_k a_f(k), and y by mu_y, which the free coefficients
compensate; this keeps the differences accurate wherever the data lie. The shift is the same for all folds.

With f the free columns and k the others, the risk as a function of w_k alone, at the best w_f, is

    w'H w / 2 - b'w + rho,     H = 2 (G_kk - G_kf G_ff^+ G_fk) / S,   b = 2 (c_k - G_kf G_ff^+ c_f) / S,
                               rho = (r - c_f' G_ff^+ c_f) / S.

With penalty weights l1 and l2, the gradient g = H w - b and the risk R at w, every tau <= 1 with tau |g_k| <= l1_k
wherever l2_k = 0 gives the lower bound (:mod:`formulations.erm.dual_bound`)

    D(tau) = 2 tau (rho - b'w / 2) - tau^2 R - sum_k (tau |g_k| - l1_k)_+^2 / (2 l2_k).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from admiss.linear.design import Design
from formulations.arrays import BoolArray, FloatArray, IntArray
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


@dataclass(frozen=True)
class Moments:
    """Sums over rows of shifted columns."""

    S: float
    G: FloatArray
    c: FloatArray
    r: float
    a: FloatArray

    def __sub__(self, other: "Moments") -> "Moments":
        return Moments(self.S - other.S, self.G - other.G, self.c - other.c, self.r - other.r, self.a - other.a)

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(self.S + other.S, self.G + other.G, self.c + other.c, self.r + other.r, self.a + other.a)

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

    def in_units(self, factor: FloatArray) -> "Quadratic":
        """The quadratic of columns multiplied by ``factor``; it takes over the memory of this one."""
        H, k = self.H, factor[~self.free]
        H *= k[:, None]
        H *= k
        shift = Shift(self.shift.C @ sp.diags_array(factor), self.shift.y)
        return replace(self, H=H, b=self.b * k, response=self.response * k, shift=shift)

    def objective_and_bound(self, l1: FloatArray, l2: FloatArray, w: FloatArray) -> tuple[float, float]:
        """The penalised risk at w, and the dual bound D(tau) of the module docstring."""
        Hw, linear = self.H @ w, float(self.b @ w)
        risk = max(0.0, self.rho - linear + float(w @ Hw) / 2.0)
        g = np.abs(Hw - self.b)
        soft = l2 > 0
        hard = (g > l1) & ~soft
        tau = min(1.0, float(np.min(l1[hard] / g[hard], initial=1.0)))
        excess = np.maximum(tau * g - l1, 0.0)[soft]
        objective = risk + float(l1 @ np.abs(w) + l2 @ w**2 / 2)
        dual = 2 * tau * (self.rho - linear / 2) - tau**2 * risk - float(np.sum(excess**2 / (2 * l2[soft])))
        return objective, dual


def shift_of(design: Design, X: FloatArray, y: FloatArray, s: FloatArray) -> Shift:
    """Means on the first block of rows for a single intercept, means of the features if cells have their own."""
    free = np.flatnonzero(design.free)
    shape = (len(free), len(design.pairs))
    if len(free) == 0:
        return Shift(sp.csr_array(shape), 0.0)
    rows, A = next(design.blocks(X))
    q = s[rows] / s[rows].sum()
    k = np.flatnonzero(~design.free)
    if design.adaptivity.cells:
        cell = np.full(design.n_basis, -1)
        cell[design.pairs[free, 1]] = np.arange(len(free))
        owner = cell[design.pairs[k, 1]]
        values = (design.mean / design.scale)[design.pairs[k, 0] - 1]
    else:
        owner = np.zeros(len(k), dtype=int)
        values = np.zeros(len(k)) if sp.issparse(A) else (q @ A)[k] / (q @ A)[free[0]]
    middle = float(y[0]) if np.ptp(y) == 0 else float(q @ y[rows])  # exactly 0 is left of a constant y
    return Shift(sp.csr_array((values, (owner, k)), shape=shape), middle)


def moments_of(design: Design, X: FloatArray, y: FloatArray, s: FloatArray, shift: Shift) -> Moments:
    """The moments of the rows, block by block."""
    p = len(design.pairs)
    G: FloatArray | None = None
    c, r, a = np.zeros(p), 0.0, np.zeros(p)
    for rows, A in design.blocks(X):
        t = y[rows] - shift.y
        root = np.sqrt(s[rows])
        if sp.issparse(A):
            A = sp.diags_array(root) @ (A - A[:, design.free] @ shift.C)
            square = (A.T @ A).toarray()
        else:
            A -= A[:, design.free] @ shift.C.toarray()
            A *= root[:, None]
            square = A.T @ A
        if G is None:
            G = square
        else:
            G += square
        c += A.T @ (root * t)
        a += A.T @ root
        r += float(s[rows] @ t**2)
    assert G is not None
    return Moments(float(s.sum()), G, c, r, a)


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


def _pseudo_inverse(G: FloatArray) -> FloatArray:
    diagonal = np.diag(G)
    if np.count_nonzero(G) <= np.count_nonzero(diagonal):  # one intercept, or cells
        return np.diag(np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0))
    return np.asarray(np.linalg.pinv(G, hermitian=True))


def held_out_error(
    design: Design, quadratic: Quadratic, X: FloatArray, y: FloatArray, s: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    """The summed squared error on held-out rows as a function of rows of penalised coefficients."""
    f, k = np.flatnonzero(design.free), np.flatnonzero(~design.free)
    if len(X) > len(design.pairs):
        moments = moments_of(design, X, y, s, quadratic.shift)

        def by_moments(W: FloatArray) -> FloatArray:
            used = np.flatnonzero(W.any(axis=0))
            columns = np.concatenate([k[used], f])
            full = np.hstack([W[:, used], quadratic.shifted_free_coefficients(W[:, used], used)])
            order = np.argsort(columns)
            return moments.selected(columns[order]).squared_errors(full[:, order])

        return by_moments

    A = design.whole(X)
    A = sp.csc_array(A) if sp.issparse(A) else np.asfortranarray(A)

    def by_rows(W: FloatArray) -> FloatArray:
        used = np.flatnonzero(W.any(axis=0))
        full = np.hstack([W[:, used], quadratic.free_coefficients(W[:, used], used)])
        residuals = y[:, None] - A[:, np.concatenate([k[used], f])] @ full.T
        return np.asarray(s @ residuals**2)

    return by_rows
