"""The estimators in numbers: formulas of the paper, penalties, print."""

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet, Ridge

from admiss import AdaptiveClassifier, AdaptiveRegressor
from admiss.adaptivity import Adaptivity, Affine, Static
from formulations.losses import Quantile


@pytest.fixture
def one_feature():
    rng = np.random.default_rng(4)
    x, m = rng.normal(1.0, 2.0, size=300), rng.uniform(size=300) < 0.3
    y = 0.5 + 1.5 * x + rng.normal(size=300)
    return np.where(m, np.nan, x)[:, None], y, x, m


def test_imputed_value_of_one_feature_without_intercept(one_feature):
    """Section 3.1: E[Y|M=1] E[X^2|M=0] / E[YX|M=0]."""
    X, y, x, m = one_feature
    model = AdaptiveRegressor(lam=0, fit_intercept=False).fit(X, y)
    expected = y[m].mean() * (x[~m] ** 2).mean() / (y[~m] * x[~m]).mean()
    assert model.imputation_[0] == pytest.approx(expected, rel=1e-8)


def test_imputed_value_of_one_feature_with_intercept(one_feature):
    """E[X|M=0] + (E[Y|M=1] - E[Y|M=0]) Var(X|M=0) / Cov(X,Y|M=0)."""
    X, y, x, m = one_feature
    model = AdaptiveRegressor(lam=0).fit(X, y)
    slope = np.cov(x[~m], y[~m], ddof=0)[0, 1] / x[~m].var()
    assert model.imputation_[0] == pytest.approx(x[~m].mean() + (y[m].mean() - y[~m].mean()) / slope, rel=1e-8)


def test_imputation_where_the_weight_is_zero(make_rows):
    X, y = make_rows(n=400)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(400, 1))
    missing = rng.uniform(size=400) < 0.4
    X = np.column_stack([X, np.where(missing[:, None], np.nan, noise)])
    model = AdaptiveRegressor(lam=40, l1_ratio=1.0).fit(X, y + 3.0 * missing)
    assert model.coef_at([0, 0, 0, 0])[3] == 0
    assert np.isnan(model.imputation_[3])
    assert "x3: its weight is 0, no imputed value is equivalent; being missing adds +" in model.to_text()


def test_imputation_is_for_constant_imputation_only(make_rows):
    X, y = make_rows()
    assert not hasattr(AdaptiveRegressor("affine").fit(X, y), "imputation_")
    assert AdaptiveRegressor("static", center=False).fit(X, y).imputation_.tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(AdaptiveRegressor("static").fit(X, y).imputation_, np.nanmean(X, axis=0))
    full = AdaptiveRegressor().fit(np.nan_to_num(X), y)
    np.testing.assert_allclose(full.imputation_, np.nan_to_num(X).mean(axis=0))
    three = np.digitize(y, [1, 3])
    assert AdaptiveClassifier(lam=0.1, l1_ratio=0).fit(X, three).imputation_.shape == (3, 3)


def test_program_as_printed_is_ridge_and_elastic_net(make_rows):
    """scale=False, nothing missing: lambda_k = lambda / n."""
    X, y = make_rows()
    X = np.nan_to_num(X)
    model = AdaptiveRegressor("static", lam=6.0, l1_ratio=0.0, scale=False).fit(X, y)
    peer = Ridge(alpha=3.0).fit(X, y)
    np.testing.assert_allclose(model.coef_at([0, 0, 0]), peer.coef_, rtol=1e-6)
    assert model.intercept_at([0, 0, 0]) == pytest.approx(peer.intercept_, rel=1e-6)
    model = AdaptiveRegressor("static", lam=6.0, l1_ratio=0.4, scale=False).fit(X, y)
    net = ElasticNet(alpha=6.0 / (2 * len(y)), l1_ratio=0.4, tol=1e-12, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(model.coef_at([0, 0, 0]), net.coef_, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("center", [True, False])
def test_ridge_with_penalties_by_count(make_rows, center):
    """Closed form with lambda_k = c lambda / n_k, built by hand."""
    X, y = make_rows()
    M = np.isnan(X)
    A = np.column_stack([np.ones(len(y)), M, np.nan_to_num(X - center * np.nanmean(X, axis=0))])
    penalty = np.concatenate([[0.0], 3.0 * 2.0 / M.sum(axis=0), 2.0 / (~M).sum(axis=0)])
    w = np.linalg.solve(2 * A.T @ A / len(y) + np.diag(penalty), 2 * A.T @ y / len(y))
    model = AdaptiveRegressor(lam=2.0, l1_ratio=0.0, adaptive_penalty=3.0, center=center, scale=False).fit(X, y)
    np.testing.assert_allclose(model.coefficients_, w, rtol=1e-7)
    assert model.coef_table()["n"].tolist() == [len(y), *M.sum(axis=0), *(~M).sum(axis=0)]


@pytest.mark.parametrize("center", [True, False])
def test_ridge_with_the_authors_penalties(make_rows, center):
    """Standardised columns with factor 1 + c share of zeros, by hand."""
    X, y = make_rows()
    M = np.isnan(X)
    A = np.column_stack([M, np.nan_to_num(X - center * np.nanmean(X, axis=0))])
    factor = 1 + np.repeat([3.0, 1.0], 3) * (A == 0).mean(axis=0)
    Z = (A - A.mean(axis=0)) / A.std(axis=0)
    w = np.linalg.solve(2 * Z.T @ Z / len(y) + np.diag(5.0 * factor / len(y)), 2 * Z.T @ (y - y.mean()) / len(y))
    options = {"adaptive_penalty": 3.0, "penalty_weights": "authors", "center": center}
    model = AdaptiveRegressor(lam=5.0, l1_ratio=0, **options).fit(X, y)
    np.testing.assert_allclose(model.coefficients_[1:], w / A.std(axis=0), rtol=1e-6)


def test_zero_and_constant_columns_are_dropped_and_repeated_ones_kept(make_rows):
    X, y = make_rows()
    X = np.column_stack([X, np.zeros(len(y)), np.full(len(y), 7.0), X[:, 0]])
    table = AdaptiveRegressor("affine_intercept", lam=0.1).fit(X, y).coef_table()
    columns = set(zip(table["feature"], table["basis"], strict=True))
    assert ("x3", "1") not in columns
    assert ("x4", "1") not in columns
    assert {("x0", "1"), ("x5", "1"), ("(intercept)", "x0, x5 missing")} <= columns
    without = AdaptiveRegressor("static", lam=0, fit_intercept=False).fit(X[:, [4]], y)
    assert without.coef_at([0])[0] == pytest.approx(y.mean() / 7.0)


def test_solvers_agree(make_rows):
    X, y = make_rows()
    models = {name: AdaptiveRegressor("affine", solver=name).fit(X, y) for name in ("auto", "cvxpy", "osqp")}
    assert models["osqp"].certificate_.solver == "OSQP"
    for model in models.values():
        np.testing.assert_allclose(model.predict(X), models["auto"].predict(X), atol=1e-6)


def test_more_than_two_classes(make_rows):
    X, y = make_rows(n=300)
    labels = np.array(["low", "middle", "top"])[np.digitize(y, [1, 3])]
    model = AdaptiveClassifier("affine", lam=0.1).fit(X, labels)
    for c, label in enumerate(model.classes_):
        alone = AdaptiveClassifier("affine", lam=0.1).fit(X, labels == label)
        np.testing.assert_allclose(model.decision_function(X)[:, c], alone.decision_function(X), atol=1e-6)
    assert model.coef_at([1, 0, 0]).shape == (3, 3)
    assert model.intercept_at([1, 0, 0]).shape == (3,)
    assert set(model.coef_table()["class"]) == {"low", "middle", "top"}
    assert "log-odds of middle against the rest" in model.to_text()


def test_class_weight_is_a_weight(make_rows):
    X, y = make_rows(n=200)
    labels = (y > 3).astype(int)
    by_class = AdaptiveClassifier(lam=0.3, class_weight={0: 1.0, 1: 3.0}).fit(X, labels)
    by_row = AdaptiveClassifier(lam=0.3).fit(X, labels, sample_weight=1.0 + 2.0 * labels)
    np.testing.assert_allclose(by_class.decision_function(X), by_row.decision_function(X), atol=1e-6)
    balanced = AdaptiveClassifier(lam=0.3, class_weight="balanced").fit(X, labels)
    assert balanced.predict(X).mean() != by_class.predict(X).mean()


def test_separable_classes_need_a_penalty():
    X = np.array([[0.0], [1.0], [2.0], [3.0], [np.nan]])
    y = [0, 0, 1, 1, 1]
    fitted = AdaptiveClassifier(lam=1e-3).fit(X, y)
    assert fitted.score(X, y) == 1.0
    with pytest.raises(ValueError, match="linearly separable.*use lam > 0"):
        fitted.set_params(lam=0).fit(X, y)
    assert fitted.score(X, y) == 1.0
    touching = np.array([[-1.0], [0.0], [0.0], [1.0]])  # one row of each class on the boundary
    with pytest.raises(ValueError, match="linearly separable"):
        AdaptiveClassifier(lam=0).fit(touching, [0, 0, 1, 1])
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = X[:, 0] + rng.normal(size=100) > 0
    X[y & (rng.uniform(size=100) < 0.3), 0] = np.nan  # a missing value implies the class
    for kwargs in ({"lam": 0}, {"lam": 1.0, "adaptive_penalty": 0}):
        with pytest.raises(ValueError, match="linearly separable by columns without penalty"):
            AdaptiveClassifier(**kwargs).fit(X, y)


def test_a_cell_with_one_class_only_is_certain(make_rows):
    X, y = make_rows(n=200)
    M = np.isnan(X)
    labels = (y + np.random.default_rng(0).normal(size=200) > 2).astype(int)
    labels[M[:, 1] & ~M[:, 0]] = 1
    model = AdaptiveClassifier("fully_adaptive", lam=0.5).fit(X, labels)
    for pattern in ([0, 1, 0], [0, 1, 1]):
        assert model.intercept_at(pattern) == 30.0
        assert np.all(model.coef_at(pattern) == 0)
    rest = ~(M[:, 1] & ~M[:, 0])
    alone = AdaptiveClassifier("fully_adaptive", lam=0.5 / rest.mean(), scale=False).fit(X[rest], labels[rest])
    unscaled = AdaptiveClassifier("fully_adaptive", lam=0.5, scale=False).fit(X, labels)
    np.testing.assert_allclose(unscaled.decision_function(X[rest]), alone.decision_function(X[rest]), atol=1e-6)
    every = AdaptiveClassifier("fully_adaptive", lam=0.5).fit(X, M[:, 0])
    assert every.score(X, M[:, 0]) == 1.0


class CountAdaptive(Adaptivity):
    """Weights depend on the number of missing features: phi(m) = 1, |m|, |m|^2."""

    def basis(self, M):
        count = M.sum(axis=1)
        return np.column_stack([np.ones(len(M)), count, count**2])

    def names(self, feature_names):
        return ["1", "|m|", "|m|^2"]


class NoConstant(Adaptivity):
    def basis(self, M):
        return M[:, :1]


class Tied(Affine):
    """Affine weights that sum to 1 when nothing is missing."""

    def structure(self, W):
        import cvxpy as cp

        return 0.1 * cp.norm(W[1:, 1:], 1), [cp.sum(W[1:, 0]) == 1]


def test_a_basis_without_a_constant_still_has_an_intercept(make_rows):
    X, y = make_rows(n=200)
    model = AdaptiveRegressor(NoConstant(), lam=1e6).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y.mean(), atol=1e-3)
    assert model.coef_table()["basis"].tolist()[-1] == "1"


def test_a_structure_on_the_weights(make_rows):
    X, y = make_rows(n=200)
    model = AdaptiveRegressor(Tied(), lam=0.2, scale=False).fit(X, y)
    assert model.coef_at([0, 0, 0]).sum() == pytest.approx(1.0, abs=1e-7)
    assert model.certificate_.relative_gap < 1e-6
    assert (
        model.certificate_.objective
        > AdaptiveRegressor("affine", lam=0.2, scale=False).fit(X, y).certificate_.objective
    )


def test_a_structure_holds_in_cells_of_one_class_too(make_rows):
    from admiss.adaptivity import FullyAdaptive

    class Bounded(FullyAdaptive):
        def structure(self, W):
            import cvxpy as cp

            return 0.0, [cp.abs(W) <= 2]

    X, y = make_rows(n=200)
    labels = np.where(np.isnan(X[:, 0]), True, y > 2)
    model = AdaptiveClassifier(Bounded(), scale=False).fit(X, labels)
    assert np.abs(model.coefficients_).max() <= 2 + 1e-6
    assert model.intercept_at([1, 0, 0]) > 1


def test_a_structure_sees_the_basis_only(make_rows):
    shapes = []

    class Watched(NoConstant):
        def structure(self, W):
            shapes.append(W.shape)
            return 0.0, []

    X, y = make_rows()
    assert AdaptiveRegressor(Watched()).fit(X, y).predict(X).shape == y.shape
    assert shapes == [(4, 1)]


@pytest.mark.parametrize(
    ("basis", "sentence"),
    [
        (lambda M: np.ones(len(M)), "basis must give a row for each of"),
        (lambda M: np.ones((3, 2)), "basis must give a row for each of"),
        (lambda M: M[:, :1] / 0.0, "NaN or infinity"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
def test_a_broken_basis_is_named(make_rows, basis, sentence):
    class Broken(Adaptivity):
        def basis(self, M):
            return basis(M)

    X, y = make_rows()
    with pytest.raises(ValueError, match=f"Broken.{sentence}|Broken.basis gives {sentence}"):
        AdaptiveRegressor(Broken()).fit(X, y)


def test_a_class_that_learns_in_place_is_not_changed(make_rows):
    class Learns(CountAdaptive):
        def fit(self, X, M):
            self.seen_ = M.shape
            return self

    X, y = make_rows()
    adaptivity = Learns()
    AdaptiveRegressor(adaptivity).fit(X, y)
    assert not hasattr(adaptivity, "seen_")


def test_another_basis_is_no_constant_imputation(make_rows):
    class Counted(Static):
        def basis(self, M):
            return 1.0 + M.sum(axis=1, keepdims=True)

    X, y = make_rows()
    assert not hasattr(AdaptiveRegressor(Counted()).fit(X, y), "imputation_")


def test_zero_weights_are_zero_for_every_loss(make_rows):
    X, y = make_rows(n=200)
    X = np.column_stack([X, np.where(np.arange(200) % 3 == 0, np.nan, np.cos(np.arange(200)))])
    for loss in ("squared", "absolute", "huber", Quantile(0.3)):
        model = AdaptiveRegressor(lam=30, l1_ratio=1.0, loss=loss).fit(X, y)
        assert model.coef_at([0, 0, 0, 0])[3] == 0
        assert np.isnan(model.imputation_[3])


def test_ties_among_unseen_patterns_go_by_weight():
    X = np.array([[1.0, np.nan], [np.nan, 1.0], [np.nan, 2.0]])
    y = np.array([10.0, 20.0, 20.0])
    for weights, expected in (([1, 1, 1], 20.0), ([5, 1, 1], 10.0)):
        model = AdaptiveRegressor("fully_adaptive").fit(X, y, sample_weight=weights)
        assert model.intercept_at([1, 1]) == pytest.approx(expected)


def test_many_patterns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 20))
    y = X.sum(axis=1)
    X[rng.uniform(size=X.shape) < 0.5] = np.nan
    model = AdaptiveRegressor("fully_adaptive").fit(X, y)
    assert len(model.design_.patterns.patterns) > 1400
    assert model.certificate_.status == "optimal"


def test_wrong_number_of_columns_is_named(make_rows):
    class Wrong(CountAdaptive):
        def columns(self, X, M):
            return np.ones((len(X), 2))

    X, y = make_rows()
    with pytest.raises(ValueError, match="Wrong.columns gives 2 columns, but its mask has 12"):
        AdaptiveRegressor(Wrong()).fit(X, y)


def test_patterns_by_name(make_rows):
    X, y = make_rows()
    model = AdaptiveRegressor("affine").fit(X, y)
    np.testing.assert_array_equal(model.coef_at(["x1"]), model.coef_at([0, 1, 0]))
    np.testing.assert_array_equal(model.coef_at([]), model.coef_at([0, 0, 0]))
    np.testing.assert_array_equal(model.coef_at({"x1"}), model.coef_at([0, 1, 0]))
    for bad in (["x9"], [0, 1], [0, 2, 0], "x1", None, 3):
        with pytest.raises(ValueError, match="does not have as features|A pattern is 3 numbers"):
            model.coef_at(bad)


def test_text_of_a_model():
    X = np.array([[1.0, 5.0], [2.0, 1.0], [3.0, 4.0], [np.nan, 2.0], [np.nan, 3.0]])
    model = AdaptiveRegressor(lam=0).fit(X, [1.0, 2.0, 3.0, 5.0, 5.0])
    assert model.to_text(precision=3).splitlines()[-2:] == ["The same as a linear model after imputing:", "    x0 = 5"]
    assert "[x0 missing]" in model.to_text()


def test_large_designs_are_held_sparse(make_rows, monkeypatch):
    X, y = make_rows(n=300, d=4)
    for estimator, target in ((AdaptiveRegressor, y), (AdaptiveClassifier, y > 2)):
        expected = estimator("polynomial", lam=0.3).fit(X, target)
        with monkeypatch.context() as patch:
            patch.setattr("admiss.linear.design.DENSE_ENTRIES", 10)
            patch.setattr("admiss.linear.design.BLOCK_ENTRIES", 100)
            patch.setattr("admiss.linear.design.BLOCK_ROWS", 7)
            patch.setattr("admiss.adaptivity.base.DENSE_ENTRIES", 10)
            found = estimator("polynomial", lam=0.3).fit(X, target)
            np.testing.assert_allclose(found.coefficients_, expected.coefficients_, atol=1e-7)
            np.testing.assert_array_equal(found.predict(X[:1]), found.predict(X)[:1])
