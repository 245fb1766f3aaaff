"""Methods of a study that are estimators or functions: how they become methods of the engine, and what a cell reports.

An estimator is cloned, its open random states (``random_state=None``, nested ones too) are set to the seed of the cell,
it is fitted to the training rows, and scored on the test rows by scikit-learn's scorers, for which larger is better.

A function is called as ``function(rows)``, or ``function(rows, seed)`` if it has a second argument without default, and
returns a number, a dict of numbers, or a fitted model, which is scored like an estimator.

``seconds`` are the CPU seconds of the fit or of the call, ``score`` is the first metric.
"""

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

from admiss.study.plan import Method, Scores
from admiss.study.recipe import StudyError
from admiss.study.rows import is_rows, rows_of, size_facts

REPLICATE = "replicate"

Metrics = Mapping[str, str | Callable[..., float]]


def score_estimator(made: Any, seed: int, *, estimator: Any, metrics: Metrics, test_share: float) -> Scores:
    """Fit an estimator and score it."""
    from sklearn.base import clone

    rows = rows_of(made, seed, test_share)
    model = clone(estimator)
    open_seeds = {
        name: seed
        for name, value in model.get_params().items()
        if value is None and name.rpartition("__")[2] == "random_state"
    }
    model.set_params(**open_seeds)
    start = time.process_time()
    model.fit(rows.X_train, rows.y_train)
    seconds = time.process_time() - start
    return {**_model_scores(rows, model, metrics), "seconds": seconds, **_selection(model)}


def score_function(
    made: Any, seed: int, *, function: Callable[..., Any], metrics: Metrics, test_share: float
) -> Scores:
    """Call a function and read its scores."""
    rows = rows_of(made, seed, test_share) if is_rows(made) else made
    start = time.process_time()
    found = function(rows, seed) if takes_seed(function) else function(rows)
    seconds = {"seconds": time.process_time() - start}
    if isinstance(found, Real):
        return {"score": float(found), **_facts(rows), **seconds}
    if isinstance(found, Mapping):
        main = next((name for name in ("score", *metrics) if name in found), None)
        if main is None:
            raise ValueError(f"the function returned no score: its dict must have {' or '.join(('score', *metrics))}")
        return {**_facts(rows), **seconds, "score": found[main], **found}
    if hasattr(found, "predict") and is_rows(rows):
        return {**_model_scores(rows, found, metrics), **seconds, **_selection(found)}
    raise ValueError(
        f"the function returned {type(found).__name__}: return a number, a dict of numbers, or a fitted model"
    )


def takes_seed(function: Callable[..., Any]) -> bool:
    """Whether a function has a second argument without default, or one called seed."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:  # compiled
        return False
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    second = positional[1] if len(positional) > 1 else None
    return second is not None and (second.default is second.empty or second.name == "seed")


def _model_scores(rows: Any, model: Any, metrics: Metrics) -> Scores:
    from sklearn.metrics import check_scoring, get_scorer_names

    scores: Scores = {}
    for name, metric in metrics.items():
        if isinstance(metric, str) and metric not in get_scorer_names():
            raise ValueError(
                "the method gives a fitted model: name scorers for it in the study, metrics='r2' for instance"
            )
        scorer = check_scoring(model, metric) if isinstance(metric, str) else metric
        scores[name] = float(scorer(model, rows.X_test, rows.y_test))
    return {"score": scores[next(iter(metrics))], **scores, **_facts(rows)}


def _facts(rows: Any) -> dict[str, Any]:
    if not is_rows(rows):
        return {}
    return {**size_facts(rows), **getattr(rows, "facts", {})}


def _selection(model: Any) -> dict[str, Any]:
    """What a search has selected, and its score in cross-validation."""
    if not hasattr(model, "best_score_"):
        return {}
    return {"cv_score": float(model.best_score_), "chosen": repr(getattr(model, "best_params_", None))}


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


def varying_fields(recipes: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Fields of instances with several values, besides the replicate and what holds rows or functions."""
    names = dict.fromkeys(name for recipe in recipes for name in recipe)
    left_out = (REPLICATE, "function", "content")
    return tuple(
        name for name in names if name not in left_out and len({repr(recipe.get(name)) for recipe in recipes}) > 1
    )
