"""The quadratic model of a logistic risk on a working set of columns, the free columns eliminated.

At predictions z with curvatures D = diag(d), the Hessian in the columns A_W of the working set and E without penalty is

    B = (A_W E)' D (A_W E).     With K = B_ff^-1 B_fw,     H = B_ww - B_wf K

is that of the risk minimised over f. A column that joins the working set adds a row and column to H, at the same z.
"""

import numpy as np

from formulations.erm.active_set import cholesky, cholesky_solve
from formulations.erm.logistic_rows import add_products
from formulations.jit import compiled

# First regularisation of B_ff, as a share of its diagonal: it is singular if all rows of a cell are certain.
REGULARISATION = 1e-12


@compiled
def build_model(A, E, d, work, m, H, Bf, K, Lf):  # type: ignore[no-untyped-def]
    """H, B_fw, K and the Cholesky factor of B_ff on the whole working set."""
    n, f = len(d), len(E)
    scaled = np.empty((m + f, n))
    root = np.sqrt(d)
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
    _eliminate(0, m, H, Bf, K, Lf)


@compiled
def extend_model(A, E, every, d, work, start, m, H, Bf, K, Lf):  # type: ignore[no-untyped-def]
    """The rows and columns of H, B_fw and K of the columns that have joined the working set."""
    n, f = len(d), len(E)
    scaled, row, row_free = np.empty(n), np.zeros(m), np.zeros(f)
    for k in range(start, m):
        j = work[k]
        for i in range(n):
            scaled[i] = d[i] * A[j, i]
        row[: k + 1] = 0.0
        row_free[:] = 0.0
        add_products(A, work, 0, k + 1, scaled, 0, n, row)
        add_products(E, every, 0, f, scaled, 0, n, row_free)
        for i in range(k + 1):
            H[k, i], H[i, k] = row[i], row[i]
        for i in range(f):
            Bf[i, k] = row_free[i]
    _eliminate(start, m, H, Bf, K, Lf)


@compiled
def _factor_free(B, m, f, Lf):  # type: ignore[no-untyped-def]
    share = REGULARISATION
    while True:
        for i in range(f):
            for k in range(i + 1):
                Lf[i, k] = B[m + i, m + k]
            Lf[i, i] += share * Lf[i, i] + 1e-100
        if cholesky(Lf, f):
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
def scale_model(factor, m, d, H, Bf, Lf):  # type: ignore[no-untyped-def]
    """Multiply the Hessian by a factor."""
    for i in range(len(d)):
        d[i] *= factor
    for k in range(m):
        for i in range(m):
            H[k, i] *= factor
    root = np.sqrt(factor)
    for c in range(len(Bf)):
        for k in range(m):
            Bf[c, k] *= factor
        for k in range(c + 1):
            Lf[c, k] *= root
