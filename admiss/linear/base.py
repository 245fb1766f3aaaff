"""Parameters, fit and scores that adaptive regression and classification share."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from admiss.adaptivity import Adaptivity, resolve_adaptivity
from admiss.estimator.evidence import evidence_of
from admiss.estimator.notices import ON_UNSEEN_PATTERN, treat_unseen, warn_never_observed
from admiss.estimator.validation import (
    AllowsMissing,
    feature_names,
    is_number,
    read_features,
    refuse_extremes,
    require_choice,
    require_flags,
)
from admiss.linear.describe import AdaptiveDescription
from admiss.linear.design import Design, fit_design
from admiss.linear.fit import solve_program
from admiss.linear.penalty import AUTO, PENALTY_WEIGHTS, SMALLEST_PENALTY, Penalty, penalty_weights
from admiss.patterns import lookup
from formulations.arrays import FloatArray
from formulations.certificate import total
from formulations.losses import LOSSES, Loss, resolve_loss


class AdaptiveModel(AdaptiveDescription, AllowsMissing, BaseEstimator):
    """Parameters, fit and predictions, for both tasks."""

    _task: str
    # Parameters that are non-negative numbers, and what else they may be.
    _numbers: ClassVar[tuple[str, ...]] = ("lam", "l1_ratio", "adaptive_penalty")
    _other_values: ClassVar[dict[str, Any]] = {"adaptive_penalty": AUTO, "max_extrapolation": np.inf}

    adaptivity: str | Adaptivity
    lam: float
    l1_ratio: float
    adaptive_penalty: float | str
    penalty_weights: str
    center: bool
    scale: bool
    fit_intercept: bool
    loss: str | Loss
    on_unseen_pattern: str
    solver: str

    def _check_parameters(self) -> tuple[Adaptivity, Loss]:
        for name in self._numbers:
            value, largest = getattr(self, name), 1.0 if name == "l1_ratio" else np.inf
            other = self._other_values.get(name, 0.0)
            if type(value) is type(other) and value == other:
                continue
            if not is_number(value, largest):
                kind = "number between 0 and 1" if largest == 1.0 else "non-negative number"
                raise ValueError(f"{name} must be a {kind}, not {value!r}.")
            if name in ("lam", "adaptive_penalty") and 0 < value < SMALLEST_PENALTY:
                raise ValueError(f"{name} must be 0, or at least {SMALLEST_PENALTY:g}, not {value!r}.")
        require_choice(self, "penalty_weights", PENALTY_WEIGHTS)
        require_choice(self, "on_unseen_pattern", ON_UNSEEN_PATTERN)
        require_flags(self, "center", "scale", "fit_intercept")
        if not isinstance(self.solver, str):
            raise ValueError(f"solver must be 'auto', 'cvxpy' or the name of a cvxpy solver, not {self.solver!r}.")
        loss = resolve_loss(self.loss)
        if loss.task != self._task:
            fitting = ", ".join(repr(name) for name, other in LOSSES.items() if other.task == self._task)
            raise ValueError(f"The loss {self.loss!r} is for {loss.task}: {type(self).__name__} takes {fitting}.")
        return resolve_adaptivity(self.adaptivity), loss

    def _fit_targets(
        self, X: FloatArray, targets: list[FloatArray], s: FloatArray, adaptivity: Adaptivity, loss: Loss
    ) -> None:
        """Solve one program per target, over the same design; rows of weight 0 are dropped."""
        used = s > 0
        if not used.all():
            X, s, targets = X[used], s[used], [y[used] for y in targets]
        for y in targets:
            refuse_extremes(y, s, X, feature_names(self))
        design = fit_design(X, s, adaptivity, **self._design_options())
        self._warn_never_observed(design)
        penalty = self._penalty(design, X, s)
        fits = [solve_program(design, X, y, s, loss, penalty, self.solver) for y in targets]
        coefficients = np.array([w for w, _ in fits])
        self.design_ = design
        self.coefficients_ = coefficients[0] if len(targets) == 1 else coefficients
        self.certificate_ = total([certificate for _, certificate in fits])
        self.certificate_ = replace(self.certificate_, evidence=evidence_of(self))

    def _design_options(self) -> dict[str, bool]:
        return {name: bool(getattr(self, name)) for name in ("center", "scale", "fit_intercept")}

    def _warn_never_observed(self, design: Design) -> None:
        if len(design.features) < self.n_features_in_:
            never = np.setdiff1d(np.arange(self.n_features_in_), design.features)
            warn_never_observed(feature_names(self), never)

    def _penalty(self, design: Design, X: FloatArray | None = None, s: FloatArray | None = None) -> Penalty:
        """The penalty of the columns; rows matter only for the authors' weights."""
        weights = penalty_weights(
            design,
            X,
            s,
            kind=self.penalty_weights,
            adaptive_penalty=self.adaptive_penalty,
            standardise=self.scale,
        )
        lam, alpha = float(self.lam), float(self.l1_ratio)
        return Penalty(alpha * lam, (1.0 - alpha) * lam, *weights)

    def _scores(self, X: Any) -> FloatArray:
        """f(x, m), of shape (n,) or (n, classes)."""
        check_is_fitted(self)
        X = read_features(self, X, reset=False)
        design = self.design_
        M = np.isnan(X[:, design.features])
        never_missing = design.features[M.any(axis=0) & ~design.missable]
        treat_unseen(self, never_missing, M, lambda M: lookup(design.patterns.patterns, M) >= 0)
        return design.predictor(X, (self.coefficients_ * design.column_scale).T)
