"""Laws and joint imputation on odd tables: finite results or one sentence; units of weights do not matter."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from admiss import (
    ExpectedFeatures,
    ExpectedFeaturesClassifier,
    ExpectedFeaturesRegressor,
    JointImputeClassifier,
    JointImputeRegressor,
)
from admiss.laws import fit_law

# Errors that say what to do.
SENTENCES = (
    "at least two classes",
    "at least one non-zero number",  # of scikit-learn from 1.9 on, and ours before
    "is 0 for every row",
    "cannot be fitted: it fails with the means imputed",
    "use other units",
    "contains infinity",
)


def odd_table(seed):
    """Few rows; constant, equal and tiny or huge columns, offsets, ties; weights of 200 decades, or 0."""
    rng = np.random.default_rng(seed)
    n, d, kind = int(rng.choice([1, 2, 3, 5, 12, 40])), int(rng.choice([1, 2, 3, 6])), int(rng.integers(8))
    X = rng.normal(size=(n, d))
    X[:, 0] = 3.0 if kind == 0 else X[:, -1] if kind == 1 else X[:, 0]
    X = X * {2: 1e100, 3: 1e-100, 4: 10.0 ** rng.integers(-100, 100, size=d)}.get(kind, 1.0) + 1e9 * (kind == 5)
    X = np.round(X) if kind == 6 else X
    X[rng.random(X.shape) < rng.choice([0.0, 0.2, 0.5, 0.9, 1.0])] = np.nan
    X, y = (
        X * rng.choice([1.0] * 20 + [1e-300, 1e155, 1e300]),
        rng.normal(size=n) * 10.0 ** rng.choice([0, 0, 100, -100]),
    )
    far, near = 10.0 ** rng.uniform(-100, 100, size=n), 10.0 ** rng.uniform(-8, 8, size=n)
    weights = [None, np.ones(n), far, near, np.where(rng.random(n) < 0.5, 0.0, 1.0)][int(rng.integers(5))]
    return X, y, rng.random(n) < 0.5, weights, rng


def odd_estimator(rng):
    law, prior = str(rng.choice(["gaussian", "censored"])), float(rng.choice([0.0, 0.1, 1e-300, 1e8, 1e300]))
    n_random, relu = int(rng.choice([0, 4])), bool(law == "gaussian" and rng.random() < 0.4)
    settings = {"n_random": n_random, "law": law, "prior": prior, "expected_relu": relu, "random_state": 0}
    kinds = [
        ExpectedFeatures(**settings),
        ExpectedFeaturesRegressor(**settings),
        ExpectedFeaturesClassifier(**settings),
        JointImputeRegressor(Ridge(), random_state=0),
        JointImputeRegressor(Ridge(), "paper", random_state=0),
        JointImputeClassifier(LogisticRegression(), random_state=0),
    ]
    return kinds[int(rng.integers(len(kinds)))]


@pytest.mark.parametrize("seeds", [range(150), pytest.param(range(150, 3000), marks=pytest.mark.slow)])
def test_odd_tables_have_finite_results_or_one_sentence(seeds):
    for seed in seeds:
        X, y, classes, weights, rng = odd_table(seed)
        model = odd_estimator(rng)
        target = classes if "Classifier" in type(model).__name__ else y
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of features that are never observed, and of estimators of scikit-learn
            warnings.filterwarnings("error", category=RuntimeWarning, module=r"admiss\.")
            try:
                model.fit(X, target, sample_weight=weights)
            except (ValueError, RuntimeError) as error:
                if not any(sentence in str(error) for sentence in SENTENCES):
                    raise AssertionError(f"seed {seed}") from error
                continue
            results = model.transform(X) if hasattr(model, "transform") else model.predict(X)
        assert np.isfinite(results).all(), seed


def test_a_censored_law_of_one_observed_value_is_finite():
    X = np.array([[np.nan], [np.nan], [-0.75]])
    found = ExpectedFeatures(law="censored", prior=0.0, n_random=0).fit_transform(X)
    assert found == pytest.approx(np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 0.0]]), abs=1e-3)


@pytest.mark.parametrize("unit", [2.0**-400, 2.0**-3, 2.0**400])
@pytest.mark.parametrize("kind", ["gaussian", "censored"])
def test_units_of_weights_change_the_prior_only(unit, kind, make_rows):
    X, _ = make_rows()
    weights = np.random.default_rng(0).uniform(0.5, 2.0, size=len(X))
    law, other = fit_law(X, weights, kind, 0.5), fit_law(X, unit * weights, kind, 0.5 * unit)
    assert np.array_equal(law.parameters(), other.parameters())
    assert np.array_equal(law.history * unit, other.history)


def test_units_of_y_and_weights_do_not_change_predictions(make_rows):
    X, y = make_rows()
    weights = np.random.default_rng(0).uniform(0.5, 2.0, size=len(X))
    settings = {"n_random": 8, "random_state": 0}
    base = ExpectedFeaturesRegressor(**settings, prior=0.5).fit(X, y, weights).predict(X)
    for scale, unit in ((1e100, 2.0**300), (1e-100, 2.0**-300)):
        model = ExpectedFeaturesRegressor(**settings, prior=0.5 * unit).fit(X, y * scale, weights * unit)
        assert model.predict(X) / scale == pytest.approx(base, rel=1e-9)
