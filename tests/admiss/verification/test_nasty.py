"""Proofs of fits on tables made to break them: what is certified is verified, and a raised bound is not."""

import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from admiss import AdaptiveClassifier, AdaptiveRegressor, FiniteRegressor, verify
from admiss.datasets import make_synthetic
from admiss.partition import OptimalTree, PatternGroups
from formulations.certificate import SolverError
from formulations.losses import Huber, Quantile
from tests.admiss.partition.nasty import nasty, one_bad_box
from tests.admiss.partition.proof_checks import fitted


def check(model, *rows):
    """The certificate is verified; with a bound above the objective it is not."""
    outcome = verify(model, *rows)
    assert outcome, f"{model.certificate_.status}: {outcome}"
    certificate = model.certificate_
    if certificate.bound > 0:
        higher = certificate.objective * (1 + 1e-6) + 1e-12
        model.certificate_ = replace(certificate, bound=higher, objective=higher)
        assert not verify(model, *rows)


def check_partitions(kind, seeds):
    for seed in seeds:
        small = {} if kind == "tree" else {"most_features": 5, "most_patterns": 11}
        for table in (one_bad_box(seed), nasty(seed, **small)):
            check(fitted(kind, table), table.X, table.y, table.weights)


@pytest.mark.parametrize("kind", ["tree", "boxes", "groups"])
def test_partitions(kind):
    check_partitions(kind, range(4))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tree", "mio", "boxes", "groups"])
def test_more_partitions(kind):
    check_partitions(kind, range(4, 100))


UNITS = {
    "plain": lambda X: X,
    "large": lambda X: 1e8 * X,
    "small": lambda X: 1e-8 * X,
    "mixed": lambda X: X * np.array([1.0, 1e-9, 1e9, 1.0]),
    "duplicated": lambda X: X[:, [0, 0, 2, 3]],
    "offset": lambda X: X + 1e3,
}


def check_fits(seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        made = make_synthetic(n=100, d=4, rank=3, n_active=3, random_state=seed)
        X, y = UNITS[list(UNITS)[seed % len(UNITS)]](made.X_train), made.y_train
        s = rng.random(len(y)) * 3 if seed % 2 else None
        for adaptivity in ("static", "affine_intercept", "affine"):
            settings = {
                "lam": float(rng.choice([0.01, 1.0, 30.0])),
                "l1_ratio": float(rng.choice([0.0, 0.5, 1.0])),
                "scale": bool(rng.integers(2)),
                "center": bool(rng.integers(2)),
                "penalty_weights": str(rng.choice(["count", "authors"])),
            }
            for loss in ("squared", "huber", "absolute", "logistic"):
                kind = AdaptiveClassifier if loss == "logistic" else AdaptiveRegressor
                target = y > np.median(y) if loss == "logistic" else y
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        model = kind(adaptivity, loss=loss, **settings).fit(X, target, s)
                except SolverError:
                    continue
                check(model, X, target, s)


def test_linear_fits():
    check_fits(range(3))


@pytest.mark.slow
def test_more_linear_fits():
    check_fits(range(3, 24))


LOSSES = {"squared": "squared", "huber": Huber(0.5), "absolute": "absolute", "low quantile": Quantile(0.01)}
TAILS = {
    "one large value": lambda rng, n: np.where(np.arange(n) == 7, 1e9, rng.normal(size=n)),
    "one small value": lambda rng, n: np.where(np.arange(n) == 7, -1e9, rng.normal(size=n)),
    "no mean": lambda rng, n: rng.standard_cauchy(n) ** 3,
}
# what is stated instead, in units of the objective
FORGED = {
    "nothing is left": {"objective": 0.0, "bound": 0.0, "status": "optimal"},
    "nothing is left, not proven": {"objective": 0.0, "bound": 0.0, "status": "time limit"},
    "half is left": {"objective": 0.5, "bound": 0.0, "status": "optimal"},
    "half is left, both": {"objective": 0.5, "bound": 0.5, "status": "optimal"},
    "slightly lower": {"objective": 1.0 - 1e-5, "status": "time limit"},
    "no bound": {"bound": 0.0, "status": "optimal"},
    "a lower bound": {"bound": 1.0 - 1e-4, "status": "optimal"},
    "a lower bound and any tolerance": {"bound": 1.0 - 1e-4, "status": "optimal", "tolerance": 1.0},
    "a higher bound": {"objective": 1.0 + 1e-5, "bound": 1.0 + 1e-5, "status": "optimal"},
}


def heavy_tailed_fit(loss, tails):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    y = TAILS[tails](rng, 60) + np.nan_to_num(X[:, 0])
    kind = AdaptiveClassifier if loss == "logistic" else AdaptiveRegressor
    if loss == "logistic":
        y = y > np.quantile(y, 0.9)
    return kind("affine", loss=LOSSES.get(loss, loss), lam=1.0).fit(X, y), X, y


@pytest.mark.parametrize("tails", TAILS)
@pytest.mark.parametrize("loss", [*LOSSES, "logistic"])
def test_forged_certificates_of_heavy_tails_are_refused(loss, tails):
    model, X, y = heavy_tailed_fit(loss, tails)
    honest = model.certificate_
    assert honest.status == "optimal"
    outcome = verify(model, X, y)
    assert outcome, str(outcome)
    for name, forged in FORGED.items():
        numbers = {key: part if key == "status" else part * honest.objective for key, part in forged.items()}
        model.certificate_ = replace(honest, **numbers)
        assert not verify(model, X, y), name


def test_an_optimal_fit_has_a_gap_within_the_tolerance_of_its_certificate():
    model, X, y = heavy_tailed_fit("huber", "no mean")
    certificate = model.certificate_
    model.certificate_ = replace(certificate, tolerance=certificate.gap / 2)
    assert "above the tolerance" in verify(model, X, y).reason


@pytest.mark.parametrize("small", [1e-3, 1e-8, 1e-12])
def test_deviations_under_wide_weights_are_accurate(small):
    X, y = np.array([[1.0, 1.0, 1.0, 3.0, np.nan]]).T, np.arange(1.0, 6.0)
    s = np.array([1.0, 1.0, 1.0, small, 1.0])
    # three rows at 1 and one of weight e at 3 have the variance 3 e (3 - 1)^2 / (3 + e)^2
    exact = float(np.sqrt(float(12 * Fraction(small) / (3 + Fraction(small)) ** 2)))
    linear = AdaptiveRegressor("static").fit(X, y, s)
    finite = FiniteRegressor(scale=True).fit(X, y, s)
    assert linear.design_.scale == pytest.approx(exact, rel=1e-9)
    assert finite.leaf_features_.scale == pytest.approx(exact, rel=1e-9)
    for model in (linear, finite):
        outcome = verify(model, X, y, s)
        assert outcome, str(outcome)


def far_from_zero(offset, spread):
    """Rows whose y is so far from 0 that no intercept, as a double, is the best one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X @ np.arange(1.0, 4.0) + rng.normal(size=60) + offset
    X = 1e6 + X * np.array([1.0, 3e-5, 7e5])
    X[rng.random(X.shape) < 0.3] = np.nan
    return X, y, np.exp(spread * rng.normal(size=60))


def check_attained(model, rows):
    """The objective is that of the coefficients as they are, and "optimal" means a gap within the tolerance."""
    outcome = verify(model, *rows)
    certificate = model.certificate_
    assert outcome, f"{certificate.status}: {outcome}"
    low, high = outcome.objective
    assert low * (1 - 1e-12) <= certificate.objective <= high + certificate.tolerance
    assert (certificate.status == "optimal") == (certificate.gap <= certificate.tolerance)


@pytest.mark.parametrize("spread", [0.0, 3.0])
@pytest.mark.parametrize("offset", [1e6, 1e9, 1e12, 1e14])
@pytest.mark.parametrize("loss", ["squared", "huber", "absolute"])
def test_the_objective_of_a_linear_fit_far_from_zero_is_that_of_its_doubles(loss, offset, spread):
    rows = far_from_zero(offset, spread)
    check_attained(AdaptiveRegressor("affine", loss=loss, lam=0.1, scale=True).fit(*rows), rows)


@pytest.mark.parametrize("spread", [0.0, 3.0])
@pytest.mark.parametrize("offset", [1e6, 1e9, 1e12, 1e14])
@pytest.mark.parametrize("partitioner", [OptimalTree(min_rows=10), PatternGroups(min_rows=10)])
def test_the_objective_of_a_finite_fit_far_from_zero_is_that_of_its_doubles(partitioner, offset, spread):
    rows = far_from_zero(offset, spread)
    check_attained(FiniteRegressor(partitioner=partitioner, ridge=1e-3).fit(*rows), rows)


@pytest.mark.parametrize("offset", [1e9, 1e14])
@pytest.mark.parametrize("loss", ["absolute", "huber"])
def test_leaves_of_any_loss_far_from_zero_cost_what_their_doubles_cost(loss, offset):
    rows = far_from_zero(offset, 3.0)
    model = FiniteRegressor(loss=loss, partitioner=OptimalTree(min_rows=10)).fit(*rows)
    certificate = model.certificate_
    assert "nothing was found to be wrong" in str(verify(model, *rows))
    assert (certificate.status == "optimal") == (certificate.gap <= certificate.tolerance)
    model.certificate_ = replace(certificate, objective=certificate.objective * (1 - 1e-7))
    assert "the objective is" in str(verify(model, *rows))


@pytest.mark.parametrize("solver", ["auto", "SCS"])
def test_a_fit_with_a_small_gap_is_returned_with_it(solver):
    rows = far_from_zero(1e12, 3.0)
    model = AdaptiveRegressor("affine", loss="absolute", lam=0.1, solver=solver).fit(*rows)
    certificate = model.certificate_
    assert certificate.status == "not proven to the tolerance"
    assert certificate.tolerance < certificate.gap < 0.1 * certificate.objective  # the bound is that of rounded rows
    check_attained(model, rows)
