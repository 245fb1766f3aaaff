"""Projections off columns, with proven bounds on what rounding leaves.

A dual point must be orthogonal to the columns F without penalty. In floating point, theta has A_F'theta = eps != 0; the
exactly orthogonal point next to it is theta - Delta, Delta = Q A_F (A_F'Q A_F)^-1 eps, and its distance is

    delta^2 = sum_i Delta_i^2 / q_i = eps' (A_F'Q A_F)^-1 eps.

With any matrix X (here the inverse of a triangular factor of the columns) and  |X'A_F'Q A_F X - I| <= defect < 1,

    delta <= |X'eps| / sqrt(1 - defect),      |Delta_i| / q_i <= sum_k |A_ik| |X_k.| delta / sqrt(1 - defect).

Both hold for exact arithmetic: a sum of n products has an error of at most gamma(n) = n u / (1 - n u) times the sum of
absolute values, u = 2^-53, whatever the order of summation (Higham, Accuracy and Stability of Numerical Algorithms,
2002, Section 3.1).

Columns that are sums of others, exactly and with coefficients that are powers of two (duplicates, or indicators that
add up to a constant), do not change the space, and are left out. If columns are dependent only up to rounding, nothing
is proven.
"""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from formulations.arrays import FloatArray, IntArray, Matrix

UNIT = 2.0**-53
# Columns, in units of their size, whose distance to the others is below this are dependent up to rounding.
DEPENDENT = 1e-13
# Columns beyond which no factor is computed.
MAX_COLUMNS = 2000
# Distance to a power of two, or to 0, up to which a coefficient of a dependency is rounded to it.
NEARLY = 1e-6

# Slices of rows with their columns; it can be iterated over again.
Blocks = Iterable[tuple[slice, Matrix]]


def gamma(m: float) -> float:
    """Relative error of m successive roundings."""
    return m * UNIT / (1.0 - m * UNIT)


def exact_sum(values: FloatArray, a: FloatArray, b: FloatArray) -> float:
    """sum(values) + a'b, rounded once: products are split into their leading part and its error (Dekker 1971)."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _split(a), _split(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return math.fsum([*values.tolist(), *product.tolist(), *error.tolist()])


def exact_products(A: Matrix, theta: FloatArray) -> FloatArray:
    """A'theta, each entry rounded once."""
    columns = sp.csc_array(A)
    parts = (slice(start, end) for start, end in itertools.pairwise(columns.indptr))
    return np.array([exact_sum(theta[:0], columns.data[part], theta[columns.indices[part]]) for part in parts])


def exact_residuals(A: Matrix, y: FloatArray, w: FloatArray) -> FloatArray:
    """y - A w, each entry rounded once."""
    rows = sp.csr_array(A)
    parts = (slice(start, end) for start, end in itertools.pairwise(rows.indptr))
    return np.array([exact_sum(y[i : i + 1], -rows.data[p], w[rows.indices[p]]) for i, p in enumerate(parts)])


def _split(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Two numbers of 26 bits each that add up to x."""
    shifted = 134217729.0 * x
    high = shifted - (shifted - x)
    return high, x - high


@dataclass(frozen=True)
class Factor:
    """X and the defect of the module for some columns.

    Attributes
    ----------
    columns : int array of shape (f,)
        Independent columns that span the space of F.
    X : array of shape (f, f), or of shape (f,) for a diagonal
    defect : float
    """

    columns: IntArray
    X: FloatArray
    defect: float

    def distance(self, eps: FloatArray, error: FloatArray) -> float:
        """An upper bound on delta, for the eps of ``columns`` up to errors of at most ``error``."""
        X = self.X if self.X.ndim == 2 else np.diag(self.X)
        rounding = gamma(len(eps) + 10)
        size = np.linalg.norm(X.T @ eps) + np.linalg.norm(np.abs(X).T @ (error + rounding * np.abs(eps)))
        return float(size) / np.sqrt(1.0 - self.defect) * (1.0 + 4.0 * rounding)

    def change(self, delta: float) -> FloatArray:
        """Upper bounds c_k with |Delta_i| / q_i <= sum_k |A_ik| c_k."""
        sizes = np.linalg.norm(self.X, axis=1) if self.X.ndim == 2 else self.X
        return np.asarray(sizes * (delta / np.sqrt(1.0 - self.defect) * (1.0 + gamma(4 * len(sizes) + 10))))

    def coefficients(self, eps: FloatArray) -> FloatArray:
        """(A_F'Q A_F)^-1 eps up to rounding."""
        return np.asarray(self.X @ (self.X.T @ eps) if self.X.ndim == 2 else self.X**2 * eps)


def factor_of(
    blocks: Blocks,
    q: FloatArray,
    columns: IntArray,
    sizes: FloatArray,
    stated: Blocks | None = None,
    constants: IntArray | None = None,
    triangle: FloatArray | None = None,
) -> Factor | None:
    """The factor of some columns, or None if they are dependent up to rounding.

    Parameters
    ----------
    blocks : iterable of (slice, matrix)
        All columns, block by block.
    q : array of shape (n,)
        Weights of the rows.
    columns : int array of shape (f,)
        The columns F.
    sizes : array of shape (p,)
        sqrt(sum_i q_i A_ik^2), up to rounding.
    stated : iterable of (slice, matrix), optional
        The columns without rounding errors, of which multiples of ``constants`` may have been subtracted in ``blocks``,
        to look for dependencies; by default ``blocks``.
    constants : int array, optional
        Those of the columns F that are 1 on disjoint sets of rows and 0 elsewhere, if any.
    triangle : array of shape (m, p), optional
        A triangular factor of all weighted columns, up to rounding, if it is known.
    """
    columns = columns[sizes[columns] > 0]
    size = sizes[columns]
    if len(columns) <= 1 or _are_disjoint(blocks, columns):
        return Factor(columns, 1.0 / size, gamma(2 * len(q) + 20))
    if len(columns) > MAX_COLUMNS:
        return None
    R = _triangle(blocks, q, columns, size) if triangle is None else triangle[:, columns] / size
    R, order = scipy.linalg.qr(R, mode="r", pivoting=True)
    rank = int(np.sum(np.abs(np.diag(R)) > DEPENDENT))
    kept = order[:rank]
    if rank < len(columns):
        C = scipy.linalg.solve_triangular(R[:rank, :rank], R[:rank, rank:]) * (size[order[rank:]] / size[kept][:, None])
        ones = np.zeros(0, dtype=np.int64) if constants is None else constants
        if not _is_exact(blocks if stated is None else stated, ones, columns[kept], columns[order[rank:]], C):
            return None
    X = scipy.linalg.solve_triangular(R[:rank, :rank], np.eye(rank)) / size[kept][:, None]
    found = Factor(columns[kept], X, _defect(blocks, q, columns[kept], X, size[kept]))
    return found if found.defect < 0.5 else None


def _are_disjoint(blocks: Blocks, columns: IntArray) -> bool:
    """Whether no row is in two columns."""
    return all(int(np.max((A[:, columns] != 0).sum(axis=1), initial=0)) <= 1 for _, A in blocks)


def _triangle(blocks: Blocks, q: FloatArray, columns: IntArray, size: FloatArray) -> FloatArray:
    """The triangular factor of the weighted columns, in units of their size."""
    R = np.zeros((0, len(columns)))
    for rows, A in blocks:
        part = np.sqrt(q[rows])[:, None] * (_dense(A[:, columns]) / size)
        R = np.asarray(np.linalg.qr(np.vstack([R, part]), mode="r"))
    return R


def _defect(blocks: Blocks, q: FloatArray, columns: IntArray, X: FloatArray, size: FloatArray) -> float:
    """An upper bound on |X'A'Q A X - I|, rounding included."""
    f = len(columns)
    G = np.zeros((f, f))
    for rows, A in blocks:
        B = _dense(A[:, columns]) @ X
        B *= np.sqrt(q[rows])[:, None]
        G += B.T @ B
    products = (1.0 + gamma(10 * f)) * gamma(f + 20) * float(np.linalg.norm(size @ np.abs(X)))
    sums = gamma(len(q) + 20) * float(np.trace(G))
    own = float(np.linalg.norm(G - np.eye(f)))
    return (own + sums + products * (2.0 * np.sqrt(np.trace(G)) + products)) * (1.0 + gamma(f * f + 20))


def _is_exact(stated: Blocks, constants: IntArray, kept: IntArray, left_out: IntArray, C: FloatArray) -> bool:
    """Whether the columns left out are combinations of those kept, exactly, with powers of two as coefficients.

    Sums are formed with their rounding errors, which must all be 0; what is left must be a multiple of the constants.
    """
    size = np.abs(C)
    power = np.exp2(np.round(np.log2(np.maximum(size, 2.0**-60))))
    rounded = np.where(size <= NEARLY, 0.0, np.copysign(power, C))
    others = ~np.isin(kept, constants)
    if np.isin(left_out, constants).any() or np.any(np.abs(rounded - C)[others] > NEARLY * np.maximum(size[others], 1)):
        return False
    level = np.full((len(constants) + 1, len(left_out)), np.nan)  # the multiples of the constants, once they are seen
    level[-1] = 0.0
    for _, A in stated:
        target, columns, ones = _dense(A[:, left_out]), _dense(A[:, kept]), _dense(A[:, constants]) != 0
        cell = np.where(ones.any(axis=1), ones.argmax(axis=1), len(constants)) if len(constants) else None
        for j, coefficients in enumerate(rounded.T):
            left = target[:, j].copy()
            for k in np.flatnonzero(coefficients * others):
                term = -coefficients[k] * columns[:, k]
                total = left + term
                back = total - left
                if np.any((left - (total - back)) + (term - back) != 0.0):
                    return False
                left = total
            cells = np.zeros(len(left), dtype=np.int64) if cell is None else cell
            for c in np.unique(cells):
                values = left[cells == c]
                level[c, j] = values[0] if np.isnan(level[c, j]) else level[c, j]
                if np.any(values != level[c, j]):
                    return False
    return True


def _dense(A: Matrix) -> FloatArray:
    return A.toarray() if sp.issparse(A) else A
