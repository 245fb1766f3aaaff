"""The dual bound from arbitrary dual points, against least squares and lasso in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq, fmpq_mat

from formulations.certificate import gap_tolerance
from formulations.erm.dual_bound import Rows, _penalty_part, dual_bound, prove
from formulations.erm.risk import EmpiricalRisk
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
