"""Reliance on missing values, against what happens to predictions."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    BaggingRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from admiss import (
    AdaptiveClassifier,
    AdaptiveRegressor,
    AdaptiveRegressorCV,
    DeletionAugmentedRegressor,
    FiniteRegressor,
    reliance,
)
from admiss.partition import Greedy, PatternGroups


def make_rows(n=200, d=4, seed=0):
    """The last feature is noise, and the target depends on the first two."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d))
    X = np.where(rng.uniform(size=Z.shape) < [0.2, 0.4, 0.1, 0.3], np.nan, Z)
    return X, 3 * Z[:, 0] + Z[:, 1] + 0.1 * rng.normal(size=n)


def test_linear_models_by_their_coefficients():
    X, y = make_rows()
    imputer = SimpleImputer().fit(X)
    model = Lasso(alpha=0.2).fit(imputer.transform(X), y)
    assert (model.coef_ != 0).tolist() == [True, True, False, False]
    expected = np.isnan(X[:, :2]).any(axis=1).mean()
    assert reliance(model, imputer.transform(X), missing=np.isnan(X)) == expected
    static = AdaptiveRegressor("static", lam=100.0, l1_ratio=1.0).fit(X, y)
    assert (static.coef_at([0, 0, 0, 0]) != 0).tolist() == [True, True, False, False]
    assert reliance(static, X) == expected
    classes = LogisticRegression(C=0.1).fit(imputer.transform(X), np.digitize(y, [-2.0, 2.0]))
    assert reliance(classes, imputer.transform(X), missing=np.isnan(X)) == np.isnan(X).any(axis=1).mean()


@pytest.mark.parametrize("name", ["affine_intercept", "affine", "fully_adaptive", "shared_patterns", "binned_affine"])
@pytest.mark.parametrize("lam", [30.0, 1e6])
def test_a_prediction_relies_if_and_only_if_observed_values_change_it(name, lam):
    """A row relies on its missing values if its prediction is another one once they are observed."""
    X, y = make_rows(n=40)
    model = AdaptiveRegressor(name, lam=lam, l1_ratio=1.0, adaptive_penalty=1.0).fit(X, y)
    observed = [model.predict(np.where(np.isnan(X), value, X)) for value in (-5.0, -0.1, 0.1, 5.0)]
    changes = ~np.isclose(observed, model.predict(X), atol=1e-9).all(axis=0)
    assert [reliance(model, x[None]) for x in X] == changes.tolist()
    assert reliance(model, X) == changes.mean()
    incomplete = np.isnan(X).any(axis=1)
    if lam == 30.0:  # some predictions rely; of the others some have missing values, except in a model for each pattern
        assert 0 < changes.mean() <= incomplete.mean()
    elif name != "fully_adaptive":  # nothing is left but the intercept
        assert not changes.any()


def test_trees_by_the_path_of_each_row():
    X, y = make_rows()
    tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
    expected = []
    for x in X:
        node, relies = 0, False
        while tree.tree_.feature[node] >= 0:
            value = x[tree.tree_.feature[node]]
            relies |= np.isnan(value)
            left = tree.tree_.missing_go_to_left[node] if np.isnan(value) else value <= tree.tree_.threshold[node]
            node = (tree.tree_.children_left if left else tree.tree_.children_right)[node]
        expected.append(relies)
    assert 0 < reliance(tree, X) == np.mean(expected) < 1
    forest = RandomForestRegressor(5, max_depth=2, random_state=0).fit(X, y)
    each = [reliance(one, X) for one in forest.estimators_]
    assert max(each) <= reliance(forest, X) <= sum(each)
    filled = SimpleImputer().fit_transform(X)
    boosted = GradientBoostingRegressor(n_estimators=1, max_depth=3, random_state=0).fit(filled, y)
    one = boosted.estimators_[0, 0]
    missing = np.isnan(X)
    assert reliance(boosted, filled, missing=missing) == reliance(one, filled, missing=missing) > 0
    stump = DecisionTreeClassifier(max_depth=1).fit(X, X[:, 0] > 0)
    assert reliance(stump, X) == np.isnan(X[:, 0]).mean()


def test_finite_models_by_splits_and_weights():
    X, y = make_rows()
    for partitioner in (Greedy(max_depth=2, min_rows=10), PatternGroups(2, min_rows=1, random_state=0)):
        model = FiniteRegressor(partitioner, ridge=1.0).fit(X, y)
        assert reliance(model, X) == np.isnan(X).any(axis=1).mean()  # a ridge leaves no weight at 0
    constant = FiniteRegressor(Greedy(max_leaves=1), ridge=1.0).fit(X, np.ones(len(X)))
    assert reliance(constant, X) == 0.0


def test_searches_and_classifiers_and_frames():
    pd = pytest.importorskip("pandas")
    X, y = make_rows()
    frame = pd.DataFrame(X, columns=list("abcd"))
    searched = AdaptiveRegressorCV("affine_intercept", n_lambdas=5, cv=2, random_state=0).fit(frame, y)
    assert reliance(searched, frame) == reliance(searched.best_estimator_, frame)
    grid = GridSearchCV(DecisionTreeRegressor(random_state=0), {"max_depth": [1, 2]}).fit(X, y)
    assert reliance(grid, X) == reliance(grid.best_estimator_, X)
    classifier = AdaptiveClassifier("static", lam=30.0, l1_ratio=1.0).fit(X, np.digitize(y, [-2.0, 2.0]))
    used = (classifier.coef_at([0, 0, 0, 0]) != 0).any(axis=0)
    assert reliance(classifier, X) == np.isnan(X[:, used]).any(axis=1).mean()


def test_others_are_refused():
    X, y = make_rows()
    for model in (HistGradientBoostingRegressor(), make_pipeline(SimpleImputer(), Lasso())):
        with pytest.raises(TypeError, match="is not defined: give an adaptive or finite model"):
            reliance(model.fit(X, y), X)
    with pytest.raises(ValueError, match="missing must have the shape of X"):
        reliance(DecisionTreeRegressor().fit(X, y), X, missing=np.isnan(X[:, :2]))


def test_ensembles_on_subsets_of_the_columns_and_frames_in_another_order():
    X = np.random.default_rng(0).normal(size=(200, 4))
    stumps = BaggingRegressor(DecisionTreeRegressor(max_depth=1), n_estimators=5, max_features=2, random_state=0)
    stumps.fit(X, X[:, 3])
    gone = X.copy()
    gone[:, 3] = np.nan
    used = [tree.tree_.feature[0] for tree in stumps.estimators_]
    assert any(columns[j] == 3 for columns, j in zip(stumps.estimators_features_, used, strict=True))
    assert reliance(stumps, gone) == 1.0
    frame = pd.DataFrame(X, columns=list("abcd"))
    with pytest.raises(ValueError, match="feature names should match"):
        reliance(Lasso(alpha=0.01).fit(frame, X[:, 3]), frame[list("dabc")])


def test_a_model_trained_on_deletions_is_that_inside():
    X, y = make_rows()
    model = DeletionAugmentedRegressor(AdaptiveRegressor(), random_state=0).fit(X, y)
    assert reliance(model, X) == reliance(model.estimator_, X)
