"""The squared loss: its sufficient statistics, and the paths and fits that they allow.

    G = sum_i s_i a_i a_i',   c = sum_i s_i a_i y_i,   r = sum_i s_i y_i^2,   a = sum_i s_i a_i,   S = sum_i s_i

over the columns a of a design, shifted by multiples of a free column, a_k - mu_k a_f(k), and y by mu_y. The free
coefficients compensate:  v_f = w_f + sum_k C_fk w_k - mu_y.  This keeps sums accurate wherever the data lie.

With f the free columns and k the others, the risk as a function of w_k alone, at the best w_f, is

    w'H w / 2 - b'w + rho,     H = 2 (G_kk - G_kf G_ff^+ G_fk) / S,   b = 2 (c_k - G_kf G_ff^+ c_f) / S,
                               rho = (r - c_f' G_ff^+ c_f) / S.

Rows in memory are summed block by block as  b_i = sqrt(s_i) (a_i - shift),  t_i = sqrt(s_i) (y_i - mu_y).

A fit follows a short path of this quadratic to its own penalty; ridge has a path of its own
(:mod:`formulations.erm.ridge_path`), by the rows b_i if they are fewer than the columns. Folds of a cross-validation
are not proven: their conditions hold to 1e-10 of the largest |b|, for ridge to 1e-12. Held-out losses of ridge then
differ by 4e-11 at most from those solved to rounding error (300 to 1,000 rows, 930 columns): below what is a tie.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from admiss.adaptivity import Adaptivity
from admiss.linear.design import Design, DesignOptions, fit_design
from admiss.linear.penalty import Penalty, UnitPenalties, lambdas_to_one
from admiss.linear.stated_program import ACCEPTED
from formulations.arrays import BoolArray, FloatArray, IntArray, Matrix
from formulations.erm.quadratic_path import quadratic_path
from formulations.erm.ridge_path import FewRows, RidgeProblem
from formulations.rounding import exact_sum, gamma

# A column whose variation is below this share of its size is constant up to rounding.
CONSTANT = 1e-13
# Rows whose means are the shift: it need not be precise, only near the data.
SHIFT_ROWS = 256
# Lambdas of the path to a single fit, per factor of 10 below the lambda at which all coefficients are 0.
STEPS = 6


@dataclass(frozen=True)
class Shift:
    """A_f C is subtracted from the columns (C has one row per free column), and a number from y."""

    C: sp.csr_array
    y: float

    def applied(self, w: FloatArray, free: BoolArray) -> FloatArray:
        """The coefficients of the shifted columns, each rounded once."""
        v, C = w.copy(), self.C
        for i, f in enumerate(np.flatnonzero(free)):
            part = slice(C.indptr[i], C.indptr[i + 1])
            v[f] = exact_sum(np.array([w[f], -self.y]), C.data[part], w[C.indices[part]])
        return v


@dataclass(frozen=True)
class Moments:
    """Sums over rows of shifted columns.

    The second moments of the columns and y are known up to ``accuracy`` times the product of the two ``sizes``, see
    :mod:`formulations.erm.moment_bound`. ``blocks`` are the rows b_i themselves and ``targets`` the t_i, if they are
    known and fewer than the columns.
    """

    S: float
    G: FloatArray
    c: FloatArray
    r: float
    a: FloatArray
    sizes: FloatArray
    accuracy: float
    blocks: Sequence[Matrix] = ()
    targets: FloatArray | None = None

    @property
    def matrix(self) -> FloatArray:
        """The second moments of the columns and y."""
        return np.block([[self.G, self.c[:, None]], [self.c, np.array([self.r])]])

    def selected(self, columns: IntArray) -> "Moments":
        """The moments of some of the columns."""
        if len(columns) == len(self.c):
            return self
        G, sizes = self.G[np.ix_(columns, columns)], self.sizes[np.append(columns, -1)]
        return Moments(self.S, G, self.c[columns], self.r, self.a[columns], sizes, self.accuracy)

    def squared_errors(self, W: FloatArray) -> FloatArray:
        """sum_i s_i (y_i - a_i'w)^2 for each row w of W."""
        return np.asarray(self.r - 2.0 * W @ self.c + np.sum((W @ self.G) * W, axis=1))


@dataclass(frozen=True)
class Quadratic:
    """The risk w'H w / 2 - b'w + rho of the penalised columns, and how the free coefficients follow.

    w_f = at_zero - response @ w in shifted columns; ``one`` are the free coefficients of the constant 1,
    S, ``blocks`` and ``targets`` are those of the moments.
    """

    H: FloatArray
    b: FloatArray
    rho: float
    at_zero: FloatArray
    response: FloatArray
    one: FloatArray
    free: BoolArray
    shift: Shift
    S: float
    blocks: Sequence[Matrix]
    targets: FloatArray | None

    def rows(self, penalties: Sequence[FloatArray]) -> FewRows | None:
        """R and t with H = R'R, b = R't, if rows are known and fewer than the columns, for paths of these penalties."""
        if self.targets is None:
            return None
        blocks = [A.toarray() if sp.issparse(A) else A for A in self.blocks]
        A = np.vstack(blocks) if len(blocks) > 1 else blocks[0]
        R = A[:, self.free] @ self.response
        np.subtract(_penalised(A, self.free), R, out=R)
        unit = np.sqrt(2.0 / self.S)
        R *= np.where(np.diag(self.H) > 0, unit, 0.0)
        return FewRows.of(R, unit * (self.targets - A[:, self.free] @ self.at_zero), penalties)

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
    G = moments.G
    c = moments.c
    S = moments.S
    f, k = np.flatnonzero(free), np.flatnonzero(~free)
    G_fk = G[f][:, k]
    inverse = _pseudo_inverse(G[np.ix_(f, f)])
    response, at_zero = inverse @ G_fk, inverse @ c[f]
    squares = np.diag(G)[k]
    H = G_fk.T @ response
    np.subtract(_penalised(_penalised(G, free).T, free), H, out=H)
    H *= 2.0 / S
    b = 2.0 * (c[k] - at_zero @ G_fk) / S
    # a column that is constant on these rows has no coefficient; rounding must not give it one
    gone = np.flatnonzero(np.diag(H) <= CONSTANT * 2.0 * squares / S)
    H[gone] = 0.0
    H[:, gone] = 0.0
    b[gone] = 0.0
    rho = max(0.0, moments.r - float(c[f] @ at_zero)) / S
    return Quadratic(
        H, b, rho, at_zero, response, inverse @ moments.a[f], free, shift, S, moments.blocks, moments.targets
    )


def _penalised(A: FloatArray, free: BoolArray) -> FloatArray:
    """The columns with a penalty, not copied if the others come first."""
    first = int(free.sum())
    return A[:, first:] if free[:first].all() else A[:, ~free]


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


class SquaredFold:
    """The path of a fold on its quadratic, for y divided by ``unit``, with penalties for lambda = 1 by index."""

    def __init__(
        self, quadratic: Quadratic, penalties: UnitPenalties, error: Callable[[FloatArray], FloatArray], unit: float
    ) -> None:
        k = ~quadratic.free
        self.quadratic = quadratic
        self.error = error
        self.unit = unit
        self.penalties = [(u1[k] / unit, u2[k]) for u1, u2 in penalties]

    @cached_property
    def rows(self) -> FewRows | None:
        """What the ridge paths of all penalties share."""
        return self.quadratic.rows([u2 for _, u2 in self.penalties])

    def __call__(
        self, penalty: int, alpha: float, lambdas: FloatArray, state: Any, _: float
    ) -> tuple[FloatArray, FloatArray, Any]:
        """Held-out loss and violation for each lambda, and a state to continue from; the path is exact."""
        u1, u2 = self.penalties[penalty]
        H, b = self.quadratic.H, self.quadratic.b
        if alpha == 0:
            ridge = RidgeProblem.of(H, b, u2, self.rows) if state is None else state
            path, state = ridge.path(lambdas), ridge
        else:
            path = quadratic_path(H, b, alpha * u1, (1.0 - alpha) * u2, lambdas, state)
            state = path.w[-1]
        return self.error(path.w) * self.unit**2, path.violation, state


class Training(ABC):
    """What a fit of the squared loss takes from its rows, or from sums over them.

    Attributes
    ----------
    n_rows : int
    weight : float
    target_range : tuple of float
        Least and largest target.
    X, s : arrays or None
        Features and weights, on which the authors' penalty weights depend, if rows are known.
    """

    n_rows: int
    weight: float
    target_range: tuple[float, float]
    X: FloatArray | None
    s: FloatArray | None

    @abstractmethod
    def part(self, some: IntArray) -> "Training":
        """Some of the rows, or the rows of some folds."""

    @abstractmethod
    def design(self, adaptivity: Adaptivity, options: DesignOptions) -> Design:
        """The design of a class on these rows."""

    @abstractmethod
    def columns(self, design: Design, unit: float) -> Any:
        """The columns of a design and y / unit, with a ``shift`` that suits these rows."""

    @abstractmethod
    def moments(self, columns: Any) -> Moments:
        """The moments of columns on these rows."""

    def squared_error(self, columns: Any, quadratic: Quadratic) -> Callable[[FloatArray], FloatArray]:
        """The summed squared error on these rows as a function of rows of penalised coefficients."""
        return error_by_moments(self.moments(columns), quadratic)

    def at_zero(self, columns: Any, free: BoolArray) -> tuple[FloatArray, FloatArray]:
        """b and the diagonal of H."""
        quadratic = eliminate(self.moments(columns), free, columns.shift)
        return quadratic.b, np.diag(quadratic.H)

    def dual(self, design: Design, w: FloatArray) -> FloatArray | None:
        """The dual point of a fit with these coefficients of the columns, if the rows are known: its derivatives."""
        return None


@dataclass(frozen=True)
class RowColumns:
    """The columns of a design and y / unit, shifted."""

    design: Design
    unit: float
    shift: Shift


@dataclass(frozen=True)
class TrainingRows(Training):
    """Rows in memory, of positive weight."""

    X: FloatArray
    y: FloatArray
    s: FloatArray

    def part(self, some: IntArray) -> "TrainingRows":
        return replace(self, X=self.X[some], y=self.y[some], s=self.s[some])

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        return len(self.y)

    @property
    def weight(self) -> float:  # type: ignore[override]
        return float(self.s.sum())

    @property
    def target_range(self) -> tuple[float, float]:  # type: ignore[override]
        return float(self.y.min()), float(self.y.max())

    def design(self, adaptivity: Adaptivity, options: DesignOptions) -> Design:
        return fit_design(self.X, self.s, adaptivity, options)

    def columns(self, design: Design, unit: float) -> RowColumns:
        return RowColumns(design, unit, shift_of(design, self.X, self.y / unit, self.s))

    def moments(self, columns: RowColumns) -> Moments:
        rows = WeightedRows(columns.design, self.X, self.y / columns.unit, self.s, columns.shift)
        return moments_of(rows)

    def at_zero(self, columns: RowColumns, free: BoolArray) -> tuple[FloatArray, FloatArray]:
        if len(self.X) >= len(free):
            return super().at_zero(columns, free)
        f, p = np.flatnonzero(free), len(free)
        squares, c, G_f = np.zeros(p), np.zeros(p), np.zeros((len(f), p))
        rows = WeightedRows(columns.design, self.X, self.y / columns.unit, self.s, columns.shift)
        for part, A in rows:
            squares += np.asarray((A * A).sum(axis=0)).ravel()
            c += A.T @ rows.t[part]
            constants = A[:, f].toarray() if sp.issparse(A) else A[:, f]
            G_f += (A.T @ constants).T
        response = _pseudo_inverse(G_f[:, f]) @ G_f
        curvatures, b = squares - np.sum(G_f * response, axis=0), c - c[f] @ response
        unit = np.where(curvatures > CONSTANT * squares, 2.0 / self.weight, 0.0)
        return (unit * b)[~free], (unit * curvatures)[~free]

    def dual(self, design: Design, w: FloatArray) -> FloatArray | None:
        return 2.0 * (self.s / self.s.sum()) * (design.predictor(self.X, w) - self.y)

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
    """The rows b_i and the targets t_i, block by block."""

    design: Design
    X: FloatArray
    y: FloatArray
    s: FloatArray
    shift: Shift

    def __post_init__(self) -> None:
        self.root = np.sqrt(self.s)
        self.t = self.root * (self.y - self.shift.y)

    def __iter__(self) -> Iterator[tuple[slice, Matrix]]:
        for rows, A in self.design.blocks(self.X):
            root = self.root[rows]
            if sp.issparse(A):
                A = sp.diags_array(root) @ (A - A[:, self.design.free] @ self.shift.C)
            else:
                A -= A[:, self.design.free] @ self.shift.C.toarray()
                A *= root[:, None]
            yield rows, A


def moments_of(rows: WeightedRows) -> Moments:
    """The moments of the rows, block by block."""
    n, p = len(rows.t), len(rows.design.pairs)
    G: FloatArray | None = None
    c, a = np.zeros(p), np.zeros(p)
    blocks: list[Matrix] = []
    for part, A in rows:
        square = (A.T @ A).toarray() if sp.issparse(A) else A.T @ A
        if G is None:
            G = square
        else:
            G += square
        c += A.T @ rows.t[part]
        a += A.T @ rows.root[part]
        if n < p:
            blocks.append(A)
    assert G is not None
    r = float(rows.t @ rows.t)
    accuracy = gamma(n + 100)  # sums over the rows, in blocks, of entries with a few roundings each
    sizes = np.sqrt(np.append(np.diag(G), r)) * (1.0 + accuracy)
    return Moments(float(rows.s.sum()), G, c, r, a, sizes, accuracy, blocks, rows.t if n < p else None)


def fit_quadratic(quadratic: Quadratic, penalty: Penalty) -> FloatArray | None:
    """Coefficients of all columns; None if the conditions are not met."""
    k = ~quadratic.free
    H = quadratic.H
    b = quadratic.b
    l1 = penalty.l1[k]
    l2 = penalty.l2[k]
    if np.any(l1):
        path = quadratic_path(H, b, l1, l2, lambdas_to_one(np.abs(b), l1, STEPS))
    else:
        path = RidgeProblem.of(H, b, l2, quadratic.rows([l2])).path(np.ones(1))
    return quadratic.restore(path.w[-1]) if path.violation[-1] <= ACCEPTED else None
