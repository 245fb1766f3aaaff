"""Fitted adaptive models in numbers and words.

At a pattern m the model is linear in the observed features:  f(x, m) = b(m) + sum_{j observed} w_j(m) x_j.  The row
C(z, m) of the design is affine in the centred features z = x - c, so

    w_j(m) = (C(e_j, m) - C(0, m))' w,        b(m) = C(0, m)' w - sum_{j observed} w_j(m) c_j.

For static weights and an affine intercept this is imputation by mu_j = c_j + b_j / w_j (Section 3.1 of the paper, with
c_j = 0).
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from admiss.estimator.at_pattern import (
    INTERCEPT,
    ModelAtPattern,
    from_origin,
    in_digits,
    names_of_outputs,
    read_pattern,
)
from admiss.estimator.validation import feature_names, read_features
from admiss.linear.design import Design
from admiss.patterns import PatternTable, lookup, pattern_name
from admiss.terminal.table import Table
from formulations.arrays import BoolArray, FloatArray
from formulations.log_link import LogLink
from formulations.losses import resolve_loss


def columns_at_pattern(design: Design, missing: BoolArray) -> tuple[FloatArray, FloatArray]:
    """C(0, m) of shape (p,) and C(e_j, m) - C(0, m) of shape (d, p) at a pattern of the features of the design."""
    steps = np.vstack([np.zeros(len(missing)), np.eye(len(missing))])
    steps[:, missing] = np.where(design.missable, np.nan, design.mean - design.centre)[missing]
    C = design.matrix_of(steps, np.isnan(steps))
    C = C.toarray() if sp.issparse(C) else C
    return C[0], C[1:] - C[0]


class AdaptiveDescription(ModelAtPattern):
    """Mixin of estimators with ``design_``, ``coefficients_`` and ``certificate_``."""

    design_: Design
    coefficients_: FloatArray
    certificate_: Any
    n_features_in_: int
    loss: Any

    def _linear_model_at(self, pattern: Any) -> tuple[FloatArray, FloatArray]:
        check_is_fitted(self)
        if not self.design_.adaptivity.linear_at_patterns():
            raise AttributeError(
                f"Predictions with {self.design_.adaptivity!r} are not linear in x at a pattern, so it has no weights."
            )
        design, missing = self.design_, read_pattern(pattern, feature_names(self))[self.design_.features]
        at_centre, of_slopes = columns_at_pattern(design, missing)
        w = (self.coefficients_ * design.column_scale).T
        slopes = (of_slopes @ w).T
        weights = np.zeros((*slopes.shape[:-1], self.n_features_in_))
        weights[..., design.features] = slopes
        return np.asarray(at_centre @ w - slopes @ design.centre), weights

    @property
    def imputation_(self) -> FloatArray:
        """The values mu_j that the model imputes, in the user's units.

        NaN if w_j = 0, since no imputed value is equivalent to b_j then, and for features left out of the model; the
        training mean for a feature that was never missing.
        """
        check_is_fitted(self)
        design = self.design_
        if not design.adaptivity.imputes_constants():
            raise AttributeError(
                f"{type(design.adaptivity).__name__} is not imputation by constants: imputation_ exists for static "
                "weights with a static or affine intercept."
            )
        d = self.n_features_in_
        shift, w = self._shift_when_missing(), self.coef_at(np.zeros(d, dtype=int))
        with np.errstate(divide="ignore", invalid="ignore"):
            mu = np.where(w != 0, self._origin() + shift / w, np.nan)
        never_missing = design.features[~design.missable]
        mu[..., never_missing] = design.mean[~design.missable]
        return mu

    def _shift_when_missing(self) -> FloatArray:
        """Change of the prediction for x = c when a feature is missing, for each feature."""
        origin = self._origin()
        X = np.vstack([origin, np.where(np.eye(len(origin)) == 1, np.nan, origin)])
        predictions = self.design_.predictor(X, (self.coefficients_ * self.design_.column_scale).T)
        return np.asarray((predictions[1:] - predictions[0]).T)

    def _origin(self) -> FloatArray:
        """c_j of all features of X; 0 for those left out of the model."""
        origin = np.zeros(self.n_features_in_)
        origin[self.design_.features] = self.design_.centre
        return origin

    def coef_table(self) -> Table:
        """Coefficients as a table: feature, basis function, n_k, coefficient in the user's units.

        The intercept is that of centred features, see ``center``; :meth:`intercept_at` has the one at x = 0.
        """
        check_is_fitted(self)
        design = self.design_
        names = [INTERCEPT, *(feature_names(self)[j] for j in design.features)]
        basis = self._basis_names()
        columns: dict[str, Any] = {
            "feature": [names[j] for j, _ in design.pairs],
            "basis": [basis[k] for _, k in design.pairs],
            "n": design.counts,
        }
        if self.coefficients_.ndim == 1:
            return Table(**columns, coefficient=self.coefficients_)
        classes, p = self.classes_, len(design.pairs)  # type: ignore[attr-defined]
        repeated = {name: np.tile(np.asarray(values), len(classes)) for name, values in columns.items()}
        return Table(**{"class": np.repeat(classes, p)}, **repeated, coefficient=self.coefficients_.ravel())

    def _basis_names(self) -> list[str]:
        names = self.design_.adaptivity.names([feature_names(self)[j] for j in self.design_.features])
        return [*names, "1"]  # the last one is for an intercept that the basis lacks

    def pattern_report(self, X: Any, rows: Any = None) -> Table:
        """The patterns of X in words, with their rows here and in training.

        ``rows`` says how often each row of X occurs. Models of row statistics without patterns do not know those of
        their training rows.
        """
        check_is_fitted(self)
        design = self.design_
        X = read_features(self, X, reset=False)
        table = PatternTable.of(np.isnan(X[:, design.features]), rows)
        order = np.argsort(-table.weights, kind="stable")
        names = [feature_names(self)[j] for j in design.features]
        columns: dict[str, Any] = {
            "pattern": [pattern_name(table.patterns[i], names) for i in order],
            "rows": table.weights[order].astype(np.int64),
        }
        if not len(design.patterns.patterns):
            return Table(**columns)
        known = lookup(design.patterns.patterns, table.patterns)
        trained = np.where(known >= 0, design.patterns.counts[known], 0)
        return Table(**columns, training_rows=trained[order], seen=(known >= 0)[order])

    def to_text(self, precision: int = 4) -> str:
        """The model as a formula with one line per feature, without coefficients that are 0."""
        check_is_fitted(self)
        outputs = np.atleast_2d(self.coefficients_)
        names = names_of_outputs(getattr(self, "classes_", None))
        heads = [f"log of {name}" for name in names] if isinstance(resolve_loss(self.loss), LogLink) else names
        formulas = [self._formula(head, w, precision) for head, w in zip(heads, outputs, strict=True)]
        return "\n\n".join([*formulas, *self._imputation_lines(precision)])

    def _formula(self, head: str, w: FloatArray, precision: int) -> str:
        design = self.design_
        features = [feature_names(self)[j] for j in design.features]
        words = design.adaptivity.feature_words(features)
        origins = zip(words, design.centre, design.spread, strict=True)
        names = [INTERCEPT, *(from_origin(*origin, precision) for origin in origins)]
        basis = self._basis_names()
        lines = [f"{head} ="]
        for j in range(len(names)):
            own = np.flatnonzero((design.pairs[:, 0] == j) & (w != 0))
            labels = [basis[k] for k in design.pairs[own, 1]]
            terms = [
                f"{value:+.{precision}g}" + ("" if label == "1" else f" [{label}]")
                for value, label in zip(w[own], labels, strict=True)
            ]
            if terms and (j == 0 or not design.adaptivity.linear_in_x):
                lines += [f"    {term}" for term in terms]
            elif len(terms) == 1 and labels == ["1"]:
                lines.append(f"    {terms[0]} {names[j]}")
            elif terms:
                lines.append(f"    + {names[j]} * ({' '.join(terms)})")
        return "\n".join(lines) if len(lines) > 1 else f"{head} = 0"

    def _imputation_lines(self, precision: int) -> list[str]:
        """The imputed values in words, for a single output."""
        design = self.design_
        if not design.adaptivity.imputes_constants() or self.coefficients_.ndim > 1 or not design.missable.any():
            return []
        names = feature_names(self)
        mu = self.imputation_
        shift = self._shift_when_missing()
        lines = ["The same as a linear model after imputing:"]
        for j, spread in zip(design.features[design.missable], design.spread[design.missable], strict=True):
            if np.isnan(mu[j]):
                adds = f"being missing adds {shift[j]:+.{precision}g}"
                effect = adds if shift[j] else "nor does it matter when missing"
                lines.append(f"    {names[j]}: its weight is 0, no imputed value is equivalent; {effect}")
            else:
                lines.append(f"    {names[j]} = {in_digits(mu[j], spread, precision)}")
        return ["\n".join(lines)]
