"""What a cell computes: methods that are estimators or functions, and the scores that they report.

An estimator is cloned, its open random states (``random_state=None``, nested ones too) are set to the seed of the cell,
it is fitted to the training rows, and scored on the test rows by scikit-learn's scorers, for which larger is better.

A function is called as ``function(rows)``, or ``function(rows, seed)`` if it has a second argument without default, and
returns a number, a dict of numbers, or a fitted model, which is scored like an estimator.

``seconds`` are the CPU seconds of the fit or of the call, ``score`` is the first metric.
"""

import inspect
import time
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

from admiss.study.plan import Scores
from admiss.study.rows import is_rows, rows_of, size_facts

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
