"""Certificates of the capped risk from held-out rows: losses, groups, refusals, prints, and simulated failures."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binom
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.tree import DecisionTreeRegressor

from admiss import AdaptiveClassifier, AdaptiveRegressor
from admiss.bounds import cap_from_training, risk_certificate
from admiss.bounds.certificate import bernstein_bound, betting_bound
from admiss.datasets import make_synthetic


class Column:
    """A model that predicts a column of X; with classes, 0 or 1 with the column as the probability of 1."""

    def __init__(self, column=0, classes=None):
        self.column = column
        if classes is not None:
            self.classes_ = np.array(classes)

    def predict(self, X):
        x = np.asarray(X)[:, self.column]
        return self.classes_[(x > 0.5).astype(int)] if hasattr(self, "classes_") else x

    def predict_proba(self, X):
        x = np.asarray(X)[:, self.column]
        return np.column_stack([1 - x, x])


def sample(n=200, seed=0):
    """Predictions of three models, and a target."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    return y[:, None] + rng.normal(size=(n, 3)) * [0.5, 1.0, 2.0], y


THREE = {"good": Column(0), "fair": Column(1), "bad": Column(2)}


@pytest.mark.parametrize("seed", [0, 7])
def test_bounds_are_those_of_capped_losses_in_the_order_of_the_seed(seed):
    X, y = sample()
    certificate = risk_certificate(THREE, X, y, cap=3.0, delta=0.1, random_state=seed)
    order = np.random.RandomState(seed).permutation(len(y))
    for (name, bound), risk, column in zip(certificate.bounds.items(), certificate.risks, X.T, strict=True):
        losses = (y - column) ** 2
        v = np.minimum(losses, 3.0)[order] / 3
        assert bound == risk.bound == pytest.approx(3 * betting_bound(v, 0.1 / 3), rel=1e-9)
        assert risk.bernstein == pytest.approx(3 * bernstein_bound(v, 0.1 / 3), rel=1e-9)
        assert (risk.model, risk.n, risk.n_capped) == (name, 200, np.sum(losses > 3))
        assert risk.mean == pytest.approx(losses.mean())
        assert risk.cut_off == pytest.approx(1 - np.minimum(losses, 3).mean() / losses.mean(), abs=1e-12)


def test_models_as_mapping_list_and_alone():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), rng.normal(size=100)
    ridge = Ridge().fit(X, y)
    forest = RandomForestRegressor(3, random_state=0).fit(X, y)  # has a length, and is one model
    for model in (ridge, forest):
        forms = (model, [model], {type(model).__name__: model})
        alone, listed, named = (risk_certificate(models, X, y, cap=9.0) for models in forms)
        assert alone == listed == named
    names = list(risk_certificate((ridge, forest, ridge), X, y, cap=9.0).bounds)
    assert names == ["Ridge", "RandomForestRegressor", "Ridge 2"]


def test_frames_and_arrays_agree():
    X, y = sample()
    X[::3, 1] = np.nan
    expected = risk_certificate(Column(0), X, y, cap=3.0, by_missing=True)
    for frame, target in (
        (pd.DataFrame(X, columns=["x0", "x1", "x2"]), pd.Series(y)),
        (pl.DataFrame(X, schema=["x0", "x1", "x2"]), pl.Series(y)),
        (pl.DataFrame(X, schema=["x0", "x1", "x2"]).fill_nan(None), y.tolist()),
        (pd.DataFrame(X, columns=["x0", "x1", "x2"]).convert_dtypes(), y[:, None].ravel()),
    ):
        assert risk_certificate(Column(0), frame, target, cap=3.0, by_missing=True) == expected
    assert [risk.rows for risk in expected.risks] == ["all", "x1 missing", "x1 observed"]


def test_columns_of_a_frame_may_be_of_any_type():
    class FirstColumn:
        def predict(self, X):
            return X["a"].to_numpy()

    X = pd.DataFrame({"a": np.linspace(0, 1, 40), "b": ["u", None] * 20, "c": pd.Categorical(["v"] * 39 + [None])})
    certificate = risk_certificate(FirstColumn(), X, np.zeros(40), cap=1.0, by_missing=["b", "c"])
    sizes = {risk.rows: risk.n for risk in certificate.risks[1:]}
    assert sizes == {"b missing": 20, "b observed": 20, "c missing": 1, "c observed": 39}


def test_groups_and_their_correction():
    X, y = sample(300)
    X = np.column_stack([X, np.where(np.arange(300) % 3 == 0, np.nan, 1.0), np.ones(300), np.full(300, np.nan)])
    models = {"good": Column(0), "bad": Column(2)}
    order = np.random.RandomState(0).permutation(300)
    for by_missing, features in ((True, 6), ([3], 1), (["x3", 5, "x3"], 2)):
        certificate = risk_certificate(models, X, y, cap=4.0, delta=0.08, by_missing=by_missing)
        assert certificate.n_statements == 2 * (1 + 2 * features)
        # features that are always or never missing have no groups, and still count
        assert [risk.rows for risk in certificate.risks] == ["all"] * 2 + ["x3 missing"] * 2 + ["x3 observed"] * 2
        rows = order[np.isnan(X[order, 3])]
        alpha = 0.04 / 2 / (2 * features)
        v = np.minimum((y - X[:, 0])[rows] ** 2 / 4, 1)
        assert certificate.risks[2].n == 100
        assert certificate.risks[2].bound == pytest.approx(4 * betting_bound(v, alpha), rel=1e-9)
        assert certificate.bounds == risk_certificate(models, X, y, cap=4.0, delta=0.04).bounds
    assert "corrected for 26 statements" in str(risk_certificate(models, X, y, cap=4.0, by_missing=True))


def test_zero_one_and_brier_losses():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=(150, 1))
    y = np.where(rng.uniform(size=150) < p[:, 0], "yes", "no")
    model = Column(0, classes=["no", "yes"])
    order = np.random.RandomState(0).permutation(150)
    for loss, losses in (
        ("zero_one", (p[:, 0] > 0.5) != (y == "yes")),
        ("brier", (p[:, 0] - (y == "yes")) ** 2),
    ):
        certificate = risk_certificate(model, p, y, loss=loss)
        assert certificate.bounds["Column"] == pytest.approx(betting_bound(1.0 * losses[order], 0.05), rel=1e-9)
        assert certificate.cap == 1.0
        assert "capped" not in str(certificate)
        assert risk_certificate(model, p, y, loss=loss, cap=5.0) == certificate
        assert "capped" in str(risk_certificate(model, p, y, loss=loss, cap=0.5))
    assert risk_certificate(model, p, y) == risk_certificate(model, p, y, loss="zero_one")


def test_brier_loss_of_three_classes_and_of_labels_not_seen():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2)), np.repeat([0, 1, 2], 40)
    three, two = LogisticRegression().fit(X, y), LogisticRegression().fit(X[:80], y[:80])
    certificate = risk_certificate({"three": three, "two": two}, X, y, loss="brier")
    assert certificate.cap == cap_from_training(three, X, y, loss="brier") == 2.0
    expected = ((three.predict_proba(X) - np.eye(3)[y]) ** 2).sum(axis=1).mean()
    unseen = np.column_stack([two.predict_proba(X), np.zeros(120)])
    assert certificate.risks[0].mean == pytest.approx(expected)
    assert certificate.risks[1].mean == pytest.approx(((unseen - np.eye(3)[y]) ** 2).sum(axis=1).mean())
    # with two classes at most, the loss is half of it
    assert risk_certificate(two, X, y, loss="brier").risks[0].mean == pytest.approx(certificate.risks[1].mean / 2)
    assert risk_certificate(two, X, y).risks[0].mean == np.mean(two.predict(X) != y)


def test_estimators_of_the_package(make_rows):
    X, y = make_rows(300)
    X_new, y_new = make_rows(300, seed=1)
    model = AdaptiveClassifier().fit(X, y > np.median(y))
    certificate = risk_certificate(model, X_new, y_new > np.median(y), by_missing=True)
    assert certificate.loss == "zero_one"
    assert all(risk.capped_mean < risk.bound <= risk.bernstein for risk in certificate.risks)
    regressor = AdaptiveRegressor().fit(X, y)
    cap = cap_from_training(regressor, X, y)
    assert risk_certificate(regressor, X_new, y_new, cap=cap).bounds["AdaptiveRegressor"] < cap


def test_few_rows_say_little():
    for models, n, value in ((Column(), 1, 0.0), (THREE, 2, 0.0), (Column(), 2, 1.0)):
        certificate = risk_certificate(models, np.zeros((n, 3)), np.full(n, value), cap=2.0)
        assert set(certificate.bounds.values()) == {2.0}
        assert "a bound of 2 says nothing" in str(certificate)
    # two rows without loss: no valid bound is below 1 - sqrt(.05) = .78 of the cap
    (bound,) = risk_certificate(Column(), np.zeros((2, 1)), np.zeros(2), cap=2.0).bounds.values()
    assert 2 * (1 - math.sqrt(0.05)) < bound < 1.8


def test_losses_that_are_zero_at_the_cap_or_constant():
    X = np.zeros((400, 1))
    zero, at_cap, above, constant = (
        risk_certificate(Column(), X, np.full(400, value), cap=4.0).risks[0] for value in (0.0, 2.0, 1e9, 1.0)
    )
    assert 0 == zero.mean == zero.cut_off < zero.bound < 0.06
    assert (at_cap.bound, at_cap.n_capped, at_cap.cut_off) == (4.0, 0, 0.0)
    assert (above.bound, above.n_capped) == (4.0, 400)
    assert above.cut_off == pytest.approx(1)
    assert 1 < constant.bound < 1.1


@pytest.mark.parametrize("unit", [1e-150, 1e-6, 1e6, 1e150])
def test_units_of_the_target(unit):
    X, y = sample()
    expected = risk_certificate(THREE, X, y, cap=3.0)
    scaled = risk_certificate(THREE, X * unit, y * unit, cap=3.0 * unit**2)
    for risk, other in zip(expected.risks, scaled.risks, strict=True):
        assert other.bound / unit / unit == pytest.approx(risk.bound, rel=1e-9)
    assert cap_from_training(DummyRegressor(), X, y * unit) / unit / unit == pytest.approx(
        cap_from_training(DummyRegressor(), X, y), rel=1e-9
    )


@pytest.mark.filterwarnings("error")
def test_squares_beyond_the_range_of_numbers_count_as_the_cap():
    y = np.zeros(200)
    y[:2] = 1e200
    risk = risk_certificate(Column(), np.zeros((200, 1)), y, cap=1.0).risks[0]
    assert (risk.mean, risk.capped_mean, risk.n_capped, risk.cut_off) == (math.inf, 0.01, 2, 1.0)
    assert "100 % of the mean, 2 rows" in str(risk_certificate(Column(), np.zeros((200, 1)), y, cap=1.0))


def test_print_rounds_up_and_says_what_it_is():
    X, y = sample()
    certificate = risk_certificate(THREE, X, y, cap=3.0)
    lines = str(certificate).splitlines()
    assert repr(certificate) == str(certificate)
    assert lines[0] == "capped risk E min((y - f)^2, 3) on new rows: all 3 bounds hold at once with probability 0.95"
    for line, risk in zip(lines[2:5], certificate.risks, strict=True):
        name, _, bound, bernstein, *_ = line.split()
        assert name == risk.model
        assert risk.bound <= float(bound) <= risk.bound * 1.001
        assert risk.bernstein <= float(bernstein) <= risk.bernstein * 1.001
    assert "not bounded" in lines[5]
    assert lines[6].startswith("assumes i.i.d. rows")
    frame = pd.DataFrame(certificate.table)
    assert list(frame["model"]) == list(THREE)
    assert frame["bound"].tolist() == list(certificate.bounds.values())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cap": None}, "cap=cap_from_training"),
        *(({"cap": cap}, "^cap must be") for cap in (0, -1.0, math.nan, math.inf, 10**400, [1.0], "1", True)),
        *(({"delta": delta}, "^delta must be") for delta in (0, 1, -0.1, math.nan, "a")),
        ({"loss": "absolute"}, "^loss must be"),
        ({"random_state": "a"}, "^random_state must be"),
        ({"by_missing": "x0"}, "^by_missing must be"),
        ({"by_missing": ["x9"]}, "^by_missing names 'x9'"),
        ({"by_missing": [3]}, "^by_missing names 3"),
    ],
)
def test_parameters_are_refused_in_a_sentence(changes, words):
    X, y = sample()
    with pytest.raises(ValueError, match=words):
        risk_certificate(THREE, X, y, **{"cap": 3.0, **changes})


def test_models_and_predictions_are_refused_in_a_sentence():
    X, y = sample()
    labels = (y > 0).astype(int)

    class Predicts(Column):
        def __init__(self, values):
            self.values = values

        def predict(self, X):
            return self.values

    holes = np.where(np.arange(200) < 3, np.nan, 0.0)
    same_names = {1: Column(0), "1": Column(1)}
    for models, loss, words in (
        *((models, "squared", "^models must be") for models in ({}, [], "ridge", Ridge, same_names)),
        *((models, "squared", "no method predict") for models in ([Ridge], {"a": 3})),
        ([Column(0), LogisticRegression().fit(X, labels)], "auto", "classifiers"),
        (Predicts(holes), "squared", "'Predicts' .* 3 rows"),
        *((Predicts(np.zeros(shape)), "squared", "one number per row") for shape in (3, (200, 2))),
        (Predicts(["a"] * 200), "squared", "predicts no numbers"),
        *((Predicts(values), "zero_one", "no label") for values in ([None] * 200, holes)),
        (Predicts(np.zeros(3)), "zero_one", "one label per row"),
        (Column(0, classes=["no", "yes"]), "zero_one", "fitted to other labels"),
        (Column(0), "brier", "has no probabilities"),
        (Column(0, classes=[0, 1]), "brier", "do not sum to 1"),
        (Column(0, classes=[0, 1, 2]), "brier", "a probability for each class"),
    ):
        with pytest.raises(ValueError, match=words):
            risk_certificate(models, X, y if loss in ("squared", "auto") else labels, cap=3.0, loss=loss)
    with pytest.raises(NotFittedError):
        risk_certificate(Ridge(), X, y, cap=3.0)
    with pytest.raises(ValueError, match="must have different names"):
        risk_certificate(THREE, pd.DataFrame(X, columns=["a", "b", "a"]), y, cap=3.0, by_missing=True)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        risk_certificate(THREE, X, y[:-1], cap=3.0)
    with pytest.raises(ValueError, match="NaN"):
        risk_certificate(THREE, X, holes, cap=3.0)


def test_cap_is_that_of_cross_validated_residuals():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X @ [1, 2, 3] + rng.normal(size=400)
    tree, linear = DecisionTreeRegressor(), LinearRegression()
    fitted = tree.fit(X, y)
    assert np.abs(y - fitted.predict(X)).max() == 0
    alone = {name: cap_from_training(model, X, y) for name, model in (("tree", tree), ("linear", linear))}
    # residuals with 4 coefficients to 320 rows: variance 1 + 4 / 320, known to a tenth by 400 rows
    assert alone["linear"] == pytest.approx(9 * (1 + 4 / 320), rel=0.15)
    assert alone["tree"] > 1.5 * alone["linear"]
    assert cap_from_training([tree, linear], X, y) == max(alone.values())
    assert fitted is tree
    assert cap_from_training(tree, X, y) == alone["tree"]  # seeded, though the tree is not
    assert cap_from_training(linear, pd.DataFrame(X), pd.Series(y)) == pytest.approx(alone["linear"])
    assert cap_from_training(LogisticRegression(), X, y > 0) == cap_from_training(
        LogisticRegression(), X, y > 0, loss="brier"
    ) == 1.0  # fmt: skip


def test_caps_that_do_not_exist_are_refused():
    X, y = np.zeros((10, 1)), np.arange(10.0)
    for target, cv, words in (
        (np.zeros(10), 5, "standard deviation is 0"),
        (1e200 * y, 5, "no cap"),
        (y, 1, "2 or more folds"),
        (y, "a", "cv must be a number of folds or a splitter"),
    ):
        with pytest.raises(ValueError, match=words):
            cap_from_training(DummyRegressor(), X, target, cv=cv)
    with pytest.raises(ValueError, match="2 or more folds and rows"):
        cap_from_training(DummyRegressor(), X[:1], y[:1])
    assert cap_from_training(DummyRegressor(), X[:2], y[:2]) == pytest.approx(9)


def certified_runs(X, y, cap, runs, n, by_missing=False):
    """Certificates from samples with replacement of a population, whose capped risks are known."""
    rng = np.random.default_rng(0)
    for seed in range(runs):
        rows = rng.integers(len(y), size=n)
        yield risk_certificate(THREE, X[rows], y[rows], cap=cap, by_missing=by_missing, random_state=seed)


def most_failures(runs, delta=0.05):
    """Exceeded with probability 1e-5 if runs fail with probability delta."""
    return binom.ppf(1 - 1e-5, runs, delta)


@pytest.mark.slow
def test_failures_of_simulated_groups():
    rng = np.random.default_rng(0)
    X, y = sample(20_000)
    X = np.column_stack([X, rng.normal(size=20_000)])
    X[rng.uniform(size=20_000) < np.where(np.abs(y - X[:, 2]) > 2, 0.6, 0.1), 3] = np.nan
    losses = np.minimum((y[:, None] - X[:, :3]) ** 2, 9.0)
    missing = np.isnan(X[:, 3])
    truth = np.concatenate([losses[rows].mean(axis=0) for rows in (np.ones(len(y), bool), missing, ~missing)])
    assert truth[5] > 2 * truth[8]  # the worst model, where x3 is missing and where it is observed
    runs = [np.array([r.bound for r in c.risks]) < truth for c in certified_runs(X, y, 9.0, 500, 300, [3])]
    assert sum(np.any(failed) for failed in runs) <= most_failures(500)


@pytest.mark.slow
def test_ratio_to_the_true_capped_risk_on_data_of_the_paper():
    """Three classes fitted to 700 rows, and 2,000 samples of 300 held-out rows."""
    data = make_synthetic(n=700, n_test=20_000, mechanism="mcar", missing_fraction=0.3, random_state=1)
    models = [
        AdaptiveRegressor(name).fit(data.X_train, data.y_train) for name in ("static", "affine_intercept", "affine")
    ]
    cap = cap_from_training(models, data.X_train, data.y_train)
    X, y = np.column_stack([model.predict(data.X_test) for model in models]), data.y_test
    truth = np.minimum((y[:, None] - X) ** 2, cap).mean(axis=0)
    runs = list(certified_runs(X, y, cap, 2000, 300))
    ratios = np.array([list(c.bounds.values()) for c in runs]) / truth
    bernstein = np.array([[risk.bernstein for risk in c.risks] for c in runs]) / truth
    assert np.sum(np.any(ratios < 1, axis=1)) <= most_failures(2000)
    assert ratios.mean() <= 1.25
    assert bernstein.mean() > 1.5
