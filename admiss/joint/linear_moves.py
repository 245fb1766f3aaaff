"""The moves of Algorithm 2 for linear and logistic predictors, without predicting any candidate.

linear, squared error
    With weights w, residuals r and total weight S, a step delta of mu_j lowers the error by

        2 delta w_j g_j - delta^2 w_j^2 H_jj,      g = M' diag(s) r / S,   H = M' diag(s) M / S

    and g becomes g - delta w_j H_j: a move costs d operations, whatever the number of rows.

logistic, log-loss
    A step shifts the margins of the rows in which j is missing. The loss is convex in the shift, so only the step
    against the slope can lower it, and one pass over these rows decides.
"""

import math
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.linear_model import (
    ARDRegression,
    BayesianRidge,
    ElasticNet,
    ElasticNetCV,
    HuberRegressor,
    Lars,
    LassoCV,
    LinearRegression,
    LogisticRegression,
    OrthogonalMatchingPursuit,
    OrthogonalMatchingPursuitCV,
    QuantileRegressor,
    Ridge,
    RidgeCV,
    TheilSenRegressor,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, RobustScaler, StandardScaler
from sklearn.svm import LinearSVR

from admiss.joint.moves import Moves, rounding_scale, sign_of_move
from admiss.joint.predictor import is_search
from admiss.joint.problem import SMALLEST_PROBABILITY, JointProblem
from formulations.arrays import FloatArray, IntArray
from formulations.jit import compiled

LARGEST_LOSS = -math.log(SMALLEST_PROBABILITY)
# Models of scikit-learn, with those derived from them there, whose predictions or log-odds are X w + b.
LINEAR_MODELS = (
    ARDRegression, BayesianRidge, ElasticNet, ElasticNetCV, HuberRegressor, Lars, LassoCV, LinearRegression, LinearSVR,
    LogisticRegression, OrthogonalMatchingPursuit, OrthogonalMatchingPursuitCV, QuantileRegressor, Ridge, RidgeCV,
    TheilSenRegressor,
)  # fmt: skip


def linear_moves(
    problem: JointProblem,
    f: Any,
    X: FloatArray,
    outputs: FloatArray,
    mu: FloatArray,
    step: FloatArray,
    orders: IntArray,
) -> Moves | None:
    """As :func:`admiss.joint.moves.batched_moves`; None unless f is known to be linear or logistic."""
    weights = linear_weights(f)
    margins = None if weights is None else _margins(problem, f, X, outputs, weights)
    if weights is None or margins is None:
        return None
    error = problem.total_error(outputs)
    if problem.error == "squared":
        signs = _squared_steps(problem, margins, error, weights[0], step, orders)
    else:
        signs = _logistic_steps(problem, margins, error, weights, step, orders)
    mu = mu.copy()
    moves = [(int(j), float(sign * step[j])) for j, sign in signs]
    for j, delta in moves:
        mu[j] += delta
    return Moves(mu, tuple(moves), 1, len(X))


def linear_weights(f: Any) -> FloatArray | None:
    """Weights of shape (margins, d) if f is known to be linear in x, or logistic; otherwise None.

    Recognised are linear models of scikit-learn with predictions X w + b, ``LogisticRegression``, pipelines of scalers
    and either of them, and searches by cross-validation over these.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X, y = np.array([[0.0], [2.0]]), np.array([0.0, 1.0])
    >>> linear_weights(Ridge(alpha=0).fit(X, y)).round(6).tolist(), linear_weights(DecisionTreeRegressor().fit(X, y))
    ([[0.5]], None)
    """
    if is_search(f):
        return linear_weights(getattr(f, "best_estimator_", None))
    if isinstance(f, Pipeline):
        weights = linear_weights(f.steps[-1][1])
        for _, scaler in reversed(f.steps[:-1]):
            if type(scaler) not in (StandardScaler, RobustScaler, MaxAbsScaler) or getattr(scaler, "clip", False):
                return None
            if weights is not None and scaler.scale_ is not None:
                weights = weights / scaler.scale_
        return weights
    if not isinstance(f, LINEAR_MODELS) or not type(f).__module__.startswith("sklearn."):
        return None
    return np.atleast_2d(np.asarray(f.coef_, dtype=float))


def _margins(
    problem: JointProblem, f: Any, X: FloatArray, outputs: FloatArray, weights: FloatArray
) -> FloatArray | None:
    """Predictions, or their log-odds, of shape (n, margins); None if they do not agree with the weights."""
    if problem.error == "auc" or len(weights) != (1 if problem.n_classes <= 2 else problem.n_classes):
        return None
    if problem.error == "squared":
        margins = outputs[:, None]
        expected = X @ weights.T
        same = np.allclose(margins - margins[0], expected - expected[0], rtol=1e-6, atol=1e-6 * np.abs(margins).max())
        return margins if same else None
    margins = np.asarray(f.decision_function(X), dtype=float).reshape(len(X), -1)
    if margins.shape[1] != len(weights):
        return None
    probabilities = (
        np.column_stack([expit(-margins), expit(margins)]) if len(weights) == 1 else softmax(margins, axis=1)
    )
    return margins if np.allclose(probabilities, outputs, rtol=1e-9, atol=1e-12) else None


def _squared_steps(
    problem: JointProblem, margins: FloatArray, error: float, w: FloatArray, step: FloatArray, orders: IntArray
) -> IntArray:
    M, share = problem.M.astype(float), problem.sample_weight / problem.sample_weight.sum()
    weighted = M * share[:, None]
    g, H = weighted.T @ (problem.y - margins[:, 0]), weighted.T @ M
    return _squared_loop(g, H, w * step, orders, error, *rounding_scale(problem))


@compiled
def _squared_loop(
    g: FloatArray, H: FloatArray, shift: FloatArray, orders: IntArray, error: float, a: float, b: float
) -> IntArray:
    """Moves as rows (feature, sign); ``shift`` is the change of the predictions by one step up."""
    moves = np.empty((orders.size, 2), dtype=np.int64)
    count = 0
    for order in orders:
        before = count
        for j in order:
            slope, curvature = 2.0 * shift[j] * g[j], shift[j] ** 2 * H[j, j]
            sign = sign_of_move(-slope - curvature, slope - curvature, error, a, b)
            if sign != 0:
                error -= sign * slope - curvature
                for k in range(len(g)):
                    g[k] -= sign * shift[j] * H[j, k]
                moves[count, 0], moves[count, 1] = j, sign
                count += 1
        if count == before:
            break
    return moves[:count]


def _logistic_steps(
    problem: JointProblem, margins: FloatArray, error: float, weights: FloatArray, step: FloatArray, orders: IntArray
) -> IntArray:
    feature, row = np.nonzero(problem.M.T)
    starts = np.searchsorted(feature, np.arange(problem.X.shape[1] + 1))
    share = problem.sample_weight / problem.sample_weight.sum()
    Z = np.ascontiguousarray(margins).copy()
    shift = np.ascontiguousarray(weights.T * step[:, None])
    codes = problem.y.astype(np.int64)
    return _logistic_loop(Z, codes, share, row, starts, shift, orders, error, *rounding_scale(problem))


@compiled
def _logistic_loop(
    Z: FloatArray,
    y: IntArray,
    share: FloatArray,
    row: IntArray,
    starts: IntArray,
    shifts: FloatArray,
    orders: IntArray,
    error: float,
    a: float,
    b: float,
) -> IntArray:
    """Moves as rows (feature, sign); the rows in which j is missing are ``row[starts[j]:starts[j + 1]]``."""
    P, loss = np.empty(Z.shape), np.empty(len(y))  # probabilities, and -log of that of the own class
    new_P, new_loss = np.empty(Z.shape), np.empty(len(y))
    _probabilities(Z, y, np.arange(len(y)), shifts[0], 0.0, P, loss)
    moves = np.empty((orders.size, 2), dtype=np.int64)
    count = 0
    for order in orders:
        before = count
        for j in order:
            rows, shift = row[starts[j] : starts[j + 1]], shifts[j]
            slope, largest = _slope(P, y, loss, share, rows, shift)
            gain_down = gain_up = -np.inf
            # The loss is not convex if the bound on probabilities may be active.
            convex = largest < LARGEST_LOSS
            if not convex or slope > 0:
                _probabilities(Z, y, rows, shift, -1.0, new_P, new_loss)
                gain_down = _fall(loss, new_loss, share, rows)
            if not convex or slope < 0:
                _probabilities(Z, y, rows, shift, 1.0, new_P, new_loss)
                gain_up = _fall(loss, new_loss, share, rows)
            sign = sign_of_move(gain_down, gain_up, error, a, b)
            if sign != 0:
                error -= gain_up if sign > 0 else gain_down
                if not convex and sign < 0:
                    _probabilities(Z, y, rows, shift, -1.0, new_P, new_loss)
                for k in range(len(rows)):
                    i = rows[k]
                    loss[i] = new_loss[k]
                    for c in range(Z.shape[1]):
                        Z[i, c] += sign * shift[c]
                        P[i, c] = new_P[k, c]
                moves[count, 0], moves[count, 1] = j, sign
                count += 1
        if count == before:
            break
    return moves[:count]


@compiled
def _probabilities(
    Z: FloatArray, y: IntArray, rows: IntArray, shift: FloatArray, sign: float, P: FloatArray, loss: FloatArray
) -> None:
    """Probabilities and losses of some rows at the margins Z + sign shift; one margin is that of class 1."""
    for k in range(len(rows)):
        i = rows[k]
        if Z.shape[1] == 1:
            margin = Z[i, 0] + sign * shift[0]
            small = np.exp(-abs(margin))
            P[k, 0] = 1.0 / (1.0 + small) if margin > 0 else small / (1.0 + small)
            wrong = (margin > 0) != (y[i] == 1)
            loss[k] = np.log1p(small) + (abs(margin) if wrong else 0.0)
        else:
            largest = -np.inf
            for c in range(Z.shape[1]):
                largest = max(largest, Z[i, c] + sign * shift[c])
            total = 0.0
            for c in range(Z.shape[1]):
                P[k, c] = np.exp(Z[i, c] + sign * shift[c] - largest)
                total += P[k, c]
            for c in range(Z.shape[1]):
                P[k, c] /= total
            loss[k] = np.log(total) + largest - Z[i, y[i]] - sign * shift[y[i]]
        loss[k] = min(loss[k], LARGEST_LOSS)


@compiled
def _slope(
    P: FloatArray, y: IntArray, loss: FloatArray, share: FloatArray, rows: IntArray, shift: FloatArray
) -> tuple[float, float]:
    """Derivative of the error in the direction of a step up, and a bound on the losses of the rows after a step."""
    slope, largest, step = 0.0, 0.0, 0.0
    for c in range(len(shift)):
        step = max(step, abs(shift[c]))
    for i in rows:
        if P.shape[1] == 1:
            slope += share[i] * shift[0] * (P[i, 0] - y[i])
        else:
            for c in range(P.shape[1]):
                slope += share[i] * shift[c] * (P[i, c] - (1.0 if y[i] == c else 0.0))
        largest = max(largest, loss[i])
    return slope, largest + 2.0 * step


@compiled
def _fall(loss: FloatArray, new_loss: FloatArray, share: FloatArray, rows: IntArray) -> float:
    """Decrease of the error."""
    fall = 0.0
    for k in range(len(rows)):
        fall += share[rows[k]] * (loss[rows[k]] - new_loss[k])
    return fall
