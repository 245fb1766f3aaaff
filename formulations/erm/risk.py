"""The empirical risk of a linear model, and its compression.

    F(A w) = sum_i q_i l(y_i, a_i' w) + offset        q_i >= 0

The q sum to 1 in fits. They do not in leaves, nor in searches with exposure, nor in a risk with a log link whose free
columns were projected out.

For the squared loss the rows can be replaced by p + 1 others without changing the function: with the QR factor

    R = [R_11  z]   of the rows sqrt(q_i) (a_i, y_i),       F(A w) = |R_11 w - z|^2 + rho^2.
        [ 0  rho]

The factor is built from blocks of rows, without ever holding the whole design in memory.

Columns f without penalty can be projected out: with C the least-squares coefficients of the other columns on the free
ones, and w_0 those of y,

    A w - y  =  (A - A_f C) w  +  A_f (w_f + C w - w_0)  -  (y - A_f w_0).

The program in (w, w_f + C w - w_0) therefore has centred columns and a centred target, whatever the units and offsets.
With a log link, w_0 are the logs of the means of y in the cells of the free columns, and with z = z' + A_f w_0 the
target becomes y exp(-A_f w_0), the share q exp(b A_f w_0): see :mod:`formulations.log_link`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import lsqr

from formulations.arrays import BoolArray, FloatArray, IntArray, Matrix
from formulations.log_link import LogLink
from formulations.losses import Loss, Squared, best_constant
from formulations.rounding import UNIT, exact_sum

# Coefficients of y on the free columns that differ by less than this share are the same.
SAME = 128.0 * UNIT
# A coefficient that moves predictions by less than this share of the spread of y is set to 0.
ZERO_TOLERANCE = 1e-9


@dataclass(frozen=True)
class EmpiricalRisk:
    """Data of the empirical risk.

    Attributes
    ----------
    A : array or csr_array of shape (n, p)
        Design, one column per coefficient.
    y : array of shape (n,)
        Target; -1 or 1 for the logistic loss.
    q : array of shape (n,)
        Share of each row in the risk.
    loss : Loss
    offset : float
        Constant part of the risk.

    Examples
    --------
    >>> risk = EmpiricalRisk(np.ones((2, 1)), np.array([1.0, 3.0]), np.array([0.5, 0.5]), Squared())
    >>> risk.value(np.array([2.0]))
    1.0
    """

    A: Matrix
    y: FloatArray
    q: FloatArray
    loss: Loss
    offset: float = 0.0

    def value(self, w: FloatArray) -> float:
        """F(A w)."""
        return float(self.q @ self.loss.value(self.y, self.A @ w)) + self.offset

    def gradient(self, w: FloatArray) -> FloatArray:
        """The gradient of F(A w) in w."""
        return self.A.T @ (self.q * self.loss.derivative(self.y, self.A @ w))

    def hessian(self, w: FloatArray, columns: BoolArray) -> Matrix:
        """The Hessian of F(A w) in the coefficients of ``columns``; sparse if A is."""
        part = self.A[:, columns]
        weight = self.q * self.loss.curvature(self.y, self.A @ w)
        if sp.issparse(part):
            return part.T @ (sp.diags_array(weight) @ part)
        return part.T @ (weight[:, None] * part)

    def column_curvature(self) -> FloatArray:
        """An upper bound on the second derivative of the risk in each coefficient alone."""
        return self.loss.largest_curvature * self.column_squares()

    def column_squares(self) -> FloatArray:
        """sum_i q_i A_ik^2 for each column."""
        squares = self.A.multiply(self.A) if sp.issparse(self.A) else self.A**2
        return np.asarray(squares.T @ self.q)


@dataclass(frozen=True)
class CentredRisk:
    """A risk with the free columns projected out of the others and, except for the logistic loss, out of y.

    Attributes
    ----------
    risk : EmpiricalRisk
        In the coefficients v.
    free : bool array of shape (p,)
    C : array or csr_array of shape (number of free columns, p)
        0 on the free columns.
    w0 : array of shape (number of free columns,)
    """

    risk: EmpiricalRisk
    free: BoolArray
    C: Matrix
    w0: FloatArray

    def restore(self, v: FloatArray) -> FloatArray:
        """The coefficients w of the original columns, for one v or for one per row."""
        w = v.copy()
        w[..., self.free] += self.w0 - (self.C @ v.T).T
        return w

    def reduce(self, w: FloatArray) -> FloatArray:
        """The coefficients v of the centred columns, each rounded once."""
        v = w.copy()
        for i, f in enumerate(np.flatnonzero(self.free)):
            row = self.C[[i]].toarray()[0] if sp.issparse(self.C) else self.C[i]
            k = np.flatnonzero(row)
            v[f] = exact_sum(np.array([w[f], -self.w0[i]]), row[k], w[k])
        return v

    def restoring_matrix(self) -> sp.csr_array:
        """The matrix T with  w = T v + (w0 on the free columns)."""
        p = len(self.free)
        columns = np.flatnonzero(self.free)
        scatter = sp.csr_array((np.ones(len(columns)), (columns, np.arange(len(columns)))), shape=(p, len(columns)))
        return sp.csr_array(sp.eye_array(p) - scatter @ sp.csr_array(self.C))


def centred(risk: EmpiricalRisk, free: BoolArray) -> CentredRisk:
    """Project the free columns out; in a sparse design only if they are indicators of disjoint cells."""
    p, n_free = risk.A.shape[1], int(free.sum())
    A_f, root = risk.A[:, free], np.sqrt(risk.q)
    if sp.issparse(risk.A):
        gram = sp.csr_array(A_f.T @ (sp.diags_array(risk.q) @ A_f))
        cells = n_free > 1 and gram.nnz == n_free and bool(np.all(gram.diagonal() > 0))
        C = sp.csr_array((n_free, p))
        if cells:
            C = sp.diags_array(1.0 / gram.diagonal()) @ (A_f.T @ (sp.diags_array(risk.q) @ risk.A))
            C = sp.csr_array(C @ sp.diags_array(np.where(free, 0.0, 1.0)))
        A = sp.csr_array(risk.A - A_f @ C)
        fit = lsqr(sp.diags_array(root) @ A_f, root * risk.y, atol=1e-14, btol=1e-14)[0]
    else:
        others = root[:, None] * np.column_stack([risk.A, risk.y])
        solutions = np.linalg.lstsq(root[:, None] * A_f, others, rcond=None)[0]
        C, fit = np.where(free, 0.0, solutions[:, :-1]), solutions[:, -1]
        A = risk.A - A_f @ C
    if isinstance(risk.loss, LogLink):
        centred_risk, w0 = _log_centred(risk, risk.loss, A, A_f)
        return CentredRisk(centred_risk, free, C, w0)
    w0 = fit if risk.loss.of_residual else np.zeros(n_free)
    if n_free and np.ptp(w0) <= SAME * np.abs(w0).max():  # the same in all cells, whatever the rounding
        w0 = np.full(n_free, w0[0])
    return CentredRisk(replace(risk, A=A, y=risk.y - A_f @ w0), free, C, w0)


def _log_centred(risk: EmpiricalRisk, loss: LogLink, A: Matrix, A_f: Matrix) -> tuple[EmpiricalRisk, FloatArray]:
    """The risk in columns A with targets and shares around the mean of each cell, and the logs of these means."""
    w0, cell = np.zeros(A_f.shape[1]), _cells(A_f)
    if cell is None or not len(w0) or not np.any(risk.y):
        return replace(risk, A=A), w0
    for c in range(len(w0)):
        rows = cell == c
        rows = rows if np.any(risk.y[rows]) else slice(None)
        w0[c] = loss.best_constant(risk.y[rows], risk.q[rows])
    z = np.where(cell >= 0, w0[cell], 0.0)
    return replace(risk, A=A, y=risk.y * np.exp(-z), q=risk.q * loss.weight_of(np.exp(z))), w0


def compressed_squared_risk(blocks: Iterable[tuple[Matrix, FloatArray, FloatArray]]) -> EmpiricalRisk:
    """The squared risk in at most p + 1 rows.

    Parameters
    ----------
    blocks : iterable of tuples (A, y, q)
        Blocks of the rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> A, y, q, w = rng.normal(size=(50, 3)), rng.normal(size=50), np.full(50, 1 / 50), np.ones(3)
    >>> risk = compressed_squared_risk([(A[:20], y[:20], q[:20]), (A[20:], y[20:], q[20:])])
    >>> risk.A.shape, bool(np.isclose(risk.value(w), np.mean((y - A @ w) ** 2)))
    ((3, 3), True)
    """
    R: FloatArray | None = None
    for A, y, q in blocks:
        dense = A.toarray() if sp.issparse(A) else A
        rows = np.sqrt(q)[:, None] * np.column_stack([dense, y])
        R = np.asarray(np.linalg.qr(rows if R is None else np.vstack([R, rows]), mode="r"))
    if R is None:
        raise ValueError("The risk needs at least one block of rows.")
    offset = 0.0
    if R.shape[0] == R.shape[1]:
        offset = float(R[-1, -1] ** 2)
        R = R[:-1]
    return EmpiricalRisk(
        A=np.ascontiguousarray(R[:, :-1]), y=R[:, -1].copy(), q=np.ones(len(R)), loss=Squared(), offset=offset
    )


def null_risk(risk: EmpiricalRisk, free: BoolArray) -> float:
    """The risk of the null model, which has the free columns alone: the scale of the tolerance of every fit.

    Its predictions minimise the loss itself if the free columns are indicators of disjoint cells, as intercepts are,
    or if the loss is squared; otherwise they are those of least squares. If even that is perfect, the risk counts as
    that of errors of 1e-15 of y, which is the accuracy of y.

    Examples
    --------
    >>> from formulations.losses import Absolute
    >>> y = np.array([0.0, 1.0, 2.0, 1e9])
    >>> risk = EmpiricalRisk(np.ones((4, 1)), y, np.full(4, 0.25), Absolute())
    >>> round(null_risk(risk, np.array([True])), 3)  # at the median
    250000000.25
    """
    columns = risk.A[:, free]
    rounding = risk_of_rounding(risk.loss, risk.y, risk.q)
    cell = _cells(columns)
    if cell is None or isinstance(risk.loss, Squared):
        left = centred(replace(risk, A=columns), np.ones(columns.shape[1], dtype=bool)).risk
        return left.value(np.zeros(columns.shape[1])) + rounding
    _, z = _best_of_cells(risk, cell)
    return float(risk.q @ risk.loss.value(risk.y, z)) + risk.offset + rounding


def null_multipliers(risk: EmpiricalRisk, free: BoolArray) -> tuple[FloatArray, FloatArray]:
    """The multipliers and the predictions of the null model of a loss of y - z.

    Free columns that are not indicators of disjoint cells count as one cell.
    """
    cell = _cells(risk.A[:, free])
    return _best_of_cells(risk, np.zeros(len(risk.y), dtype=int) if cell is None else cell)


def _best_of_cells(risk: EmpiricalRisk, cell: IntArray) -> tuple[FloatArray, FloatArray]:
    """Multipliers and predictions of the best constant of each cell; the prediction is 0 for rows without one."""
    z = np.zeros(len(cell))
    theta = np.zeros(len(cell))
    order = np.argsort(cell, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(cell[order])) + 1):
        y, q = risk.y[rows], risk.q[rows]
        if cell[rows[0]] >= 0:
            z[rows], theta[rows] = best_constant(y, q, risk.loss)
        elif risk.loss.smooth:
            theta[rows] = q * risk.loss.derivative(y, z[rows])
        else:
            low, high = risk.loss.domain(y)
            theta[rows] = q * np.where(y > 0, low, high)
    return theta, z


def _cells(columns: Matrix) -> IntArray | None:
    """The column that is 1 in each row, -1 if there is none; None if columns are not indicators of disjoint cells."""
    entries = sp.coo_array(columns)
    rows, cell = entries.coords
    if np.any(entries.data != 1.0) or len(np.unique(rows)) < len(rows):
        return None
    found = np.full(columns.shape[0], -1)
    found[rows] = cell
    return found


def risk_of_rounding(loss: Loss, y: FloatArray, q: FloatArray) -> float:
    """The risk of errors of 1e-15 of y; 0 in classification.

    With a log link y is not centred, and predictors are off by rounding of their own size; a risk of such errors is
    within the gap tolerance, 1e-6, of that of errors a thousand times as large.
    """
    if isinstance(loss, LogLink):
        z = loss.best_of_row(y)
        return float(q @ loss.value(y, z + 2.0**-38 * (1.0 + np.abs(z))))
    return float(q @ loss.value(y, y * (1.0 + 2.0**-50))) if loss.of_residual else 0.0


def residual_spread(original: EmpiricalRisk, centred: EmpiricalRisk) -> float:
    """Root mean square of the residual of y on the free columns, 0 if that is rounding; 1 if the loss has none."""
    if not original.loss.of_residual:
        return 1.0
    size, left = (float(np.sqrt(risk.q @ risk.y**2 + risk.offset)) for risk in (original, centred))
    return left if left > 1e-13 * size else 0.0
