"""Every property can fail: estimators with one fault each, and the property that must find it."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from admiss import (
    AdaptiveClassifier,
    AdaptiveRegressor,
    AdaptiveRegressorCV,
    FiniteRegressor,
    JointImputeRegressor,
    PatternConformalRegressor,
)
from admiss.baselines import CompleteFeatures
from admiss.partition import Greedy, OptimalTree
from tests.properties import estimator, families, missing, relations  # noqa: F401
from tests.properties.entry import PROPERTIES, Entry


def predicts(term):
    """Adds a term to the predictions."""
    return _subclass(AdaptiveRegressor, predict=lambda self, X: AdaptiveRegressor.predict(self, X) + term(X))()


def fits(change, base=AdaptiveRegressor):
    """Fits with other weights."""
    return _subclass(base, fit=lambda self, X, y, sample_weight=None: base.fit(self, X, y, change(sample_weight)))()


def _subclass(base, **methods):
    return type("Broken", (base,), methods)


def n_missing(X):
    return np.isnan(np.asarray(X, dtype=float)).sum(axis=1)


class SilentFit(AdaptiveRegressor):
    def fit(self, X, y, sample_weight=None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return super().fit(X, y, sample_weight)


class SilentPredict(AdaptiveRegressor):
    def predict(self, X):
        asked, self.on_unseen_pattern = self.on_unseen_pattern, "nearest"
        with warnings.catch_warnings(action="ignore"):
            found = super().predict(X)
        self.on_unseen_pattern = asked
        return found


class ClipsInfinities(AdaptiveRegressor):
    def predict(self, X):
        return super().predict(np.clip(X, -1e6, 1e6))


class NeedsNoFit(AdaptiveRegressor):
    def predict(self, X):
        return super().predict(X) if hasattr(self, "design_") else np.zeros(len(X))


class FillsInput(AdaptiveRegressor):
    def fit(self, X, y, sample_weight=None):
        X[np.isnan(X)] = 0.0
        return super().fit(X, y, sample_weight)


class SetsParameters(AdaptiveRegressor):
    def fit(self, X, y, sample_weight=None):
        self.lam = 2 * self.lam
        return super().fit(X, y, sample_weight)


class RoundedPickle(AdaptiveRegressor):
    def __getstate__(self):
        return {**super().__getstate__(), "coefficients_": self.coefficients_.round(2)}


class LastFit(AdaptiveRegressor):
    def fit(self, X, y, sample_weight=None):
        self.rows_ = len(X)
        return super().fit(X, y, sample_weight)

    def predict(self, X):
        return super().predict(X) + self.rows_


class IgnoresNames(AdaptiveRegressor):
    def predict(self, X):
        return super().predict(np.asarray(X))


class OnePenalty(AdaptiveRegressor):
    def set_params(self, **parameters):
        return super().set_params(**{**parameters, "lam": 0.5})


class TextLabels(AdaptiveClassifier):
    def predict(self, X):
        return super().predict(X).astype(str)


class Unnormalised(AdaptiveClassifier):
    def predict_proba(self, X):
        return 0.9 * super().predict_proba(X)


class TooManyColumns(CompleteFeatures):
    def transform(self, X):
        return np.hstack([super().transform(X), super().transform(X)])


class DoubledCoefficients(AdaptiveRegressor):
    def coef_at(self, pattern):
        return 2 * super().coef_at(pattern)


class NeverScales(AdaptiveRegressor):
    def fit(self, X, y, sample_weight=None):
        scale, self.scale = self.scale, False
        super().fit(X, y, sample_weight)
        self.scale = scale
        return self


class CountsRows(AdaptiveRegressor):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y + np.arange(len(y)), sample_weight)


class WantsArrays(AdaptiveRegressor):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X, np.asarray(y) + isinstance(y, list), sample_weight)


class WorseThanGreedy(FiniteRegressor):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        if not isinstance(self.partitioner, Greedy):
            self.certificate_ = replace(self.certificate_, objective=2 * self.certificate_.objective)
        return self


class ShiftedPredictor(JointImputeRegressor):
    def predict(self, X):
        return super().predict(X) + 1.0


class ImputesPosition(JointImputeRegressor):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.imputation_ = self.imputation_ + np.arange(X.shape[1])
        return self


class WiderBatches(PatternConformalRegressor):
    def predict_interval(self, X):
        predictions, intervals = super().predict_interval(X)
        return predictions, intervals + len(X)


def root(s):
    return None if s is None else np.sqrt(s)


def not_below(s):
    return None if s is None else np.maximum(s, 0.1)


BROKEN = [
    ("value_under_nan", predicts(lambda X: np.signbit(X[np.isnan(X)]).sum() if type(X) is np.ndarray else 0)),
    ("rows_all_missing", predicts(lambda X: np.where(n_missing(X) == X.shape[1], np.nan, 0))),
    ("columns_all_missing", predicts(lambda X: np.nan_to_num(X[:, 2]) if X.shape[1] == 5 else 0)),
    ("nothing_observed", predicts(lambda X: np.arange(len(X)))),
    ("never_observed_is_reported", SilentFit()),
    ("missing_only_in_fit", predicts(lambda X: 0 if n_missing(X).any() else np.nan)),
    ("missing_only_in_predict", SilentPredict()),
    ("unseen_patterns", predicts(lambda X: np.where(n_missing(X) > 1, np.nan, 0))),
    ("kinds_of_input", predicts(lambda X: float(isinstance(X, list)))),
    ("permuted_columns", predicts(lambda X: np.nan_to_num(np.asarray(X)[:, 0]))),
    ("kinds_of_target", WantsArrays()),
    ("permuted_rows", CountsRows()),
    ("units_of_the_target", predicts(lambda X: 1.0)),
    ("no_dearer_than_greedy", WorseThanGreedy(OptimalTree(max_depth=1, min_rows=1))),
    ("infinities_refused", ClipsInfinities()),
    ("weights_are_copies", fits(root)),
    ("rows_of_weight_zero", fits(not_below)),
    ("rows_of_weight_zero_in_given_folds", fits(not_below, AdaptiveRegressorCV).set_params(n_lambdas=3)),
    ("not_fitted", NeedsNoFit()),
    ("inputs_and_parameters_are_left_alone", FillsInput()),
    ("inputs_and_parameters_are_left_alone", SetsParameters()),
    ("clone_pickle_and_repr", RoundedPickle()),
    ("same_seed_same_model", predicts(lambda X: np.random.normal(size=len(X)))),
    ("failed_fit_changes_nothing", LastFit()),
    ("names_and_number_of_features", IgnoresNames()),
    ("search_in_a_pipeline", OnePenalty()),
    ("labels_of_any_type", TextLabels()),
    ("labels_of_any_type", Unnormalised()),
    ("columns_are_named", TooManyColumns()),
    ("coefficients_give_the_prediction", DoubledCoefficients()),
    ("origin_and_units_of_features", NeverScales()),
    ("unseen_patterns_are_reported", SilentPredict()),
    ("predictions_at_imputed_values", ShiftedPredictor(Ridge())),
    ("permuted_columns_with_one_missable", ImputesPosition(Ridge())),
    ("sets_of_rows", WiderBatches(AdaptiveRegressor(), random_state=0)),
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("name", "model"), BROKEN)
def test_the_fault_is_found(name, model):
    holds, applies = PROPERTIES[name]
    assert applies(model)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        holds(Entry(model, {"lam": [0.1, 10.0]}))


def test_there_is_a_fault_for_every_property():
    assert {name for name, _ in BROKEN} == set(PROPERTIES)
