"""Rows of a design for the squared loss: shifted, weighted, and block by block.

    b_i = sqrt(s_i) (a_i - shift),    t_i = sqrt(s_i) (y_i - mu_y),         risk = (1/S) sum_i (t_i - b_i'v)^2

The columns are shifted by multiples of a free column, a_k - mu_k a_f(k), and y by mu_y, which the free coefficients
compensate: v_f = w_f + sum_k C_fk w_k - mu_y. This keeps sums and differences accurate wherever the data lie.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from admiss.linear.design import Design
from formulations.arrays import BoolArray, FloatArray, IntArray, Matrix
from formulations.erm.dual_bound import Rows
from formulations.erm.rounding import exact_sum
from formulations.losses import Squared

# Entries up to which blocks are kept for another pass, if that is asked for.
KEPT_ENTRIES = 2**21
# Rows whose means are the shift: it need not be precise, only near the data.
SHIFT_ROWS = 256


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


def shift_of(design: Design, X: FloatArray, y: FloatArray, s: FloatArray) -> Shift:
    """Means on the first rows for a single intercept, means of the features if cells have their own."""
    free = np.flatnonzero(design.free)
    shape = (len(free), len(design.pairs))
    if len(free) == 0:
        return Shift(sp.csr_array(shape), 0.0)
    rows = slice(0, SHIFT_ROWS)
    A = design.matrix(X[rows])
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
    """The rows b_i, block by block, and the targets t_i; few blocks are kept if ``keep``."""

    design: Design
    X: FloatArray
    y: FloatArray
    s: FloatArray
    shift: Shift
    keep: bool = False
    _kept: list[tuple[slice, Matrix]] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self.root = np.sqrt(self.s)
        self.t = self.root * (self.y - self.shift.y)
        # whether the free columns, if there are any, are 1 on disjoint sets of the rows that were seen, and cover them
        self.is_exact = True

    def __iter__(self) -> Iterator[tuple[slice, Matrix]]:
        if self._kept:
            yield from self._kept
            return
        keep, made = self.keep and len(self.X) * len(self.design.pairs) <= KEPT_ENTRIES, []
        for rows, A in self.design.blocks(self.X):
            root = self.root[rows]
            if sp.issparse(A):
                A = sp.diags_array(root) @ (A - A[:, self.design.free] @ self.shift.C)
            else:
                A -= A[:, self.design.free] @ self.shift.C.toarray()
                A *= root[:, None]
            self.is_exact &= self._has_unit_constants(A[:, self.design.free], root)
            if keep:
                made.append((rows, A))
            yield rows, A
        self._kept = made

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
