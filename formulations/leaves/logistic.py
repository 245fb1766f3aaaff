"""The cost of a leaf under the logistic loss.

The cost of :mod:`formulations.leaves.cost` is computed by Newton's method with step halving, on the rows of the leaf.
Its equations are scaled to a diagonal of 1, and damped if rounding has made them singular. A leaf with a single class
has no minimiser: w = 0, and b is a log-odds at which the loss is below rounding.

*Splits.* From the model of a leaf, a Newton step on each side of a split predicts its cost. Loss, gradient and Hessian
of one side are those of the leaf minus those of the other, so that all predictions take fewer sums than one step of
each fit. A side with a single class costs nothing; one with few rows of a class is not relied on. Splits are tried in
the order of these costs. One is skipped if the prediction less a wide margin, or the value of the model after the step
less a margin, is too high. To first order in the third derivatives, that value is the cost, so that its margin is a
multiple of its distance to the prediction. Margins were measured: they are no bounds.

By duality, with C the columns, r_j = r(G) d_j and H(p) = - p log p - (1 - p) log(1 - p), the cost is at least

    sum_i s_i H(p_i)  -  sum_j (sum_i s_i y_i p_i C_ij)^2 / (4 r_j)       for p in [0, 1]^n with sum_i s_i y_i p_i = 0.

At the optimum p_i = 1 / (1 + exp(y_i c_i'v)). For the lower end, p is computed from the model, and scaled down in the
class where it is too large; if Newton's method has stalled, the interval is wider. Sums over n rows are known to a
relative g = (n + 20) 2^-52. The last scaling that would make the sum exactly 0 is by at least 1 - 4g, which loses at
most 4g H(p), as H is concave and H(0) = 0, and moves the sums of the penalty by at most 4g of their absolute values.
"""

import math
from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.special import entr, expit

from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.leaves.cost import LARGEST_RIDGE, LeafCost, LeafModel, PatternRows, Split
from formulations.losses import Logistic
from formulations.rounding import UNIT

# Log-odds of a leaf with a single class: its loss, log(1 + exp(-30)), is 1e-13.
CERTAIN = 30.0
# A guard: Newton's method converges quadratically, and ends when a step promises no more.
NEWTON_STEPS = 100
# Newton's method stops if a step promises less than this share of the cost, which is rounding.
DECREMENT = 8.0 * UNIT
# Margin below a prediction as a share of the predicted decrease, and below the value after a step as a multiple of its
# distance to the prediction. Over 1,200 leaves of 20 to 300 rows, 2 to 50 % of them negative, partly separable, at
# ridges of 1e-4 to 100 and with sides of any size, no best split was skipped.
MARGIN, DISTANCES = 2.0, 10.0
# A split with a side that has fewer rows of a class is only skipped by the bound of the other side.
FEW = 10

# Columns, targets and weights.
Leaf = tuple[FloatArray, FloatArray, FloatArray]


class LogisticLeafCost(LeafCost):
    """Logistic loss, by Newton's method; the targets are -1 and 1."""

    def __init__(self, rows: PatternRows, ridge: float, ridge_scale: str = "leaf") -> None:
        if not ridge > 0:
            raise ValueError("The logistic loss needs ridge > 0: without it, a leaf with separable classes has no fit.")
        super().__init__(rows, Logistic(), ridge, ridge_scale)
        self.centre = rows.s @ rows.A / rows.s.sum()
        self.largest = np.append(1.0, np.abs(rows.A - self.centre).max(axis=0))
        self._held: dict[bytes, Leaf] = {}
        self._starts: dict[bytes, FloatArray] = {}  # of the leaves that were fitted last, shared by all ridges

    def _fit(self, members: IntArray) -> LeafModel:
        C, targets, s = self._leaf(members)
        key, r = np.asarray(members).tobytes(), self._ridges(float(s.sum()))
        starts = self._starts.get(key, [None] * len(targets))
        fits = [_newton(C, target, s, r, start) for target, start in zip(targets, starts, strict=True)]
        v = np.array([fit[0] for fit in fits])
        self._starts[key] = v
        intercepts = v[:, 0] - v[:, 1:] @ self.centre
        # predictions are rounded, and losses grow by at most as much; then their sum is rounded
        error = (len(v[0]) + 4) * float(s.sum() * (np.abs(v) @ self.largest).sum())
        cost = float(sum(fit[1] for fit in fits))
        return LeafModel(intercepts, v[:, 1:], cost + 2.0**-52 * (error + (len(s) + 20) * cost))

    def _lower_end(self, members: IntArray) -> float:
        C, targets, s = self._leaf(members)
        r = self._ridges(float(s.sum()))
        solutions = self._solutions(members)
        return sum(_dual_value(C, y, s, r, v, self.largest) for y, v in zip(targets, solutions, strict=True))

    def _best_split(self, members: IntArray, features: IntArray, missing: BoolArray) -> Split | None:
        """The split whose sides cost least, None if no split lowers the cost.

        Sides are fitted in the order of their predicted costs, as long as these leave a chance.
        """
        best, least = None, self.cost(members)
        C, targets, s = self._leaf(members)
        expansions = [_Expansion.at(C, y, s, v) for y, v in zip(targets, self._solutions(members), strict=True)]
        rows = np.repeat(missing, self.rows.counts[members], axis=1)
        predictions = [self._predicted(expansions, inside) for inside in rows]
        for i in sorted(range(len(features)), key=lambda i: float(predictions[i].costs.sum())):
            if predictions[i].least.sum() >= least:
                continue
            if self._least_after_step(expansions, predictions[i], rows[i]) >= least:
                continue
            sides = members[~missing[i]], members[missing[i]]
            for side, start in zip(sides, predictions[i].starts, strict=True):
                self._starts[side.tobytes()] = start
            split = Split(int(features[i]), self.cost(sides[0]), self.cost(sides[1]))
            if split.observed + split.missing < least:
                best, least = split, split.observed + split.missing
        return best

    def _predicted(self, expansions: list["_Expansion"], inside: BoolArray) -> "_Prediction":
        """The sides of a split after a Newton step from the model of the leaf."""
        costs, least = np.zeros((2, len(expansions))), np.zeros((2, len(expansions)))
        starts = np.empty((2, len(expansions), len(self.centre) + 1))
        for target, expansion in enumerate(expansions):
            v = expansion.v
            for side, part in enumerate(expansion.sides(inside)):
                starts[side, target] = v
                rarest = min(part.positive, part.rows - part.positive)
                if rarest == 0:
                    continue
                penalty = np.append(0.0, 2.0 * self._ridges(part.weight))
                gradient = part.gradient + penalty * v
                step = _newton_step(part.hessian, penalty, gradient)
                starts[side, target] = v - step
                decrease = 0.5 * float(gradient @ step)
                predicted = part.value + 0.5 * float(penalty @ v**2) - decrease
                costs[side, target] = predicted
                if rarest >= FEW:
                    least[side, target] = max(0.0, predicted - MARGIN * decrease)
        return _Prediction(costs, least, starts)

    def _least_after_step(self, expansions: list["_Expansion"], prediction: "_Prediction", inside: BoolArray) -> float:
        """The least that a split may cost, by the values of the models after the Newton step."""
        least = 0.0
        for target, expansion in enumerate(expansions):
            models = prediction.starts[:, target]
            z = np.where(inside, expansion.C @ models[1], expansion.C @ models[0])
            losses = expansion.s * np.logaddexp(0.0, np.where(expansion.positive, -z, z))
            inner, weight = float(losses[inside].sum()), float(expansion.s[inside].sum())
            values = float(losses.sum()) - inner, inner
            weights = float(expansion.s.sum()) - weight, weight
            for side, predicted in enumerate(prediction.costs[:, target]):
                if prediction.least[side, target] == 0.0:
                    continue
                value = values[side] + float(self._ridges(weights[side]) @ models[side, 1:] ** 2)
                least += max(0.0, value - DISTANCES * abs(value - predicted))
        return least

    def _ridges(self, weight: float) -> FloatArray:
        """r(G) d_j of every leaf feature."""
        with np.errstate(over="ignore"):
            return np.minimum(self.ridges * (weight if self.ridge_scale == "sample" else 1.0), LARGEST_RIDGE)

    def _solutions(self, members: IntArray) -> FloatArray:
        """Weights of the columns of a leaf in its model, for each target."""
        model = self.fit(members)
        return np.column_stack([model.intercept + model.weights @ self.centre, model.weights])

    def _leaf(self, members: IntArray) -> Leaf:
        """Columns with the intercept first, targets and weights of a leaf; the last one is held."""
        key = np.asarray(members).tobytes()
        if key not in self._held:
            indices = self.rows.of_patterns(members)
            C = np.column_stack([np.ones(len(indices)), self.rows.A[indices] - self.centre])
            self._held = {key: (C, self.rows.y[indices].T, self.rows.s[indices])}
        return self._held[key]


class _Prediction(NamedTuple):
    """Costs of both sides of a split for each target, the least that they may be, and their models."""

    costs: FloatArray
    least: FloatArray
    starts: FloatArray


class _Part(NamedTuple):
    """Loss, gradient, Hessian and weight of some rows, their number, and that of the positive ones."""

    value: float
    gradient: FloatArray
    hessian: FloatArray
    weight: float
    rows: int
    positive: int


class _Expansion(NamedTuple):
    """Rows of a leaf at v: columns, classes, weights, losses, slopes, columns times the root of the curvature; sums."""

    v: FloatArray
    C: FloatArray
    positive: BoolArray
    s: FloatArray
    losses: FloatArray
    slopes: FloatArray
    scaled: FloatArray
    whole: _Part

    @classmethod
    def at(cls, C: FloatArray, y: FloatArray, s: FloatArray, v: FloatArray) -> "_Expansion":
        z = C @ v
        p, positive = expit(z), y > 0
        losses, slopes = s * Logistic().value(y, z), s * (p - positive)
        scaled = C * np.sqrt(s * p * (1.0 - p))[:, None]
        numbers = len(y), int(np.count_nonzero(positive))
        whole = _Part(float(losses.sum()), slopes @ C, scaled.T @ scaled, float(s.sum()), *numbers)
        return cls(v, C, positive, s, losses, slopes, scaled, whole)

    def sides(self, inside: BoolArray) -> tuple[_Part, _Part]:
        """The rows outside, and inside."""
        scaled = self.scaled[inside]
        value, weight = float(self.losses[inside].sum()), float(self.s[inside].sum())
        numbers = len(scaled), int(np.count_nonzero(self.positive[inside]))
        part = _Part(value, self.slopes[inside] @ self.C[inside], scaled.T @ scaled, weight, *numbers)
        outside = _Part(
            self.whole.value - part.value,
            self.whole.gradient - part.gradient,
            self.whole.hessian - part.hessian,
            self.whole.weight - part.weight,
            self.whole.rows - part.rows,
            self.whole.positive - part.positive,
        )
        return outside, part


def _newton(
    C: FloatArray, y: FloatArray, s: FloatArray, r: FloatArray, start: FloatArray | None = None
) -> tuple[FloatArray, float]:
    """Minimiser of sum_i s_i log(1 + exp(-y_i c_i'v)) + sum_j r_j v_j^2, without r_0, and its value.

    It starts from ``start``, if that is better than a constant.
    """
    loss, v = Logistic(), np.zeros(C.shape[1])
    if np.ptp(y) == 0:
        v[0] = CERTAIN * y[0]
        return v, float(s @ loss.value(y, C @ v))
    penalty, label = np.append(0.0, 2.0 * r), (y > 0).astype(float)
    v[0] = np.log(s @ label) - np.log(s @ (1.0 - label))

    def value(v: FloatArray) -> float:
        with np.errstate(over="ignore", invalid="ignore"):  # too long a step is shortened
            return float(s @ loss.value(y, C @ v) + 0.5 * penalty @ v**2)

    best = value(v)
    if start is not None and (of_start := value(start)) < best:
        v, best = start, of_start
    for _ in range(NEWTON_STEPS):
        p = expit(C @ v)
        gradient = C.T @ (s * (p - label)) + penalty * v
        scaled = C * np.sqrt(s * p * (1.0 - p))[:, None]
        step = _newton_step(scaled.T @ scaled, penalty, gradient)
        decrement = float(gradient @ step)
        if not decrement > DECREMENT * best:
            break
        share = 1.0
        while (new := value(v - share * step)) > best - 1e-4 * share * decrement and share > 1e-6:
            share /= 2
        if not new < best:
            break  # what is left is rounding
        v, best = v - share * step, new
        if share == 1.0 and decrement < math.sqrt(DECREMENT) * best:
            break  # the next step would promise about the square
    return v, best


def _newton_step(hessian: FloatArray, penalty: FloatArray, gradient: FloatArray) -> FloatArray:
    """Solution of (H + diag(penalty)) x = gradient, scaled to a diagonal of 1; 0 if damping does not help.

    If rounding has made the equations singular, the damping begins with the rounding error of the sums.
    """
    diagonal = np.diag_indices(len(gradient))
    hessian[diagonal] += penalty
    unit = 1.0 / np.sqrt(np.maximum(hessian[diagonal], np.finfo(float).tiny))
    hessian *= np.outer(unit, unit)
    damping = 0.0
    while damping < 1.0:
        hessian[diagonal] = 1.0 + damping
        _, step, failed = scipy.linalg.lapack.dposv(hessian, unit * gradient)
        if not failed and np.isfinite(step).all():
            return np.asarray(unit * step)
        damping = max(1000.0 * damping, 8.0 * len(step) * UNIT)
    return np.zeros_like(gradient)


def _dual_value(
    C: FloatArray, y: FloatArray, s: FloatArray, r: FloatArray, v: FloatArray, largest: FloatArray
) -> float:
    """A lower bound on the minimum of :func:`_newton`, from a nearly optimal v; no entry of C exceeds ``largest``."""
    g = (len(y) + 20) * 2.0**-52
    p = expit(-y * (C @ v))
    theta = s * p
    whole, difference = float(theta.sum()), float(theta @ y)
    share = (whole - abs(difference)) / (whole + abs(difference))
    if not share > 0.5:  # a single class, or far from optimal
        return 0.0
    p[(y > 0) == (difference > 0)] *= share
    theta = s * p
    entropy = float(s @ (entr(p) + entr(1.0 - p)))
    slopes = np.abs((y * theta) @ C)[1:] + 8.0 * g * whole * largest[1:]
    with np.errstate(over="ignore"):
        parts = np.divide(slopes * slopes, 4.0 * r, out=np.where(slopes > 0, np.inf, 0.0), where=r > 0)
        penalty = float(np.sum(parts))
    return max(0.0, entropy * (1.0 - 8.0 * g) - 16 * 2.0**-53 * float(s.sum()) - penalty * (1.0 + 8.0 * g))
