"""Inputs that once hung, ended the process, or gave NaN or an unclear error; numbered like seeds."""

from collections.abc import Callable
from typing import Any

import numpy as np

from admiss import (
    AdaptiveClassifier,
    AdaptiveRegressor,
    AdaptiveRegressorCV,
    ExpectedFeatures,
    FiniteClassifier,
    FiniteRegressor,
    FiniteRegressorCV,
)
from admiss.partition import Greedy, OptimalTree
from tests.odd_inputs.case import Case
from tests.odd_inputs.pool import Outcome, run_made
from tests.odd_inputs.rows import Rows


def _case(model: Any, change: Callable[..., Any] = lambda X, y: (X, y, None)) -> Case:
    """An ordinary table with one change to X, y and weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X @ [1.0, -1.0, 0.5] + 0.3 * rng.normal(size=40)
    X[rng.uniform(size=X.shape) < 0.3] = np.nan
    X, y, s = change(X, y > 0 if hasattr(model, "predict_proba") else y)
    rows = Rows(X, y, s, X[:5], False) if isinstance(X, np.ndarray) and X.dtype == float else None
    return Case(0, model, X, y, s, X[:5], rows, False, repr(model))


def _target(factor: float) -> Callable[..., Any]:
    return lambda X, y: (X, y * factor, None)


def _features(factor: float) -> Callable[..., Any]:
    return lambda X, y: (X * factor, y, None)


def _one_value(X: Any, y: Any) -> Any:
    return np.array([[np.nan], [np.nan], [-0.75]]), y, None


def _with_huge_integer(X: Any, y: Any) -> Any:
    X = X.astype(object)
    X[0, 0] = 10**400
    return X, y, None


NAMED: list[Callable[[], Case]] = [
    lambda: _case(AdaptiveRegressor("affine"), _target(1e300)),
    lambda: _case(AdaptiveRegressor("polynomial"), _target(1e155)),
    lambda: _case(AdaptiveClassifier("low_rank_affine", lam=1e300)),
    lambda: _case(AdaptiveRegressor("low_rank_affine", lam=1e12)),
    lambda: _case(ExpectedFeatures(0, "censored", 0.0), _one_value),
    lambda: _case(FiniteRegressor(Greedy(), loss="absolute"), lambda X, y: (np.full_like(X, np.nan), y, None)),
    lambda: _case(FiniteRegressorCV(random_state=0), _target(1e20)),
    lambda: _case(FiniteClassifier(Greedy()), _features(1e155)),
    lambda: _case(FiniteRegressor(OptimalTree(max_depth=2)), _features(1e155)),
    lambda: _case(FiniteRegressor(OptimalTree(max_depth=2)), _features(1e-320)),
    lambda: _case(AdaptiveRegressor("affine"), _features(1e-320)),
    lambda: _case(AdaptiveRegressor("affine"), lambda X, y: (X, y, np.full(len(y), 1e155))),
    lambda: _case(FiniteRegressor(), lambda X, y: (X, y, np.full(len(y), 1e155))),
    lambda: _case(AdaptiveRegressorCV(n_lambdas=5, random_state=0), _target(1e160)),
    lambda: _case(AdaptiveClassifier(), lambda X, y: (X, np.array(["a", 1] * 20, dtype=object), None)),
    lambda: _case(AdaptiveRegressor(), _with_huge_integer),
    lambda: _case(FiniteRegressor(), _with_huge_integer),
]


def run_named(number: int) -> Outcome:
    return run_made(number, NAMED[number]())
