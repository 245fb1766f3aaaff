"""Passes over the rows of a logistic problem, or one with a log link: predictions, slopes, gradients, curvatures.

    z_i = sum_j w_j A_ji,     slope_i = d/dz_i q_i log(1 + exp(-y_i z_i)),     g_j = sum_i A_ji slope_i

Columns are stored contiguously (row j of A is column j of the design), and a set of columns is a list of indices, so
that a pass touches no other column. Rows are taken in blocks that stay in the cache between the two products, and
columns four at a time, so that each sum or slope is loaded once for four of them. Row numbers are unsigned: signed ones
that may be negative, counting from the end, would not be vectorised.
"""

import math
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from formulations.arrays import FloatArray
from formulations.erm.log_link_rows import log_link_risk_of, set_log_link_curvatures, set_log_link_slopes
from formulations.jit import compiled, inlined

# Rows of a block, 4 kB per column; with 4,096, paths of 1,000 to 10,000 rows take the same time.
BLOCK = 512
# exp(t) = 2^k exp(r), r = t - k log 2. The logarithm is the sum of HIGH, 33 bits, whose product with k is exact, and
# LOW; adding SHIFT, whose last bit is 1, rounds to an integer. Down to LEAST_EXPONENT 2^k is a normal number.
LOG_2_HIGH = math.floor(2**33 * math.log(2.0)) / 2**33
LOG_2_LOW = float(Decimal(2).ln() - Decimal(LOG_2_HIGH))
SHIFT = 1.5 * 2 ** np.finfo(float).nmant
LEAST_EXPONENT = -1021.0 * math.log(2.0)
POWERS = 2.0 ** -np.arange(1023.0)


class Rows(NamedTuple):
    """Columns, target and weights of the rows; the power of the variance for a log link, 0 for the logistic loss."""

    A: FloatArray
    y: FloatArray
    q: FloatArray
    power: float


class Point(NamedTuple):
    """Coefficients, predictions, slopes and gradient; w and g in the order of the working set."""

    w: FloatArray
    z: FloatArray
    slope: FloatArray
    g: FloatArray


def empty_point(n: int, p: int) -> Point:
    """Memory for a point."""
    return Point(np.zeros(p), np.zeros(n), np.zeros(n), np.zeros(p))


def _exp(t):  # type: ignore[no-untyped-def]
    """exp(t) for t <= 0 to 3e-16, in plain arithmetic.

    LLVM vectorises it in loops, and np.exp it does not: with that slopes take 3.7 times as long.
    """
    bounded = t if t >= LEAST_EXPONENT else LEAST_EXPONENT
    k = (bounded * (1.0 / LOG_2_HIGH) + SHIFT) - SHIFT
    r = (bounded - k * LOG_2_HIGH) - k * LOG_2_LOW
    value = 1.0 / 479001600.0
    value = value * r + 1.0 / 39916800.0
    value = value * r + 1.0 / 3628800.0
    value = value * r + 1.0 / 362880.0
    value = value * r + 1.0 / 40320.0
    value = value * r + 1.0 / 5040.0
    value = value * r + 1.0 / 720.0
    value = value * r + 1.0 / 120.0
    value = value * r + 1.0 / 24.0
    value = value * r + 1.0 / 6.0
    value = value * r + 0.5
    value = value * r + 1.0
    value = value * r + 1.0
    value = value * POWERS[np.uint32(-k)]
    return t if t != t else value


# Reassociated, k would be t / log 2, not an integer.
exp_of_negative = compiled(_exp, fastmath={"contract"})


@compiled
def set_slopes(power, y, q, z, start, stop, slope):  # type: ignore[no-untyped-def]
    """The derivative of the risk in z_i, for a range of rows."""
    if power > 0.0:
        set_log_link_slopes(power, y, q, z, start, stop, slope)
        return
    for i in range(np.uint64(start), np.uint64(stop)):
        margin = y[i] * z[i]
        e = exp_of_negative(-abs(margin))
        slope[i] = -q[i] * y[i] * (e if margin > 0.0 else 1.0) / (1.0 + e)


@compiled
def set_curvatures(power, y, q, z, weight):  # type: ignore[no-untyped-def]
    """The second derivative of the risk in each z_i."""
    if power > 0.0:
        set_log_link_curvatures(power, y, q, z, weight)
        return
    for i in range(len(z)):
        e = exp_of_negative(-abs(z[i]))
        weight[i] = q[i] * e / ((1.0 + e) * (1.0 + e))


@compiled
def risk_of(power, y, q, z):  # type: ignore[no-untyped-def]
    """The risk; with a log link up to a number that does not depend on z."""
    if power > 0.0:
        return log_link_risk_of(power, y, q, z)
    risk = 0.0
    for i in range(np.uint64(len(y))):
        margin = y[i] * z[i]
        risk += q[i] * (_log_1_plus(exp_of_negative(-abs(margin))) + max(-margin, 0.0))
    return risk


@inlined
def _log_1_plus(u):  # type: ignore[no-untyped-def]
    """log(1 + u) for 0 <= u <= 1, 2 artanh(u / (2 + u)) by its series; np.log1p is not vectorised."""
    s = u / (2.0 + u)
    square = s * s
    value = 1.0 / 31.0
    value = value * square + 1.0 / 29.0
    value = value * square + 1.0 / 27.0
    value = value * square + 1.0 / 25.0
    value = value * square + 1.0 / 23.0
    value = value * square + 1.0 / 21.0
    value = value * square + 1.0 / 19.0
    value = value * square + 1.0 / 17.0
    value = value * square + 1.0 / 15.0
    value = value * square + 1.0 / 13.0
    value = value * square + 1.0 / 11.0
    value = value * square + 1.0 / 9.0
    value = value * square + 1.0 / 7.0
    value = value * square + 1.0 / 5.0
    value = value * square + 1.0 / 3.0
    value = value * square + 1.0
    return 2.0 * s * value


@compiled
def evaluate(rows, work, m, point):  # type: ignore[no-untyped-def]
    """Predictions and slopes at w, and the gradient in the m columns ``work``."""
    n, (w, z, slope, g) = len(rows.y), point
    for k in range(m):
        g[k] = 0.0
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        set_predictions(rows.A, work, m, w, start, stop, z)
        set_slopes(rows.power, rows.y, rows.q, z, start, stop, slope)
        add_products(rows.A, work, m, slope, start, stop, g)


@compiled
def set_predictions(A, work, m, w, start, stop, z):  # type: ignore[no-untyped-def]
    """Set z = A w in a range of rows; a column whose coefficient is 0 is not touched."""
    for i in range(np.uint64(start), np.uint64(stop)):
        z[i] = 0.0
    waiting, zero = 0, np.int64(0)
    j0, j1, j2, j3 = zero, zero, zero, zero
    w0, w1, w2, w3 = 0.0, 0.0, 0.0, 0.0
    for k in range(m):
        if w[k] != 0.0:
            j0, j1, j2, j3 = j1, j2, j3, work[k]
            w0, w1, w2, w3 = w1, w2, w3, w[k]
            waiting += 1
        if waiting == 4 or (waiting > 0 and k == m - 1):
            for i in range(np.uint64(start), np.uint64(stop)):
                z[i] += w0 * A[j0, i] + w1 * A[j1, i] + w2 * A[j2, i] + w3 * A[j3, i]
            waiting = 0
            w0, w1, w2, w3 = 0.0, 0.0, 0.0, 0.0


@compiled
def add_products(A, work, m, slope, start, stop, g):  # type: ignore[no-untyped-def]
    """Add to g_k, for k < m, the product of column work[k] and the slopes of a range of rows."""
    whole = m // 4 * 4
    for k in range(0, whole, 4):
        j0, j1, j2, j3 = work[k], work[k + 1], work[k + 2], work[k + 3]
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for i in range(np.uint64(start), np.uint64(stop)):
            s0 += A[j0, i] * slope[i]
            s1 += A[j1, i] * slope[i]
            s2 += A[j2, i] * slope[i]
            s3 += A[j3, i] * slope[i]
        g[k] += s0
        g[k + 1] += s1
        g[k + 2] += s2
        g[k + 3] += s3
    for k in range(whole, m):
        j0, s0 = work[k], 0.0
        for i in range(np.uint64(start), np.uint64(stop)):
            s0 += A[j0, i] * slope[i]
        g[k] += s0


def column_norms(A: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """sqrt(sum_i q_i A_ji^2) for each column j, and the root mean square of the column times sum_i q_i, 1 if 0."""
    norm = np.sqrt([np.dot(q, column * column) for column in A])
    return norm, np.where(norm > 0.0, norm * np.sqrt(q.sum()), 1.0)


def inverse_of(q: FloatArray) -> FloatArray:
    """1 / q_i, 0 if q_i is 0."""
    return np.divide(1.0, q, out=np.zeros_like(q), where=q > 0.0)
