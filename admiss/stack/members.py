"""The candidates of a stack, fitted on the same rows.

They see features with observed mean 0 and deviation 1, NaN where missing: a feature that was never observed in the rows
of a fit is left out, one that was never missing there is at its mean where it is missing later. Predictions of a number
are cut to the range of y in training; of classes they are probabilities, 0 for a class that the rows do not have.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from admiss.estimator.notices import silence
from admiss.estimator.rows import observed_moments, observed_scale
from formulations.arrays import BoolArray, FloatArray, IntArray

# Features are cut here, in standard deviations: forests count in single precision.
LARGEST = 1e30


@dataclass(frozen=True)
class Members:
    """Fitted candidates.

    Attributes
    ----------
    models : dict
        From names to fitted estimators.
    features : int array
        The features that they see.
    missable : bool array of shape (d,)
        Which features were missing somewhere.
    location, scale : arrays
        Observed means and deviations of the features that they see.
    classes : int array or None
        The classes of the rows, as codes.
    n_outputs : int
        1 for numbers, else the number of all classes.
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
            found = np.asarray(model.predict(prepared) if self.classes is None else model.predict_proba(prepared))
            expected = (len(X),) if self.classes is None else (len(X), len(self.classes))
            if found.shape != expected:
                raise ValueError(f"The candidate {name!r} predicts an array of shape {found.shape}, not {expected}.")
            if not np.isfinite(found).all():
                raise ValueError(f"The candidate {name!r} predicts NaN or infinity: leave it out.")
            if self.classes is None:
                predictions[:, 0, k] = np.clip(found, self.lowest, self.highest)
            else:
                predictions[:, self.classes, k] = found
        return predictions


def fit_members(
    models: dict[str, Any], X: FloatArray, Y: FloatArray, weights: FloatArray | None, X_test: FloatArray
) -> tuple[Members, FloatArray, FloatArray]:
    """The candidates fitted on some rows, their predictions of others, and the CPU seconds of each fit.

    Parameters
    ----------
    models : dict
        From names to estimators, which are cloned.
    X, Y : arrays of shape (n, d) and (n, outputs)
        Y has one column of numbers, or the indicators of all classes.
    weights : array of shape (n,), optional
    X_test : array of shape (m, d)
    """
    features = np.flatnonzero(~np.isnan(X).all(axis=0))
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
    with silence():  # of what is rare in a fold
        for name, model in models.items():
            began = time.thread_time()
            try:
                members.models[name] = clone(model).fit(prepared, target, **arguments)
            except (ValueError, TypeError) as error:
                raise ValueError(f"The candidate {name!r} could not be fitted: {error}") from error
            seconds.append(time.thread_time() - began)
        held = members.predict(X_test) if len(X_test) else np.empty((0, Y.shape[1], len(models)))
    return members, held, np.array(seconds)
