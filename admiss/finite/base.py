"""What finite regression and classification share: fit, predictions, and the fitted model in numbers and words.

In leaf q the model is  b_q + sum_j w_qj (1 - m_j) (x_j - c_j) + sum_j v_qj m_j.  At a pattern m it is linear in the
observed features, with intercept  b_q + sum_j v_qj m_j - sum_{j observed} w_qj c_j  and weights  w_qj.
"""

import math
from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from admiss.estimator.at_pattern import INTERCEPT, ModelAtPattern, from_origin, read_pattern
from admiss.estimator.evidence import evidence_of
from admiss.estimator.notices import ON_UNSEEN_PATTERN, treat_unseen, warn_never_observed
from admiss.estimator.validation import (
    AllowsMissing,
    feature_names,
    is_number,
    read_features,
    refuse_extremes,
)
from admiss.finite.leaf_features import LEAF_MODELS, LeafFeatures
from admiss.partition.base import Partition, Partitioner
from admiss.partition.greedy import Greedy
from admiss.patterns import PatternTable, lookup, pattern_name
from admiss.terminal.table import Table
from formulations.arrays import FloatArray, IntArray
from formulations.certificate import ROUNDING, SOLVERS_BOUND, Certificate
from formulations.leaves import leaf_cost_of
from formulations.leaves.cost import RIDGE_SCALES, LeafCost
from formulations.losses import LOSSES, Loss, resolve_loss
from formulations.trees.dynamic_program import Tree, leaves_of

# Patterns of a group that are named; the others are counted.
NAMED_PATTERNS = 3


class FiniteDescription(ModelAtPattern):
    """Mixin of estimators with ``partition_``, ``leaf_features_``, ``leaf_intercepts_`` and ``leaf_weights_``."""

    partition_: Partition
    leaf_features_: LeafFeatures
    leaf_intercepts_: FloatArray
    leaf_weights_: FloatArray
    leaf_rows_: IntArray
    pattern_rows_: IntArray
    leaf_costs_: FloatArray
    n_features_in_: int

    def _linear_model_at(self, pattern: Any) -> tuple[FloatArray, FloatArray]:
        check_is_fitted(self)
        features = self.leaf_features_
        m = read_pattern(pattern, feature_names(self))
        filled, M = features.split(np.where(m, np.nan, 0.0)[None, :])
        leaf = int(self.partition_.assign(M)[0])
        b, w = self.leaf_intercepts_[leaf], self.leaf_weights_[leaf]
        coef = np.zeros((len(b), self.n_features_in_))
        coef[:, features.observed] = w[:, : len(features.observed)]
        intercept, weights = b + features.columns(filled, M)[0] @ w.T, np.where(m, 0.0, coef)
        return (np.asarray(intercept[0]), weights[0]) if len(b) == 1 else (intercept, weights)

    def coef_table(self) -> Table:
        """Coefficients by leaf as a table: leaf, feature, term, coefficient in the user's units.

        The intercept is that of centred features, see ``center``; :meth:`intercept_at` has the one at x = 0.
        """
        check_is_fitted(self)
        columns: dict[str, list[Any]] = {"leaf": [], "class": [], "feature": [], "term": [], "coefficient": []}
        labels = getattr(self, "classes_", [""])
        labels = labels if len(self.leaf_intercepts_[0]) > 1 else labels[-1:]
        for leaf in range(self.partition_.n_leaves):
            for output, label in enumerate(labels):
                for feature, term, value in self._terms(leaf, output):
                    for name, entry in zip(columns, (leaf, label, feature, term, value), strict=True):
                        columns[name].append(entry)
        if len(labels) == 1:
            del columns["class"]
        return Table(**columns)

    def _terms(self, leaf: int, output: int) -> list[tuple[str, str, float]]:
        """Feature, term and coefficient of all terms that can vary in a leaf."""
        features, names = self.leaf_features_, feature_names(self)
        inside = self.partition_.patterns[self.partition_.members(leaf)]
        k = len(features.observed)
        w = self.leaf_weights_[leaf, output]
        always = np.array([inside[:, j].all() for j in features.indicators], dtype=bool)
        intercept = float(self.leaf_intercepts_[leaf, output] + w[k:] @ always)
        rows = [(INTERCEPT, "1", intercept)]
        for column, j in enumerate(features.observed):
            if not inside[:, j].all():
                rows.append((names[j], "value", float(w[column])))
        for column, j in enumerate(features.indicators):
            if inside[:, j].any() and not always[column]:
                rows.append((names[j], "missing", float(w[k + column])))
        return rows

    def pattern_report(self, X: Any, rows: Any = None) -> Table:
        """The patterns of X in words, with their rows here and in training, and their leaf.

        ``rows`` says how often each row of X occurs.
        """
        check_is_fitted(self)
        M = self.leaf_features_.split(read_features(self, X, reset=False))[1]
        table = PatternTable.of(M, rows)
        if self.partition_.complete:
            known = lookup(self.partition_.patterns, table.patterns)
            seen, training_rows = known >= 0, np.where(known >= 0, self.pattern_rows_[known], 0)
        else:
            seen, training_rows = self.partition_.seen(table.patterns), np.full(len(table.patterns), np.nan)
        order = np.argsort(-table.weights, kind="stable")
        names = feature_names(self)
        return Table(
            pattern=[pattern_name(table.patterns[i], names) for i in order],
            rows=table.weights[order].astype(np.int64),
            training_rows=training_rows[order],
            seen=seen[order],
            leaf=self.partition_.assign(table.patterns)[order],
        )

    def leaf_table(self) -> Table:
        """The leaves in words, with their patterns, rows and cost."""
        check_is_fitted(self)
        leaves, complete = range(self.partition_.n_leaves), self.partition_.complete
        return Table(
            leaf=list(leaves),
            holds=[self.leaf_name(leaf) for leaf in leaves],
            patterns=np.bincount(self.partition_.leaf) if complete else np.full(len(leaves), np.nan),
            rows=self.leaf_rows_,
            cost=self.leaf_costs_,
        )

    def leaf_name(self, leaf: int) -> str:
        """A leaf in words."""
        names = feature_names(self)
        if self.partition_.boxes is not None:
            literals = self.partition_.boxes[leaf]
            words = [f"{names[j]} {'missing' if missing else 'observed'}" for j, missing in literals]
            return ", ".join(words) or "every pattern"
        members = self.partition_.members(leaf)
        heaviest = members[np.argsort(-self.partition_.weights[members], kind="stable")]
        words = [pattern_name(self.partition_.patterns[p], names) for p in heaviest[:NAMED_PATTERNS]]
        more = len(members) - len(words)
        return "; ".join(words) + (f"; and {more} more patterns" if more else "")

    def to_text(self, precision: int = 4) -> str:
        """The model in words: the splits, and the formula of each leaf."""
        check_is_fitted(self)
        if self.partition_.is_tree:
            return "\n".join(self._tree_lines(self.partition_.tree, 0, "", precision))
        lines = []
        for leaf in range(self.partition_.n_leaves):
            lines.append(f"leaf {leaf}: {self.leaf_name(leaf)}")
            lines += [f"    {line}" for line in self.leaf_formulas(leaf, precision)]
        return "\n".join(lines)

    def _tree_lines(self, tree: Tree, first: int, indent: str, precision: int) -> list[str]:
        """The lines of a subtree; ``first`` is the number of its first leaf."""
        if tree is None:
            return [indent + line for line in self.leaf_formulas(first, precision)]
        j, observed, missing = tree
        below = indent + "    "
        return [
            f"{indent}if {feature_names(self)[j]} is missing:",
            *self._tree_lines(missing, first + len(leaves_of(observed)), below, precision),
            f"{indent}else:",
            *self._tree_lines(observed, first, below, precision),
        ]

    def leaf_formulas(self, leaf: int, precision: int = 4) -> list[str]:
        """The formula of a leaf; with more than two classes one for each."""
        classes = getattr(self, "classes_", None)
        outputs = len(self.leaf_intercepts_[leaf])
        if classes is None:
            heads = ["y"]
        elif outputs == 1:
            heads = [f"log-odds of {classes[1]}"]
        else:
            heads = [f"log-odds of {label} against the rest" for label in classes]
        return [f"{head} = {self._formula(leaf, output, precision)}" for output, head in enumerate(heads)]

    def _formula(self, leaf: int, output: int, precision: int) -> str:
        (_, _, intercept), *terms = self._terms(leaf, output)
        words = [f"{intercept:.{precision}g}"]
        names, features = feature_names(self), self.leaf_features_
        origins = zip(names, features.centre, features.unit, strict=True)
        values = {name: from_origin(name, origin, unit, precision) for name, origin, unit in origins}
        for feature, term, value in terms:
            if value:
                what = values[feature] if term == "value" else f"[{feature} missing]"
                words.append(f"{'-' if value < 0 else '+'} {abs(value):.{precision}g} {what}")
        return " ".join(words)


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
        objective = math.fsum(costs) * (1.0 + 2.0**-52)  # rounded up
        certificate = replace(partition.certificate, objective=objective)
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
