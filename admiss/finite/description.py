"""A fitted finite model in numbers and words: its coefficients, leaves and patterns as tables, and its text.

In leaf q the model is  b_q + sum_j w_qj (1 - m_j) (x_j - c_j) + sum_j v_qj m_j.  At a pattern m it is linear in the
observed features, with intercept  b_q + sum_j v_qj m_j - sum_{j observed} w_qj c_j  and weights  w_qj.
"""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from admiss.estimator.at_pattern import INTERCEPT, ModelAtPattern, from_origin, names_of_outputs, read_pattern
from admiss.estimator.validation import feature_names, read_features
from admiss.finite.base import LeafFeatures
from admiss.partition.base import Partition
from admiss.patterns import PatternTable, lookup, pattern_name
from admiss.terminal.table import Table
from formulations.arrays import FloatArray, IntArray
from formulations.trees.dynamic_program import Tree, leaves_of


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
        """A leaf in words; of a group of patterns the three with most rows are named, the others counted."""
        names = feature_names(self)
        if self.partition_.boxes is not None:
            literals = self.partition_.boxes[leaf]
            words = [f"{names[j]} {'missing' if missing else 'observed'}" for j, missing in literals]
            return ", ".join(words) or "every pattern"
        members = self.partition_.members(leaf)
        heaviest = members[np.argsort(-self.partition_.weights[members], kind="stable")]
        words = [pattern_name(self.partition_.patterns[p], names) for p in heaviest[:3]]
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
        heads = names_of_outputs(getattr(self, "classes_", None))
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
