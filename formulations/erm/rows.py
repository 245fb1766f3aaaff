"""The rows of an empirical risk, block by block, as a proof of a bound needs them."""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from formulations.arrays import FloatArray, IntArray, Matrix
from formulations.erm.risk import CentredRisk, EmpiricalRisk
from formulations.erm.rounding import Blocks, exact_products, exact_sum, gamma
from formulations.losses import Loss


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
        A triangular factor of the weighted columns, up to rounding.
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
        """The rows of a risk as they are."""
        sizes = np.sqrt(risk.column_squares())
        return cls([(slice(0, len(risk.y)), risk.A)], risk.y, risk.q, risk.loss, sizes, risk.offset)

    @classmethod
    def centred(cls, risk: EmpiricalRisk, projected: CentredRisk) -> "Rows | None":
        """The rows with the free columns projected out, if that is accurate in every entry, else None.

        It is if the free columns are 1 on disjoint sets of rows: then all that is rounded is one difference.
        """
        free = np.flatnonzero(projected.free)
        A = risk.A[:, free]
        values = A.data if sp.issparse(A) else A[A != 0]
        if not (np.all(values == 1.0) and int(np.max((A != 0).sum(axis=1), initial=0)) <= 1):
            return None
        return replace(cls.of(projected.risk), stated=[(slice(0, len(risk.y)), risk.A)], constants=free)

    def predictions(self, w: FloatArray, columns: IntArray | None = None) -> FloatArray:
        """A w, or the part of some columns."""
        z = np.zeros(len(self.y))
        for rows, A in self.blocks:
            z[rows] = A @ w if columns is None else A[:, columns] @ w[columns]
        return z

    def correlations(self, theta: FloatArray, columns: IntArray | None = None) -> FloatArray:
        """A'theta, or the part of some columns."""
        parts = ((A if columns is None else A[:, columns]).T @ theta[rows] for rows, A in self.blocks)
        return np.asarray(sum(parts))

    def exact_correlations(self, theta: FloatArray) -> FloatArray:
        """A'theta, with one rounding per block."""
        return np.asarray(sum(exact_products(A, theta[rows]) for rows, A in self.blocks))

    def exact_predictions(self, w: FloatArray, columns: IntArray) -> FloatArray:
        """The part of some columns in A w, rounded once."""
        return np.concatenate([exact_products(A[:, columns].T, w[columns]) for _, A in self.blocks])

    def selected(self, kept: IntArray) -> "Rows":
        """Some of the rows, in the same order."""
        blocks = _selected(self.blocks, kept)
        squares = sum(_column_squares(A, self.q[kept][part]) for part, A in blocks)
        stated = None if self.stated is None else _selected(self.stated, kept)
        sizes = np.sqrt(np.asarray(squares))
        parts = {"y": self.y[kept], "q": self.q[kept], "sizes": sizes, "stated": stated, "triangle": None}
        return replace(self, blocks=blocks, **parts)

    def drift(self, C: Matrix, w0: FloatArray, v: FloatArray, w: FloatArray) -> float:
        """Root mean square between the predictions of v and those of w, with w_f = v_f + w0 - C v up to rounding."""
        assert self.constants is not None
        moved = np.zeros(len(self.constants))
        for i, f in enumerate(self.constants):
            row = C[[i]].toarray()[0] if sp.issparse(C) else C[i]
            k = np.flatnonzero(row)
            moved[i] = abs(exact_sum(np.array([v[f], w0[i], -w[f]]), -row[k], v[k]))
        return float(self.sizes[self.constants] @ moved) * (1.0 + 2.0 * self.rounding)

    @property
    def weight(self) -> float:
        """sum_i q_i, rounded up."""
        return float(self.q.sum()) * (1.0 + self.rounding)

    @property
    def rounding(self) -> float:
        """Relative error of sums over rows and columns."""
        return gamma(len(self.y) + len(self.sizes) + 40)


def _selected(blocks: Blocks, kept: IntArray) -> Blocks:
    found, start = [], 0
    for part, A in blocks:
        own = kept[(kept >= part.start) & (kept < part.stop)] - part.start
        found.append((slice(start, start + len(own)), A[own]))
        start += len(own)
    return found


def _column_squares(A: Matrix, q: FloatArray) -> FloatArray:
    return np.asarray((A.multiply(A) if sp.issparse(A) else A**2).T @ q)
