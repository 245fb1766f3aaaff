"""The moves of Algorithm 2 for any predictor: the rule for a step, the plain search, and the same moves with less work.

    a step is made if it lowers the error by more than   1e-12 (error + a + b sqrt(error)),

about a thousand times what rounding can do to the error: a = 0 and b = sqrt(mean(y^2)) for the squared error, whose
rounding is that of predictions times residuals, and a = 1, b = 0 for the log-loss and the area under the curve.

A step of mu_j changes only the rows in which j is missing, so one call of ``predict`` takes both steps of several
features, for the rows that change. A feature that made the same move in its last two turns is expected to make it
again, any other to stay; the predictions are valid until a feature does otherwise. The next call tries as many features
as the last one settled, or twice as many if all did as expected: for trees, which hardly ever move, one call settles a
round. Features that have declined since the last move are not tried again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from admiss.joint.problem import JointProblem, imputed
from formulations.arrays import FloatArray, IntArray
from formulations.jit import compiled

# Largest number of rows in one call of ``predict``, unless a single feature needs more.
CALL_ROWS = 100_000


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
        self.problem, self.f, self.X, self.outputs = problem, f, X, outputs
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
