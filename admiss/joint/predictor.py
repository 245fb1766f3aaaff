"""Requirements on the predictor f: a scikit-learn estimator that takes weights and has scores of classes.

f sees classes as consecutive codes 0, 1, .., which some predictors require. Its class weights are therefore given by
code, and its outputs are put into the columns of the classes with these codes.
"""

from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import StackingClassifier, StackingRegressor, VotingClassifier, VotingRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from admiss.estimator.validation import seeded
from formulations.arrays import FloatArray, IntArray


def check_predictor(f: Any, kind: str, weighted: bool) -> None:
    """Refuse anything but a regressor or classifier that takes weights if there are some."""
    is_one = all(hasattr(f, name) for name in ("fit", "get_params")) and not isinstance(f, type)
    if not is_one or _kind(f) not in (kind, None):
        raise ValueError(f"estimator must be a {kind} with the interface of scikit-learn, not {f!r}.")
    if weighted and weight_parameter(f) is None:
        raise ValueError(
            f"{type(f).__name__} is not known to take sample_weight: fit without weights, or use another estimator."
        )


def _kind(f: Any) -> str | None:
    """Estimator type in the tags of f, or None."""
    try:
        return f.__sklearn_tags__().estimator_type if hasattr(f, "__sklearn_tags__") else None
    except (TypeError, ValueError) as error:  # a parameter on which its tags depend makes no sense
        raise ValueError(f"{type(f).__name__} cannot be used with its parameters: {error}") from error


def prepared(estimator: Any, random_state: np.random.RandomState, classes: Any = None) -> Any:
    """A copy of f with its unset random states set, and with class weights by code."""
    f = seeded(estimator, random_state.randint(2**31 - 1))
    return f if classes is None else class_weights_by_code(f, classes)


def class_weights_by_code(f: Any, classes: Any) -> Any:
    """f with class weights given by the index of the class.

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
    """Name of the argument of ``fit`` for sample weights; None if f is not known to take any.

    With metadata routing of scikit-learn, meta-estimators pass ``sample_weight`` to the parts that request it.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> from sklearn.pipeline import make_pipeline
    >>> weight_parameter(Ridge()), weight_parameter(make_pipeline(Ridge())), weight_parameter(KNeighborsRegressor())
    ('sample_weight', 'ridge__sample_weight', None)
    """
    joined = isinstance(estimator, VotingRegressor | VotingClassifier | StackingRegressor | StackingClassifier)
    handing_on = isinstance(estimator, Pipeline | TransformedTargetRegressor) or is_search(estimator)
    if get_config()["enable_metadata_routing"] and (joined or handing_on):
        return "sample_weight"
    if joined:  # passed on to all parts
        parts = [part for _, part in estimator.estimators if part != "drop"]
        parts += [part for part in [getattr(estimator, "final_estimator", None)] if part is not None]
        return "sample_weight" if {weight_parameter(part) for part in parts} == {"sample_weight"} else None
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = weight_parameter(last)
        return inner and f"{name}__{inner}"
    if is_search(estimator):
        return weight_parameter(estimator.estimator)
    if isinstance(estimator, TransformedTargetRegressor):
        return "sample_weight" if estimator.regressor is None else weight_parameter(estimator.regressor)
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def is_search(estimator: Any) -> bool:
    """Whether this is one of scikit-learn's searches over parameters, such as ``GridSearchCV``."""
    return isinstance(estimator, MetaEstimatorMixin) and {"estimator", "refit", "error_score"} <= vars(estimator).keys()


def one_against_one(f: Any) -> bool:
    """Whether the decision function has a column per pair of classes; three pairs look like three classes."""
    parts = [f, f.best_estimator_] if hasattr(f, "best_estimator_") else [f]
    parameters = [item for part in parts for item in part.get_params(deep=True).items()]
    return any(name.rpartition("__")[2] == "decision_function_shape" and value == "ovo" for name, value in parameters)


ONE_AGAINST_ONE = (
    "error='auc' needs a score per class, and decision_function_shape='ovo' gives one per pair of classes: "
    "use decision_function_shape='ovr'."
)


def class_probabilities(f: Any, X: FloatArray, present: IntArray, n_classes: int) -> FloatArray:
    """Probabilities of shape (n, n_classes) from f, whose codes are indices into ``present``."""
    outputs = np.zeros((len(X), n_classes))
    outputs[:, _columns(f, present)] = _of_shape(f, f.predict_proba(X), len(X), "predict_proba")
    return outputs


def class_decisions(f: Any, X: FloatArray, present: IntArray, n_classes: int) -> FloatArray:
    """The same for the decision function; a class unknown to f has its smallest value."""
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
    """Outputs, checked to have one column per class of f."""
    values = np.asarray(outputs, dtype=float)
    if values.shape != (n, len(f.classes_)):
        raise ValueError(
            f"{method} of {type(f).__name__} must have one column per class, {len(f.classes_)} in all, "
            f"and has shape {values.shape} for {n} rows."
        )
    return values
