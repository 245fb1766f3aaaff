"""The best of several predictors with learned imputed values."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, r2_score, roc_auc_score
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from admiss import JointImputeClassifier, JointImputeClassifierCV, JointImputeRegressor, JointImputeRegressorCV
from admiss.datasets import make_synthetic

FOLDS = [(np.setdiff1d(np.arange(200), test), test) for test in np.array_split(np.arange(200), 4)]


@pytest.fixture(scope="module")
def data():
    return make_synthetic(n=200, mechanism="censoring", random_state=1)


@pytest.mark.parametrize("algorithm", ["auto", "paper"])
def test_scores_are_those_of_whole_searches(algorithm, data):
    predictors = {"stump": DecisionTreeRegressor(max_depth=1), "ridge": Ridge(), "tree": DecisionTreeRegressor()}
    model = JointImputeRegressorCV(predictors, algorithm, cv=FOLDS, random_state=0).fit(data.X_train, data.y_train)
    for row, f in enumerate(predictors.values()):
        if f is predictors["tree"]:  # its random state is that of the search
            continue
        for k, (train, test) in enumerate(FOLDS):
            one = JointImputeRegressor(clone(f), algorithm, model.best_estimator_.random_state)
            one.fit(data.X_train[train], data.y_train[train])
            expected = r2_score(data.y_train[test], one.predict(data.X_train[test]))
            assert model.cv_results_[f"split{k}_score"][row] == pytest.approx(expected)
    assert model.best_name_ == "ridge"
    assert model.best_score_ == max(model.cv_results_["mean_score"])
    alone = clone(model.best_estimator_).fit(data.X_train, data.y_train)
    np.testing.assert_array_equal(model.predict(data.X_test), alone.predict(data.X_test))
    np.testing.assert_array_equal(model.imputation_, alone.imputation_)


@pytest.mark.parametrize("error", ["log_loss", "auc"])
def test_classes_are_compared_by_the_error_of_the_search(error, data):
    labels = np.where(data.y_train > np.median(data.y_train), "high", "low")
    predictors = [DecisionTreeClassifier(max_depth=1), LogisticRegression()]
    model = JointImputeClassifierCV(predictors, "paper", error, cv=FOLDS, random_state=0).fit(data.X_train, labels)
    train, test = FOLDS[2]
    one = JointImputeClassifier(LogisticRegression(), "paper", error, model.best_estimator_.random_state)
    probability = one.fit(data.X_train[train], labels[train]).predict_proba(data.X_train[test])
    if error == "auc":
        expected = roc_auc_score(labels[test] == "low", probability[:, 1])
    else:
        expected = -log_loss(labels[test], probability)
    assert model.cv_results_["split2_score"][1] == pytest.approx(expected)
    assert model.best_estimator_.error == error
    assert model.classes_.tolist() == ["high", "low"]
    assert model.best_index_ == 1
    assert model.predict(data.X_test[:3]).dtype == labels.dtype
    assert model.decision_function(data.X_test).shape == data.y_test.shape


def test_the_number_of_workers_and_rows_of_weight_0_do_not_matter(data):
    predictors = [Ridge(), DecisionTreeRegressor(max_depth=3, max_features=2)]
    first, second = (
        JointImputeRegressorCV(predictors, random_state=3, n_jobs=n_jobs).fit(data.X_train, data.y_train)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(first.cv_results_["mean_score"], second.cv_results_["mean_score"])
    np.testing.assert_array_equal(first.predict(data.X_test), second.predict(data.X_test))
    more = np.vstack([data.X_train, data.X_test[:5] * 100]), np.append(data.y_train, 1e3 * np.ones(5))
    weights = np.append(np.ones(200), np.zeros(5))
    third = JointImputeRegressorCV(predictors, random_state=3).fit(*more, weights)
    fourth = JointImputeRegressorCV(predictors, random_state=3).fit(data.X_train, data.y_train, np.ones(200))
    np.testing.assert_allclose(third.predict(data.X_test), fourth.predict(data.X_test))


def test_the_search_of_the_paper():
    model = JointImputeClassifierCV.paper(cv=3)
    assert (model.error, model.algorithm.step_rows, model.cv) == ("auc", "all", 3)


def test_bad_input_is_refused(data):
    X, y = data.X_train, data.y_train
    for estimators, words in (([], "empty"), ("ridge", "list or a dictionary"), ([LogisticRegression()], "regressor")):
        with pytest.raises(ValueError, match=words):
            JointImputeRegressorCV(estimators).fit(X, y)
    with pytest.raises(ValueError, match="predict_proba"):
        JointImputeClassifierCV([LinearSVC()]).fit(X, y > 0)
    with pytest.raises(ValueError, match="error"):
        JointImputeClassifierCV(error="brier").fit(X, y > 0)


def test_advice_on_folds_without_a_score_names_parameters_that_exist(data):
    single = [(np.arange(1, 200), np.arange(1))]
    with pytest.raises(ValueError, match=r"fold 1, which has one row: use fewer folds\.$"):
        JointImputeRegressorCV([Ridge()], "paper", cv=single).fit(data.X_train, data.y_train)
    model = JointImputeClassifierCV([LogisticRegression()], "paper", "auc", cv=single)
    with pytest.raises(ValueError, match="fold 1, which lacks a class: use fewer folds, or error='log_loss'"):
        model.fit(data.X_train, data.y_train > 0)
