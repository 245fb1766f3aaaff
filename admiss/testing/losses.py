"""The contract of losses: what models and their proofs assume of a loss l(y, z) of a target y and a prediction z.

    value         l(y, z) >= 0, convex in z
    total         the cvxpy expression sum_i q_i l(y_i, z_i): the same value, convex by the rules of cvxpy
    conjugate     l*(t) = sup_z t z - l(y, z): never below t z - l(y, z), and equal to it at the slope t of l in z
    of_residual   whether l(y + c, z + c) = l(y, z), so that y can be centred and replaced by residuals
    conjugate_curvature    None, or the c of a conjugate t y + c t^2 / 2
    derivative, curvature  of smooth losses, with curvature <= largest_curvature

A conjugate that is too small makes bounds that are too high; one that is too large only weakens them.
"""

import numpy as np

from admiss.finite.estimators import FiniteClassifier, FiniteRegressor
from admiss.linear.estimators import AdaptiveClassifier, AdaptiveRegressor
from admiss.partition.greedy import Greedy
from admiss.partition.optimal_tree import OptimalTree
from formulations.arrays import FloatArray
from formulations.losses import Loss

# The step of slopes.
STEP = 1e-6
# Differences of the slopes of a piecewise quadratic loss are exact to rounding / STEP, that is 1e-10 of its values.
ACCURACY = 1e-7


def check_loss(loss: Loss) -> None:
    """Raise an AssertionError at the first property that a loss does not have.

    Parameters
    ----------
    loss : Loss
        An object of the class, with the parameters to check.

    Examples
    --------
    >>> from formulations.losses import Absolute, Huber
    >>> check_loss(Huber(0.5))
    >>> class Wrong(Absolute):
    ...     def conjugate_inside(self, y, t):
    ...         return t * y - 0.1
    >>> try:
    ...     check_loss(Wrong())
    ... except AssertionError as error:
    ...     print(error)
    Wrong: the conjugate is too small, l*(t) < t z - l(y, z): bounds would be above the optimum.
    """
    if not isinstance(loss, Loss):
        raise TypeError(f"The contract is for objects of subclasses of formulations.losses.Loss, not {loss!r}.")
    rng = np.random.default_rng(0)
    y, z, other = 2.0 * rng.standard_normal((3, 2000))
    if loss.task == "classification":
        y = np.sign(y)
    _check_value(loss, y, z, other)
    _check_total(loss, y, z)
    _check_conjugate(loss, y, z)
    _check_residuals(loss, y, z)
    if loss.smooth:
        _check_derivatives(loss, y, z)
    _check_models(loss)


def _require(condition: object, loss: Loss, what: str) -> None:
    if not condition:
        raise AssertionError(f"{type(loss).__name__}: {what}.")


def _check_value(loss: Loss, y: FloatArray, z: FloatArray, other: FloatArray) -> None:
    value = loss.value(y, z)
    _require(np.shape(value) == y.shape and np.isfinite(value).all(), loss, "value(y, z) must be a number for each row")
    _require(value.min() >= 0.0, loss, "value(y, z) is negative somewhere, and 0 is taken for a bound")
    between = loss.value(y, 0.5 * (z + other))
    chord = 0.5 * (value + loss.value(y, other))
    _require(np.all(between <= chord + ACCURACY * (1.0 + chord)), loss, "value(y, z) is not convex in z")


def _check_total(loss: Loss, y: FloatArray, z: FloatArray) -> None:
    import cvxpy as cp

    q = np.linspace(1.0, 2.0, len(y)) / len(y)
    variable = cp.Variable(len(y))
    total = loss.total(y, variable, q)
    _require(total.is_convex(), loss, "total(y, z, q) is not convex by the rules of cvxpy")
    variable.value = z
    expected = float(q @ loss.value(y, z))
    same = abs(float(total.value) - expected) <= ACCURACY * (1.0 + expected)
    _require(same, loss, "total(y, z, q) is not the sum of q_i value(y_i, z_i)")


def _check_conjugate(loss: Loss, y: FloatArray, z: FloatArray) -> None:
    low, high = loss.domain(y)
    slope = (loss.value(y, z + STEP) - loss.value(y, z - STEP)) / (2.0 * STEP)
    inside = np.all((low - STEP <= slope) & (slope <= high + STEP))
    _require(inside, loss, "a slope of the loss in z is outside the domain of the conjugate")
    slope = np.clip(slope, low, high)
    for t in (slope, np.roll(slope, 1) if loss.task == "regression" else slope):
        t = np.clip(t, low, high)
        excess = loss.conjugate(y, t) + loss.value(y, z) - t * z
        size = 1.0 + np.abs(t * z)
        words = "the conjugate is too small, l*(t) < t z - l(y, z): bounds would be above the optimum"
        _require(np.all(excess >= -ACCURACY * size), loss, words)
    tight = loss.conjugate(y, slope) + loss.value(y, z) - slope * z <= 10.0 * STEP * (1.0 + np.abs(slope * z))
    _require(tight.all(), loss, "the conjugate is too large at slopes of the loss: no fit would be proven")


def _check_residuals(loss: Loss, y: FloatArray, z: FloatArray) -> None:
    if not loss.of_residual:
        return
    value, c = loss.value(y, z), 1.75
    same = np.abs(loss.value(y + c, z + c) - value) <= ACCURACY * (1.0 + value)
    _require(same.all(), loss, "it is not a function of y - z: say of_residual = False")
    t = np.clip(np.random.default_rng(2).standard_normal(len(y)), *loss.domain(y))
    moved = loss.conjugate(y + c, t) - loss.conjugate(y, t) - c * t
    _require(np.all(np.abs(moved) <= ACCURACY), loss, "the conjugate is not t y plus a function of t")
    if loss.conjugate_curvature is not None:
        error = loss.conjugate(y, t) - t * y - loss.conjugate_curvature * t**2 / 2.0
        words = "the conjugate is not t y + c t^2 / 2 with c = conjugate_curvature: leave that out"
        _require(np.all(np.abs(error) <= ACCURACY), loss, words)


def _check_derivatives(loss: Loss, y: FloatArray, z: FloatArray) -> None:
    slope = (loss.value(y, z + STEP) - loss.value(y, z - STEP)) / (2.0 * STEP)
    error = np.abs(loss.derivative(y, z) - slope)
    _require(np.all(error <= 10.0 * STEP * (1.0 + np.abs(slope))), loss, "derivative(y, z) is not the slope of value")
    largest = loss.curvature(y, z).max()
    _require(largest <= loss.largest_curvature, loss, "curvature(y, z) is above largest_curvature somewhere")


def _check_models(loss: Loss) -> None:
    """A linear model and an exact tree are proven, and the tree is not worse than the greedy one."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((120, 3))
    y = X @ [1.0, -1.0, 0.5] + rng.standard_normal(120)
    X[rng.random(X.shape) < 0.3] = np.nan
    regression = loss.task == "regression"
    linear = (AdaptiveRegressor if regression else AdaptiveClassifier)("affine_intercept", lam=0.1, loss=loss)
    target = y if regression else y > 0
    status = linear.fit(X, target).certificate_.status
    _require(status == "optimal", loss, f"a linear model is not proven, its status is {status!r}")
    finite = FiniteRegressor if regression else FiniteClassifier
    costs = {}
    for partitioner in (OptimalTree(1, min_rows=30), Greedy(1, min_rows=30)):
        certificate = finite(partitioner, loss=loss).fit(X, target).certificate_
        costs[type(partitioner).__name__] = certificate.objective
        if isinstance(partitioner, OptimalTree):
            status = certificate.status
    _require(status == "optimal", loss, f"an exact tree is not proven, its status is {status!r}")
    order = costs["OptimalTree"] <= costs["Greedy"] * (1.0 + ACCURACY)
    _require(order, loss, "the exact tree costs more than the greedy one")
