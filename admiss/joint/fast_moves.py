"""The moves of the plain search, found with less work.

A step of mu_j changes the rows in which j is missing, and no others. Where f is linear or logistic, nothing need be
predicted: see :mod:`admiss.joint.linear_moves`. For any other f one call of ``predict`` takes candidates of several
features, both steps of each, rows that change only. A feature that did the same in its last two turns is expected to do
so again, any other to stay; the answers hold until one does otherwise. The next call then asks for as many features as
the last one served, and for twice as many where all was as expected: for trees, which hardly ever move, one call serves
a round. What has declined since the last move is not asked again.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from admiss.joint.linear_moves import linear_steps
from admiss.joint.moves import Moves, rounding_scale, sign_of_move
from admiss.joint.problem import JointProblem, imputed
from formulations.arrays import FloatArray, IntArray

# Most rows of one call of ``predict``, where one feature does not need more.
CALL_ROWS = 100_000


def fast_moves(problem: JointProblem, f: Any, mu: FloatArray, step: FloatArray, orders: IntArray) -> Moves:
    """The inner loop of Algorithm 2; parameters as in :func:`admiss.joint.paper_search.inner_search`."""
    X = imputed(problem.X, mu)
    outputs = problem.outputs(f, X)
    can_move = problem.M.any(axis=0) & (step > 0)
    orders = orders[can_move[orders]].reshape(len(orders), -1)
    steps = linear_steps(problem, f, X, outputs, step, orders)
    if steps is None:
        return _batched_moves(problem, f, X, outputs, mu, step, orders)
    mu = mu.copy()
    moves = [(int(j), float(sign * step[j])) for j, sign in steps]
    for j, delta in moves:
        mu[j] += delta
    return Moves(mu, tuple(moves), 1, len(X))


def _batched_moves(
    problem: JointProblem,
    f: Any,
    X: FloatArray,
    outputs: FloatArray,
    mu: FloatArray,
    step: FloatArray,
    orders: IntArray,
) -> Moves:
    state = _Rows(problem, f, X, outputs)
    a, b = rounding_scale(problem)
    moves: list[tuple[int, float]] = []
    mu, length = mu.copy(), orders.shape[1]
    last, expected = np.zeros(len(mu), dtype=int), np.zeros(len(mu), dtype=int)
    declined: set[int] = set()  # since anything moved
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
    """The rows at the current mu: what f says about them, and what that costs."""

    def __init__(self, problem: JointProblem, f: Any, X: FloatArray, outputs: FloatArray) -> None:
        self.problem, self.f, self.X, self.outputs = problem, f, X, outputs
        self.rows = [np.flatnonzero(missing) for missing in problem.M.T]
        self.additive = problem.error != "auc"
        self.calls, self.predicted = 1, len(X)
        self.error = problem.total_error(outputs)
        if self.additive:
            self.losses, self.total_weight = problem.losses(outputs), problem.sample_weight.sum()

    def block(self, order: list[int], expected: IntArray, declined: set[int], length: int) -> list[int]:
        """The features to ask about in one call, at most ``length``."""
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
        """Each feature with the outputs of the rows in which it is missing, a step down and a step up.

        They hold where the features before it in the block move as expected.
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
        """How much the error falls with other outputs of the rows in which j is missing."""
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
