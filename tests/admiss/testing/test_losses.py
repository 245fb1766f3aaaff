"""The contract of losses accepts right ones, and each of its sentences is said of a wrong one."""

import numpy as np
import pytest

from admiss.testing import check_loss
from formulations.losses import Absolute, Huber, Logistic, Loss, Quantile, Squared


class Expectile(Loss):
    smooth = False

    def value(self, y, z):
        return np.where(y > z, 0.8, 0.2) * (y - z) ** 2

    def total(self, y, z, q):
        import cvxpy as cp

        return q @ (0.8 * cp.square(cp.pos(y - z)) + 0.2 * cp.square(cp.neg(y - z)))

    def conjugate_inside(self, y, t):
        return t * y + t**2 / (4 * np.where(t < 0, 0.8, 0.2))


class Negative(Squared):
    def value(self, y, z):
        return super().value(y, z) - 1.0


class Concave(Squared):
    def value(self, y, z):
        return np.sqrt(np.abs(y - z))


class AnotherTotal(Expectile):
    def total(self, y, z, q):
        return 2.0 * super().total(y, z, q)


class NarrowDomain(Expectile):
    def domain(self, y):
        return np.full_like(y, -0.1), np.full_like(y, 0.1)


class Swapped(Expectile):
    def conjugate_inside(self, y, t):
        return t * y + t**2 / (4 * np.where(t > 0, 0.8, 0.2))


class TooLarge(Expectile):
    def conjugate_inside(self, y, t):
        return super().conjugate_inside(y, t) + 0.01


class RelativeError(Expectile):
    """Convex in z, but not a function of y - z."""

    def value(self, y, z):
        return np.abs(y - z) / (1.0 + np.abs(y))

    def total(self, y, z, q):
        import cvxpy as cp

        return (q / (1.0 + np.abs(y))) @ cp.abs(y - z)

    def domain(self, y):
        return -1.0 / (1.0 + np.abs(y)), 1.0 / (1.0 + np.abs(y))

    def conjugate_inside(self, y, t):
        return t * y


class SaysQuadratic(Expectile):
    conjugate_curvature = 0.5


class TooSteep(Squared):
    def derivative(self, y, z):
        return 2.0 * super().derivative(y, z)


class TooCurved(Squared):
    largest_curvature = 1.0


@pytest.mark.parametrize("loss", [Squared(), Absolute(), Huber(0.7), Quantile(0.3), Logistic(), Expectile()])
def test_right_losses_pass(loss):
    check_loss(loss)


@pytest.mark.parametrize(
    ("loss", "sentence"),
    [
        (Negative(), "is negative somewhere"),
        (Concave(), "is not convex in z"),
        (AnotherTotal(), "is not the sum"),
        (NarrowDomain(), "outside the domain"),
        (Swapped(), "the conjugate is too small"),
        (TooLarge(), "the conjugate is too large"),
        (RelativeError(), "not a function of y - z"),
        (SaysQuadratic(), "with c = conjugate_curvature"),
        (TooSteep(), "is not the slope"),
        (TooCurved(), "above largest_curvature"),
    ],
)
def test_wrong_losses_are_refused(loss, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_loss(loss)


def test_a_class_is_not_a_loss():
    with pytest.raises(TypeError, match="objects of subclasses"):
        check_loss(Expectile)
