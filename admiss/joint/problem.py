"""Joint learning of imputed values and predictor (Section 3.2 of the paper): the problem, and the protocol of a search.

    min over mu, f  (1/S) sum_i s_i l(y_i, f(x_i^mu)),      x_ij^mu = x_ij where observed, mu_j where missing

f is any scikit-learn predictor; l is the squared loss, or the log-loss of class probabilities. The paper's error for
classes, 1 - AUC, is not a sum over rows. A search is a function of the problem and a random state that returns mu: see
``ImputationSearch``.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone

from admiss.estimator.labels import area_under_curve, log_losses
from admiss.joint.predictor import (
    ONE_AGAINST_ONE,
    class_decisions,
    class_probabilities,
    class_weights_by_code,
    one_against_one,
    weight_parameter,
)
from formulations.arrays import BoolArray, FloatArray, IntArray

# Smaller probabilities, which f may have computed as 1 - p, are rounding, and would make the error infinite.
SMALLEST_PROBABILITY = 1e-12
# Scores that differ by a share of 2^-40 are ties in the area under the curve, lest rounding rank rows.
SCORE_BITS = 40


@dataclass(frozen=True)
class JointProblem:
    """Rows, and the predictor to fit to them.

    Attributes
    ----------
    X : array of shape (n, d)
        NaN where missing.
    y : array of shape (n,)
        Numbers, or the codes 0 .. K - 1 of classes.
    sample_weight : array of shape (n,)
        Weights of the rows.
    estimator : scikit-learn regressor or classifier
        f; it is cloned for every fit.
    error : {"squared", "log_loss", "auc"}
        What the search minimises; "auc" stands for 1 - AUC.
    n_classes : int
        K; 0 in regression.
    pass_weights : bool
        Whether f is fitted with the weights (the last step of a pipeline).
    """

    X: FloatArray
    y: FloatArray | IntArray
    sample_weight: FloatArray
    estimator: Any
    error: str
    n_classes: int = 0
    pass_weights: bool = False

    @property
    def M(self) -> BoolArray:
        """Indicators of missing values."""
        return np.isnan(self.X)

    def means(self) -> FloatArray:
        """Weighted means of the observed values; 0 for a feature that is never observed."""
        weight = np.where(self.M, 0.0, self.sample_weight[:, None])
        total = weight.sum(axis=0)
        return np.where(self.M, 0.0, self.X * weight).sum(axis=0) / np.where(total > 0, total, 1.0)

    def deviations(self) -> FloatArray:
        """Weighted standard deviations of the observed values; 0 for a feature that is never observed."""
        weight = np.where(self.M, 0.0, self.sample_weight[:, None])
        total = weight.sum(axis=0)
        squares = np.where(self.M, 0.0, (self.X - self.means()) ** 2 * weight)
        return np.sqrt(squares.sum(axis=0) / np.where(total > 0, total, 1.0))

    def rows(self, selected: IntArray | BoolArray) -> "JointProblem":
        """The problem on a subset of its rows."""
        return replace(self, X=self.X[selected], y=self.y[selected], sample_weight=self.sample_weight[selected])

    def weighted_rows(self) -> "JointProblem":
        """The problem without rows of weight zero."""
        used = self.sample_weight > 0
        return self if used.all() else self.rows(used)

    def fit(self, mu: FloatArray) -> Any:
        """f fitted to x^mu; it sees the classes that occur as consecutive codes."""
        name = weight_parameter(self.estimator)
        weights = {name: self.sample_weight} if self.pass_weights and name is not None else {}
        f, y = clone(self.estimator), self.y
        if self.n_classes:
            present = self._present()
            f, y = class_weights_by_code(f, present), np.searchsorted(present, y)
        try:
            return f.fit(imputed(self.X, mu), y, **weights)
        except (ValueError, OverflowError, ZeroDivisionError, LookupError) as error:
            reason = " ".join(str(error).split())[:300].rstrip(".")
            raise ValueError(f"{type(f).__name__} cannot be fitted: {reason}.") from error

    def _present(self) -> IntArray:
        """Sorted codes of the classes that occur."""
        return np.flatnonzero(np.bincount(self.y.astype(int), minlength=self.n_classes))

    def outputs(self, f: Any, X: FloatArray) -> FloatArray:
        """Predictions of shape (n,), or probabilities of shape (n, K) by code, of f fitted to this problem.

        For the area under the curve the decision function stands in for probabilities if f has none.
        """
        if not self.n_classes:
            outputs = np.asarray(f.predict(X), dtype=float).reshape(len(X))
        elif self.error == "auc" and not hasattr(f, "predict_proba"):
            outputs = class_decisions(f, X, self._present(), self.n_classes)
        else:
            outputs = class_probabilities(f, X, self._present(), self.n_classes)
        if not np.isfinite(outputs).all():
            raise ValueError(f"{type(f).__name__} predicts NaN or infinity on the training rows.")
        return outputs

    def require_scores(self) -> None:
        """Refuse f without the scores that the error of classes needs."""
        needed = ["predict_proba"] if self.error == "log_loss" else ["predict_proba", "decision_function"]
        f = self.estimator
        if not any(hasattr(f, name) for name in needed):
            f = self.fit(self.means())  # some predictors have it only once fitted
        if not any(hasattr(f, name) for name in needed):
            raise ValueError(
                f"error={self.error!r} needs an estimator with {' or '.join(needed)}, and {type(f).__name__} has none: "
                "use another one, or wrap it in CalibratedClassifierCV."
            )
        if self.n_classes > 2 and not hasattr(f, "predict_proba") and one_against_one(f):
            raise ValueError(ONE_AGAINST_ONE)

    def losses(self, outputs: FloatArray, rows: IntArray | slice = slice(None)) -> FloatArray:
        """s_i l(y_i, output_i) of some rows; undefined for the area under the curve."""
        y, s = self.y[rows], self.sample_weight[rows]
        if self.error == "squared":
            with np.errstate(over="ignore"):  # an infinite loss is worse than any other
                return np.asarray(s * (y - outputs) ** 2)
        return s * log_losses(y.astype(int), outputs, SMALLEST_PROBABILITY)

    def total_error(self, outputs: FloatArray) -> float:
        """Weighted mean of the losses, or 1 - AUC, averaged over each of several classes against the rest."""
        if self.error != "auc":
            return float(self.losses(outputs).sum() / self.sample_weight.sum())
        mantissa, exponent = np.frexp(outputs)
        scores = np.ldexp(np.round(np.ldexp(mantissa, SCORE_BITS)), exponent)
        classes = [1] if self.n_classes == 2 else range(self.n_classes)
        areas = [
            area_under_curve(self.y == k, scores[:, k], self.sample_weight)
            for k in classes
            if 0 < np.count_nonzero(self.y == k) < len(self.y)
        ]
        return 1.0 - float(np.mean(areas)) if areas else 0.0


def imputed(X: FloatArray, mu: FloatArray) -> FloatArray:
    """x^mu: missing values replaced by mu.

    Examples
    --------
    >>> imputed(np.array([[1.0, np.nan], [np.nan, 2.0]]), np.array([5.0, 6.0])).tolist()
    [[1.0, 6.0], [5.0, 2.0]]
    """
    return np.where(np.isnan(X), mu, X)


@dataclass(frozen=True)
class Round:
    """One outer round of a search: the error of the fitted f before mu moves, and the moves.

    Attributes
    ----------
    error : float
        Error of f before the moves.
    moves : tuple of (feature, step)
        In their order; the step is what was added to mu.
    """

    error: float
    moves: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Imputation:
    """Result of a search.

    Attributes
    ----------
    mu : array of shape (d,)
        The imputed values.
    history : tuple of Round
        What the search did, if it keeps a record.
    note : str
        Reason for the result, in words.
    """

    mu: FloatArray
    history: tuple[Round, ...] = ()
    note: str = ""


class ImputationSearch(Protocol):
    """Protocol of a search for mu.

    A search is called with the problem and a random state. It may fit f any number of times by ``problem.fit(mu)``; the
    estimator fits f once more to the result. The estimator replaces values of features that are never missing, or never
    observed, by their means.

    Examples
    --------
    Imputation by medians:

    >>> from admiss.joint import Imputation, JointImputeRegressor
    >>> def medians(problem, random_state):
    ...     return Imputation(np.nanmedian(problem.X, axis=0))
    >>> X = np.array([[1.0], [2.0], [9.0], [np.nan]])
    >>> JointImputeRegressor(algorithm=medians).fit(X, [1.0, 2.0, 9.0, 4.0]).imputation_.tolist()
    [2.0]
    """

    def __call__(self, problem: JointProblem, random_state: np.random.RandomState) -> Imputation:
        """The imputed values."""
