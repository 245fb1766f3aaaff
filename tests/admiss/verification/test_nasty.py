"""Proofs of fits on tables made to break them: what is certified is verified, and a raised bound is not."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from admiss import AdaptiveClassifier, AdaptiveRegressor, verify
from admiss.datasets import make_synthetic
from formulations.certificate import SolverError
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
