"""The candidates of a stack, fitted on the same rows.

Candidates see features with observed mean 0 and standard deviation 1, NaN where missing. A feature that is never
observed in the rows of a fit is left out; one that is never missing there is set to its mean if it is missing later.
Numeric predictions are clipped to the range of y in training; probabilities are 0 for a class absent from the rows.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from admiss.estimator.notices import silence
from admiss.estimator.scaling import observed_moments, observed_scale
from formulations.arrays import BoolArray, FloatArray, IntArray

# Features are clipped here, in standard deviations: forests use single precision.
LARGEST = 1e30


@dataclass(frozen=True)
class Members:
    """Fitted candidates.

    Attributes
    ----------
    models : dict
        From names to fitted estimators.
    features : int array
        The features that the candidates see.
    missable : bool array of shape (d,)
        Which features are missing in some row.
    location, scale : arrays
        Observed means and standard deviations of these features.
    classes : int array or None
        Codes of the classes among the rows.
    n_outputs : int
        1 in regression, otherwise the number of classes.
    lowest, highest : float
        The range of y.
    """

    models: dict[str, Any]
    features: IntArray
    missable: BoolArray
    location: FloatArray
    scale: FloatArray
    classes: IntArray | None
    n_outputs: int
    lowest: float
    highest: float

    def prepare(self, X: FloatArray) -> FloatArray:
        """Features as the candidates see them."""
        standard = np.clip((X[:, self.features] - self.location) / self.scale, -LARGEST, LARGEST)
        return np.where(np.isnan(standard) & ~self.missable[self.features], 0.0, standard)

    def predict(self, X: FloatArray) -> FloatArray:
        """Predictions of shape (rows, outputs, candidates)."""
        prepared = self.prepare(X)
        predictions = np.zeros((len(X), self.n_outputs, len(self.models)))
        for k, (name, model) in enumerate(self.models.items()):
            outputs = np.asarray(model.predict(prepared) if self.classes is None else model.predict_proba(prepared))
            expected = (len(X),) if self.classes is None else (len(X), len(self.classes))
            if outputs.shape != expected:
                raise ValueError(f"The candidate {name!r} predicts an array of shape {outputs.shape}, not {expected}.")
            if not np.isfinite(outputs).all():
                raise ValueError(f"The candidate {name!r} predicts NaN or infinity: leave it out.")
            if self.classes is None:
                predictions[:, 0, k] = np.clip(outputs, self.lowest, self.highest)
            else:
                predictions[:, self.classes, k] = outputs
        return predictions


def fit_members(
    models: dict[str, Any], X: FloatArray, Y: FloatArray, weights: FloatArray | None, X_test: FloatArray
) -> tuple[Members, FloatArray, FloatArray]:
    """Fit the candidates; return them with their predictions of other rows and the CPU seconds of each fit.

    Parameters
    ----------
    models : dict
        From names to estimators; these are cloned.
    X, Y : arrays of shape (n, d) and (n, outputs)
        Y has one numeric column, or the indicators of all classes.
    weights : array of shape (n,), optional
    X_test : array of shape (m, d)
    """
    features = np.flatnonzero(~np.isnan(X).all(axis=0))
    if not len(features):
        raise ValueError("No value is observed in the training rows of a fold: use fewer folds.")
    location, deviation, size, _ = observed_moments(X[:, features], np.ones(len(X)) if weights is None else weights)
    scale, missable = observed_scale(deviation, size)[0], np.asarray(np.isnan(X).any(axis=0))
    classes: IntArray | None = None
    target: Any = Y[:, 0]
    if Y.shape[1] > 1:
        classes, target = np.unique(Y.argmax(axis=1), return_inverse=True)
    low, high = float(Y.min()), float(Y.max())
    members = Members({}, features, missable, location, scale, classes, Y.shape[1], low, high)
    prepared = members.prepare(X)
    arguments = {} if weights is None else {"sample_weight": weights}
    seconds = []
    with silence():  # rare values may be absent from a fold
        for name, model in models.items():
            start = time.thread_time()
            try:
                members.models[name] = clone(model).fit(prepared, target, **arguments)
            except (ValueError, TypeError) as error:
                raise ValueError(f"The candidate {name!r} could not be fitted: {error}") from error
            seconds.append(time.thread_time() - start)
        held_out = members.predict(X_test) if len(X_test) else np.empty((0, Y.shape[1], len(models)))
    return members, held_out, np.array(seconds)
