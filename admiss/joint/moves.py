"""The moves of Algorithm 2 for any predictor: the rule for a step, the plain search, and the same moves with less work.

    a step is made if it lowers the error by more than   1e-12 (error + a + b sqrt(error)),

about a thousand times what rounding can do to the error: a = 0 and b = sqrt(mean(y^2)) for the squared error, whose
rounding is that of predictions times residuals, and a = 1, b = 0 for the log-loss and the area under the curve.

A step of mu_j changes only the rows in which j is missing, so one call of ``predict`` takes both steps of several
features, for the rows that change. A feature that made the same move in its last two turns is expected to make it
again, any other to stay; the predictions are valid until a feature does otherwise. The next call tries as many features
as the last one settled, or twice as many if all did as expected: for trees, which hardly ever move, one call settles a
round. Features that have declined since the last move are not tried again.

For a linear predictor with weights w and the squared error no candidate is predicted: with residuals r and total weight
S, a step delta of mu_j lowers the error by

    2 delta w_j g_j - delta^2 w_j^2 H_jj,      g = M' diag(s) r / S,   H = M' diag(s) M / S

and g becomes g - delta w_j H_j, so that a move costs d operations, whatever the number of rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import (
    ARDRegression,
    BayesianRidge,
    ElasticNet,
    ElasticNetCV,
    HuberRegressor,
    Lars,
    LassoCV,
    LinearRegression,
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

from admiss.joint.predictor import is_search
from admiss.joint.problem import JointProblem, imputed
from formulations.arrays import FloatArray, IntArray
from formulations.jit import compiled

# Largest number of rows in one call of ``predict``, unless a single feature needs more: 80 MB of 100 features.
CALL_ROWS = 100_000
# Models of scikit-learn, with those derived from them there, whose predictions are X w + b.
LINEAR_MODELS = (
    ARDRegression, BayesianRidge, ElasticNet, ElasticNetCV, HuberRegressor, Lars, LassoCV, LinearRegression, LinearSVR,
    OrthogonalMatchingPursuit, OrthogonalMatchingPursuitCV, QuantileRegressor, Ridge, RidgeCV, TheilSenRegressor,
)  # fmt: skip


@dataclass(frozen=True)
class Moves:
    """Result of an inner search.

    Attributes
    ----------
    mu : array of shape (d,)
    moves : tuple of (feature, step)
        In their order; the step is what was added to mu.
    predict_calls, predicted_rows : int
        Number of calls of ``predict``, and of rows predicted in all of them.
    """

    mu: FloatArray
    moves: tuple[tuple[int, float], ...]
    predict_calls: int
    predicted_rows: int


def rounding_scale(problem: JointProblem) -> tuple[float, float]:
    """The constants a and b of the rule."""
    if problem.error != "squared":
        return 1.0, 0.0
    return 0.0, float(np.sqrt(np.average(problem.y.astype(float) ** 2, weights=problem.sample_weight)))


@compiled
def sign_of_move(gain_down: float, gain_up: float, error: float, a: float, b: float) -> int:
    """-1, 0 or 1, given by how much the steps down and up lower the error; the step down wins ties.

    A decrease of up to a share of 1e-12 is rounding.
    """
    needed = 1e-12 * (error + a + b * np.sqrt(max(error, 0.0)))
    if max(gain_down, gain_up) <= needed:
        return 0
    return 1 if gain_up > gain_down + needed else -1


def plain_moves(problem: JointProblem, f: Any, mu: FloatArray, step: FloatArray, orders: IntArray) -> Moves:
    """Moves found by predicting every row for every candidate."""
    calls = 0

    def error_at(candidate: FloatArray) -> float:
        nonlocal calls
        calls += 1
        return problem.total_error(problem.outputs(f, imputed(problem.X, candidate)))

    a, b = rounding_scale(problem)
    moves: list[tuple[int, float]] = []
    mu, error = mu.copy(), error_at(mu)
    for order in orders:
        before = len(moves)
        for j in order:
            down, up = mu.copy(), mu.copy()
            down[j], up[j] = mu[j] - step[j], mu[j] + step[j]
            errors = {-1: error_at(down), 1: error_at(up)}
            sign = sign_of_move(error - errors[-1], error - errors[1], error, a, b)
            if sign:
                mu, error = (down if sign < 0 else up), errors[sign]
                moves.append((int(j), float(sign * step[j])))
        if len(moves) == before:
            break
    return Moves(mu, tuple(moves), calls, calls * len(problem.X))


def batched_moves(
    problem: JointProblem,
    f: Any,
    X: FloatArray,
    outputs: FloatArray,
    mu: FloatArray,
    step: FloatArray,
    orders: IntArray,
) -> Moves:
    """The same moves from few calls of ``predict``.

    X is x^mu, ``outputs`` are those of f there, and ``orders`` contain only the features that can move.
    """
    state = _Rows(problem, f, X, outputs)
    a, b = rounding_scale(problem)
    moves: list[tuple[int, float]] = []
    mu, length = mu.copy(), orders.shape[1]
    last, expected = np.zeros(len(mu), dtype=int), np.zeros(len(mu), dtype=int)
    declined: set[int] = set()  # since the last move
    for order in orders.tolist():
        position, before = 0, len(moves)
        while block := state.block(order[position:], expected, declined, length):
            length = 2 * len(block)
            for served, (j, down, up) in enumerate(state.candidates(block, mu, step, expected), start=1):
                gains = state.gain(j, down), state.gain(j, up)
                sign = sign_of_move(*gains, state.error, a, b)
                as_expected = sign == expected[j]
                expected[j], last[j] = (sign if sign == last[j] else 0), sign
                if sign:
                    mu[j] += sign * step[j]
                    state.accept(j, mu[j], down if sign < 0 else up, gains[0 if sign < 0 else 1])
                    moves.append((j, float(sign * step[j])))
                    declined.clear()
                else:
                    declined.add(j)
                position = order.index(j) + 1
                if not as_expected:
                    length = served
                    break
        if len(moves) == before:
            break
    return Moves(mu, tuple(moves), state.calls, state.predicted)


class _Rows:
    """The rows at the current mu, with the outputs of f and their losses."""

    def __init__(self, problem: JointProblem, f: Any, X: FloatArray, outputs: FloatArray) -> None:
        self.problem = problem
        self.f = f
        self.X = X
        self.outputs = outputs
        self.rows = [np.flatnonzero(missing) for missing in problem.M.T]
        self.additive = problem.error != "auc"
        self.calls, self.predicted = 1, len(X)
        self.error = problem.total_error(outputs)
        if self.additive:
            self.losses, self.total_weight = problem.losses(outputs), problem.sample_weight.sum()

    def block(self, order: list[int], expected: IntArray, declined: set[int], length: int) -> list[int]:
        """The features to try in one call, at most ``length``."""
        block: list[int] = []
        rows, moving = 0, False
        for j in order:
            if j in declined and not moving:
                continue
            rows += 2 * len(self.rows[j])
            if block and (rows > CALL_ROWS or len(block) == length):
                break
            block.append(j)
            moving = moving or expected[j] != 0
        return block

    def candidates(
        self, block: list[int], mu: FloatArray, step: FloatArray, expected: IntArray
    ) -> Iterator[tuple[int, FloatArray, FloatArray]]:
        """Each feature with the outputs of the rows in which it is missing, after a step down and after a step up.

        They are valid if the features before it in the block move as expected.
        """
        ends = np.cumsum([2 * len(self.rows[j]) for j in block])
        X = np.empty((ends[-1], self.X.shape[1]))
        for j, end in zip(block, ends, strict=True):
            rows, middle = self.rows[j], end - len(self.rows[j])
            X[middle:end] = self.X[rows]
            X[middle - len(rows) : middle] = X[middle:end]
            X[middle - len(rows) : middle, j], X[middle:end, j] = mu[j] - step[j], mu[j] + step[j]
            if expected[j]:
                self.X[rows, j] = mu[j] + expected[j] * step[j]
        for j in block:
            if expected[j]:
                self.X[self.rows[j], j] = mu[j]
        self.calls, self.predicted = self.calls + 1, self.predicted + len(X)
        outputs = self.problem.outputs(self.f, X)
        for j, end in zip(block, ends, strict=True):
            size = len(self.rows[j])
            yield j, outputs[end - 2 * size : end - size], outputs[end - size : end]

    def gain(self, j: int, outputs: FloatArray) -> float:
        """Decrease of the error with other outputs for the rows in which j is missing."""
        rows = self.rows[j]
        if self.additive:
            return float((self.losses[rows] - self.problem.losses(outputs, rows)).sum() / self.total_weight)
        changed = self.outputs.copy()
        changed[rows] = outputs
        return self.error - self.problem.total_error(changed)

    def accept(self, j: int, value: float, outputs: FloatArray, gain: float) -> None:
        """Make a move."""
        rows = self.rows[j]
        self.error -= gain
        self.X[rows, j] = value
        self.outputs[rows] = outputs
        if self.additive:
            self.losses[rows] = self.problem.losses(outputs, rows)


def linear_moves(
    problem: JointProblem,
    f: Any,
    X: FloatArray,
    outputs: FloatArray,
    mu: FloatArray,
    step: FloatArray,
    orders: IntArray,
) -> Moves | None:
    """As :func:`batched_moves`; None unless f is known to be linear and the error squared."""
    weights = linear_weights(f) if problem.error == "squared" else None
    if weights is None:
        return None
    expected = X @ weights
    size = np.abs(outputs).max()
    if not np.allclose(outputs - outputs[0], expected - expected[0], rtol=1e-6, atol=1e-6 * size):
        return None
    share = problem.sample_weight / problem.sample_weight.sum()
    M = problem.M.astype(float)
    weighted = M * share[:, None]
    g, H = weighted.T @ (problem.y - outputs), weighted.T @ M
    error = problem.total_error(outputs)
    signs = _squared_loop(g, H, weights * step, orders, error, *rounding_scale(problem))
    mu = mu.copy()
    moves = [(int(j), float(sign * step[j])) for j, sign in signs]
    for j, delta in moves:
        mu[j] += delta
    return Moves(mu, tuple(moves), 1, len(X))


def linear_weights(f: Any) -> FloatArray | None:
    """Weights w of shape (d,) if f is known to predict X w + b; otherwise None.

    Recognised are linear models of scikit-learn, pipelines of scalers and one of them, and searches by cross-validation
    over these.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X, y = np.array([[0.0], [2.0]]), np.array([0.0, 1.0])
    >>> linear_weights(Ridge(alpha=0).fit(X, y)).round(6).tolist(), linear_weights(DecisionTreeRegressor().fit(X, y))
    ([0.5], None)
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
    return np.ravel(f.coef_).astype(float)


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
