import cvxpy as cp
import numpy as np
import pytest

from formulations.log_link import LogLink, Tweedie
from formulations.losses import LOSSES, Huber, Logistic, Loss, Quantile, best_constant, resolve_loss

ALL = [*(loss() for loss in LOSSES.values()), Huber(0.3), Quantile(0.9), Tweedie(1.05), Tweedie(1.9)]
Z = np.linspace(-3, 3, 41)


def target(loss):
    if isinstance(loss, LogLink):
        y = np.exp(2 * np.sin(3 * Z))
        return np.where(Z > 2, 0.0, y) if loss.b > 0 else y
    return np.where(Z > 0.1, 1.0, -1.0) if isinstance(loss, Logistic) else np.sin(3 * Z)


@pytest.mark.parametrize("loss", ALL, ids=str)
def test_expression_equals_value(loss):
    y, q = target(loss), np.linspace(1, 2, len(Z)) / np.linspace(1, 2, len(Z)).sum()
    expression = loss.total(y, cp.Constant(Z), q)
    assert expression.is_convex()
    assert expression.value == pytest.approx(q @ loss.value(y, Z), rel=1e-12)


@pytest.mark.parametrize("loss", [loss for loss in ALL if loss.smooth], ids=str)
def test_derivatives_are_those_of_the_value(loss):
    y, h = target(loss), 1e-6
    first = (loss.value(y, Z + h) - loss.value(y, Z - h)) / (2 * h)
    np.testing.assert_allclose(loss.derivative(y, Z), first, atol=1e-5)
    away = np.abs(np.abs(y - Z) - getattr(loss, "delta", np.inf)) > 1e-3
    second = (loss.derivative(y, Z + h) - loss.derivative(y, Z - h)) / (2 * h)
    np.testing.assert_allclose(loss.curvature(y, Z)[away], second[away], atol=1e-5)
    assert np.all(loss.curvature(y, Z) <= loss.largest_curvature)


@pytest.mark.parametrize("loss", ALL, ids=str)
def test_conjugate_is_the_supremum(loss):
    y = np.array([1.0, -1.0, 1.0])
    if isinstance(loss, LogLink):
        y = np.array([0.5, 0.0 if loss.b > 0 else 20.0, 3.0])
    low, high = loss.domain(y)
    t = np.clip(np.array([-0.4, 0.3, -0.05]), low, high)
    grid = np.linspace(-60, 60, 480_001)
    supremum = [np.max(ti * grid - loss.value(np.full_like(grid, yi), grid)) for ti, yi in zip(t, y, strict=True)]
    np.testing.assert_allclose(loss.conjugate(y, t), supremum, atol=1e-6)
    ends = np.isfinite(low)
    assert np.all(np.isinf(loss.conjugate(y[ends], low[ends] - 0.01)))
    if np.isfinite(high).all():
        assert np.all(np.isinf(loss.conjugate(y, high + 0.01)))


@pytest.mark.parametrize("loss", [loss for loss in ALL if loss.of_residual], ids=str)
def test_change_of_units(loss):
    other, factor = loss.in_units(7.0)
    np.testing.assert_allclose(loss.value(7 * target(loss), 7 * Z), factor * other.value(target(loss), Z))


def test_the_best_constant_of_a_loss_of_ones_own():
    """An expectile, whose slopes have no ends, is between the mean and the largest target."""
    y, s = np.array([0.0, 0.0, 0.0, 1.0]) + 100.0, np.array([1.0, 1.0, 2.0, 1.0])

    class Expectile(Loss):
        smooth = False

        def value(self, y, z):
            return np.where(y > z, 0.8, 0.2) * (y - z) ** 2

        def total(self, y, z, q):
            raise NotImplementedError

        def conjugate_inside(self, y, t):
            return t * y + t**2 / (4 * np.where(t < 0, 0.8, 0.2))

    b, theta = best_constant(y, s, Expectile())
    assert b == pytest.approx(100.5, abs=1e-7)
    np.testing.assert_allclose(theta, [0.2, 0.2, 0.4, -0.8], rtol=1e-4)
    assert best_constant(np.zeros(3), np.ones(3), Expectile())[0] == 0.0


@pytest.mark.parametrize("bad", [lambda: resolve_loss("cubic"), lambda: Huber(0), lambda: Quantile(1.0)])
def test_bad_losses_are_refused(bad):
    with pytest.raises(ValueError, match="choose one of|needs"):
        bad()
