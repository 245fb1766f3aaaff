"""Odd inputs of every estimator: a fit with finite predictions, or one clear sentence.

In the quick tier one entry of each class is asked, and a part of the values of parameters and of the random rows.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags

from admiss import (
    AdaptiveClassifier,
    AdaptiveRegressor,
    AdaptiveRegressorCV,
    AdaptiveStackRegressor,
    ExpectedFeatures,
    FiniteClassifier,
    FiniteRegressor,
    FiniteRegressorCV,
)
from admiss.partition import Greedy, OptimalTree
from tests.properties.entry import Entry, is_transformer, make_rows, takes_weights
from tests.properties.odd_rows import Rows, random_rows
from tests.properties.odd_values import PARAMETERS, TABLES, TARGETS, WEIGHTS
from tests.properties.oracles import Broken, check_input
from tests.properties.table import TABLE

# Parameters that are estimators of others, or start processes.
LEFT_OUT = ("n_jobs", "imputer", "estimator")


# One entry of each class, and the others.
FIRST = list({type(entry.model): entry for entry in reversed(TABLE) if not entry.slow}.values())[::-1]
OTHERS = [entry for entry in TABLE if entry not in FIRST]


def entries(applies: Callable[[Any], bool] = lambda model: True) -> list[Any]:
    """The table, with the slow mark on all but the first quick entry of each class."""
    quick = [pytest.param(entry, id=str(entry)) for entry in FIRST if applies(entry.model)]
    slow = [pytest.param(entry, id=str(entry), marks=pytest.mark.slow) for entry in OTHERS if applies(entry.model)]
    return quick + slow


def assert_none(failed: dict[Any, str]) -> None:
    assert not failed, "\n".join(f"{what}: {why}" for what, why in failed.items())


def failures(entry: Entry, inputs: dict[str, Any]) -> dict[Any, str]:
    """Why oracles do not hold for inputs (X, y, s)."""
    found = {}
    for name, values in inputs.items():
        try:
            check_input(clone(entry.model), *values)
        except Broken as error:
            found[name] = str(error)
    return found


@pytest.mark.parametrize("entry", entries())
def test_tables(entry):
    X, y = make_rows(entry.model, n=20)
    assert_none(failures(entry, {name: (make(X), y) for name, make in TABLES.items()}))


@pytest.mark.parametrize("entry", entries(lambda model: not is_transformer(model)))
def test_targets(entry):
    X, y = make_rows(entry.model, n=20)
    y = (y == "high").astype(int) if is_classifier(entry.model) else y
    assert_none(failures(entry, {name: (X, make(y)) for name, make in TARGETS.items()}))


@pytest.mark.parametrize("entry", entries(takes_weights))
def test_weights(entry):
    X, y = make_rows(entry.model, n=20)
    s = np.random.default_rng(0).uniform(0.5, 2.0, size=len(y))
    assert_none(failures(entry, {name: (X, y, make(s)) for name, make in WEIGHTS.items()}))


def owner_is_ours(model: Any, name: str) -> bool:
    """Whether a parameter, perhaps one of a part, belongs to a class of the package."""
    *path, noun = name.split("__")
    for part in path:
        model = getattr(model, part, None)
    return type(model).__module__.startswith("admiss.") and noun not in LEFT_OUT


def check_parameters(entry: Entry, parts: int) -> None:
    """Set each parameter, also of a part of the estimator, to one value in so many; a refusal names the parameter.

    An estimator that is said to be fitted, and is not, is refused as any other.
    """
    X, y = make_rows(entry.model, n=20)
    names = sorted(name for name in entry.model.get_params() if owner_is_ours(entry.model, name))
    failed = {}
    for number, name in enumerate(names):
        noun = name.split("__")[-1]
        for value in PARAMETERS[number % parts :: parts]:
            model = clone(entry.model).set_params(**{name: value})
            try:
                refused = check_input(model, X, y)
            except Broken as error:
                failed[f"{name}={value!r}"] = str(error)
                continue
            if refused and noun != "prefit" and noun.rstrip("s") not in refused:
                failed[f"{name}={value!r}"] = f"not named: {refused}"
    assert_none(failed)


@pytest.mark.parametrize("entry", entries())
def test_parameters(entry):
    check_parameters(entry, parts=4)


@pytest.mark.slow
@pytest.mark.parametrize("entry", TABLE, ids=str)
def test_all_values_of_parameters(entry):
    check_parameters(entry, parts=1)


def check_rows(entry: Entry, seeds: Any) -> None:
    """Fit random rows, every second table a wild one; ordinary ones must be fitted."""
    classes, failed = is_classifier(entry.model), {}
    for seed in seeds:
        rows = random_rows(seed, classes, wild=bool(seed % 2))
        s = rows.s if takes_weights(entry.model) else None
        y = rows.y
        must_fit = rows.are_enough(classes) and not _is_far_from_zero(entry.model, rows)
        if get_tags(entry.model).target_tags.positive_only and rows.tame:
            y = np.abs(y)
            must_fit &= bool(np.all(y > 0))
        try:
            check_input(clone(entry.model), rows.X, y, s, rows.test, must_fit)
        except Broken as error:
            failed[seed] = str(error)
    assert_none(failed)


def _is_far_from_zero(model: Any, rows: Rows) -> bool:
    """Whether features vary by less than 2e-4 of their size, and the model does not centre them.

    A path over lambdas refuses them with the advice to use ``center=True``; without an intercept a solver may not reach
    its tolerance.
    """
    parameters = model.get_params(deep=False)
    if parameters.get("center", True) and parameters.get("fit_intercept", True):
        return False
    columns = [column[~np.isnan(column)] for column in rows.X.T]
    return any(0 < np.std(x) < 2e-4 * np.abs(x).max() for x in columns if len(x))


@pytest.mark.parametrize("entry", entries())
def test_random_rows(entry):
    check_rows(entry, range(6))


@pytest.mark.slow
@pytest.mark.parametrize("entry", TABLE, ids=str)
def test_more_random_rows(entry):
    check_rows(entry, range(6, 40))


@pytest.mark.exhaustive
@pytest.mark.parametrize("start", range(0, 1000, 50))
@pytest.mark.parametrize("entry", TABLE, ids=str)
def test_a_thousand_random_rows(entry, start):
    check_rows(entry, range(start, start + 50))


def _ordinary(model: Any) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X @ [1.0, -1.0, 0.5] + 0.3 * rng.normal(size=40)
    X[rng.uniform(size=X.shape) < 0.3] = np.nan
    return X, y > 0 if is_classifier(model) else y


def target(factor: float) -> Callable[..., Any]:
    return lambda X, y: (X, y * factor)


def features(factor: float) -> Callable[..., Any]:
    return lambda X, y: (X * factor, y)


def weights(value: float) -> Callable[..., Any]:
    return lambda X, y: (X, y, np.full(len(y), value))


# Inputs that once hung, ended the process, or gave NaN or an unclear error.
NAMED: list[tuple[Any, Callable[..., Any]]] = [
    (AdaptiveRegressor("affine"), target(1e300)),
    (AdaptiveRegressor("polynomial"), target(1e155)),
    (AdaptiveClassifier("low_rank_affine", lam=1e300), lambda X, y: (X, y)),
    (AdaptiveRegressor("low_rank_affine", lam=1e12), lambda X, y: (X, y)),
    (ExpectedFeatures(0, "censored", 0.0), lambda X, y: (np.array([[np.nan], [np.nan], [-0.75]]), y)),
    (FiniteRegressor(Greedy(), loss="absolute"), lambda X, y: (np.full_like(X, np.nan), y)),
    (FiniteRegressorCV(random_state=0), target(1e20)),
    (FiniteClassifier(Greedy()), features(1e155)),
    (FiniteRegressor(OptimalTree(max_depth=2)), features(1e155)),
    (FiniteRegressor(OptimalTree(max_depth=2)), features(1e-320)),
    (AdaptiveRegressor("affine"), features(1e-320)),
    (AdaptiveRegressor("affine"), weights(1e155)),
    (FiniteRegressor(), weights(1e155)),
    (AdaptiveRegressorCV(n_lambdas=5, random_state=0), target(1e160)),
    (AdaptiveClassifier(), lambda X, y: (X, np.array(["a", 1] * 20, dtype=object))),
    (AdaptiveRegressor(), lambda X, y: (TABLES["a_huge_integer"](X), y)),
    (AdaptiveRegressor(), lambda X, y: (X, y, np.where(np.arange(len(y)) < 5, 5e-324, 1.0))),
    (AdaptiveStackRegressor(["boosting"], cv=2), target(1e60)),
    (FiniteRegressor(), lambda X, y: (TABLES["a_huge_integer"](X), y)),
]


@pytest.mark.parametrize(("model", "change"), NAMED)
def test_named(model, change):
    check_input(clone(model), *change(*_ordinary(model)))
