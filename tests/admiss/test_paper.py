"""The class methods ``paper`` state the programs of the paper as they are printed: compared with cvxpy, written out."""

import itertools

import cvxpy as cp
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from admiss import (
    AdaptiveClassifier,
    AdaptiveClassifierCV,
    AdaptiveRegressor,
    AdaptiveRegressorCV,
    FiniteClassifier,
    FiniteClassifierCV,
    FiniteRegressor,
    FiniteRegressorCV,
    JointImputeClassifier,
    JointImputeRegressor,
)
from admiss.partition import Greedy


def raw_rows(n=120, d=3):
    """Rows far from 0 in different units."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n, d)) + 0.5 * rng.normal(size=(n, 1))
    M = rng.random((n, d)) < 0.3
    y = Z @ [1.0, -0.5, 0.3] + M @ [1.0, 0.0, -1.0] + 0.5 * rng.normal(size=n) + 4.0
    return np.where(M, np.nan, Z * [1.0, 3.0, 0.2] + [2.0, 0.0, -1.0]), y


def printed_columns(X, adaptivity):
    """Columns (1 - m_j) x_j, and by class m_k and m_k (1 - m_j) x_j; the number of rows of each."""
    M = np.isnan(X)
    filled, d = np.where(M, 0.0, X), X.shape[1]
    columns, rows = [filled[:, j] for j in range(d)], [np.sum(~M[:, j]) for j in range(d)]
    if adaptivity != "static":
        columns += [1.0 * M[:, k] for k in range(d)]
        rows += [np.sum(M[:, k]) for k in range(d)]
    if adaptivity == "affine":
        for j, k in itertools.permutations(range(d), 2):
            columns.append(M[:, k] * filled[:, j])
            rows.append(np.sum(M[:, k] & ~M[:, j]))
    return np.column_stack(columns), np.array(rows)


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("adaptivity", ["static", "affine_intercept", "affine"])
def test_adaptive_models(adaptivity, task):
    X, y = raw_rows()
    A, n_k = printed_columns(X, adaptivity)
    lam, alpha = 3.0, 0.4
    labels = np.where(y > np.median(y), 1.0, -1.0)
    b, w = cp.Variable(), cp.Variable(A.shape[1])
    if task == "regression":
        loss, model = cp.sum_squares(y - A @ w - b), AdaptiveRegressor
    else:
        loss, model = cp.sum(cp.logistic(-cp.multiply(labels, A @ w + b))), AdaptiveClassifier
    penalty = (lam / n_k) @ (alpha * cp.abs(w) + (1 - alpha) * cp.square(w) / 2)
    problem = cp.Problem(cp.Minimize(loss / len(y) + penalty))
    expected = problem.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    printed = model.paper(adaptivity=adaptivity, lam=lam, l1_ratio=alpha)
    fitted = printed.fit(X, y if task == "regression" else labels)
    assert fitted.certificate_.objective == pytest.approx(expected, rel=1e-8)
    score = fitted.predict(X) if task == "regression" else fitted.decision_function(X)
    np.testing.assert_allclose(score, A @ w.value + b.value, atol=1e-4)
    by_default = model(adaptivity, lam=lam, l1_ratio=alpha).fit(X, y if task == "regression" else labels)
    assert by_default.certificate_.objective != pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_finite_models(task):
    """The best first split of all, and least cost in each leaf."""
    X, y = raw_rows()
    A, labels, M = np.where(np.isnan(X), 0.0, X), np.where(y > np.median(y), 1.0, -1.0), np.isnan(X)

    def cost(rows):
        b, w = cp.Variable(), cp.Variable(A.shape[1])
        score = A[rows] @ w + b
        if task == "regression":
            loss = cp.sum_squares(y[rows] - score)
        else:
            loss = cp.sum(cp.logistic(-cp.multiply(labels[rows], score)))
        return cp.Problem(cp.Minimize(loss)).solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11)

    expected = min(cost(M[:, j]) + cost(~M[:, j]) for j in range(3))
    model = FiniteRegressor if task == "regression" else FiniteClassifier
    fitted = model.paper(partitioner=Greedy(max_depth=1, min_rows=10)).fit(X, y if task == "regression" else labels)
    assert fitted.certificate_.objective == pytest.approx(expected, rel=1e-6)


def printed_search(X, y):
    """Algorithm 2, for least squares."""
    M = np.isnan(X)
    mu, sigma = np.nanmean(X, axis=0), np.nanstd(X, axis=0) / np.sqrt(len(X))

    def error(f, values):
        return np.mean((y - f.predict(np.where(M, values, X))) ** 2)

    before = np.inf
    for _ in range(10):
        f = LinearRegression().fit(np.where(M, mu, X), y)
        after = error(f, mu)
        if before - after < 1e-4 * before:
            break
        before = after
        for _ in range(20):
            start = mu.copy()
            for j in range(len(mu)):
                steps = [mu + e * sigma * (np.arange(len(mu)) == j) for e in (0, -1, 1)]
                mu = min(steps, key=lambda values: error(f, values))
            if np.array_equal(mu, start):
                break
    return mu


def test_joint_models():
    X, y = raw_rows()
    printed = JointImputeRegressor.paper().fit(X, y)
    np.testing.assert_allclose(printed.imputation_, printed_search(X, y), rtol=1e-9)
    by_text = JointImputeRegressor(algorithm="paper").fit(X, y)
    assert np.abs(by_text.imputation_ - printed.imputation_).max() > 1e-3
    assert JointImputeClassifier.paper().error == "auc"


def test_searches():
    X, y = raw_rows()
    adaptive = AdaptiveRegressorCV.paper(adaptivity="affine", random_state=0).fit(X, y)
    chosen = AdaptiveRegressor.paper(adaptivity="affine", lam=adaptive.best_params_["lam"])
    chosen.set_params(l1_ratio=adaptive.best_params_["l1_ratio"]).fit(X, y)
    assert adaptive.certificate_.objective == pytest.approx(chosen.certificate_.objective, rel=1e-9)
    finite = FiniteRegressorCV.paper(partitioner=Greedy(min_rows=10), max_depths=(1,), random_state=0).fit(X, y)
    alone = FiniteRegressor.paper(partitioner=Greedy(max_depth=1, min_rows=10)).fit(X, y)
    assert finite.certificate_.objective == pytest.approx(alone.certificate_.objective)
    assert AdaptiveClassifierCV.paper().adaptive_penalties == (1.0,)
    assert FiniteClassifierCV.paper().ridges == (1e-6,)


def test_parameters_that_are_given_replace_the_printed_ones():
    assert AdaptiveRegressor.paper(center=True).center is True
    with pytest.raises(TypeError):
        AdaptiveRegressor.paper(centre=True)
