"""A convex combination of models with weights from held-out predictions.

    f(x, m) = sum_k w_k f_k(x, m),     w_k >= 0,  sum_k w_k = 1

Every candidate f_k is fitted on the training rows of each fold and predicts the held-out rows. The weights minimise the
squared error of the combination on these predictions (in classification the Brier score of the probabilities) plus

    rho sum_k (w_k - 1/K)^2,       rho = shrinkage / n  times the smallest held-out error of a candidate,

which shrinks them towards equal weights (``formulations/stacking.py``), because few rows do not tell models apart
reliably. Finally every candidate is fitted on all rows. Everything a candidate learns, including its law of the
features and its penalties, is learned anew from the training rows of each fold.

*Where it loses.* On small data sets: with about 140 rows held-out errors hardly separate the candidates, the weights
stay close to equal, and overconfident candidates distort the ranking. On heart-disease-va 2 AUC - 1 is .16 below the
candidate that is best in hindsight (three splits with 60 test rows; the average over 36 real data sets is .012); on the
generated data of the paper R2 is .007 below, at worst .065. A single correct model, such as expected features under the
correct law, wins by that margin. The stack takes 8 to 19 times as long as cross-validating affine weights, and it is
not an interpretable model.

Candidates see features with observed mean 0 and standard deviation 1, NaN where missing. A feature that is never
observed in the rows of a fit is left out; one that is never missing there is set to its mean if it is missing later.
Numeric predictions are clipped to the range of y in training; probabilities are 0 for a class absent from the rows.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from admiss.estimator.cross_validation import SplitsRows, make_folds
from admiss.estimator.evidence import data_digest
from admiss.estimator.notices import silence, warn_never_missing, warn_never_observed
from admiss.estimator.scaling import observed_moments, observed_scale
from admiss.estimator.validation import (
    AllowsMissing,
    feature_names,
    is_number,
    read_classes,
    read_features,
    read_random_state,
    read_regression_target,
    read_weights,
    refuse_extremes,
    require_two_classes,
    seeded,
    unchanged_on_error,
)
from admiss.stack.candidates import CANDIDATES, default_candidates, read_candidates
from admiss.terminal.progress import progress
from admiss.terminal.table import Table
from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.certificate import Certificate
from formulations.stacking import StackingProblem, stacking_weights


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
        # forests use single precision
        standard = np.clip((X[:, self.features] - self.location) / self.scale, -1e30, 1e30)
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
                reason = next(iter(str(error).splitlines()), type(error).__name__)  # XGBoost adds its stack
                if max(-low, high) > np.finfo(np.float32).max:
                    reason = "y is too large for single precision, use other units."
                raise ValueError(f"The candidate {name!r} could not be fitted: {reason}") from error
            seconds.append(time.thread_time() - start)
        held_out = members.predict(X_test) if len(X_test) else np.empty((0, Y.shape[1], len(models)))
    return members, held_out, np.array(seconds)


class _AdaptiveStack(SplitsRows, AllowsMissing, BaseEstimator):
    """Shared by the regressor and the classifier."""

    certificate_: Certificate

    def __init__(
        self,
        candidates: Any = "auto",
        shrinkage: float = 30.0,
        cv: Any = 5,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.candidates = candidates
        self.shrinkage = shrinkage
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_parameters(self, weighted: bool) -> None:
        if isinstance(self.shrinkage, bool) or not is_number(self.shrinkage):
            raise ValueError(f"shrinkage must be a non-negative number, not {self.shrinkage!r}.")
        for name, model in self._candidates():
            if weighted and not has_fit_parameter(model, "sample_weight"):
                raise ValueError(f"The candidate {name!r} takes no sample_weight: drop the candidate or the weights.")

    def _candidates(self, X: FloatArray | None = None) -> list[tuple[str, Any]]:
        """Names and estimators; without X all that are possible."""
        task = "classification" if is_classifier(self) else "regression"
        if not isinstance(self.candidates, str) or self.candidates != "auto":
            return read_candidates(self.candidates, task)
        names = CANDIDATES if X is None else default_candidates(X.shape[1], int(np.isnan(X).any(axis=0).sum()))
        return read_candidates(names, task)

    def _read_rows(self, X: Any, sample_weight: Any) -> tuple[FloatArray, FloatArray]:
        """Features, and weights with mean 1, since candidates weigh penalties and priors against rows."""
        X = read_features(self, X, reset=True)
        s = read_weights(sample_weight, X)
        if np.isnan(X[s > 0]).all():
            raise ValueError("X has no observed value: there is nothing to learn from.")
        return X, s / s[s > 0].mean()

    def _fit_rows(
        self,
        X: FloatArray,
        Y: FloatArray,
        labels: IntArray | None,
        s: FloatArray,
        weighted: bool,
        of_split: Mapping[str, Any],
    ) -> None:
        """Fit to targets Y of shape (n, outputs): one column of numbers, or the indicators of the classes."""
        random = read_random_state(self.random_state)
        folds = make_folds(X, Y[:, 0] if labels is None else labels, labels, s, self.cv, random, of_split)
        used = s > 0
        if labels is not None and any(len(np.unique(labels[used][train])) < 2 for train, _ in folds):
            raise ValueError("The training rows of a fold are all of one class: add rows of the rare class.")
        models = {name: seeded(model, random.randint(2**31 - 1)) for name, model in self._candidates(X)}
        X, Y = X[used], Y[used]
        weights = s[used] if weighted else None
        warn_never_observed(feature_names(self), np.flatnonzero(np.isnan(X).all(axis=0)))
        tasks = [*folds, (np.arange(len(X)), np.empty(0, dtype=int))]  # the last one is the fit on all rows
        runs = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")(
            delayed(fit_members)(models, X[train], Y[train], None if weights is None else weights[train], X[test])
            for train, test in tasks
        )
        members, held_out, seconds = zip(*progress(runs, len(tasks), "stack: folds"), strict=True)
        self.members_: Members = members[-1]
        self.estimators_ = self.members_.models
        tested = np.concatenate([test for _, test in folds])
        self.held_out_, self.tested_ = np.concatenate(held_out[:-1]), tested
        scores = self._combine(self.held_out_, Y, tested, weights)
        evidence = self._evidence()
        evidence["digest"] = data_digest(evidence["program"], X, Y, s[used])
        self.certificate_ = replace(self.certificate_, evidence=evidence)
        self.weights_ = Table(
            candidate=list(models),
            weight=self.combination_,
            held_out_score=scores,
            seconds=np.sum(seconds, axis=0),
        )

    def _evidence(self) -> dict[str, Any]:
        """Program and solution, see :mod:`admiss.estimator.evidence`."""
        task = "classification" if hasattr(self, "classes_") else "regression"
        program = {"task": task, "shrinkage": float(self.shrinkage)}
        arrays = {"combination": self.combination_, "held_out": self.held_out_, "tested": self.tested_}
        return {"kind": "stack", "program": program, "solution": {}, "arrays": arrays}

    def _combine(self, Z: FloatArray, Y: FloatArray, tested: IntArray, weights: FloatArray | None) -> FloatArray:
        """Find the weights from held-out predictions Z of the rows ``tested``; return the scores of the candidates."""
        s = np.ones(len(tested)) if weights is None else weights[tested]
        # squares must not overflow; a power of two loses no digits
        unit = float(np.exp2(np.round(np.log2(np.abs(Y).max() or 1.0))))
        # every pair of a row and a class is a row of the program
        flat, target = Z.reshape(-1, Z.shape[2]) / unit, Y[tested].ravel() / unit
        problem = StackingProblem.of(flat, target, np.repeat(s, Y.shape[1]), 0.0)
        errors = np.diag(problem.errors)
        rho = float(self.shrinkage) / len(Y) * float(errors.min())
        self.combination_, certificate = stacking_weights(replace(problem, rho=rho))
        self.error_ = problem.objective(self.combination_) * unit * unit
        amounts = {name: getattr(certificate, name) * unit * unit for name in ("objective", "bound", "tolerance")}
        self.certificate_ = replace(certificate, **amounts)
        mean = np.average(Y / unit, axis=0, weights=weights)
        null = float(np.average(np.mean((Y[tested] / unit - mean) ** 2, axis=1), weights=s))
        return np.asarray(1.0 - errors / (null or 1.0))

    def _predict_all(self, X: Any) -> FloatArray:
        """Predictions of shape (rows, outputs, candidates)."""
        check_is_fitted(self)
        X = read_features(self, X, reset=False)
        surprising = np.isnan(X).any(axis=0) & ~self.members_.missable
        warn_never_missing(feature_names(self), np.intersect1d(np.flatnonzero(surprising), self.members_.features))
        with silence():  # the features have been reported above
            return self.members_.predict(X)

    def candidate_predictions(self, X: Any) -> dict[str, FloatArray]:
        """Predictions of each candidate: numbers of shape (rows,), or probabilities of shape (rows, classes)."""
        predictions = self._predict_all(X)
        parts = predictions if is_classifier(self) else predictions[:, 0]
        return {name: parts[..., k] for k, name in enumerate(self.estimators_)}


class AdaptiveStackRegressor(RegressorMixin, _AdaptiveStack):
    """Adaptive models, conditional laws, forest and boosting for a numeric target, weighted by cross-validation.

    Parameters
    ----------
    candidates : "auto" or list of str and of (name, estimator)
        The models: names in ``admiss.stack.candidates.CANDIDATES`` (by default all of them, except affine weights if
        they would have too many coefficients), and your own estimators, which must accept NaN.
    shrinkage : float
        How strongly the weights are shrunk towards equal ones, in rows.
    cv : int, splitter or iterable
        Number of folds, stratified by pattern (and class), or any splitter of scikit-learn.
    random_state : int, RandomState or None
        Seed of folds and candidates.
    n_jobs : int, optional
        Number of threads. The result does not depend on it.

    Attributes
    ----------
    weights_ : Table
        Candidates, their weights, their held-out scores (R2, or the analogue for the Brier score) and CPU seconds.
    estimators_ : dict
        The candidates, fitted on all rows. They expect features prepared by ``members_.prepare``; use
        ``candidate_predictions`` for unprepared rows.
    members_ : Members
        The candidates together with the preparation of the features.
    combination_ : array
        The weights.
    error_ : float
        Held-out squared error (Brier score) of the combination, on the predictions to which the weights were fitted.
    held_out_, tested_ : arrays of shape (rows, outputs, candidates) and (rows,)
        Held-out predictions, and the rows (of positive weight) that they are for.
    certificate_ : Certificate
        Proof that the weights are optimal.
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from admiss import AdaptiveStackRegressor
    >>> from admiss.datasets import make_synthetic
    >>> data = make_synthetic(n=200, missing_fraction=0.3, random_state=0)
    >>> stack = AdaptiveStackRegressor(["affine_intercept", "conditional_mean"], random_state=0)
    >>> stack = stack.fit(data.X_train, data.y_train)
    >>> list(stack.estimators_)
    ['affine_intercept', 'conditional_mean']
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Fit the candidates on folds, then the weights, then the candidates on all rows.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Features, NaN (None, NA, null) if missing.
        y : array of shape (n,)
            Target, or class labels.
        sample_weight : array of shape (n,), optional
            Weights of the rows.
        **params
            Passed to the splitter ``cv``, see :meth:`AdaptiveRegressorCV.fit`.
        """
        weighted = sample_weight is not None
        of_split = self._split_parameters(sample_weight, params)
        self._check_parameters(weighted)
        with unchanged_on_error(self):
            rows, s = self._read_rows(X, sample_weight)
            target = read_regression_target(self, y, len(rows))
            refuse_extremes(np.maximum(np.abs(target), 1.0), s)  # small targets are brought to unit size
            self._fit_rows(rows, target[:, None], None, s, weighted, of_split)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predicted target of each row."""
        return np.asarray((self._predict_all(X) @ self.combination_)[:, 0])


class AdaptiveStackClassifier(ClassifierMixin, _AdaptiveStack):
    """Adaptive models, conditional laws, forest and boosting for classes, weighted by cross-validation.

    Parameters
    ----------
    candidates, shrinkage, cv, random_state, n_jobs
        As in :class:`AdaptiveStackRegressor`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    weights_, estimators_, members_, combination_, error_, certificate_, n_features_in_, feature_names_in_
        As in :class:`AdaptiveStackRegressor`.

    Examples
    --------
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> from admiss import AdaptiveClassifier, AdaptiveStackClassifier
    >>> from admiss.datasets import make_synthetic
    >>> data = make_synthetic(n=200, mechanism="censoring", random_state=0)
    >>> candidates = [("affine", AdaptiveClassifier()), ("boosting", HistGradientBoostingClassifier(max_iter=10))]
    >>> model = AdaptiveStackClassifier(candidates, cv=3, random_state=0).fit(data.X_train, data.y_train > 0)
    >>> model.score(data.X_test, data.y_test > 0) > 0.7
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Fit the candidates on folds, then the weights, then the candidates on all rows.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Features, NaN (None, NA, null) if missing.
        y : array of shape (n,)
            Target, or class labels.
        sample_weight : array of shape (n,), optional
            Weights of the rows.
        **params
            Passed to the splitter ``cv``, see :meth:`AdaptiveRegressorCV.fit`.
        """
        weighted = sample_weight is not None
        of_split = self._split_parameters(sample_weight, params)
        self._check_parameters(weighted)
        with unchanged_on_error(self):
            rows, s = self._read_rows(X, sample_weight)
            self.classes_, labels = read_classes(self, y, len(rows))
            require_two_classes(self, labels[s > 0])
            self._fit_rows(rows, np.eye(len(self.classes_))[labels], labels, s, weighted, of_split)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class."""
        return np.asarray(self._predict_all(X) @ self.combination_)

    def predict(self, X: Any) -> Any:
        """Most likely class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]
