"""Methods and metrics that are estimators, functions and names of scorers, as the engine needs them."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from admiss.study.plan import Method, StudyError, instance_recipe
from admiss.study.scoring import score_estimator, score_function

REPLICATE = "replicate"


def metrics_of(given: Any, methods: Mapping[str, Any]) -> dict[str, str | Callable[..., float]]:
    """Names of metrics and their scorers; by default those of scikit-learn for the task of the estimators."""
    # scikit-learn is imported by what needs it: workers of studies with methods of their own start faster
    from sklearn.base import is_classifier, is_regressor
    from sklearn.metrics import get_scorer_names

    if not isinstance(methods, Mapping):
        raise StudyError("methods must be a dict from names to estimators or functions.")
    if given == ("score",):
        estimators = [method for method in methods.values() if _fits(method)]
        tasks = {
            metric
            for metric, is_one in (("r2", is_regressor), ("accuracy", is_classifier))
            if any(map(is_one, estimators))
        }
        if len(tasks) > 1:
            raise StudyError("The methods mix regressors and classifiers: compare them in two studies.")
        given = next(iter(tasks), "score")
        if given == "score" and estimators:
            raise StudyError("The task of the methods is not known: name metrics, 'r2' or 'accuracy' for instance.")
    named = {given: given} if isinstance(given, str) else given
    named = dict(named) if isinstance(named, Mapping) else {each: each for each in named}
    if not named or not all(isinstance(name, str) for name in named):
        raise StudyError("metrics must be names of scorers, or a dict from names to scorers or functions.")
    for name, metric in named.items():
        if isinstance(metric, str) and metric not in get_scorer_names() and any(map(_fits, methods.values())):
            raise StudyError(f"Unknown metric {name!r}: sklearn.metrics.get_scorer_names() lists the names.")
        if not isinstance(metric, str) and not callable(metric):
            raise StudyError(f"The metric {name!r} must be the name of a scorer or a function (model, X, y).")
        if callable(metric) and not _takes(metric, 3):
            raise StudyError(
                f"The metric {name!r} must take model, X and y: sklearn.metrics.make_scorer makes such a function of "
                "one that takes y_true and y_pred."
            )
    return named


def _takes(function: Callable[..., Any], count: int) -> bool:
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # compiled functions without a signature
        return True
    return True


def _fits(method: Any) -> bool:
    return hasattr(method, "fit") and not isinstance(method, type)


def method_of(name: str, given: Any, metrics: Mapping[str, Any], test_share: float) -> Method:
    """A method that scores an estimator or calls a function."""
    if isinstance(given, Method):
        return replace(given, name=name)
    shared = {"metrics": dict(metrics), "test_share": test_share}
    if _fits(given) and hasattr(given, "get_params"):
        return Method(name, score_estimator, {"estimator": given, **shared})
    if callable(given) and not isinstance(given, type):
        return Method(name, score_function, {"function": given, **shared})
    hint = f": write {given.__name__}(..)" if isinstance(given, type) else ""
    raise StudyError(f"Method {name!r} must be an estimator or a function, not {given!r:.60}{hint}.")


def varying_fields(instances: Sequence[Any]) -> tuple[str, ...]:
    """Fields with several values, besides the replicate and what holds rows or functions."""
    recipes = [instance_recipe(instance) for instance in instances]
    names = dict.fromkeys(name for recipe in recipes for name in recipe)
    left_out = (REPLICATE, "function", "content")
    return tuple(
        name for name in names if name not in left_out and len({repr(recipe.get(name)) for recipe in recipes}) > 1
    )
