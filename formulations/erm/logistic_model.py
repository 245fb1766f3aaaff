"""The quadratic model of a logistic risk on a working set of columns, the free columns eliminated.

At predictions z with curvatures D = diag(d), the Hessian in the columns A_W of the working set, the first f of which
have no penalty, is

    B = A_W' D A_W.     With K = B_ff^-1 B_fw,     H = B_ww - B_wf K

is that of the risk minimised over their coefficients. A column that joins the working set adds a row and column to H,
at the same z.

The errors e that the model makes in the gradient on first steps from one lambda to the next change smoothly. With r the
next one by linear extrapolation, 2 e - (e of the step before), it predicts for a step (df, dw) the gradient
g + r + B (df, dw). It is 0 in the free columns for df = -K dw - B_ff^-1 (g_f + r_f), and
then H dw + (g + r)_w - K'(g + r)_f in the others.
"""

from typing import NamedTuple

import numpy as np

from formulations.arrays import BoolArray, FloatArray
from formulations.erm.cholesky import cholesky, cholesky_solve
from formulations.erm.logistic_rows import add_products, set_curvatures
from formulations.jit import compiled


class Model(NamedTuple):
    """The model of the module: H has the columns with a penalty, everything else all columns of the working set.

    ``Bf`` are the first f rows of B, and Lf is the Cholesky factor of B_ff; ``error`` is e, and ``trend`` its last
    change, 0 unless ``measured``.
    """

    d: FloatArray
    H: FloatArray
    Bf: FloatArray
    K: FloatArray
    Lf: FloatArray
    error: FloatArray
    trend: FloatArray
    measured: BoolArray


def empty_model(n: int, p: int, f: int) -> Model:
    """Memory for a model of at most p columns, f of them without penalty."""
    return Model(
        np.zeros(n), np.empty((p - f, p - f)), np.zeros((f, p)), np.zeros((f, p)), np.zeros((f, f)),
        np.zeros(p), np.zeros(p), np.zeros(p, dtype=np.bool_),
    )  # fmt: skip


@compiled
def build_model(rows, work, m, z, model):  # type: ignore[no-untyped-def]
    """The model at predictions z on the whole working set."""
    A, d, H, Bf = rows.A, model.d, model.H, model.Bf
    n, f = len(d), len(Bf)
    set_curvatures(rows.power, rows.y, rows.q, z, d)
    scaled, root = np.empty((m, n)), np.empty(n)
    for i in range(n):
        root[i] = np.sqrt(d[i])
    for k in range(m):
        j = work[k]
        for i in range(n):
            scaled[k, i] = root[i] * A[j, i]
    B = np.dot(scaled, scaled.T)
    for k in range(m):
        model.error[k], model.trend[k], model.measured[k] = 0.0, 0.0, False
        for c in range(f):
            Bf[c, k] = B[c, k]
    for k in range(f, m):
        for i in range(f, m):
            H[k - f, i - f] = B[k, i]
    _factor_free(f, Bf, model.Lf)
    _add_columns(f, m, model)


@compiled
def extend_model(rows, work, start, m, model):  # type: ignore[no-untyped-def]
    """The model with the columns from ``start`` on, which have joined the working set."""
    A, d, H, Bf = rows.A, model.d, model.H, model.Bf
    n, f = len(d), len(Bf)
    scaled, row = np.empty(n), np.empty(m)
    for k in range(start, m):
        j = work[k]
        for i in range(n):
            scaled[i] = d[i] * A[j, i]
        for i in range(k + 1):
            row[i] = 0.0
        add_products(A, work, k + 1, scaled, np.int64(0), n, row)
        for c in range(f):
            Bf[c, k] = row[c]
        for i in range(f, k + 1):
            H[k - f, i - f], H[i - f, k - f] = row[i], row[i]
    _add_columns(start, m, model)


@compiled
def _factor_free(f, Bf, Lf):  # type: ignore[no-untyped-def]
    """Factor B_ff, with a share of its diagonal added if it is singular, as it is if all rows of a cell are certain."""
    share = 0.0
    while True:
        for i in range(f):
            for k in range(i + 1):
                Lf[i, k] = Bf[i, k]
            Lf[i, i] += share * Lf[i, i] + 1e-100
        if cholesky(Lf, f, np.int64(0)):
            return
        share = max(1e-9, 10.0 * share)


@compiled
def _add_columns(start, m, model):  # type: ignore[no-untyped-def]
    """K of the columns from ``start`` on, and their rows and columns of H from those of B."""
    H, Bf, K = model.H, model.Bf, model.K
    f = len(Bf)
    x = np.empty(f)
    for k in range(start, m):
        for c in range(f):
            x[c] = Bf[c, k]
        cholesky_solve(model.Lf, f, x)
        for c in range(f):
            K[c, k] = x[c]
            for i in range(f, k + 1):
                H[k - f, i - f] -= x[c] * Bf[c, i]
        for i in range(f, k):
            H[i - f, k - f] = H[k - f, i - f]


@compiled
def linear_term(m, point, model, product, share, gradient, b):  # type: ignore[no-untyped-def]
    """Set ``gradient`` = g + r, with a share of r, and b = H w - gradient_w + K'gradient_f; the largest |b|."""
    f, largest = len(model.K), 0.0
    for k in range(m):
        gradient[k] = point.g[k] + share * (model.error[k] + model.trend[k])
    for k in range(f, m):
        value = product[k - f] - gradient[k]
        for c in range(f):
            value += model.K[c, k] * gradient[c]
        b[k - f] = value
        largest = max(largest, abs(value))
    return largest


@compiled
def set_free(m, point, model, gradient, x, trial):  # type: ignore[no-untyped-def]
    """Set the free coefficients of the trial point to the minimiser of the model, given the others; x is memory."""
    f = len(model.K)
    for c in range(f):
        x[c] = gradient[c]
    cholesky_solve(model.Lf, f, x)
    for c in range(f):
        value = point.w[c] - x[c]
        for k in range(f, m):
            value -= model.K[c, k] * (trial.w[k] - point.w[k])
        trial.w[c] = value


@compiled
def set_error(m, point, trial, product, before, gradient, model):  # type: ignore[no-untyped-def]
    """Set e to what the model, without r, got wrong in the gradient at the trial point.

    ``product`` is H w at the trial point, ``before`` at the point.
    """
    f, error, trend = len(model.K), model.error, model.trend
    for k in range(m):
        new = trial.g[k] - point.g[k]
        if k < f:
            new += gradient[k]
        else:
            new -= product[k - f] - before[k - f]
            for c in range(f):
                new += model.K[c, k] * gradient[c]
        trend[k] = new - error[k] if model.measured[k] else 0.0
        error[k], model.measured[k] = new, True
