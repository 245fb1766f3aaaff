"""Methods of the studies against the estimators that they wrap."""

import json

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import r2_score, roc_auc_score

from admiss import AdaptiveRegressorCV, FiniteRegressorCV, JointImputeRegressor
from admiss.baselines import baseline, complete_transductive
from admiss.datasets import paper_instance
from admiss.partition import Greedy
from experiments.studies.grids.grid import grids_sections
from experiments.studies.grids.methods import nested_adaptive, nested_joint
from experiments.studies.methods.adaptive import adaptive, finite
from experiments.studies.methods.joint import joint
from experiments.studies.methods.outcome import outcome
from experiments.studies.methods.rows import StudyRows
from experiments.studies.methods.tuned import tuned
from experiments.studies.synthetic.instances import AuthorsInstance, TextInstance

TREE = {"max_depth": [2, 4]}


@pytest.fixture(scope="module")
def instance():
    return AuthorsInstance(100, "censoring", "linear", 0.4, 1)


@pytest.fixture
def rows(instance):
    return instance.make()


@pytest.fixture
def class_rows():
    """Two classes; the rows are those of a regression."""
    made = TextInstance(120, "mcar", "linear", 0.2, 0).make()
    y_train, y_test = (np.where(y > np.median(y), "yes", "no") for y in (made.y_train, made.y_test))
    return StudyRows(made.X_train, y_train, made.X_test[:500], y_test[:500], None, None, "binary")


def test_tree_of_the_protocol_to_six_digits():
    rows = AuthorsInstance(1000, "mcar", "linear", 0.1, 1).make()
    scores = tuned(rows, 0, imputer="native", kind="tree", grid={"max_depth": [4]})
    assert scores["r2_authors"] == pytest.approx(0.494931, abs=5e-7)


def test_rows_are_the_authors(instance, rows):
    data = paper_instance(100, "censoring", "linear", 0.4, 1)
    np.testing.assert_array_equal(rows.X_train, data.X_train)
    np.testing.assert_array_equal(rows.y_test, data.y_test)
    assert rows.facts["n_train"] == 100
    assert rows.facts["missing"] == np.isnan(data.X_train).mean()


def test_fresh_draws_differ_by_replicate_and_come_again():
    first, again, other = (TextInstance(50, "mcar", "nn", 0.3, replicate).make() for replicate in (0, 0, 1))
    np.testing.assert_array_equal(first.X_train, again.X_train)
    assert not np.array_equal(first.y_train, other.y_train)


PATH = {"eps": "glmnet", "center": False, "random_state": 7}
WRAPPED = [
    (adaptive, {"adaptivity": "affine_intercept", "n_lambdas": 20},
     AdaptiveRegressorCV("affine_intercept", n_lambdas=20, stop_early=True, **PATH)),
    (finite, {}, FiniteRegressorCV(Greedy(min_rows=22), center=False, random_state=7)),
    (tuned, {"imputer": "mean", "kind": "tree", "grid": TREE}, baseline("mean", "tree", grid=TREE, random_state=7)),
    (nested_adaptive, {"adaptivity": "affine_intercept", "l1_ratios": [0.5], "adaptive_penalties": [4]},
     AdaptiveRegressorCV("affine_intercept", l1_ratios=[0.5], adaptive_penalties=[4], cv=10, penalty_weights="authors",
                         **PATH)),
]  # fmt: skip


@pytest.mark.parametrize(("method", "parameters", "model"), WRAPPED)
def test_scores_are_those_of_the_estimator_in_both_forms_of_r2(rows, method, parameters, model):
    scores = method(rows, 7, **parameters)
    predicted = model.fit(rows.X_train, rows.y_train).predict(rows.X_test)
    assert scores["score"] == pytest.approx(r2_score(rows.y_test, predicted), abs=1e-12)
    around_training_mean = np.mean((rows.y_test - rows.y_train.mean()) ** 2)
    expected = 1 - np.mean((rows.y_test - predicted) ** 2) / around_training_mean
    assert scores["r2_authors"] == pytest.approx(expected, abs=1e-12)
    assert scores["r2_authors"] > scores["score"]
    chosen = json.loads(scores["chosen"])
    known = {name: value for name, value in model.best_params_.items() if name in chosen}
    assert {name: chosen[name] for name in known} == pytest.approx(known)
    if method is finite:
        assert scores["leaves"] == model.partition_.n_leaves
    elif method is not nested_adaptive:  # whose score is over the outer folds
        assert scores["cv_score"] == model.best_score_


def test_finite_of_the_authors_has_no_cell_without_splits():
    rows = AuthorsInstance(200, "censoring", "linear", 0.4, 2).make()
    scores = finite(rows, 7, protocol="authors")
    assert json.loads(scores["chosen"])["max_depth"] >= 1
    assert scores["leaves"] > 1
    assert scores["depth"] <= json.loads(scores["chosen"])["max_depth"]


def test_chained_equations_of_all_rows_come_before_the_folds_and_once(rows):
    scores = tuned(rows, 7, imputer="together", kind="linear", grid={"l1_ratio": [0.5]})
    train, test = complete_transductive(rows.X_train, rows.X_test, random_state=7)
    model = baseline("mean", "linear", grid={"l1_ratio": [0.5]}, random_state=7).fit(train, rows.y_train)
    np.testing.assert_array_equal(rows.cache["together"][0], train)
    # with nothing left to impute the mean changes nothing but the strata of the folds
    assert scores["score"] == pytest.approx(model.score(test, rows.y_test), abs=0.02)
    kept = rows.cache["together"][0]
    again = tuned(rows, 7, imputer="together", kind="tree", grid=TREE)
    assert rows.cache["together"][0] is kept
    assert again["seconds"] >= again["shared_seconds"] == scores["shared_seconds"] > 0


def test_forest_has_more_trees_in_the_end(rows):
    grid = {"n_estimators": [5], "max_depth": [3]}
    few, many = (tuned(rows, 7, imputer="native", kind="forest", grid=grid, trees=trees) for trees in (None, 60))
    assert few["cv_score"] == many["cv_score"]
    assert many["score"] > few["score"]
    assert json.loads(many["chosen"])["n_estimators"] == 60


def test_oracle_needs_the_full_rows(rows, class_rows):
    scores = tuned(rows, 7, imputer="oracle", kind="linear", grid={"l1_ratio": [0.5]})
    assert scores["score"] > tuned(rows, 7, imputer="mean", kind="linear", grid={"l1_ratio": [0.5]})["score"]
    with pytest.raises(ValueError, match="oracle needs the values before they were removed"):
        tuned(class_rows, 7, imputer="oracle", kind="tree", grid=TREE)


def test_joint_tree_is_tuned_after_the_mean_and_then_searched(rows):
    scores = joint(rows, 7, kind="tree", grid=TREE, protocol="text")
    after_mean = baseline("mean", "tree", grid=TREE, random_state=7).fit(rows.X_train, rows.y_train)
    model = JointImputeRegressor(after_mean.best_estimator_["predictor"], algorithm="paper", random_state=7)
    model.fit(rows.X_train, rows.y_train)
    assert scores["score"] == pytest.approx(model.score(rows.X_test, rows.y_test), abs=1e-12)
    np.testing.assert_allclose(json.loads(scores["mu"]), model.imputation_, atol=1e-6)
    assert json.loads(scores["chosen"]) == after_mean.best_params_


def test_joint_linear_moves_and_knows_its_protocols(rows):
    scores = {name: joint(rows, 7, kind="linear", grid={}, protocol=name) for name in ("text", "authors", "auto")}
    assert scores["text"]["moves"] > 0
    assert len({one["mu"] for one in scores.values()}) == 3
    with pytest.raises(ValueError, match="Unknown protocol 'mine': choose one of text, auto, authors"):
        joint(rows, 7, kind="linear", grid={}, protocol="mine")


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        (adaptive, {"adaptivity": "affine_intercept", "l1_ratios": [0.5], "adaptive_penalties": [1], "n_lambdas": 10}),
        (finite, {"ridges": [1.0], "leaf_models": ["static"]}),
        (tuned, {"imputer": "mean", "kind": "forest", "grid": {"n_estimators": [10], "max_depth": [3]}, "trees": 20}),
        (tuned, {"imputer": "native", "kind": "tree", "grid": TREE}),
        (joint, {"kind": "linear", "grid": {}}),
        (joint, {"kind": "tree", "grid": TREE}),
    ],
)
def test_classes_are_scored_by_the_area(class_rows, method, parameters):
    scores = method(class_rows, 7, **parameters)
    assert 0.2 < scores["score"] < 1
    assert "r2_authors" not in scores
    assert scores["cv_score"] < 0  # minus a log-loss


def test_area_is_that_of_scikit_learn(class_rows):
    class Constant:
        classes_ = np.array(["no", "yes"])

        def predict_proba(self, X):
            p = np.linspace(0, 1, len(X))
            return np.column_stack([1 - p, p])

    scores = outcome(class_rows, Constant(), class_rows.X_test, cv_score=0.0, seconds=0.0, selected={})
    expected = roc_auc_score(class_rows.y_test == "yes", np.linspace(0, 1, len(class_rows.y_test)))
    assert scores["score"] == pytest.approx(2 * expected - 1, abs=1e-12)


def test_test_rows_of_one_class_are_refused(class_rows):
    model = baseline("native", "tree", task="classification", grid=TREE, random_state=0)
    model.fit(class_rows.X_train, class_rows.y_train)
    one = StudyRows(
        class_rows.X_train, class_rows.y_train, class_rows.X_test, np.repeat("yes", 500), None, None, "binary"
    )
    with pytest.raises(ValueError, match="all of one class"):
        outcome(one, model, one.X_test, cv_score=0.0, seconds=0.0, selected={})


def test_nested_joint_search_of_one_cell_is_the_reduced_one(rows):
    grid = {"max_depth": [3]}
    nested, reduced = (method(rows, 7, kind="tree", grid=grid, protocol="authors") for method in (nested_joint, joint))
    assert nested["score"] == pytest.approx(reduced["score"], abs=1e-12)
    assert nested["cv_score"] == pytest.approx(reduced["cv_score"], abs=1e-12)


def test_differences_between_grids():
    fields = {"n": 40, "mechanism": "mcar", "signal": "linear", "missing_fraction": 0.1}
    cells = [
        {"method": f"A [{grid}]", "status": "done", "r2_authors": r2, "seconds": 1.0, **fields, "replicate": replicate}
        for grid, values in (("reduced", (0.5, 0.7)), ("authors", (0.4, 0.5)))
        for replicate, r2 in enumerate(values)
    ]
    (section,) = grids_sections(pl.DataFrame(cells))
    name, instances, difference, error, reduced, authors, nested = section.rows[0]
    assert (name, instances, difference) == ("A", 2, 0.15)
    assert error == pytest.approx(0.05)
    assert (reduced, authors, nested) == (1.0, 1.0, None)
