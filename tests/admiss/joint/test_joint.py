"""Algorithm 2: against its statement, the accelerated against the plain search, and predictors that misbehave."""

import re
import warnings
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.linear_model import (
    BayesianRidge,
    ElasticNet,
    Lars,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    PoissonRegressor,
    Ridge,
    RidgeCV,
)
from sklearn.metrics import log_loss, mean_squared_error, roc_auc_score
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, TunedThresholdClassifierCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from xgboost import XGBClassifier, XGBRegressor

from admiss.datasets import make_synthetic
from admiss.joint import ClosedForm, Imputation, JointImputeClassifier, JointImputeRegressor, JointProblem, PaperSearch
from admiss.joint.moves import linear_weights, sign_of_move
from admiss.joint.paper_search import inner_search
from admiss.joint.problem import imputed


def problem_of(estimator, n=300, d=10, mechanism="censoring", classes=0, error=None, weighted=False, seed=0):
    data = make_synthetic(n=n, d=d, mechanism=mechanism, n_test=1, random_state=seed)
    s = np.random.default_rng(seed).integers(1, 4, size=n).astype(float) if weighted else np.ones(n)
    y = data.y_train
    if classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    error = error or ("log_loss" if classes else "squared")
    return JointProblem(data.X_train, y, s, estimator, error, n_classes=classes, pass_weights=weighted)


def both(problem, **parameters):
    """The same search, plain and accelerated."""
    searches = [PaperSearch(accelerated=accelerated, **parameters) for accelerated in (False, True)]
    return [search(problem, np.random.RandomState(0)) for search in searches]


def assert_same_moves(plain, fast, at_least=1):
    assert [round.moves for round in fast.history] == [round.moves for round in plain.history]
    np.testing.assert_array_equal(fast.mu, plain.mu)
    assert sum(len(round.moves) for round in plain.history) >= at_least
    np.testing.assert_allclose([r.error for r in fast.history], [r.error for r in plain.history], rtol=1e-10)


def literal_algorithm(X, y, estimator, error, inner=20, outer=10, tolerance=1e-4):
    """Algorithm 2 as printed, independent of the package."""
    mu = np.nanmean(X, axis=0)
    sigma = np.nanstd(X, axis=0) / np.sqrt(np.sum(~np.isnan(X), axis=0))
    previous = None
    for _ in range(outer):
        f = estimator.fit(np.where(np.isnan(X), mu, X), y)
        now = error(f, np.where(np.isnan(X), mu, X))
        if previous is not None and (previous - now) / previous < tolerance:
            break
        previous, any_move = now, False
        for _ in range(inner):
            moved = False
            for j in range(X.shape[1]):
                errors = []
                for epsilon in (-1, 0, 1):
                    candidate = mu.copy()
                    candidate[j] += epsilon * sigma[j]
                    errors.append(error(f, np.where(np.isnan(X), candidate, X)))
                epsilon = int(np.argmin(errors)) - 1
                if min(errors) < errors[1] * (1 - 1e-11):
                    mu[j] += epsilon * sigma[j]
                    moved = any_move = True
            if not moved:
                break
        if not any_move:
            break
    return mu


@pytest.mark.parametrize("mechanism", ["mcar", "censoring"])
def test_the_search_is_algorithm_2_as_printed(mechanism):
    data = make_synthetic(n=80, d=4, rank=3, n_active=3, mechanism=mechanism, n_test=1, random_state=3)
    X, y = data.X_train, data.y_train
    expected = literal_algorithm(X, y, LinearRegression(), lambda f, Z: mean_squared_error(y, f.predict(Z)))
    found = JointImputeRegressor(algorithm="paper").fit(X, y)
    np.testing.assert_allclose(found.imputation_, expected, rtol=1e-12)
    labels = y > np.median(y)
    errors = {
        "log_loss": lambda f, Z: log_loss(labels, f.predict_proba(Z)),
        "auc": lambda f, Z: 1 - roc_auc_score(labels, f.predict_proba(Z)[:, 1]),
    }
    for name, error in errors.items():
        expected = literal_algorithm(X, labels, LogisticRegression(), error, inner=5, outer=2)
        search = PaperSearch(inner_rounds=5, outer_rounds=2)
        found = JointImputeClassifier(algorithm=search, error=name).fit(X, labels)
        np.testing.assert_allclose(found.imputation_, expected, rtol=1e-12)
        final = LogisticRegression().fit(np.where(np.isnan(X), expected, X), labels)
        np.testing.assert_allclose(found.estimator_.coef_, final.coef_, rtol=1e-6)


# The same moves, faster


@pytest.mark.parametrize("mechanism", ["mcar", "censoring"])
@pytest.mark.parametrize(("d", "variant"), [(10, "text"), (10, "authors"), (30, "text")])
def test_linear_moves_are_those_of_the_plain_search(mechanism, d, variant):
    problem = problem_of(LinearRegression(), d=d, mechanism=mechanism)
    assert_same_moves(*both(problem, variant=variant, outer_rounds=40 // d), at_least=100)


LINEAR = [
    Ridge(5.0),
    RidgeCV(),
    Lasso(0.05),
    BayesianRidge(),
    make_pipeline(StandardScaler(), MaxAbsScaler(), ElasticNet(0.05)),
    GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [1.0, 10.0]}, cv=3),
    RandomizedSearchCV(Ridge(), {"alpha": [1.0, 10.0]}, n_iter=1, cv=3, random_state=0),
]


@pytest.mark.parametrize("estimator", LINEAR, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_other_linear_predictors_predict_once_per_round(estimator, weighted):
    problem = problem_of(estimator, weighted=weighted, mechanism="mcar")
    plain, fast = both(problem, order="shuffled", outer_rounds=2)
    assert_same_moves(plain, fast, at_least=40)
    f = problem.fit(problem.means())
    found = inner_search(problem, f, problem.means(), problem.deviations() / 10, np.tile(np.arange(10), (20, 1)))
    assert found.predict_calls == 1


def test_several_classes():
    for estimator in (LogisticRegression(), DecisionTreeClassifier(max_depth=3, random_state=0)):
        for error in ("log_loss", "auc"):
            problem = problem_of(estimator, n=200, d=6, classes=3, error=error, weighted=True)
            at_least = 20 if isinstance(estimator, LogisticRegression) else 0
            assert_same_moves(*both(problem, outer_rounds=2), at_least=at_least)


def test_logistic_moves_with_clipped_probabilities():
    """With margins in the hundreds probabilities are cut, and the log-loss is not convex."""
    for classes in (2, 3):
        problem = problem_of(LogisticRegression(), n=200, d=6, classes=classes)
        f = problem.fit(problem.means())
        f.coef_ *= 30.0
        assert problem.losses(problem.outputs(f, imputed(problem.X, problem.means()))).max() > 27
        orders = np.tile(np.arange(6), (20, 1))
        step = problem.deviations() / 5
        plain, fast = (inner_search(problem, f, problem.means(), step, orders, fast) for fast in (False, True))
        assert fast.moves == plain.moves
        assert len(plain.moves) > 10


OTHERS = [
    DecisionTreeRegressor(max_depth=4, random_state=0),
    RandomForestRegressor(10, random_state=0),
    GradientBoostingRegressor(n_estimators=20, random_state=0),
    HistGradientBoostingRegressor(max_iter=10, random_state=0),
    XGBRegressor(n_estimators=10, random_state=0, n_jobs=1),
    KNeighborsRegressor(),
    MLPRegressor(hidden_layer_sizes=(5,), max_iter=20, random_state=0),
    make_pipeline(PolynomialFeatures(2), Ridge()),
    make_pipeline(StandardScaler(), LogisticRegression(C=0.1)),
    DecisionTreeClassifier(max_depth=4, random_state=0),
    RandomForestClassifier(10, random_state=0),
    XGBClassifier(n_estimators=10, random_state=0, n_jobs=1),
]


@pytest.mark.parametrize("estimator", OTHERS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("mechanism", ["mcar", "censoring"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_moves_of_any_predictor_are_those_of_the_plain_search(estimator, mechanism):
    """With the steps of the paper, and with larger ones from poor initial values, from which trees move too."""
    classes = 2 if is_classifier(estimator) else 0
    weighted = not isinstance(estimator, KNeighborsRegressor | MLPRegressor | Pipeline)
    problem = problem_of(estimator, n=200, d=6, mechanism=mechanism, classes=classes, weighted=weighted)
    assert_same_moves(*both(problem, outer_rounds=2, order="shuffled"), at_least=0)
    f, deviations = problem.fit(problem.means()), problem.deviations()
    orders = np.array([np.random.RandomState(k).permutation(6) for k in range(10)])
    n_moves = 0
    for off, share in product((1.0, 2.0), (0.3, 1.0)):
        mu, step = problem.means() + off * deviations, share * deviations
        plain, fast = (inner_search(problem, f, mu, step, orders, fast) for fast in (False, True))
        assert fast.moves == plain.moves
        np.testing.assert_array_equal(fast.mu, plain.mu)
        assert fast.predicted_rows < plain.predicted_rows / 1.5
        assert fast.predict_calls < plain.predict_calls / 1.5
        n_moves += len(plain.moves)
    assert n_moves >= 5


def test_a_tree_that_does_not_move_is_asked_once():
    problem = problem_of(DecisionTreeRegressor(max_depth=6, random_state=0), n=1000)
    search = PaperSearch()
    mu, step = search.start(problem)
    orders = search.orders(problem, np.random.RandomState(0))
    plain, fast = (inner_search(problem, problem.fit(mu), mu, step, orders, fast) for fast in (False, True))
    assert plain.moves == fast.moves == ()
    assert (plain.predict_calls, fast.predict_calls) == (21, 2)
    assert fast.predicted_rows == 1000 + 2 * problem.M.sum()


def test_calls_with_many_rows_are_split(monkeypatch):
    problem = problem_of(KNeighborsRegressor(), n=150, d=5)
    expected = both(problem, outer_rounds=1)[0]
    monkeypatch.setattr("admiss.joint.moves.CALL_ROWS", 1)
    assert_same_moves(expected, both(problem, outer_rounds=1)[1])


def test_nonlinear_predictors_are_not_taken_for_linear():
    class Clipped(LinearRegression):
        def predict(self, X):
            return np.clip(super().predict(X), -1, 1)

    problem = problem_of(Clipped(), n=150, d=5)
    f = problem.fit(problem.means())
    assert linear_weights(f) is None
    assert_same_moves(*both(problem, outer_rounds=2))
    positive = np.abs(problem.y)
    X = imputed(problem.X, problem.means())
    assert linear_weights(PoissonRegressor().fit(X, positive)) is None
    assert linear_weights(make_pipeline(PolynomialFeatures(2), Ridge()).fit(X, positive)) is None
    other = TunedThresholdClassifierCV(LogisticRegression(), cv=2).fit(X, positive > np.median(positive))
    assert linear_weights(other) is None  # holds an estimator, and is no search
    model = make_pipeline(StandardScaler(with_std=False), Ridge()).fit(X, positive)
    np.testing.assert_array_equal(linear_weights(model), model[-1].coef_)


def test_exact_fits_and_constant_features_do_not_move():
    """Nothing moves in either search if the error is rounding, or the step 0."""
    rng = np.random.default_rng(0)
    X = 1e4 + rng.normal(size=(60, 3))
    y = X @ [1.0, 2.0, 3.0]
    X[:5, 2] = np.nan
    X[:5, :2] = 1e4
    X[5:, 2] = 7.0
    for estimator in (LinearRegression(), DecisionTreeRegressor(max_depth=2)):
        problem = JointProblem(X, y, np.ones(60), estimator, "squared")
        for found in both(problem):
            assert [round.moves for round in found.history] == [()]


# When a move is made


def test_ties_stay_and_of_two_equal_steps_the_one_down_is_made():
    assert sign_of_move(0.0, 0.0, 1.0, 0.0, 1.0) == 0
    assert sign_of_move(1e-13, 1e-13, 1.0, 0.0, 1.0) == 0
    assert sign_of_move(-1.0, 1e-9, 1.0, 0.0, 1.0) == 1
    assert sign_of_move(1e-9, -1.0, 1.0, 0.0, 1.0) == -1
    assert sign_of_move(0.5, 0.5 + 1e-14, 1.0, 0.0, 1.0) == -1
    assert sign_of_move(0.5, 0.6, 1.0, 0.0, 1.0) == 1

    class Distance(RegressorMixin, BaseEstimator):
        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.abs(X[:, 0])

    X = np.array([[-1.0], [1.0], [np.nan]])
    problem = JointProblem(X, np.array([1.0, 1.0, 0.5]), np.ones(3), Distance(), "squared")
    orders = np.zeros((20, 1), dtype=int)
    for accelerated in (False, True):
        found = inner_search(problem, Distance(), np.zeros(1), np.array([0.25]), orders, accelerated)
        assert found.moves == ((0, -0.25), (0, -0.25))


def test_scores_that_differ_by_rounding_are_ties_in_the_area():
    problem = JointProblem(np.zeros((2, 1)), np.array([0, 1]), np.ones(2), None, "auc", n_classes=2)
    above, below = 0.1 + 0.2, 0.3  # equal up to rounding
    assert above > below
    for scores in ([above, below], [below, above], [1e9 * above, 1e9 * below]):
        assert problem.total_error(np.column_stack([np.zeros(2), scores])) == 0.5
    assert problem.total_error(np.column_stack([np.zeros(2), [0.3, 0.3 + 1e-10]])) == 0.0


# Rounds


def test_rounds_end_by_the_tolerance_the_limit_or_without_moves():
    problem = problem_of(LinearRegression())
    errors = [round.error for round in PaperSearch()(problem, np.random.RandomState(0)).history]
    assert all(after < before for before, after in pairwise(errors))
    early = PaperSearch(tolerance=0.02)(problem, np.random.RandomState(0))
    assert "tolerance" in early.note
    assert 1 < len(early.history) < len(errors)
    assert early.history[-1].moves == ()
    assert 1 - early.history[-1].error / early.history[-2].error < 0.02 <= 1 - errors[1] / errors[0]
    in_other_units = replace(problem, y=0.001 * problem.y)
    assert len(PaperSearch(tolerance=0.02)(in_other_units, np.random.RandomState(0)).history) == len(early.history)
    never = PaperSearch(variant="authors", tolerance=0.02)(problem, np.random.RandomState(0))
    assert len(never.history) == 10
    assert never.note == "10 outer rounds"
    still = PaperSearch()(problem_of(DecisionTreeRegressor(max_depth=6)), np.random.RandomState(0))
    assert (len(still.history), still.note) == (1, "no step lowers the error")


def test_order_and_reference_rows():
    problem = problem_of(LinearRegression())
    cyclic, shuffled, authors = (
        PaperSearch(outer_rounds=1, **given)(problem, np.random.RandomState(0))
        for given in ({}, {"order": "shuffled"}, {"variant": "authors"})
    )
    first = [j for j, _ in cyclic.history[0].moves]
    assert first[:5] == sorted(first[:5])
    assert shuffled.history[0].moves == authors.history[0].moves != cyclic.history[0].moves
    reference = np.vstack([problem.X, problem.X + 1.0])
    found = PaperSearch(variant="authors", reference=reference, outer_rounds=1)(problem, np.random.RandomState(0))
    j, step = found.history[0].moves[0]
    assert abs(step) == pytest.approx(np.nanstd(reference[:, j]) / np.sqrt(np.sum(~np.isnan(reference[:, j]))))
    moved = sum(s for k, s in found.history[0].moves if k == j)
    assert found.mu[j] - moved == pytest.approx(np.nanmean(reference[:, j]))


def test_searches_with_other_reference_rows_are_not_equal():
    first, second = (PaperSearch(variant="authors", reference=np.full((3, 2), value)) for value in (0.0, 1.0))
    assert first != second


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"order": "random"}, "order must be one of 'cyclic', 'shuffled'"),
        ({"variant": "paper"}, "variant must be one of 'text', 'authors'"),
        ({"inner_rounds": 0}, "inner_rounds must be a positive integer"),
        ({"outer_rounds": 2.5}, "outer_rounds must be a positive integer"),
        ({"tolerance": -1.0}, "tolerance must be a non-negative number"),
        ({"reference": np.ones((3, 10))}, "reference is for variant='authors' only"),
        ({"variant": "authors", "reference": np.ones((3, 4))}, "reference must have 10 features"),
    ],
)
def test_parameters_of_the_search(given, message):
    with pytest.raises(ValueError, match=message):
        PaperSearch(**given)(problem_of(LinearRegression()), np.random.RandomState(0))


# Predictors that misbehave


@pytest.fixture(autouse=True)
def _first_fit():
    Moody.fits = 0


class Moody(RegressorMixin, BaseEstimator):
    """Least squares; ``moods`` of its fits, by number: raise, interrupt, nan, or off by 10."""

    fits = 0

    def __init__(self, moods):
        self.moods = moods

    def fit(self, X, y, sample_weight=None):
        Moody.fits += 1
        mood = self.moods.get(Moody.fits)
        if mood == "raise":
            raise FloatingPointError("too hot")
        if mood == "interrupt":
            raise KeyboardInterrupt
        self.inner_, self.shift_ = LinearRegression().fit(X, y), {"nan": np.nan, "off": 10.0}.get(mood, 0.0)
        return self

    def predict(self, X):
        return self.inner_.predict(X) + self.shift_


@pytest.mark.parametrize(("mood", "message"), [("raise", "FloatingPointError: too hot"), ("nan", "Moody predicts NaN")])
def test_a_predictor_that_fails_during_the_search_leaves_the_best_values_so_far(mood, message):
    problem = problem_of(LinearRegression())
    expected = PaperSearch(outer_rounds=1)(problem, np.random.RandomState(0))
    with pytest.warns(
        UserWarning, match=f"ended early, with its best imputed values so far: .* in round 3 .*{message}"
    ):
        model = JointImputeRegressor(Moody({3: mood}), algorithm="paper").fit(problem.X, problem.y)
    np.testing.assert_array_equal(model.imputation_, expected.mu)
    assert Moody.fits == 4
    assert len(model.history_) == 2
    assert np.isfinite(model.predict(problem.X)).all()


@pytest.mark.parametrize(
    ("moods", "error"),
    [({1: "raise"}, FloatingPointError), ({1: "nan"}, ValueError), ({3: "interrupt"}, KeyboardInterrupt)],
)
def test_a_predictor_that_fails_at_once_or_is_interrupted_is_not_caught(moods, error):
    problem = problem_of(LinearRegression())
    model = JointImputeRegressor(Moody(moods), algorithm="paper")
    with pytest.raises(error):
        model.fit(problem.X, problem.y)
    assert not hasattr(model, "n_features_in_")


def test_a_last_fit_that_fails_falls_back_to_the_means():
    problem = problem_of(LinearRegression())
    model = JointImputeRegressor(Moody({2: "raise"}), algorithm=PaperSearch(outer_rounds=1))
    reason = "the predictor failed at the values found (FloatingPointError: too hot)"
    with pytest.warns(UserWarning, match="The means are imputed, since " + re.escape(reason)) as warned:
        model.fit(problem.X, problem.y)
    assert [warning.filename for warning in warned] == [__file__]
    np.testing.assert_array_equal(model.imputation_, problem.means())
    assert model.note_ == f"the mean: {reason}"
    assert [round.moves for round in model.history_] == [()]


def test_the_best_values_so_far_are_those_of_the_smallest_error():
    problem = problem_of(LinearRegression())
    model = JointImputeRegressor(Moody({2: "off", 3: "raise"}), PaperSearch(variant="authors"))
    with pytest.warns(UserWarning, match="ended early, with its best imputed values so far") as warned:
        model.fit(problem.X, problem.y)
    assert [warning.filename for warning in warned] == [__file__]
    assert len(model.history_[0].moves) > 0
    assert model.history_[1].error > model.history_[0].error
    np.testing.assert_array_equal(model.imputation_, problem.means())


@pytest.mark.parametrize("search", [PaperSearch(), PaperSearch(outer_rounds=1), ClosedForm()], ids=str)
def test_a_predictor_that_fails_at_the_means_too_is_reported(search):
    problem = problem_of(LinearRegression())
    always = Moody(dict.fromkeys(range(2, 99), "raise"))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with pytest.raises(ValueError, match="Moody cannot be fitted: it fails with the means imputed, too .*hot"):
            JointImputeRegressor(always, search).fit(problem.X, problem.y)
    assert len(warned) <= 1


@pytest.mark.parametrize("algorithm", ["paper", "auto"])
@pytest.mark.parametrize("wrong", [{"monotonic_cst": [0]}, {"max_depth": -1}], ids=str)
def test_parameters_that_a_predictor_refuses_are_named(algorithm, wrong):
    """With missing values and without."""
    problem = problem_of(DecisionTreeRegressor(**wrong))
    for X in (problem.X, imputed(problem.X, problem.means())):
        with (
            warnings.catch_warnings(action="ignore"),
            pytest.raises(ValueError, match=f"^DecisionTreeRegressor cannot be fitted: .*{next(iter(wrong))}"),
        ):
            JointImputeRegressor(problem.estimator, algorithm).fit(X, problem.y)


@pytest.mark.parametrize("classes", [3, 4])
def test_scores_of_pairs_of_classes_are_refused(classes):
    problem = problem_of(SVC(decision_function_shape="ovo"), n=120, d=5, classes=classes, error="auc")
    for search in ("paper", "auto"):
        for f in (problem.estimator, make_pipeline(StandardScaler(), problem.estimator)):
            with pytest.raises(ValueError, match="error='auc' needs a score per class, and .*use .*='ovr'"):
                JointImputeClassifier(f, search, error="auc").fit(problem.X, problem.y)
    X = imputed(problem.X, problem.means())
    with pytest.raises(ValueError, match="gives one per pair"):
        problem.outputs(problem.fit(problem.means()), X)
    by_class = replace(problem, estimator=SVC())
    f = by_class.fit(problem.means())
    np.testing.assert_array_equal(by_class.outputs(f, X), f.decision_function(X))


def test_scores_go_by_the_classes_of_the_predictor():
    class Backwards(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)[::-1]
            return self

        def decision_function(self, X):
            return np.column_stack([np.full(len(X), code) for code in self.classes_])

    problem = problem_of(Backwards(), n=60, d=5, classes=3, error="auc")
    f, X = problem.fit(problem.means()), imputed(problem.X, problem.means())
    np.testing.assert_array_equal(problem.outputs(f, X), np.tile([0.0, 1.0, 2.0], (60, 1)))
    two = replace(problem, y=np.where(problem.y == 1, 2, problem.y))  # the second class is absent: the smallest score
    np.testing.assert_array_equal(two.outputs(two.fit(two.means()), X), np.tile([0.0, 0.0, 1.0], (60, 1)))
    f.classes_ = np.arange(2)
    f.decision_function = lambda X: np.zeros((len(X), 3))
    with pytest.raises(ValueError, match="decision_function of Backwards must have one column per class, 2 in all"):
        problem.outputs(f, X)


def test_missing_methods_of_the_predictor_are_named():
    problem = problem_of(LogisticRegression(), n=120, d=5, classes=2)
    X, y = problem.X, problem.y
    with pytest.raises(ValueError, match="error='log_loss' needs an estimator with predict_proba, and LinearSVC has"):
        JointImputeClassifier(LinearSVC(), "paper").fit(X, y)
    ranked = JointImputeClassifier(LinearSVC(), PaperSearch(outer_rounds=1), error="auc").fit(X, y)
    assert ranked.score(X, y) > 0.6
    assert hasattr(ranked, "decision_function")
    assert not hasattr(ranked, "predict_proba")

    class Plain(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict(self, X):
            return np.zeros(len(X), dtype=int)

    with pytest.raises(ValueError, match="error='auc' needs an estimator with predict_proba or decision_function"):
        JointImputeClassifier(Plain(), error="auc").fit(X, y)
    for works in (CalibratedClassifierCV(Perceptron(), cv=2), StackingClassifier([("p", Perceptron())], cv=2)):
        assert JointImputeClassifier(works, PaperSearch(outer_rounds=1)).fit(X, y).predict_proba(X).shape == (120, 2)
    with pytest.raises(ValueError, match="KNeighborsRegressor is not known to take sample_weight"):
        JointImputeRegressor(KNeighborsRegressor()).fit(X, y, sample_weight=np.ones(120))

    class Foreign:
        def fit(self, X, y):
            return self

    for wrong in (LogisticRegression(), Foreign(), Ridge):
        with pytest.raises(ValueError, match="estimator must be a regressor with the interface of scikit-learn"):
            JointImputeRegressor(wrong).fit(X, y)
    with pytest.raises(ValueError, match="estimator must be a classifier"):
        JointImputeClassifier(LinearRegression()).fit(X, y)
    with pytest.raises(ValueError, match="algorithm must be 'auto', 'paper' or a search, not 'fast'"):
        JointImputeRegressor(algorithm="fast").fit(X, y)
    with pytest.raises(ValueError, match="error must be one of 'log_loss', 'auc'"):
        JointImputeClassifier(error="accuracy").fit(X, y)


def test_weights_reach_the_last_step_of_a_pipeline():
    problem = problem_of(LinearRegression(), n=120, d=5, weighted=True)
    plain = JointImputeRegressor(Ridge(), "paper").fit(problem.X, problem.y, problem.sample_weight)
    piped = JointImputeRegressor(make_pipeline("passthrough", Ridge()), "paper")
    piped.fit(problem.X, problem.y, problem.sample_weight)
    np.testing.assert_allclose(piped.estimator_[-1].coef_, plain.estimator_.coef_)
    unweighted = JointImputeRegressor(Ridge(), "paper").fit(problem.X, problem.y)
    assert np.abs(plain.estimator_.coef_ - unweighted.estimator_.coef_).max() > 1e-4


def test_weights_reach_the_parts_of_meta_estimators():
    problem = problem_of(LinearRegression(), n=120, d=5, weighted=True)
    X = imputed(problem.X, problem.means())
    made = [
        VotingRegressor([("a", Ridge()), ("b", "drop")]),
        StackingRegressor([("a", Ridge())], Ridge(1e-8), cv=3),
        TransformedTargetRegressor(Ridge(), func=np.arcsinh, inverse_func=np.sinh),
    ]
    for f in made:
        expected = f.fit(X, problem.y, sample_weight=problem.sample_weight).predict(X)
        found = replace(problem, estimator=f).fit(problem.means()).predict(X)
        np.testing.assert_allclose(found, expected)
        assert np.abs(f.fit(X, problem.y).predict(X) - expected).max() > 1e-4
        JointImputeRegressor(f).fit(problem.X, problem.y, problem.sample_weight)
    for f in (VotingRegressor([("a", KNeighborsRegressor())]), StackingRegressor([("a", Ridge())], Lars())):
        with pytest.raises(ValueError, match=f"{type(f).__name__} is not known to take sample_weight"):
            JointImputeRegressor(f).fit(problem.X, problem.y, problem.sample_weight)


def test_weights_with_metadata_routing():
    problem = problem_of(LinearRegression(), n=120, d=5, weighted=True)
    expected = JointImputeRegressor(Ridge(), "paper").fit(problem.X, problem.y, problem.sample_weight).imputation_
    with config_context(enable_metadata_routing=True):
        ridge = Ridge().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        for f in (make_pipeline("passthrough", ridge), GridSearchCV(ridge, {"alpha": [1.0]}, cv=2)):
            found = JointImputeRegressor(f, "paper").fit(problem.X, problem.y, problem.sample_weight)
            np.testing.assert_allclose(found.imputation_, expected)


def test_any_function_can_be_the_search():
    problem = problem_of(LinearRegression(), n=120, d=5)
    seen = {}

    def search(problem, random_state):
        seen["problem"] = problem
        return Imputation(np.full(5, 2.5))

    model = JointImputeRegressor(algorithm=search).fit(problem.X, problem.y)
    assert model.imputation_.tolist() == [2.5] * 5
    assert seen["problem"].error == "squared"
    X = problem.X.copy()
    X[:, 1] = np.arange(120)
    assert JointImputeRegressor(algorithm=search).fit(X, problem.y).imputation_[:2].tolist() == [2.5, 59.5]
    X[:, 0] = np.nan
    beside = np.array([np.inf, np.nan, 2.0, 3.0, 4.0])  # the first two, never observed and never missing, do not matter
    with pytest.warns(UserWarning, match="Never observed"):
        model = JointImputeRegressor(algorithm=lambda p, r: Imputation(beside)).fit(X, problem.y)
    assert model.imputation_.tolist() == [0.0, 59.5, 2.0, 3.0, 4.0]
    for wrong in (np.zeros(3), np.array([0.0, 1.0, 2.0, 3.0, np.nan])):
        with pytest.raises(ValueError, match="must return 5 finite imputed values"):
            JointImputeRegressor(algorithm=lambda p, r, mu=wrong: Imputation(mu)).fit(problem.X, problem.y)


def test_labels_and_class_weights_go_by_label():
    problem = problem_of(LogisticRegression(), n=200, d=5, classes=3)
    labels = np.array(["b", "a", "c"])[problem.y]
    weight = {"a": 1.0, "b": 5.0, "c": 0.5}
    model = JointImputeClassifier(LogisticRegression(class_weight=weight), "paper").fit(problem.X, labels)
    assert model.classes_.tolist() == ["a", "b", "c"]
    X = np.where(np.isnan(problem.X), model.imputation_, problem.X)
    expected = LogisticRegression(class_weight=weight).fit(X, labels)
    np.testing.assert_allclose(model.predict_proba(problem.X), expected.predict_proba(X), atol=1e-6)
    assert (model.predict(problem.X) == expected.predict(X)).all()
    s = (labels != "c").astype(float)  # a class without weight is dropped
    assert JointImputeClassifier(algorithm="paper").fit(problem.X, labels, s).classes_.tolist() == ["a", "b"]
    boosted = JointImputeClassifier(XGBClassifier(n_estimators=3, n_jobs=1), "paper").fit(problem.X, labels)
    assert set(boosted.predict(problem.X)) <= set("abc")


def test_open_random_states_are_set_and_others_kept(make_rows):
    X, y = make_rows()
    first, other = (
        JointImputeRegressor(RandomForestRegressor(5), "paper", random_state=seed).fit(X, y).predict(X)
        for seed in (0, 1)
    )
    assert np.abs(first - other).max() > 0
    fitted = JointImputeRegressor(RandomForestRegressor(5, random_state=7), "paper", random_state=0).fit(X, y)
    assert fitted.estimator_.random_state == 7
