"""The quadratic model of a logistic risk on a working set of columns, the free columns eliminated.

At predictions z with curvatures D = diag(d), the Hessian in the columns A_W of the working set and E without penalty is

    B = (A_W E)' D (A_W E).     With K = B_ff^-1 B_fw,     H = B_ww - B_wf K

is that of the risk minimised over f. A column that joins the working set adds a row and column to H, at the same z.

The errors e that the model makes in the gradient on first steps from one lambda to the next change smoothly. With r the
next one by linear extrapolation, 2 e - (e of the step before), it predicts for a step (dw, df) the gradient
g + r + B (dw, df). It is 0 in the free columns for df = -K dw - B_ff^-1 (g_f + r_f), and
then H dw + (g + r)_w - K'(g + r)_f in the others.
"""

from typing import NamedTuple

import numpy as np

from formulations.arrays import BoolArray, FloatArray
from formulations.erm.cholesky import cholesky, cholesky_solve
from formulations.erm.logistic_rows import add_products, set_curvatures
from formulations.jit import compiled, inlined


class Model(NamedTuple):
    """The model of the module; Lf is the Cholesky factor of B_ff.

    ``error`` has e for the free columns, then for the working set, ``trend`` its last change, 0 unless ``measured``.
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
    """Memory for a model of at most p columns."""
    return Model(
        np.zeros(n), np.empty((p, p)), np.zeros((f, p)), np.zeros((f, p)), np.zeros((f, f)),
        np.zeros(f + p), np.zeros(f + p), np.zeros(f + p, dtype=np.bool_),
    )  # fmt: skip


@compiled
def build_model(rows, work, m, z, model):  # type: ignore[no-untyped-def]
    """The model at predictions z on the whole working set."""
    A, E, d, H, Bf, K, Lf = rows.A, rows.E, model.d, model.H, model.Bf, model.K, model.Lf
    n, f = len(d), len(E)
    set_curvatures(rows.q, z, d)
    _forget_errors(np.int64(0), f + m, model)
    scaled, root = np.empty((m + f, n)), np.empty(n)
    for i in range(n):
        root[i] = np.sqrt(d[i])
    for k in range(m):
        j = work[k]
        for i in range(n):
            scaled[k, i] = root[i] * A[j, i]
    for k in range(f):
        for i in range(n):
            scaled[m + k, i] = root[i] * E[k, i]
    B = np.dot(scaled, scaled.T)
    for k in range(m):
        for i in range(m):
            H[k, i] = B[k, i]
        for i in range(f):
            Bf[i, k] = B[m + i, k]
    _factor_free(B, m, f, Lf)
    _eliminate(np.int64(0), m, H, Bf, K, Lf)


@compiled
def extend_model(rows, work, start, m, model):  # type: ignore[no-untyped-def]
    """The model with the columns from ``start`` on, which have joined the working set."""
    A, E, d, H, Bf, K, Lf = rows.A, rows.E, model.d, model.H, model.Bf, model.K, model.Lf
    n, f = len(d), len(E)
    _forget_errors(f + start, f + m, model)
    scaled, row, row_free = np.empty(n), np.zeros(m), np.zeros(f)
    for k in range(start, m):
        j = work[k]
        for i in range(n):
            scaled[i] = d[i] * A[j, i]
        for i in range(k + 1):
            row[i] = 0.0
        for i in range(f):
            row_free[i] = 0.0
        add_products(A, work, k + 1, scaled, np.int64(0), n, row)
        add_products(E, rows.every, f, scaled, np.int64(0), n, row_free)
        for i in range(k + 1):
            H[k, i], H[i, k] = row[i], row[i]
        for i in range(f):
            Bf[i, k] = row_free[i]
    _eliminate(start, m, H, Bf, K, Lf)


@compiled
def _forget_errors(first, last, model):  # type: ignore[no-untyped-def]
    for k in range(first, last):
        model.error[k], model.trend[k], model.measured[k] = 0.0, 0.0, False


@compiled
def _factor_free(B, m, f, Lf):  # type: ignore[no-untyped-def]
    """Factor B_ff, with a share of its diagonal added if it is singular, as it is if all rows of a cell are certain."""
    share = 0.0
    while True:
        for i in range(f):
            for k in range(i + 1):
                Lf[i, k] = B[m + i, m + k]
            Lf[i, i] += share * Lf[i, i] + 1e-100
        if cholesky(Lf, f, np.int64(0)):
            return
        share = max(1e-9, 10.0 * share)


@compiled
def _eliminate(start, m, H, Bf, K, Lf):  # type: ignore[no-untyped-def]
    """K of the columns from ``start``, and their rows and columns of H from those of B."""
    f = len(Bf)
    x = np.zeros(f)
    for k in range(start, m):
        for i in range(f):
            x[i] = Bf[i, k]
        cholesky_solve(Lf, f, x)
        for i in range(f):
            K[i, k] = x[i]
    for k in range(start, m):
        for c in range(f):
            for i in range(k + 1):
                H[k, i] -= K[c, k] * Bf[c, i]
        for i in range(k):
            H[i, k] = H[k, i]


@compiled
def linear_term(m, point, model, product, share, free_gradient, b):  # type: ignore[no-untyped-def]
    """Set b = H w - (g + r)_w + K'(g + r)_f and ``free_gradient`` = (g + r)_f, with a share of r; the largest |b|."""
    f = len(free_gradient)
    for c in range(f):
        free_gradient[c] = point.g_free[c] + share * (model.error[c] + model.trend[c])
    largest = 0.0
    for k in range(m):
        b[k] = product[k] - point.g[k] - share * (model.error[f + k] + model.trend[f + k])
        for c in range(f):
            b[k] += model.K[c, k] * free_gradient[c]
        largest = max(largest, abs(b[k]))
    return largest


@compiled
def set_free(m, point, model, free_gradient, trial):  # type: ignore[no-untyped-def]
    """Set f of the trial point to the minimiser of the model, given its w."""
    f = len(free_gradient)
    for c in range(f):
        trial.f[c] = free_gradient[c]
    cholesky_solve(model.Lf, f, trial.f)
    for c in range(f):
        trial.f[c] = point.f[c] - trial.f[c]
        for k in range(m):
            trial.f[c] -= model.K[c, k] * (trial.w[k] - point.w[k])


@compiled
def set_error(m, point, trial, product, before, free_gradient, model):  # type: ignore[no-untyped-def]
    """Set e to what the model, without r, got wrong in the gradient at the trial point.

    ``product`` is H w at the trial point, ``before`` at the point.
    """
    f = len(free_gradient)
    for c in range(f):
        _measure(c, trial.g_free[c] - point.g_free[c] + free_gradient[c], model)
    for k in range(m):
        error = trial.g[k] - point.g[k] - (product[k] - before[k])
        for c in range(f):
            error += model.K[c, k] * free_gradient[c]
        _measure(f + k, error, model)


@inlined
def _measure(k, error, model):  # type: ignore[no-untyped-def]
    model.trend[k] = error - model.error[k] if model.measured[k] else 0.0
    model.error[k], model.measured[k] = error, True
