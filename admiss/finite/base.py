"""Fit and predictions that finite regression and classification share."""

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from admiss.estimator.evidence import evidence_of
from admiss.estimator.notices import warn_never_observed
from admiss.estimator.unseen import ON_UNSEEN_PATTERN, treat_unseen
from admiss.estimator.validation import (
    AllowsMissing,
    feature_names,
    is_number,
    read_features,
    refuse_extremes,
)
from admiss.finite.describe import FiniteDescription
from admiss.finite.leaf_features import LEAF_MODELS, LeafFeatures
from admiss.partition.base import Partitioner
from admiss.partition.greedy import Greedy
from admiss.partition.partition import Partition
from formulations.arrays import FloatArray, IntArray
from formulations.certificate import ROUNDING, SOLVERS_BOUND, Certificate
from formulations.leaves import leaf_cost_of
from formulations.leaves.cost import RIDGE_SCALES, LeafCost
from formulations.losses import LOSSES, Loss, resolve_loss


class FiniteModel(FiniteDescription, AllowsMissing, BaseEstimator):
    """Fit and predictions, for both tasks."""

    partitioner: Partitioner | None
    ridge: float
    leaf_model: str
    loss: str | Loss
    ridge_scale: str
    center: bool
    scale: bool
    on_unseen_pattern: str
    certificate_: Certificate

    _task: str

    def _check_parameters(self) -> tuple[Partitioner, Loss]:
        if not is_number(self.ridge):
            raise ValueError(f"ridge must be a non-negative number, not {self.ridge!r}.")
        choices = {
            "leaf_model": LEAF_MODELS, "ridge_scale": RIDGE_SCALES, "on_unseen_pattern": ON_UNSEEN_PATTERN,
        }  # fmt: skip
        for name, known in choices.items():
            if not isinstance(getattr(self, name), str) or getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, not {getattr(self, name)!r}.")
        for name in ("center", "scale", "truncate"):
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
        self.leaf_features_ = LeafFeatures.fit(X, s, self.leaf_model, bool(self.center), bool(self.scale))
        warn_never_observed(feature_names(self), np.setdiff1d(np.arange(X.shape[1]), self.leaf_features_.observed))
        leaf_cost = self._leaf_cost(X, y, s, loss)
        self._adopt(leaf_cost, partitioner.partition(leaf_cost.rows, leaf_cost, feature_names(self)))
        self.certificate_ = replace(self.certificate_, evidence=evidence_of(self))

    def _leaf_cost(self, X: FloatArray, y: FloatArray, s: FloatArray, loss: Loss) -> LeafCost:
        rows = self.leaf_features_.pattern_rows(X, y, s)
        return leaf_cost_of(rows, loss, float(self.ridge), self.ridge_scale)

    @abstractmethod
    def _read(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Features, targets and weights."""

    def leaf_cost(self, X: Any, y: Any, sample_weight: Any = None) -> LeafCost:
        """The costs of all sets of patterns of the training rows as leaves, at the settings of this fitted model.

        Leaf features are those of ``leaf_features_`` in units of the solvers, so that costs are those of
        ``certificate_``.
        """
        check_is_fitted(self)
        rows, targets, s = self._read(X, y, sample_weight, reset=False)
        return self._leaf_cost(rows[s > 0], targets[s > 0], s[s > 0], resolve_loss(self.loss))

    def _adopt(self, leaf_cost: LeafCost, partition: Partition) -> None:
        """Fit the leaves of a partition."""
        models = [leaf_cost.fit(partition.members(leaf)) for leaf in range(partition.n_leaves)]
        costs = np.array([model.cost + model.rounding for model in models])
        certificate = replace(partition.certificate, objective=float(sum(costs)))
        if certificate.status in ("optimal", SOLVERS_BOUND) and certificate.gap > certificate.tolerance:
            certificate = replace(certificate, status=ROUNDING)
        self.leaf_intercepts_ = np.array([model.intercept for model in models])
        self.leaf_weights_ = np.array([model.weights for model in models]) / self.leaf_features_.column_unit
        self.leaf_costs_ = costs
        self.leaf_rows_ = np.bincount(partition.leaf, leaf_cost.rows.counts, partition.n_leaves).astype(int)
        self.pattern_rows_ = leaf_cost.rows.counts if partition.complete else np.zeros(0, dtype=np.int64)
        self.certificate_ = certificate
        self.partition_ = replace(partition, certificate=certificate)
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
        with np.errstate(over="ignore", invalid="ignore"):  # far beyond the training rows
            scores[inside] = A[inside] @ weights[leaf].T + intercepts[leaf]
    return np.nan_to_num(scores)
