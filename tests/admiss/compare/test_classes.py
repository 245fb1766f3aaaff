"""compare_classes: the same folds for all classes, no leak of held-out rows, correct columns."""

import copy
import subprocess
import sys

import cvxpy as cp
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import r2_score

from admiss import AdaptiveRegressor, AdaptiveRegressorCV, AdaptiveStackRegressor, FiniteRegressorCV, compare_classes
from admiss.adaptivity import Adaptivity, Affine, Polynomial
from admiss.bounds import BoundSetting, bias_bound, generalization_bound
from admiss.estimator.cross_validation import make_folds


class CountAdaptive(Adaptivity):
    def basis(self, M):
        missing = M.sum(axis=1)
        return np.column_stack([np.ones(len(M)), missing, missing**2])


class Grouped(Affine):
    def structure(self, W):
        return (0.1 * cp.sum(cp.norm(W[1:, 1:], 2, axis=0)), []) if W.shape[1] > 1 else (0.0, [])


class OtherBasis(Affine):
    """A subclass that is not affine: its degree is found, and not its parent's."""

    def basis(self, M):
        return np.ones((len(M), 1))

    def mask(self, d):
        return np.ones((d + 1, 1), dtype=bool)

    def names(self, feature_names):
        return ["1"]


@pytest.fixture
def rows(make_rows):
    return make_rows(n=120, d=3)


def test_one_row_per_class_with_all_columns(rows):
    classes = ["static", "affine", CountAdaptive(), Polynomial(5), Grouped(), "finite"]
    table = compare_classes(*rows, classes, cv=2, lams=[1.0, 10.0], random_state=0)
    assert table["class"].tolist() == [
        "static",
        "affine",
        "CountAdaptive()",
        "Polynomial(degree=5)",
        "Grouped()",
        "finite",
    ]
    assert table["p(F)"][:5].tolist() == [4, 13, 12, 20, 13]
    assert np.isnan(table["p(F)"][5])
    assert np.isnan(table["bound"]).tolist() == [False] * 4 + [True] * 2
    assert table["vacuous"][4:].tolist() == ["-", "-"]
    assert np.all(table["seconds"] > 0)
    assert table["below_best"].min() == 0.0
    assert table["below_best"].argmin() == table["R2"].argmax()
    np.testing.assert_allclose(table["R2"].max() - table["R2"], table["below_best"], atol=1e-12)
    assert str(table).splitlines()[0].split()[:3] == ["class", "R2", "R2_se"]


def test_R2_is_that_of_nested_searches_on_the_same_folds(rows):
    X, y = rows
    splits = make_folds(X, y, None, np.ones(len(y)), 4, 0)
    table = compare_classes(X, y, ["affine_intercept", CountAdaptive()], cv=splits, random_state=3)
    seed = np.random.RandomState(3).randint(2**31 - 1)
    for k, adaptivity in enumerate(["affine_intercept", CountAdaptive()]):
        search = AdaptiveRegressorCV(adaptivity, l1_ratios=[0.0], n_lambdas=20, stop_early=True, random_state=seed)
        scores = [r2_score(y[test], search.fit(X[train], y[train]).predict(X[test])) for train, test in splits]
        assert table["R2"][k] == pytest.approx(np.mean(scores), abs=1e-12)
        assert table["R2_se"][k] == pytest.approx(np.std(scores, ddof=1) / 2, abs=1e-12)
        full = search.fit(X, y)
        assert table["coefficients"][k] == np.count_nonzero(full.best_estimator_.coefficients_)


def test_a_structure_is_searched_over_the_stated_lams(rows):
    X, y = rows
    splits = make_folds(X, y, None, np.ones(len(y)), 3, 0)
    table = compare_classes(X, y, [Grouped()], cv=splits, lams=[2.0], random_state=0)
    model = AdaptiveRegressor(Grouped(), lam=2.0, l1_ratio=0.0)
    scores = [r2_score(y[test], model.fit(X[train], y[train]).predict(X[test])) for train, test in splits]
    assert table["R2"][0] == pytest.approx(np.mean(scores), abs=1e-9)


def test_held_out_rows_are_seen_by_no_fit(rows, monkeypatch):
    """A class that writes down the numbers of the rows that it is fitted to, which patterns tell in binary."""
    X, y = rows
    seen, by_search = set(), []
    powers = 2 ** np.arange((len(X) - 1).bit_length())
    digits = np.arange(len(X))[:, None] // powers % 2

    class Witness(Adaptivity):
        def fit(self, X, M):
            seen.update((M[:, -len(powers) :] @ powers).tolist())
            return super().fit(X, M)

        def basis(self, M):
            return np.ones((len(M), 1))

    def recorded(*arguments):
        seen.clear()
        model = searched(*arguments)
        by_search.append(set(seen))
        return model

    searched = compare_classes.__globals__["_searched"]
    monkeypatch.setitem(compare_classes.__globals__, "_searched", recorded)
    splits = make_folds(X, y, None, np.ones(len(y)), 3, 0)
    compare_classes(
        np.column_stack([X, np.where(digits, np.nan, 1.0)]), y, [Witness()], cv=splits, random_state=0, sigma2=1.0
    )
    assert by_search == [*(set(train) for train, _ in splits), set(range(len(X)))]


def test_the_bound_is_that_of_theorem_1(rows):
    X, y = rows
    M, n = np.isnan(X), len(y)
    table = compare_classes(X, y, ["affine", CountAdaptive()], cv=2, random_state=0, sigma2=0.5, L=2.0)
    expected = generalization_bound(BoundSetting(3, 0.5, 2.0, missing=M), n, "affine")
    assert table["bound"][0] == pytest.approx(expected.total)
    # counting contains constant weights and no more: the bias of static weights
    b = bias_bound("static", 3, 2.0, missing=M)
    assert table["bound"][1] == pytest.approx(0.5 + 8 * b + 4.0 * (1 + np.log(n)) / n * 12)
    assert [v == "yes" for v in table["vacuous"]] == [total > 0.5 + 16 for total in table["bound"]]
    larger = compare_classes(X, y, ["affine", OtherBasis()], cv=2, random_state=0)
    assert larger["bound"][0] > table["bound"][0]
    assert larger["p(F)"][1] == 4


def test_no_number_where_theory_has_none(make_rows):
    X, y = make_rows(n=60, d=9, fraction=0.5)
    table = compare_classes(X, y, [CountAdaptive(), "fully_adaptive"], cv=2, random_state=0)
    assert table["p(F)"].tolist() == [30, 9 * 2**8 + 2**9]
    assert np.isnan(table["bound"]).all()  # no declared degree, and sigma^2 cannot be estimated
    given = compare_classes(X, y, ["fully_adaptive"], cv=2, random_state=0, sigma2=1.0)
    assert np.isfinite(given["bound"]).all()


def test_kinds_of_input_and_seeds(rows):
    X, y = rows
    expected = compare_classes(X, y, ["affine"], cv=3, random_state=1)
    frame = pd.DataFrame(X, columns=list("abc"))
    for given in (frame, pl.DataFrame(frame.to_dict("list")).fill_nan(None), X.tolist()):
        found = compare_classes(given, y, ["affine"], cv=3, random_state=1)
        assert found["R2"][0] == expected["R2"][0]
    assert compare_classes(X, y, ["affine"], cv=3, random_state=2)["R2"][0] != expected["R2"][0]
    with pytest.warns(UserWarning, match="left out of the model: x3"):
        wider = compare_classes(np.insert(X, 3, np.nan, axis=1), y, ["affine"], cv=3, random_state=1)
    assert wider["R2"][0] == expected["R2"][0]
    assert wider["p(F)"][0] == 13


class Wrong(Adaptivity):
    def basis(self, M):
        return np.ones(3)


class Raises(Adaptivity):
    def basis(self, M):
        return {"other": M}["key"]


def test_errors_come_before_work(rows, monkeypatch):
    X, y = rows
    monkeypatch.setitem(compare_classes.__globals__, "_searched", lambda *_: pytest.fail("work has started"))
    wrong = [
        ({"classes": []}, "classes is empty"),
        ({"classes": "affine"}, r"classes must be a list, \['affine'\]"),
        ({"classes": ["afine"]}, "Unknown adaptivity 'afine'"),
        ({"classes": [Affine]}, r"write Affine\(\)"),
        ({"classes": ["affine", Wrong()]}, r"Wrong\(\): Wrong.basis must give a row"),
        ({"classes": [Polynomial(3, max_columns=5)]}, "more than max_columns=5"),
        ({"classes": [FiniteRegressorCV(loss="absolute")]}, "must have the loss of the others"),
        ({"classes": None}, r"classes must be a list of names and objects such as .* not None"),
        (
            {"classes": [AdaptiveStackRegressor()]},
            r"takes adaptivity classes only, and AdaptiveStackRegressor\(\) is an estimator",
        ),
        ({"classes": [Raises()]}, r"Raises\(\) raised KeyError \('key'\): check_adaptivity"),
        ({"lams": ["a"]}, r"lams must be a list of positive numbers, not \['a'\]"),
        ({"lams": None}, "lams must be a list of positive numbers, not None"),
        ({"y": np.full(len(y), 3.0)}, "y is 3 in every row, and R2 needs a target that varies"),
        ({"lams": []}, "lams must be a list of positive numbers"),
        ({"lams": [0.0]}, "lams must be a list of positive numbers"),
        ({"sigma2": -1}, "sigma2 must be"),
        ({"L": 0}, "L must be a positive number"),
        ({"cv": 1}, "cv must be between 2"),
        ({"cv": len(y)}, "use fewer folds"),
        ({"y": ["a"] * len(y)}, "compare_classes is for regression, and y must be 120 numbers"),
        ({"y": y[:5]}, "y must be 120 numbers"),
        ({"X": np.full_like(X, np.nan)}, "no observed value"),
    ]
    for changes, message in wrong:
        with pytest.raises(ValueError, match=message):
            compare_classes(**{"X": X, "y": y, "classes": ["affine"], **changes})


class RaisesLater(Adaptivity):
    """Its basis fails on a pattern that is not among the training rows of some fold."""

    def fit(self, X, M):
        fitted = copy.copy(self)
        fitted.rows_ = np.array(len(X))
        return fitted

    def basis(self, M):
        if self.rows_ < 100:
            raise KeyError("few rows")
        return np.ones((len(M), 1))


def test_errors_in_folds_name_the_class(rows):
    with pytest.raises(ValueError, match=r"RaisesLater\(\) raised KeyError \('few rows'\)"):
        compare_classes(*rows, ["static", RaisesLater()], cv=3, sigma2=1.0, random_state=0)


def test_import_of_admiss_leaves_bounds_alone():
    code = "import sys, admiss; print(callable(admiss.compare_classes), 'admiss.bounds' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert found.stdout.split() == ["True", "False"], found.stderr
