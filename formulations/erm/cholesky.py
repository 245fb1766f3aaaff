"""Small dense systems, for compiled loops: LAPACK would raise where a matrix is singular."""

import numpy as np

from formulations.jit import compiled

# A pivot below this share of its diagonal entry makes a matrix count as singular.
PIVOT_TOLERANCE = 1e-11


@compiled
def cholesky(L, m):  # type: ignore[no-untyped-def]
    """Factor the lower triangle in place; False where a pivot vanishes."""
    for i in range(m):
        for j in range(i):
            total = L[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = total / L[j, j]
        diagonal = L[i, i]
        total = diagonal
        for k in range(i):
            total -= L[i, k] * L[i, k]
        if not total > PIVOT_TOLERANCE * diagonal:
            return False
        L[i, i] = np.sqrt(total)
    return True


@compiled
def cholesky_solve(L, m, x):  # type: ignore[no-untyped-def]
    """Solve L L'x = b in place, b in the first m entries of x."""
    for i in range(m):
        total = x[i]
        for k in range(i):
            total -= L[i, k] * x[k]
        x[i] = total / L[i, i]
    for i in range(m - 1, -1, -1):
        x[i] /= L[i, i]
        value = x[i]
        for k in range(i):
            x[k] -= L[i, k] * value
