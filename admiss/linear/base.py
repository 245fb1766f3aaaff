"""Parameters, fit and scores that adaptive regression and classification share."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from admiss.adaptivity import Adaptivity, resolve_adaptivity
from admiss.estimator.notices import ON_UNSEEN_PATTERN, treat_unseen, warn_never_observed
from admiss.estimator.validation import (
    AllowsMissing,
    Samples,
    feature_names,
    is_number,
    read_features,
    read_samples,
    refuse_arguments,
    require_choice,
    require_flags,
    unchanged_on_error,
)
from admiss.linear.describe import AdaptiveDescription
from admiss.linear.design import Design, DesignOptions, fit_design, sums_are_faster
from admiss.linear.fit import solve_moments, solve_on_design
from admiss.linear.logistic import predictor_range
from admiss.linear.penalty import AUTO, PENALTY_WEIGHTS, SMALLEST_PENALTY, Penalty, penalty_weights
from admiss.linear.squared import TrainingRows
from admiss.linear.training_sums import TrainingSums
from admiss.patterns import lookup
from formulations.arrays import FloatArray
from formulations.certificate import Certificate, plain_value, total
from formulations.log_link import LogLink
from formulations.losses import LOSSES, Loss, Squared, resolve_loss

if TYPE_CHECKING:
    from admiss.linear.program import AdaptiveProgram

# Name of the attribute with the rows that were added so far, see :meth:`AdaptiveRegressor.partial_fit`.
STATISTICS = "_statistics"


class AdaptiveModel(AdaptiveDescription, AllowsMissing, BaseEstimator):
    """Parameters, fit and predictions, for both tasks."""

    _task: str
    # Parameters that are non-negative numbers, and what else they may be.
    _numbers: ClassVar[tuple[str, ...]] = ("lam", "l1_ratio", "adaptive_penalty")
    _other_values: ClassVar[dict[str, Any]] = {"adaptive_penalty": AUTO, "max_extrapolation": np.inf}

    # Parameters with which the program is that of the paper.
    _printed: ClassVar[dict[str, Any]] = {"center": False, "scale": False, "adaptive_penalty": 1.0}

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
    constraints: Any
    monotonic_cst: Any
    classes_: Any
    target_range_: Any
    predictor_range_: tuple[float, float]

    @classmethod
    def paper(cls, **parameters: Any) -> Self:
        """The program of Section 2.4 of the paper as it is printed.

        Minimise the mean loss plus sum_k lambda_k [alpha |w_k| + (1 - alpha) w_k^2 / 2] with lambda_k = lam / n_k, 0 in
        place of a missing value and features in their own units; only the intercept has no penalty. By default features
        are centred and scaled, so that the fit depends neither on their origin nor on their units; the penalty of the
        columns that depend on the pattern is ``adaptive_penalty="auto"`` times as large, since they are many; and a
        regression limits its predictions to twice the range of y.

        Parameters
        ----------
        **parameters
            Of the estimator, such as ``adaptivity`` and ``lam``; those given replace the printed ones.
        """
        return cls(**(cls._printed | parameters))

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **others: Any) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Features, NaN (None, NA, null) if missing.
        y : array of shape (n,)
            Target, or class labels.
        sample_weight : array of shape (n,), optional
            A weight equals that many copies of the row.
        **others
            Refused.
        """
        if others:
            refuse_arguments(self, others)
        return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any, exposure: Any = None) -> Self:
        adaptivity, loss = self._check_parameters()
        with unchanged_on_error(self):
            self.__dict__.pop(STATISTICS, None)
            if self.constraints is not None or self.monotonic_cst is not None:
                self._fit_constrained(X, y, sample_weight, exposure)
                return self
            samples = read_samples(self, X, y, sample_weight, exposure, task=self._task).of_positive_weight()
            if samples.classes is None:
                y = samples.targets[0]
                self.target_range_ = float(y.min()), float(y.max())
            else:
                self.classes_ = samples.classes
            self._fit_rows(samples, adaptivity, loss)
            if isinstance(loss, LogLink):
                self._set_predictor_range(loss, samples.X, samples.targets[0], samples.s, samples.exposure)
        return self

    def program(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None) -> "AdaptiveProgram":
        """The stated program on these rows as a ``cvxpy.Problem`` that can be read, changed and solved.

        Nothing is solved, and the estimator stays as it is. Parameters are those of ``fit``; a classification needs two
        classes. See :class:`admiss.linear.program.AdaptiveProgram`.
        """
        from admiss.linear.program import TWO_CLASSES, AdaptiveProgram

        model = clone(self)
        samples = read_samples(model, X, y, sample_weight, exposure, task=self._task).of_positive_weight()
        if samples.classes is not None:
            model.classes_ = samples.classes
        if len(samples.targets) > 1:
            raise ValueError(TWO_CLASSES)
        return AdaptiveProgram(model, samples.X, samples.targets[0], samples.s, samples.exposure)

    def _fit_constrained(self, X: Any, y: Any, sample_weight: Any, exposure: Any) -> None:
        """Fit the stated program with its constraints."""
        fitted = self.program(X, y, sample_weight, exposure).solve(solver=self.solver)
        read_features(self, X, reset=True)
        for name, value in vars(fitted).items():
            if name.endswith("_"):
                setattr(self, name, value)

    def _check_parameters(self) -> tuple[Adaptivity, Loss]:
        loss, adaptivity = resolve_loss(self.loss), resolve_adaptivity(self.adaptivity)
        if loss.task != self._task:
            fitting = ", ".join(repr(name) for name, other in LOSSES.items() if other.task == self._task)
            raise ValueError(f"The loss {self.loss!r} is for {loss.task}: {type(self).__name__} takes {fitting}.")
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
        is_function = callable(self.constraints) and not isinstance(self.constraints, type)
        if self.constraints is not None and not is_function:
            raise ValueError(
                "constraints must be None, or a function of the program that returns a list of constraints."
            )
        if not isinstance(self.solver, str):
            raise ValueError(f"solver must be 'auto', 'cvxpy' or the name of a cvxpy solver, not {self.solver!r}.")
        return adaptivity, loss

    def _fit_rows(self, samples: Samples, adaptivity: Adaptivity, loss: Loss) -> None:
        """Solve one program per target, over one design; by sums over the rows if they are faster and prove the fit."""
        X, targets, s = samples.X, samples.targets, samples.s
        options = self._design_options()
        by_sums = isinstance(loss, Squared) and self.solver == "auto" and self.penalty_weights == "count"
        if by_sums and self.lam > 0 and sums_are_faster(X, adaptivity):
            y = targets[0]
            sums = TrainingSums.of_rows(X, y, s, None, adaptivity)
            design = sums.design(adaptivity, options)
            fit = solve_moments(sums, design, self._penalty(design))
            if fit is not None and fit[1].status == "optimal":
                w, certificate = fit
                dual = TrainingRows(X, y, s).dual(design, w * design.column_scale)
                self._adopt(design, w, replace(certificate, dual=dual))
                return
        design = fit_design(X, s, adaptivity, options)
        penalty = self._penalty(design, X, s)
        fits = []
        for y in targets:
            fits.append(solve_on_design(design, X, y, s, loss, penalty, self.solver, samples.exposure))
        if len(fits) == 1:
            self._adopt(design, *fits[0])
        else:
            self._adopt(design, np.array([w for w, _ in fits]), total([certificate for _, certificate in fits]))

    def _set_predictor_range(
        self, loss: LogLink, X: FloatArray, y: FloatArray, s: FloatArray, exposure: FloatArray | None
    ) -> None:
        """Store the range of the predictors of a log link."""
        z = self.design_.predictor(X, self.coefficients_ * self.design_.column_scale)
        weights = s if exposure is None else s * loss.weight_of(exposure)
        low, high = predictor_range(z, y, weights, loss)
        self.predictor_range_ = float(low), float(high)

    def _adopt(self, design: Design, coefficients: FloatArray, certificate: Certificate) -> None:
        """Store a fit with the evidence of its certificate."""
        self._warn_never_observed(design)
        self.design_, self.coefficients_ = design, coefficients
        self.certificate_ = replace(certificate, evidence=self._evidence())

    def _warn_never_observed(self, design: Design) -> None:
        if len(design.features) < self.n_features_in_:
            never = np.setdiff1d(np.arange(self.n_features_in_), design.features)
            warn_never_observed(feature_names(self), never)

    def _evidence(self) -> dict[str, Any]:
        """Program and solution, see :mod:`admiss.estimator.evidence`."""
        design = self.design_
        adaptivity, factor = design.adaptivity, self.adaptive_penalty
        weights = getattr(self, "class_weight", None)
        program = {
            "task": self._task,
            "adaptivity": type(adaptivity).__name__,
            "adaptivity_parameters": {name: plain_value(value) for name, value in adaptivity.get_params().items()},
            "lam": float(self.lam),
            "l1_ratio": float(self.l1_ratio),
            "adaptive_penalty": AUTO if factor == AUTO else float(factor),
            "penalty_weights": self.penalty_weights,
            "center": bool(self.center),
            "scale": bool(self.scale),
            "fit_intercept": bool(self.fit_intercept),
            "class_weight": plain_value(weights) if isinstance(weights, dict) else weights,
            "loss": resolve_loss(self.loss).description(),
        }
        arrays = {"coefficients": self.coefficients_, "centre": design.centre, "scale": design.scale}
        return {"kind": "linear", "program": program, "solution": {}, "arrays": arrays}

    def _design_options(self) -> DesignOptions:
        return DesignOptions(bool(self.center), bool(self.scale), bool(self.fit_intercept))

    def _penalty(self, design: Design, X: FloatArray | None = None, s: FloatArray | None = None) -> Penalty:
        """The penalty of the columns; rows matter only for the authors' weights."""
        kind, factor = self.penalty_weights, self.adaptive_penalty
        u1, u2 = penalty_weights(design, X, s, kind=kind, adaptive_penalty=factor, standardise=self.scale)
        lam, alpha = float(self.lam), float(self.l1_ratio)
        return Penalty(alpha * lam, (1.0 - alpha) * lam, u1, u2)

    def _scores(self, X: Any) -> FloatArray:
        """f(x, m), of shape (n,) or (n, classes)."""
        check_is_fitted(self)
        X = read_features(self, X, reset=False)
        design = self.design_
        M = np.isnan(X[:, design.features])
        never_missing = design.features[M.any(axis=0) & ~design.missable]
        treat_unseen(self, never_missing, M, lambda M: lookup(design.patterns.patterns, M) >= 0)
        return design.predictor(X, (self.coefficients_ * design.column_scale).T)
