"""Baselines of the paper (Section 4.1, Appendix B.3), by name.

    name                sees            before the predictor
    mean                observed        missing values replaced by observed means
    mice                observed        one completion by chained equations with predictive mean matching
    iterative           observed        scikit-learn's IterativeImputer, conditional means
    iterative_draws     observed        the same, draws from the posterior
    mean_indicators     observed        means, with the indicators m as further columns
    native              observed        nothing: trees, forests and boosting split on "missing" as well (MIA)
    complete_features   observed        only features that are never missing
    oracle              full            nothing; the values before removal
    oracle_pattern      full, M         nothing; the values before removal, and the indicators m
    floor               nothing         the mean of y, or the frequencies of the classes

Each is an ordinary estimator: an imputer, fitted anew in each fold, and a tuned predictor (``TunedRegressor``,
``TunedClassifier``).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer

from admiss.baselines.chained_equations import ChainedEquations
from admiss.baselines.complete_features import CompleteFeatures
from admiss.baselines.tuned import TunedClassifier, TunedRegressor, listed_kinds
from formulations.arrays import FloatArray

TASKS = ("regression", "classification")
# Kinds of predictors that accept missing values.
NATIVE = ("tree", "forest", "xgboost", "hist_boosting")

IMPUTERS: dict[str, Any] = {
    "mean": SimpleImputer(keep_empty_features=True),
    "mice": ChainedEquations(),
    "iterative": IterativeImputer(keep_empty_features=True),
    "iterative_draws": IterativeImputer(keep_empty_features=True, sample_posterior=True),
    "mean_indicators": SimpleImputer(keep_empty_features=True, add_indicator=True),
    "complete_features": CompleteFeatures(),
}
WITHOUT_IMPUTER = ("native", "oracle", "oracle_pattern")
BASELINES = (*IMPUTERS, *WITHOUT_IMPUTER, "floor")


def baseline(
    name: str,
    downstream: str | Sequence[str] | None = None,
    *,
    task: str = "regression",
    grid: Any = "default",
    cv: Any = 5,
    scoring: str | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> Any:
    """Unfitted estimator of a baseline.

    Parameters
    ----------
    name : str
        One of ``BASELINES``.
    downstream : str or list of str, optional
        The predictor: "linear" (elastic net), "tree", "forest", "xgboost", "hist_boosting", a list to select the best
        from, or "best", the best of the first four. The default is "best", and for "native" the best of trees, forests
        and XGBoost; "floor" takes none.
    task : {"regression", "classification"}
    grid, cv, scoring, random_state, n_jobs
        As in ``TunedRegressor`` and ``TunedClassifier``; ``grid="authors"`` has the grids of the authors.

    Examples
    --------
    >>> from admiss.datasets import make_synthetic
    >>> data = make_synthetic(n=200, mechanism="censoring", random_state=0)
    >>> model = baseline("mean_indicators", "linear", random_state=0).fit(data.X_train, data.y_train)
    >>> floor = baseline("floor").fit(data.X_train, data.y_train)
    >>> model.score(data.X_test, data.y_test) > 0.4 > floor.score(data.X_test, data.y_test)
    True
    """
    if task not in TASKS:
        raise ValueError(f"Unknown task {task!r}: choose one of {', '.join(map(repr, TASKS))}.")
    _check_name(name)
    if name == "floor":
        if downstream is not None:
            raise ValueError(f"'floor' takes no predictor: leave out {downstream!r}.")
        return DummyRegressor() if task == "regression" else DummyClassifier(strategy="prior")
    kind = downstream if downstream is not None else (NATIVE[:3] if name == "native" else "best")
    if name == "native" and not all(one in NATIVE for one in listed_kinds(kind)):
        raise ValueError(f"'native' needs predictors among {', '.join(map(repr, NATIVE))}, not {downstream!r}.")
    imputer = clone(IMPUTERS[name]) if name in IMPUTERS else None
    options = {"imputer": imputer, "grid": grid, "cv": cv, "random_state": random_state, "n_jobs": n_jobs}
    if scoring is not None:
        options["scoring"] = scoring
    return TunedRegressor(kind, **options) if task == "regression" else TunedClassifier(kind, **options)


def baseline_features(name: str, X: FloatArray, X_full: FloatArray | None = None) -> FloatArray:
    """Features of a baseline: X, the full values, or these with the indicators of missing values in X.

    Parameters
    ----------
    name : str
        One of ``BASELINES``.
    X : array of shape (n, d)
        Features, NaN where missing.
    X_full : array of shape (n, d), optional
        The same without missing values, which the oracles need.

    Examples
    --------
    >>> X = np.array([[1.0, np.nan]])
    >>> baseline_features("oracle_pattern", X, np.array([[1.0, 2.0]])).tolist()
    [[1.0, 2.0, 0.0, 1.0]]
    """
    _check_name(name)
    if name not in ("oracle", "oracle_pattern"):
        return X
    if X_full is None:
        raise ValueError(f"{name!r} needs X_full, the values before removal.")
    return np.asarray(X_full) if name == "oracle" else np.hstack([X_full, np.isnan(X)])


def _check_name(name: Any) -> None:
    if name not in BASELINES:
        raise ValueError(f"Unknown baseline {name!r}: choose one of {', '.join(map(repr, BASELINES))}.")
