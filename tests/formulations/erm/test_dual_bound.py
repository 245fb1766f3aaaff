"""The dual bound from arbitrary dual points, against least squares and lasso in exact arithmetic."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from flint import fmpq, fmpq_mat

from formulations.certificate import gap_tolerance
from formulations.erm.dual_bound import Rows, _penalty_part, dual_bound, prove
from formulations.erm.risk import EmpiricalRisk
from formulations.loss import InUnits, Loss
from formulations.losses import Absolute, Huber, Logistic, Quantile, Squared


def rational(values):
    return fmpq_mat([[fmpq(*float(v).as_integer_ratio()) for v in row] for row in values])


def exact_least_squares(A, y, q):
    """min_w sum_i q_i (y_i - a_i'w)^2, for columns of full rank."""
    exact, target = rational(A), rational(y[:, None])
    weighted = rational(A)
    for i, share in enumerate(q):
        for k in range(A.shape[1]):
            weighted[i, k] *= fmpq(*float(share).as_integer_ratio())
    c = weighted.transpose() * target
    explained = (c.transpose() * (weighted.transpose() * exact).inv() * c)[0, 0]
    total = sum(Fraction(share) * Fraction(value) ** 2 for share, value in zip(q, y, strict=True))
    return total - Fraction(int(explained.p), int(explained.q))


@pytest.mark.parametrize("collinearity", [1.0, 1e-4, 1e-7, 1e-9])
@pytest.mark.parametrize("units", [1.0, 1e16, 1e-16])
def test_least_squares(collinearity, units):
    """At the solution, near it, and anywhere else."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        A, y, q = rng.normal(size=(20, 4)), rng.normal(size=20), rng.uniform(0.1, 2.0, size=20) / 20
        A[:, 3] = (A[:, 0] + collinearity * A[:, 3]) * units
        optimum, none = exact_least_squares(A, y, q), np.zeros(4)
        root = np.sqrt(q)
        size = np.linalg.norm(root[:, None] * A, axis=0)
        w = np.linalg.lstsq(root[:, None] * A / size, root * y, rcond=None)[0] / size
        risk = EmpiricalRisk(A, y, q, Squared())
        proof = prove(Rows.of(risk), none, none, w)
        assert Fraction(proof.bound) <= optimum <= Fraction(proof.objective)
        if collinearity > 1e-9:
            assert proof.objective - proof.bound <= gap_tolerance(proof.objective, 0.0)
        near = 2 * q * (A @ w - y) + 1e-6 * q * rng.normal(size=20)
        for theta in (near, q * rng.normal(size=20), 1e9 * q * rng.normal(size=20)):
            assert Fraction(dual_bound(risk, none, none, theta)) <= optimum


@pytest.mark.parametrize("loss", [Squared(), Huber(0.7), Absolute(), Quantile(0.8), Logistic()], ids=str)
def test_no_point_gives_a_bound_above_the_objective_of_another(loss):
    """Weak duality, for random penalties, weights and points."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A, y = np.column_stack([np.ones(25), rng.normal(size=(25, 3))]), rng.normal(size=25)
        y = np.sign(y) if isinstance(loss, Logistic) else y
        risk = EmpiricalRisk(A, y, 10.0 ** rng.uniform(-3, 0, size=25), loss)
        l1, l2 = rng.choice([0.0, 1e-9, 0.1], size=(2, 4))
        l1[0] = l2[0] = 0.0
        bound = dual_bound(risk, l1, l2, risk.q * rng.normal(size=25))
        for scale in (0.0, 0.1, 1.0):
            w = scale * rng.normal(size=4)
            assert bound <= risk.value(w) + l1 @ np.abs(w) + l2 @ w**2 / 2


def test_rows_that_are_fitted_exactly_do_not_matter():
    """Two rows and three columns of their own, beside a plain regression."""
    rng = np.random.default_rng(0)
    A = np.zeros((30, 5))
    A[:28, :2], A[28:, 2:] = rng.normal(size=(28, 2)), rng.normal(size=(2, 3))
    y, q, none = rng.normal(size=30), np.full(30, 1 / 30), np.zeros(5)
    w = np.linalg.lstsq(A, y, rcond=None)[0]
    proof = prove(Rows.of(EmpiricalRisk(A, y, q, Squared())), none, none, w)
    assert Fraction(proof.bound) <= exact_least_squares(A[:28, :2], y[:28], q[:28])
    assert proof.objective - proof.bound <= gap_tolerance(proof.objective, 0.0)
    assert np.all(proof.theta[28:] == 0)


def test_the_smallest_penalties_give_a_bound_without_overflow():
    """The penalty part is finite for a point that is close enough, and the column can be met exactly."""
    risk = EmpiricalRisk(np.ones((3, 1)), np.array([1.0, 2.0, 4.0]), np.full(3, 1 / 3), Quantile(0.9))
    none, least = np.zeros(1), np.full(1, 5e-324)
    with np.errstate(all="raise", under="ignore"):
        assert 0.5 / 3 * (1 - 1e-9) <= dual_bound(risk, none, least, risk.q * [0.3, 0.2, -0.4]) <= 0.5 / 3
        assert _penalty_part(none, least, np.array([1e-170])) == pytest.approx(1e-17, rel=0.05, abs=0.0)


@pytest.mark.parametrize("l2", [0.0, 1e-20])
def test_weak_penalties_are_proven(l2):
    """The rounding of a_k'theta is of the order of the penalties: a lasso, and one with a trace of ridge."""
    rng = np.random.default_rng(0)
    A = np.column_stack([np.ones(2000), rng.normal(size=(2000, 3))])
    y, q = A @ [3.0, 1.0, -2.0, 0.5] + rng.normal(size=2000), np.full(2000, 1 / 2000)
    l1, l2 = np.array([0.0, 1e-11, 1e-11, 1e-11]), np.array([0.0, l2, l2, l2])
    w = np.linalg.lstsq(A, y, rcond=None)[0]
    proof = prove(Rows.of(EmpiricalRisk(A, y, q, Squared())), l1, l2, w)
    assert proof.objective - proof.bound <= gap_tolerance(proof.objective, 0.0)


@pytest.mark.parametrize("loss", [Squared(), Logistic(), Huber(0.7)], ids=str)
def test_a_gap_that_is_left_is_that_of_the_coefficients(loss):
    """A point that is not optimal is not called so, and its estimate is not above the optimum."""
    rng = np.random.default_rng(0)
    A = np.column_stack([np.ones(200), rng.normal(size=(200, 3))])
    y = A @ [0.1, 1.0, -2.0, 0.5] + rng.normal(size=200)
    y = np.sign(y) if isinstance(loss, Logistic) else y
    rows, l1, l2 = Rows.of(EmpiricalRisk(A, y, np.full(200, 1 / 200), loss)), np.array([0, 0.1, 0.1, 0]), np.zeros(4)
    proofs = [prove(rows, l1, l2, np.array([0.1, a, -1.0, b])) for a in (0.0, 0.5, 1.0) for b in (0.0, 0.4)]
    best = min(proof.objective for proof in proofs)
    assert all(proof.bound <= proof.estimate <= best for proof in proofs)
    assert all(proof.objective - proof.bound > gap_tolerance(proof.objective, 0.0) for proof in proofs)


@dataclass(frozen=True)
class Expectile(Loss):
    """A loss of which no more is known than its convexity."""

    smooth: ClassVar[bool] = False
    level: float = 0.8

    def value(self, y, z):
        return np.where(y > z, self.level, 1.0 - self.level) * (y - z) ** 2

    def total(self, y, z, q):
        raise NotImplementedError

    def conjugate_inside(self, y, t):
        return t * y + t**2 / (4.0 * np.where(t < 0, self.level, 1.0 - self.level))


def test_a_conjugate_that_is_not_quadratic_is_not_taken_for_one():
    """One target of 1 among zeros: the optimum is far above the size of y, and theta is off by a share."""
    y, q, A, level = np.append(1.0, np.zeros(99)), np.full(100, 0.01), np.ones((100, 1)), 0.999
    w = level / (level + 99.0 * (1.0 - level))
    loss, none = Expectile(level), np.zeros(1)
    optimum = float(q @ loss.value(y, w * A[:, 0]))
    theta = 2.0 * q * np.where(y > w, level, 1.0 - level) * (w - y)
    for off in (0.0, 1e-12, 1e-5, -1e-5):
        assert dual_bound(EmpiricalRisk(A, y, q, loss), none, none, theta - off * q) <= optimum * (1.0 + 1e-14)
    proof = prove(Rows.of(EmpiricalRisk(A, y, q, loss)), none, none, np.array([w]), theta)
    assert proof.bound >= optimum * (1.0 - 1e-9)


@pytest.mark.parametrize("loss", [Expectile(0.5), InUnits(Expectile(0.5), 3.0)], ids=str)
def test_steep_losses_are_rounded_up(loss):
    """Residuals of 1e4 next to targets of 1e8: the errors of predictions count by the slopes of the losses."""
    factor = Fraction(getattr(loss, "sigma", 1.0)) ** 2 / 2
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A, w, q = rng.normal(size=(3, 4)), 1e8 * rng.normal(size=4), np.full(3, 0.25)
        y = A @ w + 1e4 * rng.normal(size=3)
        product = rational(A) * rational(w[:, None])
        z = [Fraction(int(product[i, 0].p), int(product[i, 0].q)) for i in range(3)]
        value = sum(factor * Fraction(share) * (Fraction(a) - b) ** 2 for share, a, b in zip(q, y, z, strict=True))
        theta = q * rng.normal(size=3)
        none = np.zeros(4)
        assert Fraction(prove(Rows.of(EmpiricalRisk(A, y, q, loss)), none, none, w, theta).objective) >= value
