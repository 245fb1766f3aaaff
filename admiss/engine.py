"""Single fits by the fast engine, with the certificate of the same program.

The squared loss goes through its sufficient statistics (:mod:`admiss.moments`) and a short path
(:mod:`admiss.elastic_net`), the logistic loss through proximal Newton steps (:mod:`admiss.logistic_path`). Without
penalty the solution of minimum norm is taken: of all w with the same predictions on the training rows, the one with the
least sum of w_k^2 over the columns that are not free.

The bound is that of :mod:`formulations.optimality`. For the squared loss, with g = H w - b, the risk R and the scale
tau <= 1 of the dual point, it reads

    D(tau) = 2 tau (rho - b'w / 2) - tau^2 R - sum_k (tau |g_k| - l1_k)_+^2 / (2 l2_k).
"""

import time
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from admiss._version import __version__
from admiss.design import Design
from admiss.elastic_net import quadratic_path
from admiss.logistic_path import logistic_path
from admiss.moments import Quadratic, eliminate, moments_of, shift_of
from admiss.patterns import BoolArray, FloatArray
from admiss.penalty import Penalty
from formulations.certificate import Certificate
from formulations.optimality import dual_bound
from formulations.risk import EmpiricalRisk, centred, compressed_squared_risk

# Columns beyond which the matrix of cross products is not formed.
MAX_COLUMNS = 5000
# A feature whose mean is more standard deviations away from 0 cannot be told from its indicator by cross products.
MAX_OFFSET = 1e4
# The conditions must hold to this share of the largest gradient for a fit to be returned.
ACCEPTED = 1e-8
# Steps of the path to a single lambda, for each factor of 10 below the lambda at which all coefficients are 0.
STEPS_PER_DECADE = 6


def suits(design: Design) -> bool:
    """Whether cross products of the columns are small enough and accurate enough."""
    return len(design.pairs) <= MAX_COLUMNS and bool(np.all(np.abs(design.mean) <= MAX_OFFSET * design.scale))


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
    objective, bound = _objective_and_bound(quadratic, l1[k], l2[k], w[k])
    return w, _certificate(objective, bound, began)


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

    def dual(scale: float) -> float:
        excess = np.maximum(scale * g - l1, 0.0)[soft]
        return 2 * scale * (quadratic.rho - linear / 2) - scale**2 * risk - float(np.sum(excess**2 / (2 * l2[soft])))

    # without penalty the conditions g = 0 hold up to rounding, which scaling cannot mend
    unpenalised = bool(np.any(hard & (l1 == 0)))
    objective = risk + float(l1 @ np.abs(w) + l2 @ w**2 / 2)
    return objective, dual(1.0) if unpenalised else dual(tau)


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
    theta = risk.q * risk.loss.derivative(risk.y, A @ v)
    objective = projected.risk.value(v) + float(l1 @ np.abs(v) + l2 @ v**2 / 2)
    bound = dual_bound(projected.risk, l1, l2, theta)
    return projected.restore(v), _certificate(objective, bound, began)


def _logistic_lambdas(risk: EmpiricalRisk, l1: FloatArray, k: BoolArray) -> FloatArray:
    """A few multiples of the penalty that lead to 1."""
    if not np.all(l1[k] > 0) or not k.any():
        return np.ones(1)
    largest = float(np.max(np.abs(risk.gradient(np.zeros(len(l1))))[k] / l1[k]))
    return np.geomspace(largest, 1.0, 1 + int(np.ceil(2 * np.log10(largest)))) if largest > 1.0 else np.ones(1)


def _certificate(objective: float, bound: float, began: float) -> Certificate:
    status = "optimal" if objective - bound <= 1e-6 * abs(objective) else "optimality conditions met, gap not closed"
    return Certificate(objective, bound, status, "admiss engine", __version__, time.perf_counter() - began)
