"""Single fits by the fast engine, with the certificate of the same program.

The squared loss goes through its sufficient statistics (:mod:`admiss.linear.moments`) and a short path
(:mod:`formulations.erm.quadratic_path`), the logistic loss through proximal Newton steps (:mod:`formulations.erm.logistic_path`). Without
penalty the solution of minimum norm is taken: of all w with the same predictions on the training rows, the one with the
least sum of w_k^2 over the columns that are not free.

The bound is that of :mod:`formulations.erm.optimality`. For the squared loss, with g = H w - b, the risk R and the scale
tau <= 1 of the dual point, it reads

    D(tau) = 2 tau (rho - b'w / 2) - tau^2 R - sum_k (tau |g_k| - l1_k)_+^2 / (2 l2_k).
"""

import time
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from admiss._version import __version__
from admiss.linear.design import Design
from admiss.linear.moments import Quadratic, eliminate, moments_of, shift_of
from admiss.linear.penalty import Penalty
from formulations.arrays import BoolArray, FloatArray
from formulations.certificate import Certificate
from formulations.erm.logistic_path import logistic_path
from formulations.erm.optimality import dual_bound, polish
from formulations.erm.quadratic_path import quadratic_path
from formulations.erm.risk import CentredRisk, EmpiricalRisk, centred, compressed_squared_risk

# Columns beyond which the matrix of cross products is not formed.
MAX_COLUMNS = 5000
# A feature whose mean is more standard deviations away from 0 cannot be told from its indicator by cross products.
MAX_OFFSET = 1e4
# Within so many standard deviations of 0 the cross products prove what they compute.
WELL_CONDITIONED = 100.0
# The conditions must hold to this share of the largest gradient for a fit to be returned.
ACCEPTED = 1e-8
# What counts as solved: the gap as a share of the objective or of the risk of the null model.
GAP_TOLERANCE = 1e-6
# Steps of the path to a single lambda, for each factor of 10 below the lambda at which all coefficients are 0.
STEPS_PER_DECADE = 6


def is_applicable(design: Design) -> bool:
    """Whether cross products of the columns are small enough and accurate enough."""
    return len(design.pairs) <= MAX_COLUMNS and _near_zero(design, MAX_OFFSET)


def fit_squared(
    design: Design, X: FloatArray, y: FloatArray, s: FloatArray, penalty: Penalty
) -> tuple[FloatArray, Certificate] | None:
    """Coefficients and certificate, or None where the conditions could not be met."""
    began = time.perf_counter()
    k, l1, l2 = ~design.free, penalty.l1, penalty.l2
    shift = shift_of(design, X, y, s)
    moments = moments_of(design, X, y, s, shift)
    quadratic = eliminate(moments, design.free)
    if not np.any(l1) and not np.any(l2):
        w = _minimum_norm(design, X, y, s)
        g = quadratic.H @ w[k] - quadratic.b
        violation = np.abs(g).max(initial=0.0) / max(np.abs(quadratic.b).max(initial=0.0), 1e-300)
    else:
        path = quadratic_path(quadratic.H, quadratic.b, l1[k], l2[k], _lambdas_to_one(quadratic, l1[k]))
        w, violation = np.zeros(len(k)), path.violation[-1]
        w[k] = path.w[-1]
        w[~k] = quadratic.free_coefficients(w[k]) + shift.y * quadratic.one - shift.C @ w
    if not violation <= ACCEPTED:
        return None
    if np.all((l1 > 0) | (l2 > 0) | design.free) and _near_zero(design, WELL_CONDITIONED):
        objective, bound = _objective_and_bound(quadratic, l1[k], l2[k], w[k])
    else:
        objective, bound = _from_rows(design, X, y, s, l1, l2, w)
    return _certified(w, objective, bound, quadratic.rho, began)


def _near_zero(design: Design, limit: float) -> bool:
    """Whether no feature lies more than so many standard deviations away from 0."""
    return bool(np.all(np.abs(design.mean) <= limit * design.spread))


def _from_rows(
    design: Design, X: FloatArray, y: FloatArray, s: FloatArray, l1: FloatArray, l2: FloatArray, w: FloatArray
) -> tuple[float, float]:
    """Objective and bound from the rows, where cross products may not be accurate enough."""
    q = s / s.sum()
    projected = centred(compressed_squared_risk((A, y[rows], q[rows]) for rows, A in design.blocks(X)), design.free)
    return _objective_and_dual_bound(projected.risk, l1, l2, projected.reduce(w))


def _objective_and_dual_bound(
    risk: EmpiricalRisk, l1: FloatArray, l2: FloatArray, v: FloatArray
) -> tuple[float, float]:
    objective = risk.value(v) + float(l1 @ np.abs(v) + l2 @ v**2 / 2)
    return objective, dual_bound(risk, l1, l2, risk.q * risk.loss.derivative(risk.y, risk.A @ v))


def _lambdas_to_one(quadratic: Quadratic, l1: FloatArray) -> FloatArray:
    """Multiples of the penalty that lead to 1 from where all coefficients are 0."""
    penalised = l1 > 0
    if not penalised.all() or len(l1) == 0:
        return np.ones(1)
    largest = float(np.max(np.abs(quadratic.b) / l1))
    steps = int(np.ceil(STEPS_PER_DECADE * np.log10(largest))) if largest > 1.0 else 0
    return np.geomspace(largest, 1.0, steps + 1) if steps else np.ones(1)


def _minimum_norm(design: Design, X: FloatArray, y: FloatArray, s: FloatArray) -> FloatArray:
    """Least squares with the least |w_k|, from the rows and not from their squares."""
    q = s / s.sum()
    projected = centred(compressed_squared_risk((A, y[rows], q[rows]) for rows, A in design.blocks(X)), design.free)
    v = np.zeros(len(design.free))
    v[~design.free] = np.linalg.lstsq(projected.risk.A[:, ~design.free], projected.risk.y, rcond=None)[0]
    return projected.restore(v)


def _objective_and_bound(quadratic: Quadratic, l1: FloatArray, l2: FloatArray, w: FloatArray) -> tuple[float, float]:
    Hw, linear = quadratic.H @ w, float(quadratic.b @ w)
    risk = max(0.0, quadratic.rho - linear + float(w @ Hw) / 2.0)
    g = np.abs(Hw - quadratic.b)
    soft = l2 > 0
    over = g > l1
    hard = over & ~soft
    tau = min(1.0, float(np.min(l1[hard] / g[hard], initial=1.0)))
    excess = np.maximum(tau * g - l1, 0.0)[soft]
    objective = risk + float(l1 @ np.abs(w) + l2 @ w**2 / 2)
    dual = 2 * tau * (quadratic.rho - linear / 2) - tau**2 * risk - float(np.sum(excess**2 / (2 * l2[soft])))
    return objective, dual


def fit_logistic(design: Design, risk: EmpiricalRisk, penalty: Penalty) -> tuple[FloatArray, Certificate] | None:
    """Coefficients and certificate, or None where the conditions could not be met."""
    began = time.perf_counter()
    k, l1, l2 = ~design.free, penalty.l1, penalty.l2
    dense = replace(risk, A=risk.A.toarray()) if sp.issparse(risk.A) else risk
    projected = centred(dense, design.free)
    A = projected.risk.A
    f = ~k & (A != 0).any(axis=0)  # a cell may have no rows left
    path = logistic_path(A[:, k], A[:, f], risk.y, risk.q, l1[k], l2[k], _logistic_lambdas(projected.risk, l1, k))
    if not path.violation[-1] <= ACCEPTED:
        return None
    v = np.zeros(len(k))
    v[k], v[f] = path.w[-1], path.free[-1]
    if not np.any(l1) and not np.any(l2):
        v[k] = np.linalg.lstsq(A[:, k], A[:, k] @ v[k], rcond=None)[0]
    return _prove(projected, l1, l2, v, began) or _prove(projected, l1, l2, polish(projected.risk, l1, l2, v), began)


def _prove(
    projected: CentredRisk, l1: FloatArray, l2: FloatArray, v: FloatArray, began: float
) -> tuple[FloatArray, Certificate] | None:
    objective, bound = _objective_and_dual_bound(projected.risk, l1, l2, v)
    return _certified(projected.restore(v), objective, bound, float(np.log(2.0)), began)


def _logistic_lambdas(risk: EmpiricalRisk, l1: FloatArray, k: BoolArray) -> FloatArray:
    """A few multiples of the penalty that lead to 1."""
    if not np.all(l1[k] > 0) or not k.any():
        return np.ones(1)
    largest = float(np.max(np.abs(risk.gradient(np.zeros(len(l1))))[k] / l1[k]))
    return np.geomspace(largest, 1.0, 1 + int(np.ceil(2 * np.log10(largest)))) if largest > 1.0 else np.ones(1)


def _certified(
    w: FloatArray, objective: float, bound: float, null_risk: float, began: float
) -> tuple[FloatArray, Certificate] | None:
    """The fit with its certificate, or None where objective and bound do not meet."""
    if not abs(objective - bound) <= GAP_TOLERANCE * max(objective, null_risk):
        return None
    return w, Certificate(objective, bound, "optimal", "admiss engine", __version__, time.perf_counter() - began)
