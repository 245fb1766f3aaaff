"""Primal and dual of adaptive linear models.

The bound is proven from the certificate's dual point, or, if it has none, from the derivative of the loss at the
model's predictions, as :mod:`formulations.erm.dual_bound` has it. A dual point that is stated must be feasible up to a
share of 1e-6. The scale of the tolerances is the objective or the risk of the null model, in the loss of the fit.

*The program* is rebuilt from the definition of the class. Column (j, k) is  (x_j - c_j) (1 - m_j) phi_k(m) / scale_j
with x_0 = 1, c_0 = 0. Differences and products are rounded to doubles: these are the data of the program. Here, columns
are divided by powers of two near the scales, which is exact, and penalties changed accordingly. Columns that are 0 on
all rows are left out, and constant ones if there is a free intercept. The penalties of coefficients of columns divided
by the scales are

    l1_k = alpha lambda u1_k,   l2_k = (1 - alpha) lambda u2_k

with u1_k = u2_k = c_k f_k / n_k ("count") or u1_k = t_k (1 + c_k z_k) f_k / S, u2_k = t_k u1_k ("authors"); n_k is the
weight of the rows in which x_j is observed and phi_k is not 0, z_k the share of rows in which the column is 0 (below
2^-35 of the standard deviation of x_j, or 2^-42 of c_j: the accuracy of c_j), t_k its standard deviation (1 if features
are not scaled), f_k is the penalty factor of the class, and c_k is ``adaptive_penalty`` if phi_k varies, else 1. With
"auto" it is 8 times the number of columns of the feature whose phi varies, if another one does not, and 1 for
intercepts and for a class with penalty factors of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import has_fit_parameter

from admiss.adaptivity import ADAPTIVITY_CLASSES, Adaptivity
from admiss.verification.claim import NotCoveredError, Recomputed, Rows, as_float, check_coordinates, require
from admiss.verification.dual import PenalisedRisk, stated_loss
from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.certificate import GAP_TOLERANCE
from formulations.erm.risk import null_risk
from formulations.losses import Logistic

# Entries of the largest design that is verified: as integers of 40 bytes they take 0.8 GB.
MOST_ENTRIES = 2 * 10**7
# Largest gap of an optimal fit, and share by which a stated objective may be too low: far above rounding.
GAP, ROUNDED = Fraction(GAP_TOLERANCE), Fraction(1, 10**9)


@dataclass(frozen=True)
class Columns:
    """Columns divided by powers of two, these, penalties, and which are free."""

    A: FloatArray
    divisor: FloatArray
    l1: FloatArray
    l2: FloatArray
    free: BoolArray


def recompute_linear(evidence: Mapping[str, Any], rows: Rows, dual: FloatArray | None, model: Any) -> Recomputed:
    """Value of the coefficients and the dual bound; ``model`` is needed for a class that is not of this package."""
    program, arrays = evidence["program"], evidence["arrays"]
    columns = rebuilt_columns(program, arrays["centre"], arrays["scale"], rows, model)
    (n, p), outputs = columns.A.shape, rows.y.shape[1]
    coefficients = np.atleast_2d(arrays["coefficients"])
    fits = coefficients.shape == (outputs, p) and bool(np.isfinite(coefficients).all())
    require(fits, "the coefficients are not those of the columns of the class")
    loss = stated_loss(program["loss"])
    risks = [PenalisedRisk(columns.A, y, rows.s, columns.l1, columns.l2, loss) for y in rows.y.T]
    solutions = list(zip(risks, coefficients * columns.divisor, strict=True))
    values = [risk.value(w) for risk, w in solutions]
    low, high = (sum(ends, Fraction(0)) for ends in zip(*values, strict=True))
    null_risks = (Fraction(null_risk(risk.risk, columns.free)) for risk in risks)
    size = sum((max(value[1], null) for value, null in zip(values, null_risks, strict=True)), Fraction(0))

    def optimum(enough: Fraction) -> Fraction:
        own = dual if outputs == 1 else None
        return sum((_bound(risk, columns, w, own, enough) for risk, w in solutions), Fraction(0))

    lines = (f"the program has {n:,} rows and {p} columns",)
    return Recomputed((low, high), ROUNDED * size, GAP * size, GAP * size, optimum, lines)


def _bound(risk: PenalisedRisk, columns: Columns, w: FloatArray, dual: FloatArray | None, enough: Fraction) -> Fraction:
    """The bound from the certificate's dual point theta_i = q_i t_i, or from the predictions.

    Columns with a weak penalty are met exactly if those without penalty are not enough.
    """
    q, least_scale = risk.risk.q, 0.0
    if dual is not None and dual.shape == q.shape:
        t, least_scale = dual / q, 1.0 - GAP_TOLERANCE
    else:
        t = _derivative(risk, columns, w)
    bound = risk.bound(t, w, least_scale)
    if bound >= enough:
        return bound
    return max(bound, risk.bound(t, w, least_scale, as_float(risk.value(w)[1])))


def _derivative(risk: PenalisedRisk, columns: Columns, w: FloatArray) -> FloatArray:
    """The derivative of the loss at the predictions."""
    if not risk.loss.smooth:
        raise NotCoveredError(f"a model with the loss {type(risk.loss).__name__} is verified only with a dual point")
    t = risk.loss.derivative(risk.y, risk.A @ w)
    if isinstance(risk.loss, Logistic):  # the infimum over a free intercept of one class alone is 0, at t = 0
        cells = risk.A[:, columns.free] != 0
        mixed = np.array([len(np.unique(risk.y[cell])) > 1 for cell in cells.T], dtype=bool)
        t = np.where(cells[:, ~mixed].any(axis=1), 0.0, t)
    return t


def rebuilt_columns(
    program: Mapping[str, Any], centre: FloatArray, scale: FloatArray, rows: Rows, model: Any
) -> Columns:
    """The program for these rows; ``model`` is needed for a class that is not of this package."""
    observed = ~np.isnan(rows.X).all(axis=0)
    X = rows.X[:, observed]
    M = np.isnan(X)
    fresh = _unfitted(program, model)
    scaled = program["scale"] and fresh.linear_in_x
    centred = program["center"] and program["fit_intercept"] and fresh.linear_in_x
    spread = check_coordinates(Rows(X, rows.y, rows.s), centre, scale, centred, scaled)
    if not fresh.linear_in_x:
        spread = np.ones(X.shape[1])
    zero = np.append(2.0**-35, np.maximum(2.0**-35 * spread, 2.0**-42 * np.abs(centre)))
    X = X - centre
    weighted = {"sample_weight": rows.s} if has_fit_parameter(fresh, "sample_weight") else {}
    adaptivity = fresh.fit(X, M, **weighted)
    phi = adaptivity.basis(M.astype(float))
    phi = phi.toarray() if sp.issparse(phi) else np.asarray(phi, dtype=float)
    pairs = np.argwhere(adaptivity.mask(X.shape[1]))
    if len(X) * len(pairs) > MOST_ENTRIES:
        raise NotCoveredError(f"a design of {len(X):,} rows and {len(pairs):,} columns is too large to verify")

    j, k = pairs.T
    is_used = np.column_stack([np.ones(len(X), dtype=bool), ~M])[:, j] & (phi[:, k] != 0)
    counts = rows.s @ is_used
    if type(adaptivity).columns is Adaptivity.columns:
        values = np.column_stack([np.ones(len(X)), np.where(M, 0.0, X)])[:, j] * phi[:, k]
    else:
        own = adaptivity.columns(X, M)
        values = own.toarray() if sp.issparse(own) else np.asarray(own, dtype=float)
    if type(adaptivity).counts is not Adaptivity.counts:
        patterns, codes = np.unique(M, axis=0, return_inverse=True)
        weights = np.asarray(np.bincount(codes.ravel(), rows.s, len(patterns)), dtype=float)
        counts = np.asarray(adaptivity.counts(patterns, weights))[j, k]
    of_pairs = np.zeros((X.shape[1] + 1, phi.shape[1]))
    of_pairs[j, k] = counts
    factors = np.asarray(adaptivity.penalty_factors(of_pairs), dtype=float)[j, k]
    varies = ~((phi.min(axis=0) == phi.max(axis=0)) & (phi[0] != 0))[k]
    free = j == 0
    if not adaptivity.cells:
        free &= ~varies
        free[np.flatnonzero(free)[1:]] = False

    low, high = values.min(axis=0), values.max(axis=0)
    is_used_column = (counts > 0) & ((low != 0) | (high != 0))
    is_used_column &= (free | (low != high)) if program["fit_intercept"] else ~free
    divisor = np.append(1.0, scale)[j]
    if program["fit_intercept"] and not free.any():
        values, divisor = np.column_stack([values, np.ones(len(X))]), np.append(divisor, 1.0)
        counts = np.append(counts, rows.s.sum())
        factors = np.append(factors, 1.0)
        is_used_column = np.append(is_used_column, True)
        free = np.append(free, True)
        varies = np.append(varies, False)
        j = np.append(j, 0)
    A = values[:, is_used_column]
    divisor = divisor[is_used_column]
    free = free[is_used_column]
    counts = counts[is_used_column]
    of_class = 1.0 if adaptivity.has_penalty_factors() else "auto"
    stated = of_class if program["adaptive_penalty"] == "auto" else program["adaptive_penalty"]
    c = _multipliers(stated, j[is_used_column], varies[is_used_column])
    used = rows.s @ (np.abs(A) > zero[j[is_used_column]]) / rows.s.sum()
    l1, l2 = _penalties(program, A / divisor, rows.s, free, c, counts, used, factors[is_used_column])
    power = np.exp2(np.round(np.log2(divisor)))
    change = divisor / power
    return Columns(A / power, power, l1 * change, l2 * change**2, free)


def _unfitted(program: Mapping[str, Any], model: Any) -> Adaptivity:
    """The adaptivity class, to be fitted again."""
    known = {kind.__name__: kind for kind in ADAPTIVITY_CLASSES.values()}
    if model is not None:
        fresh = type(model.design_.adaptivity)(**model.design_.adaptivity.get_params())
    elif program["adaptivity"] in known:
        fresh = known[program["adaptivity"]](**program["adaptivity_parameters"])
    else:
        raise NotCoveredError(f"{program['adaptivity']} is not a class of admiss: verify the model, not its file")
    if fresh.has_structure():
        raise NotCoveredError(f"models with the structure of {program['adaptivity']} are not verified")
    return fresh


def _multipliers(stated: float | str, j: IntArray, varies: BoolArray) -> FloatArray:
    """c_k of columns of these features."""
    if stated != "auto":
        return np.where(varies, float(stated), 1.0)
    c = np.ones(len(j))
    for feature in set(j[varies]) & set(j[~varies]) - {0}:
        departs = (j == feature) & varies
        c[departs] = 8.0 * departs.sum()
    return c


def _penalties(
    program: Mapping[str, Any],
    A: FloatArray,
    s: FloatArray,
    free: BoolArray,
    c: FloatArray,
    counts: FloatArray,
    used: FloatArray,
    factors: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    if program["penalty_weights"] == "count":
        u1 = u2 = c * factors / counts
    else:
        q = s / s.sum()
        deviation = np.sqrt(q @ (A - q @ A) ** 2) if program["scale"] else np.ones(len(c))
        u1 = deviation * (1.0 + c * (1.0 - used)) * factors / s.sum()
        u2 = deviation * u1
    lam, alpha = program["lam"], program["l1_ratio"]
    return np.where(free, 0.0, alpha * lam * u1), np.where(free, 0.0, (1.0 - alpha) * lam * u2)
