"""A convex combination of models, its weights from held-out predictions.

    f(x, m) = sum_k w_k f_k(x, m),     w_k >= 0,  sum_k w_k = 1

Every candidate f_k is fitted on the training rows of each fold and predicts the others; the weights minimise the
squared error of the combination on these predictions (in classification the Brier score of the probabilities), plus

    rho sum_k (w_k - 1/K)^2,       rho = shrinkage / n  times the smallest held-out error of a candidate,

which draws them towards equal weights (``formulations/stacking.py``): differences between models that few rows show are
not believed. Then every candidate is fitted on all rows. Whatever a candidate learns, its law of the features and its
penalties included, it learns anew from the training rows of each fold.

What candidates see, and how their predictions are cut, is in ``stack_members.py``.

*Where it loses.* On small sets: from some 140 rows held-out errors hardly tell candidates apart, the weights stay near
equal ones, and candidates that are overconfident there spoil the ranking. On heart-disease-va 2 AUC - 1 is .16 below
that of the candidate that is best in hindsight (three splits with 60 test rows; on average over 36 real sets it is
.012), on generated data of the paper R2 is .007 below, at worst .065. A single right model, such as expected features
where the law is right, beats it by that. It takes 8 to 19 times as long as the cross-validation of affine weights, and
it is no model to read.
"""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from admiss.estimator.folds import make_folds
from admiss.estimator.notices import silence, warn_never_missing, warn_never_observed
from admiss.estimator.validation import (
    feature_names,
    read_classes,
    read_features,
    read_regression_target,
    read_weights,
    unchanged_on_error,
)
from admiss.stack.candidates import CANDIDATES, default_candidates, read_candidates
from admiss.stack.members import Members, fit_members
from admiss.terminal.progress import progress
from admiss.terminal.table import Table
from formulations.arrays import FloatArray, IntArray

TASKS = ("regression", "classification")


def _is_classification(stack: Any) -> bool:
    if stack.task != "classification":
        raise AttributeError("Probabilities exist for task='classification'.")
    return True


class AdaptiveStack(BaseEstimator):
    """Adaptive models, conditional laws, forest and boosting, weighed by cross-validation.

    Parameters
    ----------
    task : {"regression", "classification"}
        What y is.
    candidates : "auto" or list of str and of (name, estimator)
        The models: names of ``admiss.stack.candidates.CANDIDATES`` (by default all of them, but affine weights where
        they have too many coefficients), and estimators of one's own that take NaN.
    shrinkage : float
        How strongly the weights are drawn towards equal ones, in rows.
    cv : int, splitter or iterable
        Folds, stratified by pattern and class, or anything that scikit-learn takes.
    random_state : int, RandomState or None
        Seed of folds and candidates.
    n_jobs : int, optional
        Threads. The result does not depend on it.

    Attributes
    ----------
    weights_ : Table
        Candidates, their weights, their held-out scores (R2, or the share of the Brier score of the class frequencies
        that is explained) and CPU seconds.
    estimators_ : dict
        The candidates, fitted on all rows. They take features as ``members_.prepare`` makes them: what they predict for
        rows as they are is in ``candidate_predictions``.
    members_ : Members
        The same, with what is done to the features.
    combination_ : array
        The weights.
    error_ : float
        Held-out squared error (Brier score) of the combination, on the predictions that its weights were fitted to.
    certificate_ : Certificate
        Proof that the weights are the best ones.
    classes_ : array
        In classification.
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> from admiss import AdaptiveStack
    >>> from admiss.datasets import make_synthetic
    >>> data = make_synthetic(n=200, missing_fraction=0.3, random_state=0)
    >>> stack = AdaptiveStack(candidates=["affine_intercept", "conditional_mean"], random_state=0)
    >>> stack = stack.fit(data.X_train, data.y_train)
    >>> list(stack.estimators_)
    ['affine_intercept', 'conditional_mean']
    """

    def __init__(
        self,
        task: str = "regression",
        candidates: Any = "auto",
        shrinkage: float = 30.0,
        cv: Any = 5,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.task = task
        self.candidates = candidates
        self.shrinkage = shrinkage
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the candidates on folds, the weights, and the candidates on all rows."""
        self._check_parameters(sample_weight is not None)
        with unchanged_on_error(self):
            rows = read_features(self, X, reset=True)
            s = read_weights(sample_weight, rows)
            s = s / s[s > 0].mean()  # candidates weigh penalties and priors against rows
            if np.isnan(rows[s > 0]).all():
                raise ValueError("X has no observed value: there is nothing to learn from.")
            labels = None
            if self.task == "classification":
                self.classes_, labels = read_classes(self, y, len(rows))
                if len(np.unique(labels[s > 0])) < 2:
                    raise ValueError("AdaptiveStack needs rows of at least two classes, and y has one class only.")
                Y = np.eye(len(self.classes_))[labels]
            else:
                Y = read_regression_target(self, y, len(rows))[:, None]
            random = check_random_state(self.random_state)
            folds = make_folds(rows, Y[:, 0] if labels is None else labels, labels, s, self.cv, random)
            self._check_folds(folds, None if labels is None else labels[s > 0])
            models = {name: _seeded(model, random) for name, model in self._candidates(rows)}
            used = s > 0
            names = feature_names(self)
            warn_never_observed(names, np.flatnonzero(np.isnan(rows[used]).all(axis=0)))
            weights = None if sample_weight is None else s[used]
            self._fit_rows(models, rows[used], Y[used], weights, folds)
        return self

    def _check_folds(self, folds: list[tuple[IntArray, IntArray]], labels: IntArray | None) -> None:
        if labels is not None and any(len(np.unique(labels[train])) < 2 for train, _ in folds):
            raise ValueError("The training rows of a fold are all of one class: add rows of the rare class.")

    def _candidates(self, X: FloatArray | None = None) -> list[tuple[str, Any]]:
        """Names and estimators; without rows all that may come up."""
        if not isinstance(self.candidates, str) or self.candidates != "auto":
            return read_candidates(self.candidates, self.task)
        names = CANDIDATES if X is None else default_candidates(X.shape[1], int(np.isnan(X).any(axis=0).sum()))
        return read_candidates(names, self.task)

    def _check_parameters(self, weighted: bool) -> None:
        if not isinstance(self.task, str) or self.task not in TASKS:
            raise ValueError(f"task must be 'regression' or 'classification', not {self.task!r}.")
        if (
            not isinstance(self.shrinkage, int | float | np.number)
            or isinstance(self.shrinkage, bool)
            or not 0 <= float(self.shrinkage) < np.inf
        ):
            raise ValueError(f"shrinkage must be a number from 0 on, not {self.shrinkage!r}.")
        for name, model in self._candidates():
            if weighted and not has_fit_parameter(model, "sample_weight"):
                raise ValueError(f"The candidate {name!r} takes no sample_weight: leave it out, or the weights.")

    def _fit_rows(
        self,
        models: dict[str, Any],
        X: FloatArray,
        Y: FloatArray,
        weights: FloatArray | None,
        folds: list[tuple[IntArray, IntArray]],
    ) -> None:
        from formulations.stacking import StackingProblem, stacking_weights  # it brings cvxpy

        tasks = [*folds, (np.arange(len(X)), np.empty(0, dtype=int))]  # the last one is the fit on all rows
        runs = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")(
            delayed(fit_members)(models, X[train], Y[train], None if weights is None else weights[train], X[test])
            for train, test in tasks
        )
        fitted, held, seconds = zip(*progress(runs, len(tasks), "stack: folds"), strict=True)
        tested = np.concatenate([test for _, test in folds])
        Z = np.concatenate(held[:-1])
        s = np.ones(len(tested)) if weights is None else weights[tested]
        unit = float(np.abs(Y).max()) or 1.0  # squares of y must not overflow
        # a row and a class is a row of the program
        flat, target = Z.reshape(-1, len(models)) / unit, Y[tested].ravel() / unit
        problem = StackingProblem.of(flat, target, np.repeat(s, Y.shape[1]), 0.0)
        errors = np.diag(problem.errors)
        rho = float(self.shrinkage) / len(X) * float(errors.min())
        w, certificate = stacking_weights(replace(problem, rho=rho))
        self.error_ = problem.objective(w) * unit * unit
        self.certificate_ = replace(
            certificate, objective=certificate.objective * unit * unit, bound=certificate.bound * unit * unit
        )
        mean = np.average(Y / unit, axis=0, weights=weights)
        null = float(np.average(np.mean((Y[tested] / unit - mean) ** 2, axis=1), weights=s))
        self.members_: Members = fitted[-1]
        self.combination_, self.estimators_ = w, self.members_.models
        explained = 1.0 - errors / (null or 1.0)
        self.weights_ = Table(
            candidate=list(models), weight=w, held_out_score=explained, seconds=np.sum(seconds, axis=0)
        )

    def _predict_all(self, X: Any) -> FloatArray:
        """Predictions of shape (rows, outputs, candidates)."""
        check_is_fitted(self)
        X = read_features(self, X, reset=False)
        surprising = np.isnan(X).any(axis=0) & ~self.members_.missable
        warn_never_missing(feature_names(self), np.intersect1d(np.flatnonzero(surprising), self.members_.features))
        with silence():  # of what is rare in a fold, and of features of which has been told
            return self.members_.predict(X)

    def candidate_predictions(self, X: Any) -> dict[str, FloatArray]:
        """What each candidate predicts: numbers of shape (rows,), or probabilities of shape (rows, classes)."""
        found = self._predict_all(X)
        parts = found[:, 0] if self.task == "regression" else found
        return {name: parts[..., k] for k, name in enumerate(self.estimators_)}

    def predict(self, X: Any) -> Any:
        """Predictions; in classification the most likely class."""
        combined = self._predict_all(X) @ self.combination_
        return combined[:, 0] if self.task == "regression" else self.classes_[combined.argmax(axis=1)]

    @available_if(_is_classification)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the classes."""
        return np.asarray(self._predict_all(X) @ self.combination_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R2, or in classification the accuracy."""
        measure = r2_score if self.task == "regression" else accuracy_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        if self.task == "classification":
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        else:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags


def _seeded(model: Any, random: np.random.RandomState) -> Any:
    """A copy whose random states are set where they are open, also those of its parts."""
    seed = int(random.randint(2**31 - 1))
    model = clone(model)
    parameters = model.get_params(deep=True)
    names = [name for name in parameters if name == "random_state" or name.endswith("__random_state")]
    return model.set_params(**{name: seed for name in names if parameters[name] is None})
