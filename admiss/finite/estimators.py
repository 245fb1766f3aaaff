"""Finitely adaptive regression and classification (Section 2.2 of the paper).

    f(x, m) = b_q + <w_q, a(x, m)>      with q the leaf of the pattern m

The partitioner chooses the leaves; in each leaf (b_q, w_q) minimises the cost of :mod:`formulations.leaves.cost`, and
the objective of the certificate is the training objective of the model. Predictions of a regression are truncated to
the range of y in training, as in Theorem 1.
"""

from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from admiss.estimator.evidence import evidence_of, with_evidence
from admiss.estimator.labels import class_probabilities, most_likely, read_class_targets
from admiss.estimator.notices import warn_never_observed
from admiss.estimator.unseen import ON_UNSEEN_PATTERN, treat_unseen
from admiss.estimator.validation import (
    AllowsMissing,
    feature_names,
    read_features,
    read_regression_target,
    read_weights,
    refuse_extremes,
    unchanged_on_error,
)
from admiss.finite.describe import FiniteDescription
from admiss.finite.leaf_features import LEAF_MODELS, LeafFeatures
from admiss.partition.base import Partitioner
from admiss.partition.greedy import Greedy
from admiss.partition.partition import Partition
from formulations.arrays import FloatArray, IntArray
from formulations.certificate import Certificate
from formulations.leaves import leaf_cost_of
from formulations.leaves.cost import RIDGE_SCALES, LeafCost
from formulations.losses import LOSSES, Loss, resolve_loss


class _Finite(FiniteDescription, AllowsMissing, BaseEstimator):
    """Fit and predictions, for both tasks."""

    partitioner: Partitioner | None
    ridge: float
    leaf_model: str
    loss: str | Loss
    ridge_scale: str
    scale: bool
    on_unseen_pattern: str
    certificate_: Certificate

    _task: str

    def _check_parameters(self) -> tuple[Partitioner, Loss]:
        if not isinstance(self.ridge, Real) or not 0 <= float(self.ridge) < np.inf:
            raise ValueError(f"ridge must be a non-negative number, not {self.ridge!r}.")
        choices = {
            "leaf_model": LEAF_MODELS, "ridge_scale": RIDGE_SCALES, "on_unseen_pattern": ON_UNSEEN_PATTERN,
        }  # fmt: skip
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, not {getattr(self, name)!r}.")
        for name in ("scale", "truncate"):
            if not isinstance(getattr(self, name, True), bool | np.bool_):
                raise ValueError(f"{name} must be True or False, not {getattr(self, name)!r}.")
        partitioner = Greedy() if self.partitioner is None else self.partitioner
        if not isinstance(partitioner, Partitioner):
            raise ValueError(f"partitioner must be a partitioner such as Greedy(max_depth=3), not {partitioner!r}.")
        partitioner.check_limits()
        loss = resolve_loss(self.loss)
        if loss.task != self._task:
            fitting = ", ".join(repr(name) for name, other in LOSSES.items() if other.task == self._task)
            raise ValueError(f"The loss {self.loss!r} is for {loss.task}: {type(self).__name__} takes {fitting}.")
        return partitioner, loss

    def _fit_leaves(self, X: FloatArray, y: FloatArray, s: FloatArray, partitioner: Partitioner, loss: Loss) -> None:
        """Choose and fit the leaves; rows of weight 0 are dropped."""
        used = s > 0
        X, y, s = X[used], y[used], s[used]
        refuse_extremes(y, s, X, feature_names(self))
        self.leaf_features_ = LeafFeatures.fit(X, s, self.leaf_model, bool(self.scale))
        warn_never_observed(feature_names(self), np.setdiff1d(np.arange(X.shape[1]), self.leaf_features_.observed))
        rows = self.leaf_features_.pattern_rows(X, y, s)
        leaf_cost = leaf_cost_of(rows, loss, float(self.ridge), self.ridge_scale)
        self._adopt(leaf_cost, partitioner.partition(rows, leaf_cost, feature_names(self)))
        self.certificate_ = with_evidence(self.certificate_, evidence_of(self), X, y.reshape(len(y), -1), s)

    def _adopt(self, leaf_cost: LeafCost, partition: Partition) -> None:
        """Fit the leaves of a partition."""
        models = [leaf_cost.fit(partition.members(leaf)) for leaf in range(partition.n_leaves)]
        objective = float(sum(model.cost for model in models))
        self.leaf_intercepts_ = np.array([model.intercept for model in models])
        self.leaf_weights_ = np.array([model.weights for model in models])
        self.leaf_costs_ = np.array([model.cost for model in models])
        self.leaf_rows_ = np.bincount(partition.leaf, leaf_cost.rows.counts, partition.n_leaves).astype(int)
        self.pattern_rows_ = leaf_cost.rows.counts
        self.certificate_ = replace(partition.certificate, objective=objective)
        self.partition_ = replace(partition, certificate=self.certificate_)
        self.n_leaves_ = partition.n_leaves

    def apply(self, X: Any) -> IntArray:
        """The leaf of each row."""
        return self._routed(X)[0]

    def _routed(self, X: Any) -> tuple[IntArray, FloatArray]:
        """Leaf and leaf features of each row, after the warnings or errors of ``on_unseen_pattern``."""
        check_is_fitted(self)
        X = read_features(self, X, reset=False)
        never_missing = np.flatnonzero(np.isnan(X).any(axis=0) & ~self.leaf_features_.missable)
        filled, M = self.leaf_features_.split(X)
        treat_unseen(self, never_missing, M, self.partition_.seen, ", and no split or box decides them")
        return self.partition_.assign(M), self.leaf_features_.columns(filled, M)

    def _scores(self, X: Any) -> FloatArray:
        """Predictions of shape (n, outputs)."""
        leaves, A = self._routed(X)
        return leaf_scores(self.leaf_intercepts_, self.leaf_weights_, leaves, A)


def leaf_scores(intercepts: FloatArray, weights: FloatArray, leaves: IntArray, A: FloatArray) -> FloatArray:
    """Predictions from leaf features and leaves, of shape (n, outputs)."""
    scores = np.empty((len(A), intercepts.shape[1]))
    for leaf in np.unique(leaves):
        inside = leaves == leaf
        scores[inside] = A[inside] @ weights[leaf].T + intercepts[leaf]
    return scores


class FiniteRegressor(RegressorMixin, _Finite):
    """Linear regression with one model per leaf of a partition of the missingness patterns.

    Parameters
    ----------
    partitioner : Partitioner, optional
        How leaves are chosen; ``Greedy(max_depth=3)`` by default.
    ridge : float
        Penalty on the squared weights of a leaf.
    leaf_model : {"affine_intercept", "static"}
        Whether the intercept of a leaf is affine in the pattern or constant.
    loss : str or Loss
        "squared", "absolute", "huber", "quantile", or an object such as ``Huber(2.0)``.
    ridge_scale : {"leaf", "sample"}
        The ridge as it is, or times the weight of the leaf.
    scale : bool
        Divide features by the standard deviation of their observed values, which changes the effect of the ridge.
    truncate : bool
        Keep predictions within the range of y in training.
    on_unseen_pattern : {"nearest", "warn", "error"}
        How to treat a new pattern that lies in no leaf or in several: take the leaf of the nearest pattern, silently or
        with a warning, or raise an error.

    Attributes
    ----------
    partition_ : Partition
        The leaves.
    certificate_ : Certificate
        Training cost with its bound.
    leaf_intercepts_, leaf_weights_ : arrays of shape (leaves, outputs) and (leaves, outputs, leaf features)
    leaf_costs_, leaf_rows_ : arrays of shape (leaves,)
    pattern_rows_ : array of shape (patterns,)
        Training rows of each pattern of ``partition_.patterns``.
    n_leaves_, n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from admiss import FiniteRegressor
    >>> from admiss.datasets import make_synthetic
    >>> from admiss.partition import Greedy, OptimalTree
    >>> data = make_synthetic(n=1000, mechanism="censoring", random_state=0)
    >>> greedy = FiniteRegressor(Greedy(max_depth=2)).fit(data.X_train, data.y_train)
    >>> exact = FiniteRegressor(OptimalTree(max_depth=2)).fit(data.X_train, data.y_train)
    >>> bool(exact.certificate_.objective <= greedy.certificate_.objective)
    True
    """

    _task = "regression"

    def __init__(
        self,
        partitioner: Partitioner | None = None,
        ridge: float = 1.0,
        leaf_model: str = "affine_intercept",
        loss: str | Loss = "squared",
        ridge_scale: str = "leaf",
        scale: bool = False,
        truncate: bool = True,
        on_unseen_pattern: str = "nearest",
    ) -> None:
        self.partitioner = partitioner
        self.ridge = ridge
        self.leaf_model = leaf_model
        self.loss = loss
        self.ridge_scale = ridge_scale
        self.scale = scale
        self.truncate = truncate
        self.on_unseen_pattern = on_unseen_pattern

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the leaves and fit their models.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Features, NaN (None, NA, null) if missing.
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional
        """
        partitioner, loss = self._check_parameters()
        with unchanged_on_error(self):
            rows = read_features(self, X, reset=True)
            target = read_regression_target(self, y, len(rows))
            s = read_weights(sample_weight, rows)
            self._fit_leaves(rows, target, s, partitioner, loss)
            self.target_range_ = float(target[s > 0].min()), float(target[s > 0].max())
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predicted target of each row, truncated if ``truncate``."""
        scores = self._scores(X)[:, 0]
        return np.clip(scores, *self.target_range_) if self.truncate else scores


class FiniteClassifier(ClassifierMixin, _Finite):
    """Logistic regression with one model per leaf of a partition of the missingness patterns.

    More than two classes are fitted one against the rest, in the same leaves.

    Parameters
    ----------
    partitioner, ridge, leaf_model, ridge_scale, scale, on_unseen_pattern
        As in :class:`FiniteRegressor`; ``ridge`` must be positive.
    loss : str or Loss
        "logistic".
    class_weight : dict, "balanced" or None
        Weights of the classes, as in scikit-learn.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    partition_, certificate_, leaf_intercepts_, leaf_weights_, leaf_costs_, leaf_rows_, n_leaves_, n_features_in_, \
feature_names_in_
        As in :class:`FiniteRegressor`.

    Examples
    --------
    >>> from admiss import FiniteClassifier
    >>> from admiss.datasets import make_synthetic
    >>> data = make_synthetic(n=500, mechanism="censoring", random_state=0)
    >>> model = FiniteClassifier().fit(data.X_train, data.y_train > 0)
    >>> model.score(data.X_test, data.y_test > 0) > 0.7
    True
    """

    _task = "classification"

    def __init__(
        self,
        partitioner: Partitioner | None = None,
        ridge: float = 1.0,
        leaf_model: str = "affine_intercept",
        loss: str | Loss = "logistic",
        ridge_scale: str = "leaf",
        scale: bool = False,
        class_weight: Any = None,
        on_unseen_pattern: str = "nearest",
    ) -> None:
        self.partitioner = partitioner
        self.ridge = ridge
        self.leaf_model = leaf_model
        self.loss = loss
        self.ridge_scale = ridge_scale
        self.scale = scale
        self.class_weight = class_weight
        self.on_unseen_pattern = on_unseen_pattern

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the leaves and fit their models; parameters as in :meth:`FiniteRegressor.fit`, class labels in y."""
        partitioner, loss = self._check_parameters()
        with unchanged_on_error(self):
            rows = read_features(self, X, reset=True)
            self.classes_, _, targets, s = read_class_targets(self, y, rows, sample_weight)
            self._fit_leaves(rows, np.column_stack(targets), s, partitioner, loss)
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Log-odds of the second class, or of each class against the rest."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class; one-against-the-rest probabilities are scaled to sum to 1."""
        return class_probabilities(self.decision_function(X))

    def predict(self, X: Any) -> Any:
        """Most likely class of each row."""
        codes = most_likely(self.decision_function(X))
        return self.classes_[codes]
