"""Losses of fitted models on held-out rows, as multiples of their cap B.

=========== ================================================== ================================
loss        of a row                                           cap
=========== ================================================== ================================
squared     (y - f)^2                                          required: it has no largest value
zero_one    1(y is not the predicted class)                    1 unless smaller
brier       sum over classes c of (p_c - 1(y = c))^2           2 unless smaller
            half of it if no model has more than two classes:  1 unless smaller
            the squared error in the probability of a class
=========== ================================================== ================================

A label that a model has not seen has probability 0. Squares are taken after division by sqrt(B): in any units they
neither overflow before the cap nor vanish.

A cap from training rows is B = (3 x the largest root mean square of cross-validated residuals of a model)^2. Of normal
residuals with this standard deviation it cuts off .3 %. Residuals on the rows that a model was fitted to would be too
small: 0 for an unpruned tree, whose capped risk would then be 0. One model that predicts badly raises the cap, and with
it the bounds of all: leave it out of both, before the held-out rows are seen.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.model_selection import KFold, cross_val_predict

from admiss.bounds.counts import check_choice
from admiss.estimator.raw_tables import TableRows
from admiss.estimator.validation import (
    feature_names,
    is_number,
    read_classes,
    read_features,
    read_random_state,
    read_regression_target,
    seeded,
)
from formulations.arrays import BoolArray, FloatArray

LOSSES = ("auto", "squared", "zero_one", "brier")


def read_models(models: Any) -> dict[str, Any]:
    """Models by name: a mapping as it is, a list or a single one under the names of their classes.

    Examples
    --------
    >>> from sklearn.linear_model import Lasso, Ridge
    >>> list(read_models([Ridge(), Lasso(), Ridge()]))
    ['Ridge', 'Lasso', 'Ridge 2']
    """
    if hasattr(models, "predict") and not isinstance(models, type):
        models = [models]
    if isinstance(models, Mapping):
        named = {str(name): model for name, model in models.items()}
    elif isinstance(models, list | tuple):
        named = {}
        for model in models:
            name, times = type(model).__name__, sum(type(other) is type(model) for other in named.values())
            named[f"{name} {times + 1}" if times else name] = model
    else:
        named = {}
    if not named or len(named) < len(models):
        raise ValueError("models must be a fitted estimator, a list of them, or a dictionary of them by name.")
    for name, model in named.items():
        if isinstance(model, type) or not hasattr(model, "predict"):
            raise ValueError(f"The model {name!r} has no method predict: give fitted estimators.")
    return named


def read_loss(loss: Any, models: dict[str, Any]) -> str:
    """The loss; by default 0-1 for classifiers and squared for regressors."""
    check_choice("loss", loss, LOSSES)
    if loss != "auto":
        return str(loss)
    kinds = {
        is_classifier(model) if hasattr(model, "__sklearn_tags__") else hasattr(model, "classes_")
        for model in models.values()
    }
    if len(kinds) > 1:
        raise ValueError("models has both regressors and classifiers: certify them separately, or choose the loss.")
    return "zero_one" if kinds.pop() else "squared"


def read_cap(cap: Any, loss: str, models: dict[str, Any]) -> float:
    """The cap, at most the largest value of the loss."""
    if cap is None and loss == "squared":
        raise ValueError(
            "The squared loss needs a cap that is fixed before the held-out rows are seen, for instance "
            "cap=cap_from_training(models, X_train, y_train)."
        )
    largest = largest_loss(loss, models)
    if cap is None:
        return largest
    if isinstance(cap, bool) or not is_number(cap) or not cap > 0:
        raise ValueError(f"cap must be one positive number for all models, fixed in advance, not {cap!r}.")
    return min(float(cap), largest)


def largest_loss(loss: str, models: dict[str, Any], n_classes: int = 0) -> float:
    """The largest value of a loss, for models and labels of at most so many classes."""
    if loss == "squared":
        return math.inf
    most = max([n_classes, *(len(getattr(model, "classes_", ())) for model in models.values())])
    return 2.0 if loss == "brier" and most > 2 else 1.0


def relative_losses(models: dict[str, Any], X: Any, y: Any, n: int, loss: str, cap: float) -> dict[str, FloatArray]:
    """The losses of each model on the n rows, divided by the cap; infinite beyond the range of floating point."""
    if loss == "squared":
        target = read_regression_target(BaseEstimator(), y, n)
        with np.errstate(over="ignore"):
            return {
                name: ((target - predicted_numbers(name, model.predict(X), n)) / math.sqrt(cap)) ** 2
                for name, model in models.items()
            }
    classes, codes = read_classes(BaseEstimator(), y, n)
    labels = classes.astype(object)[codes]
    for name, model in models.items():
        if not set(classes.tolist()) & set(np.asarray(getattr(model, "classes_", classes)).tolist()):
            raise ValueError(f"No label of y is a class of the model {name!r}: it was fitted to other labels.")
    if loss == "zero_one":
        return {name: _zero_one(name, model.predict(X), labels) / cap for name, model in models.items()}
    half = largest_loss(loss, models) / 2
    return {name: half * _brier(name, model, X, labels) / cap for name, model in models.items()}


def predicted_numbers(name: str, predicted: Any, n: int) -> FloatArray:
    """Predictions of a regression as n finite numbers."""
    try:
        numbers = np.asarray(predicted, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The model {name!r} predicts no numbers: the squared loss is for regression.") from error
    numbers = _one_per_row(name, numbers, n, "number")
    if not np.isfinite(numbers).all():
        raise ValueError(f"The model {name!r} predicts NaN or infinity in {np.sum(~np.isfinite(numbers)):,} rows.")
    return numbers


def _one_per_row(name: str, predicted: Any, n: int, what: str) -> Any:
    if predicted.shape not in ((n,), (n, 1)):
        raise ValueError(
            f"The model {name!r} must predict one {what} per row, not an array of shape {predicted.shape}."
        )
    return predicted.ravel()


def _zero_one(name: str, predicted: Any, labels: Any) -> FloatArray:
    predicted = _one_per_row(name, np.asarray(predicted, dtype=object), len(labels), "label")
    if any(label is None or label != label for label in predicted):
        raise ValueError(f"The model {name!r} predicts NaN or no label in some rows.")
    return np.array(predicted != labels, dtype=float)


def _brier(name: str, model: Any, X: Any, labels: Any) -> FloatArray:
    """Squared distance of the probabilities from the indicators of the class, in [0, 2]."""
    if not hasattr(model, "predict_proba") or not hasattr(model, "classes_"):
        raise ValueError(f"The model {name!r} has no probabilities of classes: use loss='zero_one'.")
    p = np.asarray(model.predict_proba(X), dtype=float)
    classes = np.asarray(model.classes_, dtype=object)
    if p.shape != (len(labels), len(classes)):
        raise ValueError(f"The model {name!r} must predict a probability for each class, not shape {p.shape}.")
    # up to rounding in single precision
    if not (np.abs(p - 0.5) <= 0.5 + 1e-6).all() or not (np.abs(p.sum(axis=1) - 1) <= 1e-6).all():
        raise ValueError(f"The model {name!r} predicts NaN, or probabilities that do not sum to 1, in some rows.")
    hits = labels[:, None] == classes
    return np.asarray(((p - hits) ** 2).sum(axis=1) + ~hits.any(axis=1))


def cap_from_training(models: Any, X: Any, y: Any, *, loss: str = "auto", cv: Any = 5, random_state: Any = 0) -> float:
    """A cap for ``risk_certificate`` that does not depend on held-out rows.

    Parameters
    ----------
    models : estimator, list of estimators, or dict of them by name
        Copies are fitted to the folds; the models themselves do not change and need not be fitted.
    X : array or data frame of shape (n, d)
        Features of the training rows.
    y : array of shape (n,)
        Their targets.
    loss : {"auto", "squared", "zero_one", "brier"}
        As in ``risk_certificate``. The cap of the losses for classes is their largest value.
    cv : int or splitter
        Number of folds, or a splitter of scikit-learn that holds out every row once.
    random_state : int, RandomState or None
        Seed of the folds, and of models without a seed.

    Returns
    -------
    float
        (3 x the largest root mean square of cross-validated residuals)^2.

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> y = np.tile([-1.0, 1.0], 50)
    >>> round(cap_from_training(DummyRegressor(), np.zeros((100, 1)), y), 1)
    9.1
    """
    named = read_models(models)
    loss = read_loss(loss, named)
    n = len(X)
    rng = read_random_state(random_state)
    if loss != "squared":
        return largest_loss(loss, {}, len(read_classes(BaseEstimator(), y, n)[0]))
    target = read_regression_target(BaseEstimator(), y, n)
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        if not 2 <= cv or n < 2:
            raise ValueError(f"Cross-validation needs 2 or more folds and rows, not cv={cv} for {n:,} rows.")
        cv = KFold(min(int(cv), n), shuffle=True, random_state=rng)
    if not hasattr(cv, "get_n_splits"):
        raise ValueError(f"cv must be a number of folds or a splitter of scikit-learn, not {cv!r}.")
    folds = list(cv.split(X, target))
    seed = int(rng.randint(2**31 - 1))
    # in units of the largest |y|, so that squares stay in range
    unit = float(np.abs(target).max()) or 1.0
    deviations = []
    for name, model in named.items():
        predicted = predicted_numbers(name, cross_val_predict(seeded(model, seed), X, target, cv=folds), n)
        with np.errstate(over="ignore"):
            deviations.append(unit * float(np.sqrt(np.mean(((target - predicted) / unit) ** 2))))
    largest = 3.0 * max(deviations)
    cap = largest * largest
    if not 0 < cap < math.inf:
        raise ValueError(
            f"The largest cross-validated residual standard deviation is {max(deviations):.3g}, whose square is no "
            "cap: give a positive number in the units of y^2."
        )
    return cap


def read_groups(X: Any, by_missing: Any) -> tuple[list[str], BoolArray]:
    """Names of the features whose groups are certified, and where they are missing."""
    if by_missing is False:
        return [], np.empty((0, 0), dtype=bool)
    names, M = _missing(X)
    if by_missing is True:
        return names, M
    if isinstance(by_missing, str) or not isinstance(by_missing, Iterable):
        raise ValueError(f"by_missing must be True, False or a list of features, not {by_missing!r}.")
    index = []
    for feature in by_missing:
        if feature not in names and feature not in range(len(names)):
            raise ValueError(f"by_missing names {feature!r}, which is not a feature of X_held_out.")
        index.append(names.index(feature) if feature in names else int(feature))
    index = sorted(set(index))
    return [names[j] for j in index], M[:, index]


def _missing(X: Any) -> tuple[list[str], BoolArray]:
    """Names of the columns, and where values are missing; the columns of a data frame may be of any type."""
    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise ValueError(
            "The columns of X_held_out must have different names, and one occurs more than once."
        ) from error
    if isinstance(frame, nw.DataFrame):
        return list(frame.columns), np.isnan(TableRows(frame))
    reader = BaseEstimator()
    M = np.isnan(read_features(reader, X, reset=True))
    return feature_names(reader), M
