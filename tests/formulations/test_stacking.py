"""Weights of a stack: the program against another solver, and its limits."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq, fmpq_mat
from scipy.optimize import minimize

from formulations.certificate import SolverError
from formulations.stacking import StackingProblem, stacking_program, stacking_weights


def predictions(n=60, K=5, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(n)
    return y[:, None] * rng.uniform(0.2, 1.2, K) + rng.standard_normal((n, K)), y, rng.uniform(0.5, 2.0, n)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rho", [0.0, 0.05, 1.0])
def test_agrees_with_another_solver(seed, rho):
    Z, y, s = predictions(seed=seed)
    w, certificate = stacking_weights(StackingProblem.of(Z, y, s, rho))

    def risk(w):
        return np.sum(s * (y - Z @ w) ** 2) / s.sum() + rho * np.sum((w - 1 / len(w)) ** 2)

    other = minimize(
        risk, np.full(5, 0.2), bounds=[(0, 1)] * 5, constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        method="SLSQP", options={"ftol": 1e-14, "maxiter": 1000},
    )  # fmt: skip
    np.testing.assert_allclose(w, other.x, atol=1e-5)
    assert certificate.objective == pytest.approx(risk(w), rel=1e-9)
    assert certificate.bound <= risk(other.x) + 1e-9
    assert certificate.gap <= 1e-6
    assert w.min() >= 0
    assert w.sum() == pytest.approx(1)


def test_strong_shrinkage_is_the_average():
    Z, y, s = predictions()
    for rho in (1e4, 1e6, 1e12, 1e100):
        w, certificate = stacking_weights(StackingProblem.of(Z, y, s, rho))
        np.testing.assert_allclose(w, 0.2, atol=1e-4)
        assert certificate.relative_gap < 1e-6


def test_invalid_errors_are_refused():
    Z, y, s = predictions()
    Z[0, 0] = np.nan
    with pytest.raises(SolverError, match="too large, NaN or infinite"):
        stacking_weights(StackingProblem.of(Z, y, s, 0.0))


def test_a_perfect_model_takes_all():
    Z, y, s = predictions()
    Z[:, 3] = y
    w, _ = stacking_weights(StackingProblem.of(Z, y, s, 0.0))
    np.testing.assert_allclose(w, np.eye(5)[3], atol=1e-4)


def test_nothing_to_explain():
    w, certificate = stacking_weights(StackingProblem.of(np.ones((10, 3)), np.ones(10), np.ones(10), 0.0))
    assert w.sum() == pytest.approx(1)
    assert certificate.objective == 0


@pytest.mark.parametrize("rho", [0.0, 0.05, 1e3])
def test_agrees_with_the_stated_program(rho):
    Z, y, s = predictions()
    problem = StackingProblem.of(Z, y, s, rho)
    w, certificate = stacking_weights(problem)
    program = stacking_program(problem)
    program.solve(solver="CLARABEL")
    (variable,) = program.variables()
    np.testing.assert_allclose(w, variable.value, atol=1e-5)
    assert certificate.objective == pytest.approx(program.value, rel=1e-7)


def test_both_sides_of_a_strong_shrinkage_agree():
    """At the average risk the distances from equal weights are solved for, not the weights."""
    Z, y, s = predictions()
    unit = StackingProblem.of(Z, y, s, 0.0).objective(np.full(5, 0.2))
    below, above = (stacking_weights(StackingProblem.of(Z, y, s, c * unit))[0] for c in (1 - 1e-9, 1 + 1e-9))
    np.testing.assert_allclose(below, above, atol=1e-8)


def test_a_model_that_is_far_worse_than_all_others():
    """Its weight is tiny and keeps its digits: the bound is closed to the tolerance of the best model."""
    Z, y, s = predictions(n=200, K=4)
    Z[:, 2] *= 1e5
    w, certificate = stacking_weights(StackingProblem.of(Z, y, s, 0.05))
    assert 0 <= w[2] < 1e-5
    assert certificate.status == "optimal"


def exact_optimum(Z, y, s, rho):
    """The optimum in rational arithmetic, by the conditions on every support."""
    K, S = Z.shape[1], sum(map(Fraction, s))
    rows = [[Fraction(a) - Fraction(b) for b in row] for a, row in zip(y, Z, strict=True)]
    share = [Fraction(v) / S for v in s]
    G = [
        [
            sum(q * row[k] * row[j] for q, row in zip(share, rows, strict=True)) + Fraction(rho) * (k == j)
            for j in range(K)
        ]
        for k in range(K)
    ]
    best = None
    for support in itertools.chain.from_iterable(itertools.combinations(range(K), m) for m in range(1, K + 1)):
        m = len(support)
        system = fmpq_mat(m + 1, m + 1, [0] * (m + 1) ** 2)
        for a, k in enumerate(support):
            for b, j in enumerate(support):
                system[a, b] = fmpq(G[k][j].numerator, G[k][j].denominator)
            system[a, m] = system[m, a] = fmpq(1)
        right = fmpq_mat(m + 1, 1, [fmpq(0)] * m + [fmpq(1)])
        try:
            found = system.solve(right)
        except ZeroDivisionError:
            continue
        w = [Fraction(int(found[a, 0].p), int(found[a, 0].q)) for a in range(m)]
        if min(w) >= 0:
            value = sum(w[a] * G[k][j] * w[b] for a, k in enumerate(support) for b, j in enumerate(support))
            best = value if best is None else min(best, value)
    return best - Fraction(rho) / K  # on the simplex, |w - 1/K|^2 = |w|^2 - 1/K


@pytest.mark.parametrize("kind", ["plain", "collinear", "duplicate", "offset", "weights", "one is bad", "tiny"])
@pytest.mark.parametrize("rho", [0.0, 0.05, 1e5])
def test_the_bound_is_below_the_exact_optimum(kind, rho):
    for seed in range(3):
        Z, y, s = predictions(n=25, K=4, seed=seed)
        rng = np.random.default_rng(seed)
        if kind == "collinear":
            Z[:, 3] = Z[:, 0] + 1e-9 * Z[:, 3]
        elif kind == "duplicate":
            Z[:, 3] = Z[:, 0]
        elif kind == "offset":
            Z, y = Z + 1e6, y + 1e6
        elif kind == "weights":
            s = 10.0 ** rng.uniform(-6, 6, size=25)
        elif kind == "one is bad":
            Z[:, 2] *= 1e6
        elif kind == "tiny":
            Z, y = Z * 1e-8, y * 1e-8
        strength = rho * 1e-16 if kind == "tiny" else rho
        _, certificate = stacking_weights(StackingProblem.of(Z, y, s, strength))
        optimum = exact_optimum(Z, y, s, strength)
        assert Fraction(certificate.bound) <= optimum
        assert certificate.objective == pytest.approx(float(optimum), rel=1e-6)
        assert certificate.status == "optimal" or kind == "one is bad"
