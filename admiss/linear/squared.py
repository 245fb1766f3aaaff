"""The squared loss: its sufficient statistics, and the fit and the proof that they allow.

    G = sum_i s_i a_i a_i',   c = sum_i s_i a_i y_i,   r = sum_i s_i y_i^2,   a = sum_i s_i a_i,   S = sum_i s_i

over the columns a of a design, shifted by multiples of a free column, a_k - mu_k a_f(k), and y by mu_y. The free
coefficients compensate:  v_f = w_f + sum_k C_fk w_k - mu_y.  This keeps sums accurate wherever the data lie.

With f the free columns and k the others, the risk as a function of w_k alone, at the best w_f, is

    w'H w / 2 - b'w + rho,     H = 2 (G_kk - G_kf G_ff^+ G_fk) / S,   b = 2 (c_k - G_kf G_ff^+ c_f) / S,
                               rho = (r - c_f' G_ff^+ c_f) / S.

Rows in memory are summed block by block as  b_i = sqrt(s_i) (a_i - shift),  t_i = sqrt(s_i) (y_i - mu_y).

A fit follows a short path of this quadratic to its own penalty. It is proven from the same moments
(:mod:`formulations.erm.moment_bound`), whether rows are in memory or only sums over them are known.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from admiss._version import __version__
from admiss.adaptivity import Adaptivity
from admiss.estimator.scaling import power_of_two
from admiss.linear.design import Design, fit_design
from admiss.linear.penalty import OVERWHELMING, Penalty, lambdas_to_one
from admiss.linear.stated_program import ACCEPTED, Fit
from formulations.arrays import BoolArray, FloatArray, IntArray, Matrix
from formulations.certificate import certify, clock, gap_tolerance
from formulations.erm.moment_bound import moment_bound
from formulations.erm.quadratic_path import Path, RidgeProblem, quadratic_path
from formulations.rounding import exact_sum, gamma

# A column whose variation is below this share of its size is constant up to rounding.
CONSTANT = 1e-13
# Rows whose means are the shift: it need not be precise, only near the data.
SHIFT_ROWS = 256


# Lambdas of the path to a single fit, per factor of 10 below the lambda at which all coefficients are 0.
STEPS = 6
# Status of a fit whose moments are too inaccurate for a proof.
NOT_FROM_MOMENTS = "not proven: the moments of the columns are too close to dependent"
# Least eigenvalue of the correlations of the columns for a fit without penalty.
DEPENDENT = 1e-10


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
    :mod:`formulations.erm.moment_bound`.
    """

    S: float
    G: FloatArray
    c: FloatArray
    r: float
    a: FloatArray
    sizes: FloatArray
    accuracy: float

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
    H = (G[np.ix_(k, k)] - G_fk.T @ response) * (2.0 / S)
    b = linear_term(moments, free)
    # a column that is constant on these rows has no coefficient; rounding must not give it one
    gone = np.flatnonzero(np.diag(H) <= CONSTANT * 2.0 * squares / S)
    H[gone], H[:, gone], b[gone] = 0.0, 0.0, 0.0
    rho = max(0.0, moments.r - float(c[f] @ at_zero)) / S
    return Quadratic(H, b, rho, at_zero, response, inverse @ moments.a[f], free, shift)


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


class Training(Protocol):
    """What a fit of the squared loss takes from its rows, or from sums over them."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def weight(self) -> float:
        """Weight of the rows."""

    @property
    def target_range(self) -> tuple[float, float]:
        """Least and largest target."""

    @property
    def features_and_weights(self) -> tuple[FloatArray | None, FloatArray | None]:
        """X and s, on which the authors' penalty weights depend, if they are known."""

    def design(self, adaptivity: Adaptivity, *, center: bool, scale: bool, fit_intercept: bool) -> Design:
        """The design of a class on these rows."""

    def columns(self, design: Design, unit: float) -> Any:
        """The columns of a design and y / unit, with a ``shift`` that suits these rows."""

    def moments(self, columns: Any) -> Moments:
        """The moments of columns on these rows."""

    def squared_error(self, columns: Any, quadratic: Quadratic) -> Callable[[FloatArray], FloatArray]:
        """The summed squared error on these rows as a function of rows of penalised coefficients."""


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


def solve_squared(rows: Training, design: Design, penalty: Penalty) -> Fit | None:
    """The fit of the squared loss from moments of the columns, as :func:`admiss.linear.fit.solve_program` returns it.

    It is certified from the moments, without a dual point. None if the optimality conditions are not met, or if columns
    without penalty are dependent up to the accuracy of the moments.
    """
    start = clock()
    unit = float(power_of_two(np.abs(rows.target_range).max()))
    scaled, change = design.in_powers_of_two()
    stated = penalty.for_target(unit, unit**2).in_units(change).at_most(OVERWHELMING)
    columns = rows.columns(scaled, unit)
    moments, shift = rows.moments(columns), columns.shift
    if not stated.is_positive and _are_dependent(eliminate(moments, scaled.free, shift).H):
        return None
    found = fit_moments(moments, scaled.free, shift, stated)
    if found is None:
        return None
    w, null = stated.without_overwhelmed(found[0]), found[1]
    v = shift.applied(w, scaled.free)
    accuracy = moments.sizes, moments.accuracy
    objective, bound = moment_bound(moments.matrix, *accuracy, moments.S, stated.l1, stated.l2, v)
    tolerance = gap_tolerance(objective, null)
    certificate = certify(objective, bound, tolerance, NOT_FROM_MOMENTS, "admiss engine", __version__, start)
    return w / scaled.column_scale * unit, certificate.in_units(unit**2, unit)


def _are_dependent(H: FloatArray) -> bool:
    """Whether columns of these second moments are dependent up to rounding."""
    size = np.sqrt(np.diag(H))
    used = size > 0
    R = H[np.ix_(used, used)] / size[used][:, None] / size[used]
    return len(R) > 0 and bool(np.linalg.eigvalsh(R)[0] < DEPENDENT)


def fit_moments(moments: Moments, free: BoolArray, shift: Shift, penalty: Penalty) -> tuple[FloatArray, float] | None:
    """Coefficients and risk of the null model from moments; None if the conditions are not met."""
    quadratic = eliminate(moments, free, shift)
    path, _ = squared_path(quadratic, penalty, lambdas_to_one(np.abs(quadratic.b), penalty.l1[~free], STEPS))
    if not path.violation[-1] <= ACCEPTED:
        return None
    return quadratic.restore(path.w[-1]), quadratic.rho
