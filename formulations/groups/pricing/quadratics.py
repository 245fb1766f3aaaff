"""The possible groups of patterns and their costs: small linear algebra on the quadratics of patterns.

Each pattern p has a quadratic Q_p and r_p rows. A group G is possible if it has at least r rows; it costs

    c_G  =  min over u of  Q_0(u) + sum_{p in G} Q_p(u)

with Q_0 the quadratic that every group pays once (the ridge per leaf, or 0).

A convex quadratic Q(u) >= 0 of K coefficients u is a symmetric matrix M of order K + 1, with blocks H, g and m:

    Q(u)  =  (-u, 1) M (-u, 1)'  =  u'H u - 2 g'u + m

The Gram matrix of rows (x, y) gives the sum of the squares (y - x'u)^2, and sums of quadratics are sums of matrices.

*Least value.* With H = L L', min over u of Q(u) = m - |L^-1 g|^2: the last pivot of the Cholesky factorisation of M.

*No curvature.* A pivot below a small share of its diagonal entry counts as 0. As Q >= 0, Q is constant in this
direction: it is left out, or gets the pivot 1 and the mark ``curved`` = 0.

*Shifted minimum.* min over v of  sum_i theta_i v_i^2 - 2 s'v + v'A v - 2 b'v + value,  a factorisation with its forward
substitution. In exact arithmetic the pivot of direction i is at least theta_i, which also holds for the one used.
Without that, for theta_i = 0 in a curved direction, a vanishing pivot makes the minimum -infinity. Directions that are
not curved have no shift, and if their pivot vanishes, no slope: these are left out.

The diagonals of factors hold reciprocals. Loops are written out, because array expressions take seconds to compile.
"""

from dataclasses import dataclass

import numpy as np

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.jit import compiled
from formulations.rounding import PIVOT_TOLERANCE


@dataclass(frozen=True)
class GroupChoice:
    """The quadratics Q_p and Q_0, and the rows r_p and r."""

    quadratics: FloatArray
    base: FloatArray
    rows: IntArray
    least_rows: int

    @property
    def patterns(self) -> int:
        return len(self.rows)

    def cost(self, member: BoolArray) -> float:
        """c_G of the members."""
        return float(least_value(self.base + self.quadratics[member].sum(axis=0), np.zeros_like(self.base)))


@compiled
def set_quadratic(M, value):  # type: ignore[no-untyped-def]
    """M = value, in place."""
    for i in range(M.shape[0]):
        for j in range(M.shape[1]):
            M[i, j] = value[i, j]


@compiled
def add_quadratic(M, other, sign):  # type: ignore[no-untyped-def]
    """M + sign * other, in place."""
    for i in range(M.shape[0]):
        for j in range(M.shape[1]):
            M[i, j] += sign * other[i, j]


@compiled
def least_value(M, L):  # type: ignore[no-untyped-def]
    """min over u of the quadratic M; L is workspace."""
    order = M.shape[0]
    for i in range(order):
        for j in range(i):
            total = M[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = total * L[j, j]
        total = M[i, i]
        for k in range(i):
            total -= L[i, k] * L[i, k]
        if i == order - 1:
            return max(total, 0.0)
        # The reciprocal of the pivot, or 0 if the direction has no curvature.
        L[i, i] = 1.0 / np.sqrt(total) if total > PIVOT_TOLERANCE * M[i, i] else 0.0
    return 0.0


@compiled
def minimise(M, L, curved, center, K):  # type: ignore[no-untyped-def]
    """min over u of the quadratic M, its minimiser in ``center``; leaves the factor of its H in L."""
    factorise(M, L, curved, K)
    value = M[K, K]
    for i in range(K):
        center[i] = M[K, i]
    forward(L, center, K)
    for i in range(K):
        center[i] *= curved[i]
        value -= center[i] * center[i]
    backward(L, center, K)
    return max(value, 0.0)


@compiled
def factorise(H, L, curved, K):  # type: ignore[no-untyped-def]
    """L L' = H + 1 on the diagonal of directions without curvature."""
    for i in range(K):
        for j in range(i):
            total = H[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = total * L[j, j] * curved[j]
        total = H[i, i]
        for k in range(i):
            total -= L[i, k] * L[i, k]
        if total > PIVOT_TOLERANCE * H[i, i]:
            L[i, i], curved[i] = 1.0 / np.sqrt(total), 1.0
        else:
            L[i, i], curved[i] = 1.0, 0.0


@compiled
def forward(L, x, K):  # type: ignore[no-untyped-def]
    """L^-1 x, in place."""
    for i in range(K):
        total = x[i]
        for k in range(i):
            total -= L[i, k] * x[k]
        x[i] = total * L[i, i]


@compiled
def backward(L, x, K):  # type: ignore[no-untyped-def]
    """L^-T x, in place."""
    for i in range(K - 1, -1, -1):
        x[i] *= L[i, i]
        value = x[i]
        for k in range(i):
            x[k] -= L[i, k] * value


@compiled
def shifted_minimum(packed, s, theta, curved, K, L, v):  # type: ignore[no-untyped-def]
    """The shifted minimum, its minimiser in v; ``packed`` has the lower triangle of A, b and the value, in a row."""
    b = K * (K + 1) // 2
    value = packed[b + K]
    for i in range(K):
        total = packed[b + i] + s[i]
        row = i * (i + 1) // 2
        for j in range(i):
            entry = packed[row + j]
            for k in range(j):
                entry -= L[i, k] * L[j, k]
            entry *= L[j, j]
            L[i, j] = entry
            total -= entry * v[j]
        diagonal = packed[row + i] + theta[i]
        pivot = diagonal
        for k in range(i):
            pivot -= L[i, k] * L[i, k]
        pivot = max(pivot, theta[i])
        if pivot > PIVOT_TOLERANCE * diagonal:
            L[i, i] = 1.0 / np.sqrt(pivot)
        elif curved[i] == 0.0 or total == 0.0:
            L[i, i] = 0.0
        else:
            return -np.inf
        v[i] = total * L[i, i]
        value -= v[i] * v[i]
    backward(L, v, K)
    return value
