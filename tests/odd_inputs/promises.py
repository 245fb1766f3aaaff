"""Which relations an estimator promises for an input.

Not promised: the order of rows or columns where features are visited or rows are drawn in turn, weights as copies where
rows are counted, and other units where features are not centred and scaled.
"""

from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.tree import DecisionTreeRegressor

from admiss import (
    AdaptiveStackClassifier,
    AdaptiveStackRegressor,
    ExpectedFeaturesClassifier,
    ExpectedFeaturesRegressor,
    FiniteClassifier,
    FiniteRegressor,
    JointImputeClassifier,
    JointImputeRegressor,
)
from admiss.baselines import TunedClassifier, TunedRegressor
from admiss.partition import Greedy
from tests.odd_inputs.case import Case, takes_weights
from tests.odd_inputs.models import is_deterministic

TUNED = (TunedRegressor, TunedClassifier)
STACK = (AdaptiveStackRegressor, AdaptiveStackClassifier)
JOINT = (JointImputeRegressor, JointImputeClassifier)
EXPECTED = (ExpectedFeaturesRegressor, ExpectedFeaturesClassifier)
FINITE = (FiniteRegressor, FiniteClassifier)


def is_tame(case: Case) -> bool:
    return case.rows is not None and case.rows.tame


def has_folds(model: Any) -> bool:
    return model.get_params(deep=False).get("cv") is not None


def ignores_containers(case: Case) -> bool:
    names = case.model.get_params().get("partitioner__split_features")  # an array has none
    by_name = isinstance(names, list) and any(isinstance(name, str) for name in names)
    return is_deterministic(case.model) and type(case.X) is not np.ndarray and not by_name


def _ignores_order(case: Case) -> bool:
    """Neither features nor rows are visited in turn."""
    model, parameters = case.model, case.model.get_params()
    predicts = is_classifier(model) or is_regressor(model)
    in_turn = isinstance(model, (*TUNED, *JOINT)) or not predicts or not is_deterministic(model)
    return is_tame(case) and not (in_turn or parameters.get("n_random") or "censored" in str(parameters))


def ignores_order_of_rows(case: Case) -> bool:
    return _ignores_order(case) and not isinstance(case.model, STACK)  # candidates make their own folds


def ignores_order_of_columns(case: Case) -> bool:
    """Ties of splits and of nearest patterns are broken by the order of columns: scores of held-out rows show it.

    Candidates of a stack make folds of their own, whose strata of patterns depend on the order too.
    """
    parameters = case.model.get_params()
    has_ties = takes_nearest_pattern(case.model) or "partitioner" in parameters or isinstance(case.model, STACK)
    shows_ties = has_folds(case.model) and has_ties
    return _ignores_order(case) and parameters.get("partitioner__split_features") is None and not shows_ties


def takes_nearest_pattern(model: Any) -> bool:
    """Whether a pattern that training has not seen has the model of the nearest one."""
    return any(word in str(model.get_params().get("adaptivity")).lower() for word in ("finite", "fully", "fused"))


def takes_weights_as_copies(case: Case) -> bool:
    model, parameters = case.model, case.model.get_params()
    counts_rows = "partitioner" in parameters and parameters.get("partitioner__min_rows") != 1
    counts_rows |= _counts_rows(model) or "Finite" in str(parameters.get("adaptivity"))
    leaves_one_out = isinstance(model, EXPECTED) and not has_folds(model)
    return ignores_order_of_rows(case) and takes_weights(model) and not (counts_rows or leaves_one_out)


def _counts_rows(model: Any) -> bool:
    """Whether rows are counted, whatever their weights: for lengths of paths and one standard error."""
    parameters = model.get_params()
    return isinstance(parameters.get("eps"), str) or bool(parameters.get("one_standard_error"))


def drops_rows_of_weight_zero(case: Case) -> bool:
    model = case.model
    counts = has_folds(model) or _counts_rows(model)
    return is_tame(case) and takes_weights(model) and is_deterministic(model) and not counts


def has_structure(model: Any) -> bool:
    return any(word in str(model.get_params().get("adaptivity")).lower() for word in ("rank", "fused"))


def scales_with_the_target(case: Case) -> bool:
    """The squared loss with ridge penalties only, not by the rule of glmnet; the target must not become extreme.

    A tree of scikit-learn is not split further at an impurity of 2e-16, whatever the units.
    """
    model, parameters = case.model, case.model.get_params()
    foreign = isinstance(model, TUNED) or isinstance(parameters.get("estimator"), DecisionTreeRegressor)
    if case.rows is None or not is_regressor(model) or not is_deterministic(model) or foreign:
        return False
    lasso = np.any(parameters.get("l1_ratios", parameters.get("l1_ratio", 0.0)))
    structure = has_structure(model) or parameters.get("eps") == "glmnet"
    size = np.abs(case.rows.y)
    moderate = bool(np.all((size == 0) | ((size > 1e-80) & (size < 1e80))))
    return parameters.get("loss", "squared") == "squared" and not lasso and not structure and moderate


def ignores_units_of_features(case: Case) -> bool:
    parameters = case.model.get_params(deep=False)
    standard = parameters.get("center") and parameters["scale"] and parameters.get("fit_intercept", True)
    own_units = "Finite" in str(parameters.get("adaptivity"))
    return bool(standard) and _ignores_order(case) and not own_units and _vary(case.rows.X)


def _vary(X: Any) -> bool:
    """Whether every column that is not constant varies by more than rounding."""
    columns = [column[~np.isnan(column)] for column in X.T]
    return all(np.ptp(x) == 0 or np.std(x) > 1e-4 * np.abs(x).max() for x in columns if len(x))


def proves_partition(case: Case) -> bool:
    partitioner = case.model.get_params(deep=False).get("partitioner")
    return isinstance(case.model, FINITE) and partitioner is not None and not isinstance(partitioner, Greedy)


def has_unique_paths(model: Any) -> bool:
    """Whether penalties make the fits of all folds unique; others may agree on training rows only.

    They do not in a lasso without ridge, nor for losses with several best constants. The authors' weights are 0 for
    columns that are constant on training rows, which matters without an intercept.
    """
    parameters = model.get_params(deep=False)
    if parameters.get("loss", "squared") not in ("squared", "logistic"):
        return False
    free = parameters.get("penalty_weights") == "authors" and not parameters.get("fit_intercept", True)
    return 1.0 not in np.ravel(parameters.get("l1_ratios", 0.0)) and not free


def has_unique_optimum(case: Case, model: Any) -> bool:
    """Whether penalties make the optimum of a fitted model unique and stable."""
    parameters = model.get_params()
    if not is_tame(case) or parameters.get("loss", "squared") not in ("squared", "logistic"):
        return False
    if "lam" in parameters:
        adaptive = parameters["adaptive_penalty"]
        least = 1.0 if isinstance(adaptive, str) else min(1.0, adaptive)
        ridge = parameters["lam"] * (1 - parameters["l1_ratio"]) * least
        return bool(ridge >= 1e-4) and not has_structure(model)
    return bool(parameters.get("ridge", 1.0) >= 1e-4)
