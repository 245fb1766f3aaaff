"""Proofs for the weights of a stack.

On held-out predictions z_i of K candidates the weights minimise, over the simplex,

    f(w) = sum_i q_i (y_i - z_i'w)^2 + rho sum_k (w_k - 1/K)^2,     rho = shrinkage / n  min_k sum_i q_i (y_i - z_ik)^2,

with q_i = s_i / sum s, n the number of rows, and one term per row and class in classification. By convexity
min f >= f(w) - (g'w - min_k g_k) with the gradient g at w. The weights are the given doubles divided by their exact
sum. Everything is computed in balls; the objective is compared up to 1e-8 of f at equal weights, the bound without any
tolerance. The held-out predictions are part of the certificate, not proven.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import flint
import numpy as np
from flint import arb, fmpz_mat

from admiss.verification.claim import Proof, Rows, as_float, number, require
from admiss.verification.exact import PRECISION, ends_of, integers_of
from formulations.arrays import FloatArray
from formulations.certificate import Certificate

GAP, STATED = Fraction(1, 10**7), Fraction(1, 10**8)


def verify_stack(certificate: Certificate, evidence: Mapping[str, Any], rows: Rows, proof: Proof) -> None:
    """Prove the claims one after the other; the proof collects what was shown."""
    arrays, program = evidence["arrays"], evidence["program"]
    Z, tested, w = arrays["held_out"], arrays["tested"], arrays["combination"]
    Y = rows.y
    inside = len(tested) > 0 and bool(np.all((tested >= 0) & (tested < len(Y))))
    require(inside and Z.shape == (len(tested), Y.shape[1], len(w)), "the held-out predictions do not fit the rows")
    require(bool(np.all(w >= 0)) and abs(float(w.sum()) - 1.0) < 1e-9, "the weights are not a convex combination")
    with flint.ctx.workprec(PRECISION):
        errors = _error_products(Z, Y[tested], rows.s[tested])
        value, bound, size = _value_and_bound(errors, w, program["shrinkage"], len(Y))
        tolerance, (low, high), proven = ends_of(size)[1], ends_of(value), ends_of(bound)[0]
    proof.objective = as_float(low), as_float(high, upwards=True)
    proof.optimum = as_float(proven), proof.objective[1]
    finite = bool(np.isfinite(certificate.objective) and np.isfinite(certificate.bound))
    require(finite, "objective or bound is not a number")
    stated = Fraction(certificate.objective)
    fits = low - STATED * tolerance <= stated <= high + STATED * tolerance
    require(fits, f"the weights have the objective {as_float(low)!r}, not {certificate.objective!r}")
    proof.add(f"the weights have the objective {number(as_float(low))} on the held-out predictions, as stated")
    above = f"weights are proven to cost at least {as_float(proven)!r}, less than the stated {certificate.bound!r}"
    require(Fraction(certificate.bound) <= proven, above)
    proof.add(f"no weights have an objective below {number(as_float(proven))}")
    if certificate.status == "optimal":
        closed = stated - Fraction(certificate.bound) <= GAP * tolerance
        require(closed, f'the gap is not closed, although the status is "optimal": {certificate.gap:.3g}')


def _error_products(Z: FloatArray, Y: FloatArray, s: FloatArray) -> list[list[arb]]:
    """sum_i q_i (y_i - z_ik)(y_i - z_il) for all candidates k and l."""
    K = Z.shape[2]
    # one column with all numbers, so that predictions and targets have the same exponent
    table = np.column_stack([Z.reshape(-1, K), Y.ravel()])
    integers, weights = integers_of(table.reshape(-1, 1)), integers_of(np.repeat(s, Y.shape[1])[:, None])
    N = fmpz_mat(len(table), K + 1, integers.numbers)
    errors = N * fmpz_mat(K + 1, K, [int(i == K) - int(i == k) for i in range(K + 1) for k in range(K)])
    weighted = fmpz_mat(*_times(errors, weights.numbers))
    unit = arb((1, -2 * integers.exponents[0])) / sum(weights.numbers)
    return [[unit * entry for entry in row] for row in (weighted.transpose() * errors).tolist()]


def _times(matrix: fmpz_mat, factors: list[int]) -> tuple[int, int, list[Any]]:
    entries = [entry * factor for row, factor in zip(matrix.tolist(), factors, strict=True) for entry in row]
    return matrix.nrows(), matrix.ncols(), entries


def _value_and_bound(errors: list[list[arb]], w: FloatArray, shrinkage: float, n: int) -> tuple[arb, arb, arb]:
    """f(w), its lower bound, and f at equal weights."""
    K = len(w)
    given = [arb(float(part)) for part in w]
    total = sum(given, arb(0))
    weights = [part / total for part in given]
    smallest = errors[0][0]
    for k in range(1, K):
        smallest = smallest.min(errors[k][k])
    rho = arb(shrinkage) / n * smallest
    away = [part - arb(1) / K for part in weights]
    products = [sum((entry * part for entry, part in zip(row, weights, strict=True)), arb(0)) for row in errors]
    value = sum((p * x + rho * v * v for p, x, v in zip(products, weights, away, strict=True)), arb(0))
    gradient = [2 * (p + rho * v) for p, v in zip(products, away, strict=True)]
    least = gradient[0]
    for part in gradient[1:]:
        least = least.min(part)
    gap = sum((g * x for g, x in zip(gradient, weights, strict=True)), arb(0)) - least
    equal = sum((entry for row in errors for entry in row), arb(0)) / K**2
    return value, value - gap, equal
