"""Primal and dual of the weights of a stack, enclosed in balls.

On held-out predictions z_i of K candidates the weights minimise, over the simplex,

    f(w) = sum_i q_i (y_i - z_i'w)^2 + rho sum_k (w_k - 1/K)^2,     rho = shrinkage / n  min_k sum_i q_i (y_i - z_ik)^2,

with q_i = s_i / sum s, n the number of rows, and one term per row and class in classification. By convexity
min f >= f(w) - (g'w - min_k g_k) with the gradient g at w. The weights are the given doubles divided by their exact
sum. Tolerances are shares of f at equal weights. The held-out predictions are part of the certificate, not proven; its
digest says whether they are those of the rows.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import flint
import numpy as np
from flint import arb, arb_mat, fmpz_mat

from admiss.estimator.evidence import data_digest
from admiss.verification.claim import Recomputed, Rows, require
from admiss.verification.exact import PRECISION, ends_of, integers_of
from formulations.arrays import FloatArray
from formulations.certificate import GAP_TOLERANCE

# Share by which a stated objective may be off: far above rounding.
STATED = Fraction(1, 10**8)


def recompute_stack(evidence: Mapping[str, Any], rows: Rows) -> Recomputed:
    """Value of the weights and their bound."""
    arrays, program = evidence["arrays"], evidence["program"]
    s = rows.s / rows.s.mean()
    Y = _indicators(rows.y) if program["task"] == "classification" else rows.y
    if "digest" in evidence:
        fits = evidence["digest"] == data_digest(program, rows.X, Y, s)
        require(fits, "the data or the settings are not those of the certificate (their digest differs)")
    Z = arrays["held_out"]
    tested = arrays["tested"]
    w = arrays["combination"]
    inside = len(tested) > 0 and bool(np.all((tested >= 0) & (tested < len(Y))))
    require(inside and Z.shape == (len(tested), Y.shape[1], len(w)), "the held-out predictions do not fit the rows")
    require(bool(np.all(w >= 0)) and abs(float(w.sum()) - 1.0) < 1e-9, "the weights are not a convex combination")
    with flint.ctx.workprec(PRECISION):
        errors = _error_products(Z, Y[tested], s[tested])
        value, bound, equal = (ends_of(ball) for ball in _value_and_bound(errors, w, program["shrinkage"], len(Y)))
    stated = STATED * equal[1]
    return Recomputed(value, stated, stated, Fraction(GAP_TOLERANCE) * equal[1], lambda _: bound[0], ())


def _indicators(y: FloatArray) -> FloatArray:
    """Indicators of the classes from targets -1 and 1; two classes have one target."""
    positive = (y > 0).astype(float)
    return np.column_stack([1.0 - positive, positive]) if y.shape[1] == 1 else positive


def _error_products(Z: FloatArray, Y: FloatArray, s: FloatArray) -> arb_mat:
    """sum_i q_i (y_i - z_ik)(y_i - z_il) for all candidates k and l."""
    K = Z.shape[2]
    # one column with all numbers, so that predictions and targets have the same exponent
    table = np.column_stack([Z.reshape(-1, K), Y.ravel()])
    integers = integers_of(table.reshape(-1, 1))
    weights = integers_of(np.repeat(s, Y.shape[1])[:, None]).numbers
    N = fmpz_mat(len(table), K + 1, integers.numbers)
    errors = N * fmpz_mat(K + 1, K, [int(i == K) - int(i == k) for i in range(K + 1) for k in range(K)])
    weighted = [entry * weights[i // K] for i, entry in enumerate(errors.entries())]
    unit = arb((1, -2 * integers.exponents[0])) / sum(weights)
    return arb_mat(fmpz_mat(len(table), K, weighted).transpose() * errors) * unit


def _value_and_bound(errors: arb_mat, w: FloatArray, shrinkage: float, n: int) -> tuple[arb, arb, arb]:
    """f(w), its lower bound, and f at equal weights."""
    K = len(w)
    parts = [arb(part) for part in w.tolist()]
    total = sum(parts, arb(0))
    weights = [part / total for part in parts]
    least = errors[0, 0]
    for k in range(1, K):
        least = least.min(errors[k, k])
    rho = arb(shrinkage) / n * least
    away = [part - arb(1) / K for part in weights]
    products = (errors * arb_mat(K, 1, weights)).entries()
    value = sum((p * x + rho * v * v for p, x, v in zip(products, weights, away, strict=True)), arb(0))
    slopes = [2 * (p + rho * v) for p, v in zip(products, away, strict=True)]
    steepest = slopes[0]
    for slope in slopes[1:]:
        steepest = steepest.min(slope)
    gap = sum((g * x for g, x in zip(slopes, weights, strict=True)), arb(0)) - steepest
    return value, value - gap, sum(errors.entries(), arb(0)) / K**2
