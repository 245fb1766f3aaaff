"""The rows of an empirical risk, and the dual point that meets equations exactly next to one that nearly does.

*Equations.* With weights m_i >= 0 of the rows and columns A_J, the point closest to theta with A_J'theta' = v is

    theta' = theta - Delta,     Delta = M A_J c,     (A_J'M A_J) c = eps = A_J'theta - v.

Delta is never computed, only bounded. With any matrix X, here the inverse of a triangular factor of the weighted
columns, and  |X'A_J'M A_J X - I| <= defect < 1,

    delta^2 = sum_i Delta_i^2 / m_i = eps'(A_J'M A_J)^-1 eps  <=  |X'eps|^2 / (1 - defect),
    |Delta_i| / m_i = |A_iJ c|  <=  sum_k |A_ik| |X_k.| delta / sqrt(1 - defect).

*Dependent columns.* Columns that are sums of others, exactly and with coefficients that are powers of two (duplicates,
or indicators that add up to a constant), meet their equation if the others do, and are left out. If columns are
dependent only up to rounding, nothing is proven.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from formulations.arrays import BoolArray, FloatArray, IntArray, Matrix
from formulations.erm.risk import CentredRisk, EmpiricalRisk
from formulations.losses import Loss
from formulations.rounding import gamma

# Columns, in units of their size, whose distance to the others is below this, 450 eps, are dependent up to rounding.
DEPENDENT = 1e-13
# Distance to a power of two, or to 0, up to which a coefficient of a dependency is rounded to it.
NEARLY = 1e-6
# Columns beyond which no factor is computed: one of 2,000 columns takes a second.
MAX_COLUMNS = 2000

# Slices of rows with their columns; it can be iterated over again.
Blocks = Iterable[tuple[slice, Matrix]]


@dataclass(frozen=True)
class Factor:
    """X and the defect of the module for the columns J.

    Attributes
    ----------
    columns : int array of shape (f,)
        Independent columns that span those of J.
    X : array of shape (f, f), or of shape (f,) for a diagonal
    defect : float
    others : int array of shape (J - f,)
        The columns of J that are left out.
    combination : array of shape (f, J - f)
        Their coefficients.
    """

    columns: IntArray
    X: FloatArray
    defect: float
    others: IntArray
    combination: FloatArray

    def distances(self, eps: FloatArray, error: FloatArray, blocks: Blocks) -> tuple[float, FloatArray]:
        """Upper bounds on delta and on |Delta_i| / m_i in the rows of some blocks."""
        delta = self.distance(eps, error)
        return delta, np.concatenate([np.zeros(0), *(self.row_distances(A, delta) for _, A in blocks)])

    def distance(self, eps: FloatArray, error: FloatArray) -> float:
        """An upper bound on delta, for the eps of ``columns`` up to errors of at most ``error``."""
        X = self.X if self.X.ndim == 2 else np.diag(self.X)
        rounding = gamma(len(eps) + 10)
        size = np.linalg.norm(X.T @ eps) + np.linalg.norm(np.abs(X).T @ (error + rounding * np.abs(eps)))
        return float(size) / np.sqrt(1.0 - self.defect) * (1.0 + 4.0 * rounding)

    def row_distances(self, A: Matrix, delta: float) -> FloatArray:
        """Upper bounds on |Delta_i| / m_i for rows A of all columns."""
        part = A[:, self.columns]
        if self.X.ndim == 1:
            size = np.abs(part) @ self.X
        else:
            rounding = gamma(len(self.X) + 10) * (np.abs(part) @ np.linalg.norm(self.X, axis=1))
            size = np.linalg.norm(part @ self.X, axis=1) + rounding
        return np.asarray(size * (delta / np.sqrt(1.0 - self.defect) * (1.0 + gamma(4 * len(self.X) + 20))))

    def coefficients(self, eps: FloatArray) -> FloatArray:
        """c up to rounding."""
        return np.asarray(self.X @ (self.X.T @ eps) if self.X.ndim == 2 else self.X**2 * eps)


@dataclass(frozen=True)
class Rows:
    """The rows of a risk, with columns that may have been shifted by multiples of free ones.

    Attributes
    ----------
    blocks : iterable of (slice, matrix)
        The columns, block by block; every entry has a relative error of a few roundings.
    y, q : arrays of shape (n,)
        Target (shifted by multiples of free columns, to a few roundings) and share of each row.
    loss : Loss
    sizes : array of shape (p,)
        sqrt(sum_i q_i A_ik^2), up to the rounding of a sum.
    offset : float
    stated : iterable of (slice, matrix), optional
        The columns before the shift.
    constants : int array, optional
        The columns of which multiples were subtracted: 1 on disjoint sets of rows, else 0.
    triangle : array of shape (m, p), optional
        A triangular factor of the columns weighted by sqrt(q), up to rounding.
    """

    blocks: Blocks
    y: FloatArray
    q: FloatArray
    loss: Loss
    sizes: FloatArray
    offset: float = 0.0
    stated: Blocks | None = None
    constants: IntArray | None = None
    triangle: FloatArray | None = None

    @classmethod
    def of(cls, risk: EmpiricalRisk) -> "Rows":
        """The rows of a risk in one block."""
        sizes = np.sqrt(risk.column_squares())
        blocks = [(slice(0, len(risk.y)), risk.A)]
        return cls(blocks, risk.y, risk.q, risk.loss, sizes, risk.offset)

    @classmethod
    def centred(cls, risk: EmpiricalRisk, projected: CentredRisk) -> "Rows | None":
        """The rows with the free columns projected out, if that is accurate in every entry, else None.

        It is if the free columns are 1 on disjoint sets of rows: then all that is rounded is one difference.
        """
        free = np.flatnonzero(projected.free)
        A = risk.A[:, free]
        values = A.data if sp.issparse(A) else A
        if not np.all((values == 0.0) | (values == 1.0)) or np.max(A.sum(axis=1), initial=0.0) > 1.0:
            return None
        stated = [(slice(0, len(risk.y)), risk.A)]
        return replace(cls.of(projected.risk), stated=stated, constants=free)

    @property
    def rounding(self) -> float:
        """Relative error of sums over rows and columns."""
        return gamma(len(self.y) + len(self.sizes) + 40)

    def dual_norm(self, theta: FloatArray) -> float:
        """sqrt(sum_i theta_i^2 / q_i)."""
        return float(np.linalg.norm(theta / np.sqrt(self.q)))

    def product_error(self, theta: FloatArray) -> FloatArray:
        """Largest errors of A'theta as computed."""
        return np.asarray(2.0 * self.rounding * self.dual_norm(theta) * self.sizes)

    def sizes_of(self, m: FloatArray) -> FloatArray:
        """sqrt(sum_i m_i A_ik^2), up to the rounding of a sum."""
        return np.sqrt(sum(_squares(A, m[part]) for part, A in self.blocks))

    def factor(self, columns: IntArray, m: FloatArray) -> Factor | None:
        """The factor of some columns for rows of weights m, or None if they are dependent up to rounding.

        A column that is 0 in all rows with m_i > 0 is left out.
        """
        plain = m is self.q
        size = (
            self.sizes[columns] if plain else np.sqrt(sum(_squares(A[:, columns], m[part]) for part, A in self.blocks))
        )
        columns, size = columns[size > 0], size[size > 0]
        if len(columns) <= 1 or self._are_disjoint(columns):
            nothing = np.zeros(0, dtype=np.int64), np.zeros((len(columns), 0))
            return Factor(columns, 1.0 / size, gamma(2 * len(m) + 20), *nothing)
        if len(columns) > MAX_COLUMNS:
            return None
        R = self._triangle(columns, m, size) if self.triangle is None or not plain else self.triangle[:, columns] / size
        R, order = scipy.linalg.qr(R, mode="r", pivoting=True)
        rank = int(np.sum(np.abs(np.diag(R)) > DEPENDENT))
        kept, others, unit = columns[order[:rank]], columns[order[rank:]], size[order[:rank]][:, None]
        C = np.zeros((rank, len(others)))
        if len(others):
            C = scipy.linalg.solve_triangular(R[:rank, :rank], R[:rank, rank:]) * (size[order[rank:]] / unit)
            if not self._is_exact(kept, others, C, m > 0):
                return None
        X = scipy.linalg.solve_triangular(R[:rank, :rank], np.eye(rank)) / unit
        defect = self._defect(kept, m, X, unit[:, 0])
        return Factor(kept, X, defect, others, C) if defect < 0.5 else None

    def _are_disjoint(self, columns: IntArray) -> bool:
        """Whether no row is in two columns."""
        return all(int(np.max((A[:, columns] != 0).sum(axis=1), initial=0)) <= 1 for _, A in self.blocks)

    def _triangle(self, columns: IntArray, m: FloatArray, size: FloatArray) -> FloatArray:
        """The triangular factor of the weighted columns, in units of their size."""
        R = np.zeros((0, len(columns)))
        for rows, A in self.blocks:
            part = np.sqrt(m[rows])[:, None] * (_dense(A[:, columns]) / size)
            R = np.asarray(np.linalg.qr(np.vstack([R, part]), mode="r"))
        return R

    def _defect(self, columns: IntArray, m: FloatArray, X: FloatArray, size: FloatArray) -> float:
        """An upper bound on |X'A'M A X - I|, rounding included."""
        f = len(columns)
        G = np.zeros((f, f))
        for rows, A in self.blocks:
            B = _dense(A[:, columns]) @ X
            B *= np.sqrt(m[rows])[:, None]
            G += B.T @ B
        products = (1.0 + gamma(10 * f)) * gamma(f + 20) * float(np.linalg.norm(size @ np.abs(X)))
        sums = gamma(len(m) + 20) * float(np.trace(G))
        own = float(np.linalg.norm(G - np.eye(f)))
        return (own + sums + products * (2.0 * np.sqrt(np.trace(G)) + products)) * (1.0 + gamma(f * f + 20))

    def _is_exact(self, kept: IntArray, others: IntArray, C: FloatArray, used: BoolArray) -> bool:
        """Whether the others are combinations of the columns kept, exactly, in the rows used, up to the constants.

        Coefficients in C of columns that are not constants are rounded to powers of two. Sums are formed with their
        rounding errors, which must all be 0; what is left must be a multiple of each constant.
        """
        constants = np.zeros(0, dtype=np.int64) if self.constants is None else self.constants
        if np.isin(others, constants).any():
            return False
        power = np.exp2(np.round(np.log2(np.maximum(np.abs(C), NEARLY))))
        rounded = np.where(np.abs(C) <= NEARLY, 0.0, np.copysign(power, C))
        plain = ~np.isin(kept, constants)
        if np.any(np.abs(rounded - C)[plain] > NEARLY * np.maximum(np.abs(C), 1.0)[plain]):
            return False
        C[plain] = rounded[plain]
        low, high = np.full((2, len(constants) + 1, len(others)), [[[np.inf]], [[-np.inf]]])
        for part, A in self.blocks if self.stated is None else self.stated:
            A = A[used[part]]
            left = _dense(A[:, others]).copy()
            for k in np.flatnonzero(plain):
                term = -_dense(A[:, kept[[k]]]) * C[k]
                total = left + term
                back = total - left
                if np.any((left - (total - back)) + (term - back) != 0.0):
                    return False
                left = total
            ones = _dense(A[:, constants]) != 0
            cell = np.where(ones.any(axis=1), ones.argmax(axis=1) if len(constants) else 0, len(constants))
            np.minimum.at(low, cell, left)
            np.maximum.at(high, cell, left)
        low[-1], high[-1] = np.minimum(low[-1], 0.0), np.maximum(high[-1], 0.0)
        return bool(np.all((low == high) | (low > high)))


def _squares(A: Matrix, m: FloatArray) -> FloatArray:
    return np.asarray((A.multiply(A) if sp.issparse(A) else A**2).T @ m)


def _dense(A: Matrix) -> FloatArray:
    return A.toarray() if sp.issparse(A) else A
