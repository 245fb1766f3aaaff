"""The closed form: against its formula, against plain ridges fold by fold, and at its limits."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.tree import DecisionTreeRegressor
from xgboost import XGBClassifier

from admiss.datasets import make_synthetic
from admiss.estimator.cross_validation import make_folds
from admiss.joint import JointImputeClassifier, JointImputeRegressor
from admiss.joint.closed_form import ClosedForm, RowRidge
from admiss.joint.indicator_ridge import LogisticRidge, SquaredRidge
from admiss.joint.problem import JointProblem, imputed
from formulations.erm.logistic_path import logistic_path

PLAIN = ClosedForm(penalties=[0.0], feature_penalties=[0.0], limit=np.inf, gate=False)


def seed(value=0):
    return np.random.RandomState(value)


def numbers(X, y, f=None, s=None, **kwargs):
    weights = np.ones(len(X)) if s is None else s
    return JointProblem(X, np.asarray(y, dtype=float), weights, f or LinearRegression(), "squared", **kwargs)


def classes(X, y, f=None, n_classes=2, error="log_loss"):
    return JointProblem(X, np.asarray(y), np.ones(len(X)), f or LogisticRegression(), error, n_classes)


def censored(n=300, **kwargs):
    data = make_synthetic(n=n, n_test=2000, mechanism="censoring", random_state=3, **kwargs)
    return data, numbers(data.X_train, data.y_train)


@pytest.mark.parametrize("weighted", [False, True])
def test_one_feature_without_penalty_is_the_formula(weighted):
    rng = seed()
    x = rng.normal(5.0, 2.0, 200)
    y = 1.0 - 3.0 * x + rng.normal(size=200)
    missing = x > 6.0
    s = rng.uniform(0.5, 2.0, 200) if weighted else np.ones(200)
    mu = PLAIN(numbers(np.where(missing, np.nan, x)[:, None], y, s=s), seed()).mu[0]

    seen, q = ~missing, s[~missing] / s[~missing].sum()
    mean_x, mean_y = q @ x[seen], q @ y[seen]
    covariance, variance = q @ ((x[seen] - mean_x) * (y[seen] - mean_y)), q @ (x[seen] - mean_x) ** 2
    gap = np.average(y[missing], weights=s[missing]) - mean_y
    assert mu == pytest.approx(mean_x + gap * variance / covariance, rel=1e-10)


def test_least_squares_with_mu_is_least_squares_with_indicators():
    _, problem = censored()
    mu = PLAIN(problem, seed()).mu
    M, y = np.isnan(problem.X), problem.y
    X0 = imputed(problem.X, np.zeros(10))
    joint = LinearRegression().fit(imputed(problem.X, mu), y).predict(imputed(problem.X, mu))
    affine = LinearRegression().fit(np.hstack([X0, M]), y).predict(np.hstack([X0, M]))
    assert joint == pytest.approx(affine, abs=1e-6)


def plain_columns(X, s, rows):
    """(z, m) of all rows, with the means and deviations of some, computed column by column."""
    z = np.zeros_like(X)
    for j in range(X.shape[1]):
        seen = rows[~np.isnan(X[rows, j])]
        mean = np.average(X[seen, j], weights=s[seen])
        deviation = np.sqrt(np.average((X[seen, j] - mean) ** 2, weights=s[seen]))
        z[:, j] = np.where(np.isnan(X[:, j]), 0.0, (X[:, j] - mean) / deviation)
    return np.hstack([z, np.isnan(X)])


def folds_and_cells(X, y, s, labels=None):
    splits = make_folds(X, y, labels, s, 4, seed())
    return [held for _, held in splits], [(1.0, np.inf), (0.3, 0.02), (0.01, 0.0), (1e-3, 5.0)]


def test_squared_ridge_from_moments_is_the_ridge_fitted_to_rows():
    _, problem = censored(n=120, d=4, n_active=2, rank=3)
    X, y, s = 100.0 + problem.X, 50.0 + problem.y, seed().uniform(0.1, 2.0, 120)
    held_out, cells = folds_and_cells(X, y, s)
    ridge = SquaredRidge(X, y, s, held_out, cells)
    rows, held = np.concatenate([held_out[0], held_out[2]]), held_out[3]
    A = plain_columns(X, s, rows)
    errors = []
    for alpha, beta in cells:
        # scikit-learn has one penalty: columns divided by the root of their own
        factor = np.repeat([1.0 / np.sqrt(alpha), 0.0 if np.isinf(beta) else 1.0 / np.sqrt(max(beta, 1e-12))], 4)
        plain = Ridge(alpha=s[rows].sum(), solver="svd").fit(A[rows] * factor, y[rows], sample_weight=s[rows])
        errors.append(s[held] @ (y[held] - plain.predict(A[held] * factor)) ** 2)
    found = ridge.errors(frozenset([0, 2]), 3)
    unit = np.average((y - np.average(y, weights=s)) ** 2, weights=s)
    assert found * unit == pytest.approx(np.array(errors), rel=1e-6)


def test_logistic_ridge_is_that_of_scikit_learn():
    _, problem = censored(n=150, d=4, n_active=2, rank=3)
    X, y, s = problem.X, (problem.y > 0).astype(int), seed().uniform(0.1, 2.0, 150)
    held_out, cells = folds_and_cells(X, y, s, y)
    ridge = LogisticRidge(X, y, 2, s, held_out, cells)
    rows = np.sort(np.concatenate(held_out[1:]))
    A = plain_columns(X, s, rows)
    factor = np.repeat([1.0 / np.sqrt(0.3), 1.0 / np.sqrt(0.02)], 4)
    plain = LogisticRegression(C=1.0 / s[rows].sum(), tol=1e-10, max_iter=10_000)
    coef = plain.fit(A[rows] * factor, y[rows], sample_weight=s[rows]).coef_[0] * factor
    w, b, _ = ridge.coefficients(frozenset([1, 2, 3]), 1)
    assert np.hstack([w[0], b[0]]) == pytest.approx(coef, abs=1e-5)
    scores = A[held_out[0]] @ coef + plain.intercept_
    loss = s[held_out[0]] @ np.logaddexp(0.0, -(2 * y[held_out[0]] - 1) * scores)
    assert ridge.errors(frozenset([1, 2, 3]), 0)[1] == pytest.approx(loss, rel=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_logistic_steps_from_a_start_far_away_lead_back(seed):
    """The intercept of a fit with indicators, without them: a step to the other side may have smaller slopes."""
    rng = np.random.default_rng(seed)
    A, y, q = rng.normal(size=(13, 4)), np.where(np.arange(13) % 2, 1.0, -1.0), np.full(13, 1 / 13)
    start = np.array([rng.choice([-1, 1]) * rng.uniform(5, 25), 0.0, 0.0, 0.0, 0.0])
    v2 = np.array([0.0, 0.01, 0.01, 0.01, 0.01])
    path = logistic_path(np.insert(A, 0, 1.0, axis=1), 1, y, q, np.zeros(5), v2, np.ones(1), 1e-5, start)
    assert path.violation[0] < 1e-5


def test_penalties_of_the_logistic_loss_come_from_some_rows_and_mu_from_all(monkeypatch):
    _, problem = censored(n=150, d=4, n_active=2, rank=3)
    X, y, s = problem.X, (problem.y > 0).astype(int), seed().uniform(0.1, 2.0, 150)
    held_out, cells = folds_and_cells(X, y, s, y)
    training = frozenset([1, 2, 3])
    full = LogisticRidge(X, y, 2, s, held_out, cells)
    monkeypatch.setattr("admiss.joint.indicator_ridge.SELECTION_ROWS", 50)
    thinned = LogisticRidge(X, y, 2, s, held_out, cells)
    for found, expected in zip(thinned.coefficients(training, 1), full.coefficients(training, 1), strict=True):
        assert np.array_equal(found, expected)

    monkeypatch.undo()
    rows, held = np.sort(np.concatenate(held_out[1:]))[::3], held_out[0][::3]
    subset = np.concatenate([rows, held])
    parts = [np.arange(len(rows)), np.arange(len(rows), len(subset))]
    by_hand = LogisticRidge(X[subset], y[subset], 2, s[subset], parts, cells).errors(frozenset([0]), 1)
    assert thinned.errors(training, 0) == pytest.approx(by_hand, rel=1e-3)
    assert np.abs(full.errors(training, 0) - by_hand).max() > 0.5 * by_hand.max()


def test_ridge_in_the_space_of_rows_is_that_of_columns():
    rng = seed(1)
    X = rng.normal(5.0, 3.0, size=(40, 60))
    X[rng.random(X.shape) < 0.3] = np.nan
    X[:, 0], X[:, 1] = np.nan, 7.0
    y, s = rng.normal(size=40), rng.uniform(0.5, 2.0, 40)
    held_out, cells = folds_and_cells(X, y, s)
    cells += [(0.0, 0.1), (0.0, np.inf)]
    columns, rows = (kind(X, y, s, held_out, cells) for kind in (SquaredRidge, RowRidge))
    for training, held in ((frozenset([0, 1]), 3), (frozenset([1, 2, 3]), 0)):
        assert rows.errors(training, held) == pytest.approx(columns.errors(training, held), rel=1e-6)
        for cell in range(len(cells)):
            pairs = zip(rows.coefficients(training, cell), columns.coefficients(training, cell), strict=True)
            for found, expected in pairs:
                assert found == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_moments_are_sums_over_blocks(monkeypatch):
    _, problem = censored(n=120)
    s = seed().uniform(0.1, 2.0, 120)
    held_out, cells = folds_and_cells(problem.X, problem.y, s)
    whole = SquaredRidge(problem.X, problem.y, s, held_out, cells)
    monkeypatch.setattr("admiss.joint.indicator_ridge.BLOCK_ROWS", 7)
    blocks = SquaredRidge(problem.X, problem.y, s, held_out, cells)
    for found, expected in zip(blocks.moments, whole.moments, strict=True):
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_gate_is_the_cross_validation_done_plainly():
    """Penalties, mu and f are recomputed in each fold; here with training rows and folds made by hand."""
    _, problem = censored(n=150)
    problem = replace(problem, estimator=DecisionTreeRegressor(max_depth=4, random_state=0))
    found = ClosedForm()(problem, seed())
    splits = make_folds(problem.X, problem.y, None, problem.sample_weight, 5, seed())
    cells = [(alpha, beta) for alpha in (1.0, 1e-2, 1e-4) for beta in (np.inf, 1.0, 1e-1, 1e-2, 1e-3, 1e-4)]
    errors = np.zeros(2)
    for part, (rows, held) in enumerate(splits):
        inner = [other for k, (_, other) in enumerate(splits) if k != part]
        ridge = SquaredRidge(problem.X, problem.y, problem.sample_weight, inner, cells)
        losses = sum(ridge.errors(frozenset(range(4)) - {k}, k) for k in range(4))
        w, b, deviation = ridge.coefficients(frozenset(range(4)), int(np.argmin(losses)))
        mean = np.nanmean(problem.X[rows], axis=0)
        for choice, mu in enumerate([mean, mean + deviation * np.clip(b[0] / w[0], -4, 4)]):
            f = problem.rows(rows).fit(mu)
            errors[choice] += np.sum((problem.y[held] - f.predict(imputed(problem.X[held], mu))) ** 2) / 150
    assert found.note.startswith("kept") == (errors[1] < errors[0])
    assert [entry.error for entry in found.history] == pytest.approx(errors[: len(found.history)])


def test_linear_model_gains_what_indicators_give():
    data, problem = censored(n=5000, missing_fraction=0.5)
    found = ClosedForm()(problem, seed())
    mean = problem.means()
    X0, X1 = (np.hstack([imputed(X, mean), np.isnan(X)]) for X in (data.X_train, data.X_test))
    affine = r2_score(data.y_test, LinearRegression().fit(X0, data.y_train).predict(X1))
    joint = r2_score(data.y_test, problem.fit(found.mu).predict(imputed(data.X_test, found.mu)))
    plain = r2_score(data.y_test, problem.fit(mean).predict(imputed(data.X_test, mean)))
    assert found.note.startswith("kept: cross-validated error")
    assert joint > affine - 0.002
    assert joint > plain + 0.1


def test_moves_lead_from_the_means_to_mu_and_errors_are_in_the_note():
    _, problem = censored()
    found = ClosedForm()(problem, seed())
    mu = problem.means()
    for j, step in found.history[0].moves:
        mu[j] += step
    assert mu == pytest.approx(found.mu)
    assert found.history[1].error < found.history[0].error
    assert f"{found.history[1].error:.6g} against {found.history[0].error:.6g}" in found.note


def test_limit_and_infinite_penalty():
    _, problem = censored()
    deviations = problem.deviations()
    free = ClosedForm(gate=False, limit=np.inf)(problem, seed()).mu - problem.means()
    close = ClosedForm(gate=False, limit=0.5)(problem, seed()).mu - problem.means()
    assert (np.abs(free) > 0.5 * deviations).any()
    assert close == pytest.approx(np.clip(free, -0.5 * deviations, 0.5 * deviations))
    found = ClosedForm(penalties=[np.inf])(problem, seed())
    assert np.array_equal(found.mu, problem.means())
    assert "agrees" in found.note


def test_units_and_shifts_move_along():
    _, problem = censored()
    scale, shift = np.geomspace(1e-3, 1e3, 10), np.linspace(-1e3, 1e3, 10)
    moved = numbers(problem.X * scale + shift, 1e4 - 7.0 * problem.y)
    assert ClosedForm()(moved, seed()).mu == pytest.approx(ClosedForm()(problem, seed()).mu * scale + shift, rel=1e-6)


def test_weights_are_repeated_rows_and_rows_of_weight_zero_are_refused():
    _, problem = censored(n=80)
    counts = seed().randint(0, 3, 80)
    search = ClosedForm(penalties=[0.1], feature_penalties=[0.01], gate=False)
    weighted = replace(problem, sample_weight=counts.astype(float))
    repeated = problem.rows(np.repeat(np.arange(80), counts))
    assert search(weighted.weighted_rows(), seed()).mu == pytest.approx(search(repeated, seed()).mu)
    with pytest.raises(ValueError, match="Weights of rows must be positive"):
        search(weighted, seed())
    without = problem.rows(np.flatnonzero(counts))
    zeros = JointImputeRegressor(random_state=0).fit(problem.X, problem.y, sample_weight=(counts > 0).astype(float))
    ones = JointImputeRegressor(random_state=0).fit(without.X, without.y)
    assert np.array_equal(zeros.imputation_, ones.imputation_)
    assert len(ones.history_[0].moves) > 0


class Counting(BaseEstimator, RegressorMixin):
    """Counts its fits; raises a given error, or predicts a given value."""

    fits = 0

    def __init__(self, error=None, value=0.0):
        self.error, self.value = error, value

    def fit(self, X, y):
        type(self).fits += 1
        if self.error is not None:
            raise self.error
        return self

    def predict(self, X):
        return np.full(len(X), self.value)


@pytest.mark.parametrize("case", ["nothing missing", "two rows", "constant y", "no gate"])
def test_no_fits_without_anything_to_compare(case):
    _, problem = censored(n=60)
    X, y = problem.X, problem.y
    if case == "nothing missing":
        X = np.nan_to_num(X)
    if case == "two rows":
        X, y = X[:2], y[:2]
    if case == "constant y":
        y = np.full(60, 0.1)
    Counting.fits = 0
    problem = numbers(X, y, Counting())
    found = ClosedForm(gate=case != "no gate")(problem, seed())
    assert Counting.fits == 0
    assert np.array_equal(found.mu, problem.means()) == (case != "no gate")


def test_a_tie_goes_to_the_mean_after_two_fits_per_fold():
    _, problem = censored()
    Counting.fits = 0
    found = ClosedForm()(replace(problem, estimator=Counting()), seed())
    assert Counting.fits == 10
    assert np.array_equal(found.mu, problem.means())
    assert found.note.startswith("the mean: cross-validated error")


@pytest.mark.parametrize("f", [Counting(error=RuntimeError("out of order")), Counting(value=np.nan)])
def test_a_predictor_that_fails_leaves_the_mean_and_a_warning(f):
    _, problem = censored()
    with pytest.warns(UserWarning, match="Counting failed in cross-validation .*set to the mean"):
        found = ClosedForm()(replace(problem, estimator=f), seed())
    assert np.array_equal(found.mu, problem.means())
    assert not found.history
    assert "failed" in found.note


def test_the_warning_points_to_the_call_of_fit():
    _, problem = censored()
    with pytest.warns(UserWarning, match="failed in cross-validation") as warned:
        JointImputeRegressor(Counting(value=np.nan)).fit(problem.X, problem.y)
    assert [warning.filename for warning in warned] == [__file__]


def test_a_class_that_a_fold_lacks_leaves_no_gap_in_the_codes():
    """Class 1 has one row: XGBoost, which requires the codes 0 and 1, gets them, and so do class weights."""
    data, problem = censored(n=200)
    labels = np.array(["a", "c"])[(data.y_train > 0).astype(int)]
    labels[7] = "b"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = JointImputeClassifier(XGBClassifier(n_estimators=5, n_jobs=1), random_state=0).fit(problem.X, labels)
    assert "cross-validated error" in model.note_

    codes = np.searchsorted(["a", "b", "c"], labels)
    weighted = LogisticRegression(class_weight={0: 1.0, 1: 1.0, 2: 9.0}, tol=1e-8)
    gap = classes(problem.X, codes, weighted, n_classes=3).rows(np.arange(200) != 7)
    X = imputed(gap.X, gap.means())
    expected = LogisticRegression(class_weight={0: 1.0, 2: 9.0}, tol=1e-8).fit(X, gap.y).predict_proba(X)
    found = gap.outputs(gap.fit(gap.means()), X)
    assert found[:, [0, 2]] == pytest.approx(expected, abs=1e-6)
    assert not found[:, 1].any()


def test_an_interrupt_is_not_caught():
    _, problem = censored()
    with pytest.raises(KeyboardInterrupt):
        ClosedForm()(replace(problem, estimator=Counting(error=KeyboardInterrupt())), seed())


def test_features_without_information_keep_their_mean():
    _, problem = censored(n=100)
    X = problem.X.copy()
    X[:, 0] = np.nan  # never observed
    X[:, 1] = np.where(np.isnan(X[:, 1]), np.nan, 0.1)  # constant
    X[:, 2] = np.nan_to_num(X[:, 2])  # never missing
    X[:, 3] = 7.0
    X[:-1, 4], X[-1, 4] = np.nan, 1.0  # one value, which is in one fold
    X[:, 5] = np.nan_to_num(X[:, 5])
    X[0, 5] = np.nan  # missing once
    problem = numbers(X, problem.y)
    for search in (PLAIN, ClosedForm(), ClosedForm(gate=False)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            mu = search(problem, seed()).mu
        assert np.isfinite(mu).all()
        assert np.array_equal(mu[:5], problem.means()[:5])


def test_two_classes_of_one_feature_without_penalty():
    """Without penalty, rows with a missing value have their own log-odds, and the model predicts these at mu."""
    rng = seed(2)
    x = rng.normal(size=400)
    y = (rng.random(400) < 1 / (1 + np.exp(-2 * x))).astype(int)
    missing = x > 0.5
    X = np.where(missing, np.nan, x)[:, None]
    mu = PLAIN(classes(X, y), seed()).mu[0]
    slope = LogisticRegression(C=np.inf, tol=1e-10).fit(x[~missing, None], y[~missing])
    share = y[missing].mean()
    assert mu == pytest.approx((np.log(share / (1 - share)) - slope.intercept_[0]) / slope.coef_[0, 0], rel=1e-4)


def test_several_classes_share_one_mu():
    data, problem = censored(n=600)
    labels = np.digitize(data.y_train, np.quantile(data.y_train, [0.33, 0.67]))
    three = classes(problem.X, labels, n_classes=3)
    found = ClosedForm()(three, seed())
    assert found.note.startswith("kept")
    assert found.history[1].error < found.history[0].error - 0.02
    # two classes: one against the rest, both ways round, has the ratio of one
    two = classes(problem.X, (labels > 0).astype(int))
    as_three = replace(two, n_classes=3)
    plain = ClosedForm(penalties=[0.1], feature_penalties=[0.1], gate=False)
    assert plain(as_three, seed()).mu == pytest.approx(plain(two, seed()).mu, rel=1e-4)


@pytest.mark.parametrize("error", ["log_loss", "auc"])
def test_a_class_of_one_row(error):
    data, problem = censored(n=100)
    labels = (data.y_train > 0).astype(int)
    labels[7] = 2
    found = ClosedForm()(classes(problem.X, labels, n_classes=3, error=error), seed())
    assert np.isfinite(found.mu).all()
    # of two classes one is absent from the training rows of a fold, and logistic regression refuses to fit
    lonely = (np.arange(100) == 7).astype(int)
    with pytest.warns(UserWarning, match="LogisticRegression failed in cross-validation"):
        found = ClosedForm(penalties=[0.1])(classes(problem.X, lonely, error=error), seed())
    assert np.array_equal(found.mu, problem.means())
    ClosedForm(penalties=[0.1])(classes(problem.X, lonely, DummyClassifier(), error=error), seed())


@pytest.mark.parametrize(
    "wrong", [{"penalties": []}, {"penalties": [-1.0]}, {"feature_penalties": [np.inf]}, {"limit": -1}, {"folds": 2}]
)
def test_wrong_parameters_are_named(wrong):
    _, problem = censored(n=20)
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))} must be"):
        ClosedForm(**wrong)(problem, seed())
