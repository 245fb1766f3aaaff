"""Rows in memory for the squared loss: the columns of a design, shifted, weighted, and block by block.

    b_i = sqrt(s_i) (a_i - shift),    t_i = sqrt(s_i) (y_i - mu_y),         risk = (1/S) sum_i (t_i - b_i'v)^2

with the shift of :mod:`admiss.linear.squared`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from admiss.adaptivity import Adaptivity
from admiss.linear.design import Design, fit_design
from admiss.linear.squared import Moments, Quadratic, Shift, error_by_moments
from formulations.arrays import FloatArray, IntArray, Matrix
from formulations.erm.dual_bound import Rows
from formulations.erm.rounding import gamma
from formulations.losses import Squared

# Rows whose means are the shift: it need not be precise, only near the data.
SHIFT_ROWS = 256


def shift_of(design: Design, X: FloatArray, y: FloatArray, s: FloatArray) -> Shift:
    """Means on the first rows for a single intercept, means of the features if cells have their own."""
    free = np.flatnonzero(design.free)
    shape = (len(free), len(design.pairs))
    if len(free) == 0:
        return Shift(sp.csr_array(shape), 0.0)
    rows = slice(0, SHIFT_ROWS)
    A = design.whole(X[rows])
    q = s[rows] / s[rows].sum()
    k = np.flatnonzero(~design.free)
    if design.adaptivity.cells:
        cell = np.full(design.n_basis, -1)
        cell[design.pairs[free, 1]] = np.arange(len(free))
        owner = cell[design.pairs[k, 1]]
        values = ((design.mean - design.centre) / design.scale)[design.pairs[k, 0] - 1]
    else:
        owner = np.zeros(len(k), dtype=int)
        values = np.zeros(len(k)) if sp.issparse(A) else (q @ A)[k] / (q @ A)[free[0]]
    middle = float(y[0]) if np.ptp(y) == 0 else float(q @ y[rows])  # exactly 0 is left of a constant y
    return Shift(sp.csr_array((values, (owner, k)), shape=shape), middle)


@dataclass
class WeightedRows:
    """The rows b_i, block by block, and the targets t_i."""

    design: Design
    X: FloatArray
    y: FloatArray
    s: FloatArray
    shift: Shift

    def __post_init__(self) -> None:
        self.root = np.sqrt(self.s)
        self.t = self.root * (self.y - self.shift.y)
        # whether the free columns, if there are any, are 1 on disjoint sets of the rows that were seen, and cover them
        self.is_exact = True

    def __iter__(self) -> Iterator[tuple[slice, Matrix]]:
        for rows, A in self.design.blocks(self.X):
            root = self.root[rows]
            if sp.issparse(A):
                A = sp.diags_array(root) @ (A - A[:, self.design.free] @ self.shift.C)
            else:
                A -= A[:, self.design.free] @ self.shift.C.toarray()
                A *= root[:, None]
            self.is_exact &= self._has_unit_constants(A[:, self.design.free], root)
            yield rows, A

    def restore(self, v: FloatArray) -> FloatArray:
        """The coefficients w of the columns as they are."""
        w = v.copy()
        w[self.design.free] += self.shift.y - self.shift.C @ v
        return w

    def shifted(self, w: FloatArray) -> FloatArray:
        """The coefficients v of the shifted columns, each rounded once."""
        return self.shift.applied(w, self.design.free)

    def for_proof(
        self, squares: FloatArray | None = None, triangle: FloatArray | None = None
    ) -> "tuple[Rows, WeightedRows]":
        """The rows as a dual bound needs them, and with the shift that they have.

        A shift by free columns that are not 1 on disjoint sets of rows is not accurate in every entry, and left out.
        After a pass over the rows, the sums of squares of the columns or a triangular factor of them may be given.
        """
        own = self
        if squares is None:
            squares = self._squares()
        if not self.is_exact:
            triangle = None
            own = WeightedRows(self.design, self.X, self.y, self.s, Shift(sp.csr_array(self.shift.C.shape), 0.0))
            squares = own._squares()
        S = float(self.s.sum())
        rows = Rows(
            blocks=own,
            y=own.t,
            q=np.broadcast_to(1.0 / S, len(own.t)),
            loss=Squared(),
            sizes=np.sqrt(squares / S),
            stated=_Columns(self.design, self.X),
            constants=np.flatnonzero(self.design.free) if own is self else None,
            triangle=triangle,
        )
        return rows, own

    def _squares(self) -> FloatArray:
        squares = np.zeros(len(self.design.pairs))
        for _, A in self:
            squares += np.asarray((A.multiply(A) if sp.issparse(A) else A**2).sum(axis=0)).ravel()
        return squares

    @staticmethod
    def _has_unit_constants(constants: Matrix, root: FloatArray) -> bool:
        if not constants.shape[1]:
            return True
        total, count = (np.asarray(part.sum(axis=1)).ravel() for part in (constants, constants != 0))
        return bool(np.all(count == 1) and np.array_equal(total, root))


@dataclass(frozen=True)
class _Columns:
    """The columns of the design, block by block, again and again."""

    design: Design
    X: FloatArray

    def __iter__(self) -> Iterator[tuple[slice, Matrix]]:
        return self.design.blocks(self.X)


def moments_of(rows: WeightedRows) -> Moments:
    """The moments of the rows, block by block."""
    p = len(rows.design.pairs)
    G: FloatArray | None = None
    c, a = np.zeros(p), np.zeros(p)
    for part, A in rows:
        square = (A.T @ A).toarray() if sp.issparse(A) else A.T @ A
        if G is None:
            G = square
        else:
            G += square
        c += A.T @ rows.t[part]
        a += A.T @ rows.root[part]
    assert G is not None
    r = float(rows.t @ rows.t)
    accuracy = gamma(len(rows.t) + 100)  # sums over the rows, in blocks, of entries with a few roundings each
    sizes = np.sqrt(np.append(np.diag(G), r)) * (1.0 + accuracy)
    return Moments(float(rows.s.sum()), G, c, r, a, sizes, accuracy)


@dataclass(frozen=True)
class RowColumns:
    """The columns of a design and y / unit, shifted."""

    design: Design
    unit: float
    shift: Shift


@dataclass(frozen=True)
class TrainingRows:
    """Rows in memory, of positive weight: what a fit of the squared loss takes from its rows.

    :class:`admiss.linear.training_sums.TrainingSums` is the same for rows of which only sums are known.
    """

    X: FloatArray
    y: FloatArray
    s: FloatArray

    def part(self, rows: IntArray) -> "TrainingRows":
        """Some of the rows."""
        return TrainingRows(self.X[rows], self.y[rows], self.s[rows])

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @property
    def weight(self) -> float:
        return float(self.s.sum())

    @property
    def target_range(self) -> tuple[float, float]:
        return float(self.y.min()), float(self.y.max())

    @property
    def features_and_weights(self) -> tuple[FloatArray, FloatArray]:
        return self.X, self.s

    def design(self, adaptivity: Adaptivity, *, center: bool, scale: bool, fit_intercept: bool) -> Design:
        return fit_design(self.X, self.s, adaptivity, center=center, scale=scale, fit_intercept=fit_intercept)

    def columns(self, design: Design, unit: float) -> RowColumns:
        return RowColumns(design, unit, shift_of(design, self.X, self.y / unit, self.s))

    def moments(self, columns: RowColumns) -> Moments:
        return moments_of(WeightedRows(columns.design, self.X, self.y / columns.unit, self.s, columns.shift))

    def squared_error(self, columns: RowColumns, quadratic: Quadratic) -> Callable[[FloatArray], FloatArray]:
        design, y = columns.design, self.y / columns.unit
        if len(self.X) > len(design.pairs):
            return error_by_moments(self.moments(columns), quadratic)
        f, k = np.flatnonzero(design.free), np.flatnonzero(~design.free)
        A = design.whole(self.X)
        A = sp.csc_array(A) if sp.issparse(A) else np.asfortranarray(A)

        def by_rows(W: FloatArray) -> FloatArray:
            used = np.flatnonzero(W.any(axis=0))
            full = np.hstack([W[:, used], quadratic.free_coefficients(W[:, used], used)])
            residuals = y[:, None] - A[:, np.concatenate([k[used], f])] @ full.T
            return np.asarray(self.s @ residuals**2)

        return by_rows
