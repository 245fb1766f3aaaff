"""The baselines by name."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression

from admiss.baselines import BASELINES, TunedClassifier, TunedRegressor, baseline, baseline_features
from admiss.datasets import make_synthetic

SMALL = {
    "linear": {"l1_ratio": [0.5]},
    "tree": {"max_depth": [2, 4]},
    "forest": {"n_estimators": [5, 10], "max_depth": [4]},
    "xgboost": {"n_estimators": [10, 20], "max_depth": [2]},
}


@pytest.fixture(scope="module")
def data():
    return make_synthetic(n=300, d=6, rank=4, n_active=4, mechanism="censoring", n_test=2000, random_state=2)


def fitted_score(name, data, downstream, **options):
    model = baseline(name, downstream, random_state=0, **options)
    model.fit(baseline_features(name, data.X_train, data.X_full_train), data.y_train)
    return model.score(baseline_features(name, data.X_test, data.X_full_test), data.y_test)


@pytest.mark.filterwarnings("ignore:Every feature has missing values", "ignore:.*Early stopping criterion")
@pytest.mark.parametrize("name", [name for name in BASELINES if name not in ("native", "floor")])
@pytest.mark.parametrize("downstream", ["linear", "tree"])
def test_every_baseline_fits(name, downstream):
    data = make_synthetic(n=300, d=6, rank=4, n_active=4, n_test=2000, random_state=3)
    score = fitted_score(name, data, downstream, grid=SMALL[downstream], cv=3)
    # Every feature has missing values here: none is complete.
    assert score == pytest.approx(0, abs=0.01) if name == "complete_features" else score > 0.1


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_best_of_several(task, data):
    y = data.y_train if task == "regression" else data.y_train > np.median(data.y_train)
    model = baseline("mean", task=task, grid=SMALL, cv=3, random_state=0).fit(data.X_train, y)
    assert set(model.cv_results_["kind"]) == {"linear", "tree", "forest", "xgboost"}
    assert isinstance(model, TunedRegressor if task == "regression" else TunedClassifier)
    grid = {kind: SMALL[kind] for kind in ("tree", "forest", "xgboost")}
    native = baseline("native", task=task, grid=grid, cv=3, random_state=0)
    assert set(native.fit(data.X_train, y).cv_results_["kind"]) == set(grid)
    floor = baseline("floor", task=task).fit(data.X_train, y)
    assert model.score(data.X_train, y) > floor.score(data.X_train, y)


def test_scores_of_the_oracles(data):
    scores = {
        name: fitted_score(name, data, "linear") for name in ("mean", "mean_indicators", "oracle", "oracle_pattern")
    }
    assert scores["oracle"] > scores["mean_indicators"] > scores["mean"]
    assert scores["oracle"] == pytest.approx(data.ceiling, abs=0.03)
    # Given the values, the pattern is irrelevant.
    assert scores["oracle_pattern"] == pytest.approx(scores["oracle"], abs=0.02)


def test_the_mean_is_scikit_learns(data):
    grid = {"lam": [1e-10], "l1_ratio": [0.0]}
    model = baseline("mean", "linear", grid=grid, random_state=0).fit(data.X_train, data.y_train)
    imputer = SimpleImputer().fit(data.X_train)
    plain = LinearRegression().fit(imputer.transform(data.X_train), data.y_train)
    np.testing.assert_allclose(model.predict(data.X_test), plain.predict(imputer.transform(data.X_test)), atol=1e-8)


def test_conditional_means_and_draws():
    rng = np.random.default_rng(0)
    n = 500
    x = rng.normal(size=n)
    X = np.column_stack([x, x + rng.normal(size=n)])
    X[rng.uniform(size=n) < 0.2, 1] = np.nan
    copies = np.tile([[0.5, np.nan]], (n, 1))
    filled = {}
    for name in ("iterative", "iterative_draws"):
        model = baseline(name, "tree", grid=SMALL["tree"], cv=2, random_state=0).fit(X, x)
        filled[name] = model.best_estimator_[0].transform(copies)[:, 1]
    # Given the first column, the second is normal with mean .5 and deviation 1. Standard errors are 1 / sqrt(400) for
    # the mean and 1 / sqrt(1000) for the deviation of 500 draws; the bounds are at least five of them.
    assert np.ptp(filled["iterative"]) < 1e-12
    assert filled["iterative"][0] == pytest.approx(0.5, abs=0.3)
    assert filled["iterative_draws"].std() == pytest.approx(1, abs=0.3)


def test_baselines_are_independent_objects():
    first, second = baseline("mice"), baseline("mice")
    clone(first).imputer.set_params(n_donors=3)
    assert second.imputer.n_donors == 5
    first.imputer.set_params(n_donors=3)
    assert baseline("mice").imputer.n_donors == 5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("median",), "Unknown baseline"),
        (("native", "linear"), "needs predictors among"),
        (("native", "best"), "needs predictors among"),
        (("native", 3), "needs predictors among"),
        (("mean", "cubist"), "kind must be one of"),
        (("floor", "nonsense"), "'floor' takes no predictor"),
    ],
)
def test_errors(arguments, words, data):
    with pytest.raises(ValueError, match=words):
        baseline(*arguments).fit(data.X_train, data.y_train)
    with pytest.raises(ValueError, match="Unknown task"):
        baseline("mean", task="ranking")
    with pytest.raises(ValueError, match="needs X_full"):
        baseline_features("oracle", data.X_train)
    with pytest.raises(ValueError, match="Unknown baseline 'orcale'"):
        baseline_features("orcale", data.X_train)
