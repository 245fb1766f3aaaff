"""Fit and predictions of finite regression and classification, and the features of the linear models in the leaves.

    static             a(x, m) = ((1 - m_j) (x_j - c_j))_j                      mean imputation, or zero imputation
    affine_intercept   a(x, m) = the same, and m_j for every feature that was missing in training; one of features that
                       were always missing together

c_j is the mean of the observed training values, or 0. The difference is rounded to a double: it is the data of the
program. The ridge penalises the weights of a_j / scale_j, with 1 or the standard deviation of the observed training
values as scale: d_j = scale_j^2 for the weight of a_j. For the solvers, features are divided by powers of two near the
standard deviations, which changes no digit, and the d_j with them.

A feature that was never observed in training is left out of the model; one that was never missing in training is set to
its training mean if it is missing later.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from admiss.estimator.notices import ON_UNSEEN_PATTERN, treat_unseen, warn_never_observed
from admiss.estimator.scaling import centre_of, observed_moments, observed_scale, power_of_two
from admiss.estimator.validation import (
    AllowsMissing,
    feature_names,
    is_number,
    read_features,
    read_samples,
    refuse_arguments,
    require_choice,
    require_flags,
    unchanged_on_error,
)
from admiss.finite.program import PartitionProgram
from admiss.partition.base import Partition, Partitioner
from admiss.partition.greedy import Greedy
from admiss.patterns import PatternTable, missing_once
from formulations.arrays import BoolArray, FloatArray, IntArray
from formulations.certificate import ROUNDING, SOLVERS_BOUND, Certificate, plain_value
from formulations.leaves.cost import RIDGE_SCALES, LeafCost, PatternRows
from formulations.leaves.logistic import LogisticLeafCost
from formulations.leaves.squared import SquaredLeafCost
from formulations.leaves.squared_estimates import SquaredEstimates
from formulations.log_link import LogLink
from formulations.losses import LOSSES, Logistic, Loss, Squared, resolve_loss

LEAF_MODELS = ("affine_intercept", "static")


@dataclass(frozen=True)
class LeafFeatures:
    """A fitted map from rows to leaf features.

    Attributes
    ----------
    leaf_model : str
    observed : int array
        Features that were observed in training.
    missable : bool array of shape (d,)
        Features that were missing somewhere in training.
    indicators : int array
        Features whose m_j is a leaf feature; it would be constant for a feature that is never observed.
    mean : float array of shape (d,)
        Training means of the features that were never missing, NaN for the others.
    centre, scale : float arrays of shape (d,)
        c_j and scale_j.
    unit : float array of shape (d,)
        Powers of two near the standard deviations.
    """

    leaf_model: str
    observed: IntArray
    missable: BoolArray
    indicators: IntArray
    mean: FloatArray
    centre: FloatArray
    scale: FloatArray
    unit: FloatArray

    @classmethod
    def fit(cls, X: FloatArray, s: FloatArray, leaf_model: str, centre: bool, scale: bool) -> "LeafFeatures":
        """Means, scales and features with missing values, from the training rows."""
        M = np.isnan(X)
        missable, observed = np.asarray(M.any(axis=0)), np.flatnonzero(~M.all(axis=0))
        indicators = missing_once(M)
        part = X if len(observed) == X.shape[1] else X[:, observed]
        moments = observed_moments(part, s)[:3]
        return cls.of_moments(missable, indicators, observed, moments, leaf_model, centre, scale)

    @classmethod
    def of_moments(
        cls,
        missable: BoolArray,
        indicators: IntArray,
        observed: IntArray,
        moments: tuple[FloatArray, FloatArray, FloatArray],
        leaf_model: str,
        centre: bool,
        scale: bool,
    ) -> "LeafFeatures":
        """The map for features with these means, deviations and largest sizes of their observed values.

        ``indicators`` are the features that are missing somewhere, one of those that are always missing together.
        """
        means, deviation, size = moments
        mean = np.full(len(missable), np.nan)
        middle = np.zeros(len(missable))
        spread = np.ones(len(missable))
        mean[~missable] = means[~missable[observed]]
        spread[observed] = observed_scale(deviation, size)[0]
        if centre:
            middle[observed] = centre_of(means, deviation)
        unit = power_of_two(spread)
        indicators = np.intersect1d(observed, indicators) if leaf_model != "static" else indicators[:0]
        spread = spread if scale else np.ones_like(spread)
        return cls(leaf_model, observed, missable, indicators, mean, middle, spread, unit)

    @property
    def never_observed(self) -> IntArray:
        """Features that were never observed in training."""
        return np.setdiff1d(np.arange(len(self.missable)), self.observed)

    @property
    def column_unit(self) -> FloatArray:
        """Powers of two by which the solvers divide the leaf features."""
        return np.append(self.unit[self.observed], np.ones(len(self.indicators)))

    def split(self, X: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Features and patterns; a feature that was never missing in training is set to its mean."""
        M = np.isnan(X)
        filled = M & ~self.missable
        if filled.any():
            X = np.where(filled, self.mean, X)
            M &= self.missable
        M[:, self.never_observed] = True  # as in training
        return X, M

    def columns(self, X: FloatArray, M: BoolArray) -> FloatArray:
        """Leaf features of rows, from :meth:`split`."""
        k = len(self.observed)
        A = np.empty((len(X), k + len(self.indicators)))
        if k < X.shape[1]:
            X = X[:, self.observed]
            M_observed = M[:, self.observed]
            centre = self.centre[self.observed]
        else:
            M_observed, centre = M, self.centre
        np.subtract(X, centre, out=A[:, :k])
        np.copyto(A[:, :k], 0.0, where=M_observed)
        A[:, k:] = M[:, self.indicators]
        return A

    @property
    def ridge_weights(self) -> FloatArray:
        """d_j of every leaf feature in units of the solvers."""
        return np.append((self.scale[self.observed] / self.unit[self.observed]) ** 2, np.ones(len(self.indicators)))

    def pattern_rows(self, X: FloatArray, y: FloatArray, s: FloatArray) -> PatternRows:
        """Training rows grouped by pattern, their leaf features in units of the solvers."""
        filled, M = self.split(X)
        A = self.columns(filled, M)
        A /= self.column_unit
        ridge_weights, table = self.ridge_weights, PatternTable.of(M)
        return PatternRows.of(table.patterns, table.codes, A, y, s, ridge_weights)

    def leaf_cost(
        self,
        X: FloatArray,
        y: FloatArray,
        s: FloatArray,
        loss: Loss,
        ridge: float,
        ridge_scale: str,
        proofs: bool = True,
    ) -> LeafCost:
        """The cost of leaves of training rows: in closed form, by Newton's method, or by a cvxpy program.

        Without proofs, it is only as accurate as comparisons of predictions need.
        """
        rows = self.pattern_rows(X, y, s)
        if isinstance(loss, Squared):
            kind = SquaredLeafCost if proofs else SquaredEstimates
            return kind(rows, ridge, ridge_scale)
        if isinstance(loss, Logistic):
            return LogisticLeafCost(rows, ridge, ridge_scale)
        from formulations.leaves.any_loss import ProgramLeafCost  # imports cvxpy

        return ProgramLeafCost(rows, loss, ridge, ridge_scale)


class FiniteModel(AllowsMissing, BaseEstimator):
    """Fit and predictions, for both tasks."""

    # Parameters with which the program is that of the paper.
    _printed: ClassVar[dict[str, Any]] = {"ridge": 0.0, "leaf_model": "static", "center": False, "scale": False}

    partitioner: Partitioner | None
    ridge: float
    leaf_model: str
    loss: str | Loss
    ridge_scale: str
    center: bool
    scale: bool
    on_unseen_pattern: str
    certificate_: Certificate
    classes_: Any
    target_range_: tuple[float, float]

    _task: str
    _flags: tuple[str, ...] = ("center", "scale")

    @classmethod
    def paper(cls, **parameters: Any) -> Self:
        """Algorithm 1 of the paper as it is printed: greedy splits, each leaf a linear model without penalty.

        A leaf has the sum of the losses of b_q + <w_q, x>_m as its cost, with 0 in place of a missing value, and
        predictions are not limited. By default leaves have a ridge, without which a small leaf fits its rows; an
        intercept for each missing feature, since patterns within a leaf differ; and centred and scaled features, on
        whose origin and units a ridge would depend; a regression keeps its predictions within the range of y, as
        Theorem 1 does. A classification has a ridge of 1e-6 instead of none, since separable leaves have no fit.

        Parameters
        ----------
        **parameters
            Of the estimator, such as ``partitioner=Greedy(max_depth=4)``; those given replace the printed ones.
        """
        return cls(**(cls._printed | parameters))

    def _check_parameters(self) -> tuple[Partitioner, Loss]:
        loss = resolve_loss(self.loss)
        if isinstance(loss, LogLink):
            raise ValueError(f"{type(self).__name__} takes no loss with a log link: use AdaptiveRegressor for {loss}.")
        if loss.task != self._task:
            fitting = ", ".join(repr(name) for name, other in LOSSES.items() if other.task == self._task)
            raise ValueError(f"The loss {self.loss!r} is for {loss.task}: {type(self).__name__} takes {fitting}.")
        partitioner = Greedy() if self.partitioner is None else self.partitioner
        if not isinstance(partitioner, Partitioner):
            raise ValueError(f"partitioner must be a partitioner such as Greedy(max_depth=3), not {partitioner!r}.")
        partitioner.check_limits()
        if not is_number(self.ridge):
            raise ValueError(f"ridge must be a non-negative number, not {self.ridge!r}.")
        require_choice(self, "leaf_model", LEAF_MODELS)
        require_choice(self, "ridge_scale", RIDGE_SCALES)
        require_choice(self, "on_unseen_pattern", ON_UNSEEN_PATTERN)
        require_flags(self, *self._flags)
        return partitioner, loss

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **unknown: Any) -> Self:
        """Choose the leaves and fit their models.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Features, NaN (None, NA, null) if missing.
        y : array of shape (n,)
            Target, or class labels.
        sample_weight : array of shape (n,), optional
            A weight equals that many copies of the row.
        **unknown
            Refused.
        """
        if unknown:
            refuse_arguments(self, unknown)
        partitioner, loss = self._check_parameters()
        with unchanged_on_error(self):
            self._fit_leaves(*self._read(X, y, sample_weight, reset=True), partitioner, loss)
        return self

    def _read(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Features, targets and weights of the rows of positive weight."""
        samples = read_samples(self, X, y, sample_weight, task=self._task, reset=reset).of_positive_weight()
        if samples.classes is None:
            target = samples.targets[0]
            if reset:
                self.target_range_ = float(target.min()), float(target.max())
            return samples.X, target, samples.s
        if reset:
            self.classes_ = samples.classes
        elif not np.array_equal(samples.classes, self.classes_):
            raise ValueError(f"y must have the classes of the fitted model, {', '.join(map(str, self.classes_))}.")
        return samples.X, np.column_stack(samples.targets), samples.s

    def _fit_leaves(self, X: FloatArray, y: FloatArray, s: FloatArray, partitioner: Partitioner, loss: Loss) -> None:
        """Choose and fit the leaves."""
        self._fit_leaf_features(X, s)
        self._fit_partition(X, y, s, partitioner, loss)
        self.certificate_ = replace(self.certificate_, evidence=self._evidence())

    def _fit_leaf_features(self, X: FloatArray, s: FloatArray) -> None:
        """Centres and scales."""
        self.leaf_features_ = LeafFeatures.fit(X, s, self.leaf_model, bool(self.center), bool(self.scale))
        if len(self.leaf_features_.never_observed):
            warn_never_observed(feature_names(self), self.leaf_features_.never_observed)

    def _fit_partition(self, X: FloatArray, y: FloatArray, s: FloatArray, partitioner: Partitioner, loss: Loss) -> None:
        """Choose and fit the leaves, with costs from the rows of each pattern."""
        leaf_cost = self.leaf_features_.leaf_cost(X, y, s, loss, float(self.ridge), self.ridge_scale)
        self._adopt(leaf_cost, partitioner.partition(leaf_cost.rows, leaf_cost, feature_names(self)))

    def program(
        self, X: Any, y: Any, sample_weight: Any = None, integer: bool | None = None, last_splits: str = "all"
    ) -> PartitionProgram:
        """The program whose solution is the partition, as a Pyomo model that can be read, changed, exported and solved.

        Nothing is solved, and the estimator is left as it is. The partitioner is one of
        :class:`~admiss.partition.OptimalTree`, :class:`~admiss.partition.BoxPartition` and
        :class:`~admiss.partition.PatternGroups`.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``.
        integer : bool, optional
            Whether variables are declared binary. By default, :meth:`~admiss.finite.program.PartitionProgram.solve`
            does so if a solution of the relaxation is fractional.
        last_splits : {"all", "best"}
            Of trees: whether the last split of a box may be any, so that constraints on features hold at every level,
            or is the cheapest, which makes the program smaller.

        Returns
        -------
        PartitionProgram
        """
        estimator = clone(self)
        partitioner, loss = estimator._check_parameters()
        if integer is not None and not isinstance(integer, bool | np.bool_):
            raise ValueError(f"integer must be True, False or None, not {integer!r}.")
        rows, target, s = estimator._read(X, y, sample_weight, reset=True)
        estimator._fit_leaf_features(rows, s)
        leaf_cost = estimator.leaf_features_.leaf_cost(
            rows, target, s, loss, float(estimator.ridge), estimator.ridge_scale
        )
        stated = partitioner.program(leaf_cost, feature_names(estimator), integer, last_splits)
        return PartitionProgram(estimator, leaf_cost, stated, integer)

    def _evidence(self) -> dict[str, Any]:
        """Program and solution, see :mod:`admiss.estimator.evidence`."""
        partitioner, partition = self.partitioner, self.partition_
        names = list(getattr(self, "feature_names_in_", []))
        split_features = getattr(partitioner, "split_features", None)
        limits = {name: getattr(partitioner, name, None) for name in ("max_depth", "max_leaves", "min_rows")}
        program: dict[str, Any] = {
            "task": self._task,
            "ridge": float(self.ridge),
            "ridge_scale": self.ridge_scale,
            "leaf_model": self.leaf_model,
            "center": bool(self.center),
            "scale": bool(self.scale),
            "partitioner": "Greedy" if partitioner is None else type(partitioner).__name__,
            "split_features": None
            if split_features is None
            else [names.index(f) if isinstance(f, str) else int(f) for f in split_features],
            **{name: None if value is None else int(value) for name, value in limits.items()},
        }
        if partitioner is None:
            program["max_depth"] = 3
        boxes = partition.boxes
        solution = {
            "boxes": None if boxes is None else [[[int(j), bool(m)] for j, m in box] for box in boxes],
            "tree": _nested_lists(partition.tree),
            "is_tree": bool(partition.is_tree),
        }
        arrays = {
            "patterns": partition.patterns,
            "leaf": partition.leaf,
            "leaf_intercepts": self.leaf_intercepts_,
            "leaf_weights": self.leaf_weights_,
            "leaf_costs": self.leaf_costs_,
            "centre": self.leaf_features_.centre,
            "scale": self.leaf_features_.scale,
            "unit": self.leaf_features_.unit,
        }
        weights = getattr(self, "class_weight", None)
        program["class_weight"] = plain_value(weights) if isinstance(weights, dict) else weights
        program["loss"] = resolve_loss(self.loss).description()
        return {"kind": "finite", "program": program, "solution": solution, "arrays": arrays}

    def leaf_cost(self, X: Any, y: Any, sample_weight: Any = None) -> LeafCost:
        """The costs of all sets of patterns of the training rows as leaves, at the settings of this fitted model.

        Leaf features are those of ``leaf_features_`` in units of the solvers, so that costs are those of
        ``certificate_``.
        """
        check_is_fitted(self)
        rows = self._read(X, y, sample_weight, reset=False)
        return self.leaf_features_.leaf_cost(*rows, resolve_loss(self.loss), float(self.ridge), self.ridge_scale)

    def _adopt(self, leaf_cost: LeafCost, partition: Partition) -> None:
        """Fit the leaves of a partition."""
        models = leaf_cost.models(partition.leaf)
        costs = np.array([model.cost + model.rounding for model in models])
        objective = math.fsum(costs) * (1.0 + 2.0**-52)  # rounded up
        certificate = replace(partition.certificate, objective=objective)
        if certificate.status in ("optimal", SOLVERS_BOUND) and objective - certificate.bound > certificate.tolerance:
            certificate = replace(certificate, status=ROUNDING)
        self.leaf_intercepts_ = np.array([model.intercept for model in models])
        self.leaf_weights_ = np.array([model.weights for model in models]) / self.leaf_features_.column_unit
        self.leaf_costs_ = costs
        self.leaf_rows_ = np.bincount(partition.leaf, leaf_cost.rows.counts).astype(int)
        self.pattern_rows_ = leaf_cost.rows.counts if partition.complete else np.zeros(0, dtype=np.int64)
        self.certificate_ = certificate
        self.partition_ = replace(partition, certificate=certificate)
        self.n_leaves_ = len(models)

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


def _nested_lists(tree: Any) -> Any:
    """A tree as nested lists."""
    return None if tree is None else [int(tree[0]), _nested_lists(tree[1]), _nested_lists(tree[2])]
