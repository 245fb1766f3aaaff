"""What is asked of the predictor f: to be one of scikit-learn's kind, to take weights, and to say something of classes.

f sees classes as codes 0, 1, .. without gaps, which some predictors insist on. So its weights of classes go by code,
and what it says of codes is put into the columns of the classes that these are.
"""

from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import StackingClassifier, StackingRegressor, VotingClassifier, VotingRegressor
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from formulations.arrays import FloatArray, IntArray


def check_predictor(f: Any, kind: str, weighted: bool) -> None:
    """Refuse what is no regressor or classifier, or takes no weights where there are some."""
    is_one = all(hasattr(f, name) for name in ("fit", "get_params")) and not isinstance(f, type)
    if not is_one or _kind(f) not in (kind, None):
        raise ValueError(f"estimator must be a {kind} of scikit-learn's kind, not {f!r}.")
    if weighted and weight_parameter(f) is None:
        raise ValueError(
            f"{type(f).__name__} is not known to take sample_weight: fit without weights, or use another estimator."
        )


def _kind(f: Any) -> str | None:
    """What f says that it is: "classifier", "regressor", something else or nothing."""
    return f.__sklearn_tags__().estimator_type if hasattr(f, "__sklearn_tags__") else None


def prepared(estimator: Any, random_state: np.random.RandomState, classes: Any = None) -> Any:
    """A copy of f whose open random states are set, and whose class weights go by code."""
    f = clone(estimator)
    seed = int(random_state.randint(np.iinfo(np.int32).max))
    parameters = f.get_params(deep=True).items()
    is_open = [name for name, value in parameters if name.rpartition("__")[2] == "random_state" and value is None]
    f.set_params(**dict.fromkeys(is_open, seed))
    return f if classes is None else class_weights_by_code(f, classes)


def class_weights_by_code(f: Any, classes: Any) -> Any:
    """f, whose weights of classes are now given by the index of the class.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> f = LogisticRegression(class_weight={"b": 2.0, "c": 3.0})
    >>> class_weights_by_code(f, np.array(["a", "b"])).class_weight
    {1: 2.0}
    """
    changed = {}
    for name, value in f.get_params(deep=True).items():
        if name.rpartition("__")[2] == "class_weight" and isinstance(value, dict):
            changed[name] = {code: value[label] for code, label in enumerate(classes.tolist()) if label in value}
    return f.set_params(**changed)


def weight_parameter(estimator: Any) -> str | None:
    """The name by which ``fit`` of f takes weights of the rows; None where it is not known to take any.

    With scikit-learn's metadata routing, what is made of other predictors takes ``sample_weight`` and hands it to those
    that request it.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> from sklearn.pipeline import make_pipeline
    >>> weight_parameter(Ridge()), weight_parameter(make_pipeline(Ridge())), weight_parameter(KNeighborsRegressor())
    ('sample_weight', 'ridge__sample_weight', None)
    """
    joined = isinstance(estimator, VotingRegressor | VotingClassifier | StackingRegressor | StackingClassifier)
    handing_on = isinstance(estimator, Pipeline | BaseSearchCV | TransformedTargetRegressor)
    if get_config()["enable_metadata_routing"] and (joined or handing_on):
        return "sample_weight"
    if joined:  # they hand it to all their parts
        parts = [part for _, part in estimator.estimators if part != "drop"]
        parts += [part for part in [getattr(estimator, "final_estimator", None)] if part is not None]
        return "sample_weight" if {weight_parameter(part) for part in parts} == {"sample_weight"} else None
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = weight_parameter(last)
        return inner and f"{name}__{inner}"
    if isinstance(estimator, BaseSearchCV):
        return weight_parameter(estimator.estimator)
    if isinstance(estimator, TransformedTargetRegressor):
        return "sample_weight" if estimator.regressor is None else weight_parameter(estimator.regressor)
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def one_against_one(f: Any) -> bool:
    """Whether the decision function of f has a column for each pair of classes; three pairs look like three classes."""
    parts = [f, f.best_estimator_] if hasattr(f, "best_estimator_") else [f]
    parameters = [item for part in parts for item in part.get_params(deep=True).items()]
    return any(name.rpartition("__")[2] == "decision_function_shape" and value == "ovo" for name, value in parameters)


ONE_AGAINST_ONE = (
    "error='auc' needs a score for each class, and decision_function_shape='ovo' gives one for each pair of classes: "
    "use decision_function_shape='ovr'."
)


def class_probabilities(f: Any, X: FloatArray, present: IntArray, n_classes: int) -> FloatArray:
    """Probabilities of shape (n, n_classes) from f, which knows the classes ``present`` by their index there."""
    outputs = np.zeros((len(X), n_classes))
    outputs[:, _columns(f, present)] = _of_shape(f, f.predict_proba(X), len(X), "predict_proba")
    return outputs


def class_decisions(f: Any, X: FloatArray, present: IntArray, n_classes: int) -> FloatArray:
    """As :func:`class_probabilities`, the decision function; a class that f does not know has its smallest value."""
    scores = np.asarray(f.decision_function(X), dtype=float)
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    elif one_against_one(f):
        raise ValueError(ONE_AGAINST_ONE)
    outputs = np.full((len(X), n_classes), scores.min(initial=0.0))
    outputs[:, _columns(f, present)] = _of_shape(f, scores, len(X), "decision_function")
    return outputs


def _columns(f: Any, present: IntArray) -> IntArray:
    return present[np.asarray(f.classes_, dtype=int)]


def _of_shape(f: Any, outputs: Any, n: int, method: str) -> FloatArray:
    """Outputs that have one column for each class of f."""
    values = np.asarray(outputs, dtype=float)
    if values.shape != (n, len(f.classes_)):
        raise ValueError(
            f"{method} of {type(f).__name__} must have a column for each of its {len(f.classes_)} classes, "
            f"and has shape {values.shape} for {n} rows."
        )
    return values
