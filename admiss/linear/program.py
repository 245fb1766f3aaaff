"""The stated program of an adaptive regression, open to be read and changed.

    program = AdaptiveRegressor("affine", lam=5.0).program(X, y)
    problem = program.problem + cp.Problem(cp.Minimize(0), [program.lowest("income") >= 0])
    model = program.solve(problem)

All expressions are affine in one variable, and in the user's units. With the feature x_j centred at c_j and 0 if
missing, a prediction is

    f(x, m) = sum_j w_j(m) (1 - m_j) (x_j - c_j),     w_j(m) = sum_k W_jk phi_k(m),     x_0 = 1, c_0 = 0.
"""

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from admiss.estimator.at_pattern import INTERCEPT, read_pattern
from admiss.estimator.scaling import power_of_two
from admiss.estimator.validation import feature_names, read_features, refuse_extremes
from admiss.linear.describe import columns_at_pattern
from admiss.linear.design import Design, fit_design
from admiss.linear.every_pattern import (
    NotConvexError,
    Weights,
    highest,
    largest_step,
    lowest,
    monotone_features,
    position,
)
from admiss.linear.fit import structure_of
from admiss.linear.logistic import outside_one_class_cells
from admiss.linear.penalty import UnitProgram
from admiss.linear.program_solver import ProgramSolver
from admiss.linear.stated_program import risk_of, solver_name, stated_erm
from formulations.arrays import FloatArray
from formulations.certificate import Certificate, SolverError
from formulations.erm.program import CompiledERM, compile_erm
from formulations.log_link import LogLink
from formulations.losses import Logistic, resolve_loss


class AdaptiveProgram:
    """The program of an adaptive regression or classification on some rows, made by ``AdaptiveRegressor.program``.

    Parameters
    ----------
    model : AdaptiveRegressor or AdaptiveClassifier
        An estimator that has read these rows.
    X : array of shape (n, d)
    y : array of shape (n,)
        Targets; labels are -1 and 1.
    s : array of shape (n,)
        Positive weights.
    exposure : array of shape (n,), optional
        Of rows whose targets are per unit of it, with a log link.

    Attributes
    ----------
    problem : cvxpy.Problem
        Minimise risk + penalty, with the structure of the adaptivity class and the constraints of the estimator.
    risk, penalty : cvxpy.Expression
    lam, l1_ratio : cvxpy.Parameter
        A piecewise linear loss without ridge (lam = 0 or l1_ratio = 1) has no quadratic term, so that linear and
        mixed-integer solvers take the program; these two must then keep the ridge at 0.
    coefficients : cvxpy.Expression of shape (p,)
        In the order of ``coef_table()``.
    variable : cvxpy.Variable of shape (p,)
        Coefficients of centred columns in the unit of the residual of y, of which all expressions are made.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from admiss import AdaptiveRegressor
    >>> X = np.array([[1.0, 0.5], [2.0, np.nan], [3.0, 1.0], [4.0, np.nan], [5.0, 2.5], [6.0, 2.0]])
    >>> y = np.array([1.0, 3.0, 2.0, 5.0, 4.0, 7.0])
    >>> program = AdaptiveRegressor("affine", lam=0.1).program(X, y)
    >>> alike = cp.Problem(cp.Minimize(0), [program.weight("x0") == program.weight("x0", missing=["x1"])])
    >>> model = program.solve(program.problem + alike)
    >>> print((model.coef_at([0, 0]) - model.coef_at([0, 1]))[0].round(6) + 0.0, model.certificate_.status)
    0.0 solver's bound
    """

    def __init__(
        self, model: Any, X: FloatArray, y: FloatArray, s: FloatArray, exposure: FloatArray | None = None
    ) -> None:
        adaptivity, loss = model._check_parameters()
        self._model = model
        if INTERCEPT in feature_names(model):
            raise ValueError(f"No feature may be called {INTERCEPT!r}, which is the name of a row of W: rename it.")
        refuse_extremes(y, s, X, feature_names(model))
        self._design = design = fit_design(X, s, adaptivity, model._design_options())
        if not len(design.pairs):
            raise ValueError("The program has no variables: no column of the design varies, and there is no intercept.")
        model._warn_never_observed(design)
        penalty = model._penalty(design, X, s)
        scaled = UnitProgram.of(design, penalty, loss, float(np.abs(y).max()))
        weights = s if exposure is None else s * loss.weight_of(exposure)
        scaled = replace(scaled, factor=scaled.factor * float(weights.sum() / s.sum()))
        own_penalty = penalty.for_target(scaled.unit, scaled.factor).in_units(scaled.change)  # with lam as a parameter
        q = weights / power_of_two(weights.max())
        risk = risk_of(scaled.design, X, y / scaled.unit, q / q.sum(), scaled.loss)
        certain = np.zeros(len(design.pairs))
        if isinstance(loss, Logistic | LogLink):
            certain, risk = outside_one_class_cells(scaled.design, risk)
            if not len(risk.y):
                raise ValueError("Every cell of the class has rows of a single label: there is no program to solve.")

        self.lam = cp.Parameter(nonneg=True, name="lam", value=float(model.lam))
        self.l1_ratio = cp.Parameter(nonneg=True, name="l1_ratio", value=float(model.l1_ratio))
        self._has_ridge = loss.smooth or self._a2() > 0
        a1, a2 = (cp.CallbackParam(callback=callback, nonneg=True) for callback in (self._a1, self._a2))
        compiled = compile_erm(stated_erm(scaled.design, risk, own_penalty, structure_of(design, scaled)), a1, a2)

        self.variable = compiled.variable
        self.risk = scaled.factor * compiled.risk
        self.penalty = scaled.factor * compiled.penalty
        own = cp.Problem(cp.Minimize(scaled.factor * compiled.problem.objective.expr), compiled.problem.constraints)
        self._solver = ProgramSolver(self.variable, scaled.factor * compiled.factor, scaled.factor * compiled.null)
        w = cp.multiply(np.where(certain != 0, 0.0, 1.0), compiled.w) + certain
        self.coefficients = cp.multiply(scaled.unit / scaled.design.column_scale, w)
        self._as_values = partial(_values_of, compiled, scaled.design.column_scale / scaled.unit, certain)
        self._rows = X, y, s, exposure
        self._W = self._weights() if design.adaptivity.linear_at_patterns() else None
        constraints = self._constraints_of_estimator()
        self._is_changed = bool(constraints)
        self.problem = own + cp.Problem(cp.Minimize(0), constraints) if constraints else own

    def __str__(self) -> str:
        n, p = len(self._rows[1]), len(self._design.pairs)
        lines = [f"program of {type(self._model).__name__}: {n:,} rows, {p:,} coefficients"]
        lines.append("  minimise risk + penalty, plus the structure of the class if it has one")
        lines.append(f"  constraints: {len(self.problem.constraints)}")
        lines.append(f"  parameters: lam = {self.lam.value:g}, l1_ratio = {self.l1_ratio.value:g}")
        if self._W is not None:
            lines.append(f"  W, rows: {', '.join(self._W.features)}")
            lines.append(f"  W, columns: {', '.join(self._W.basis)}")
        return "\n".join(lines)

    def _a1(self) -> float:
        if not self._has_ridge and self._a2() > 0:
            raise ValueError(
                "The program was stated without ridge, for lam = 0 or l1_ratio = 1, and has no quadratic term: state "
                "it again with the new lam and l1_ratio."
            )
        return float(self.lam.value * self.l1_ratio.value)

    def _a2(self) -> float:
        if self.l1_ratio.value > 1:
            raise ValueError(f"l1_ratio must be between 0 and 1, not {self.l1_ratio.value}.")
        return float(self.lam.value * (1.0 - self.l1_ratio.value))

    def _weights(self) -> Weights:
        design = self._design
        names = [feature_names(self._model)[j] for j in design.features]
        basis = design.adaptivity.names(names)
        shape = len(names) + 1, design.n_basis
        W = cp.reshape(design.scatter() @ self.coefficients, shape, order="C")
        lacking = np.flatnonzero(design.position < 0)  # an intercept that the basis lacks
        if len(lacking):
            of_intercept = np.zeros((shape[0], 1))
            of_intercept[0] = 1.0
            W, basis = cp.hstack([W, of_intercept * self.coefficients[lacking[0]]]), [*basis, "1"]
        return Weights(W, [INTERCEPT, *names], basis)

    @property
    def W(self) -> Weights:
        """The weights as a matrix, see :class:`Weights`; not there if predictions are not linear in x at a pattern."""
        if self._W is None:
            raise AttributeError(
                f"Predictions with {self._design.adaptivity!r} are not linear in x at a pattern, so its program has no "
                "weights: it has problem and predictions."
            )
        return self._W

    def _constraints_of_estimator(self) -> list[cp.Constraint]:
        """Those of ``monotonic_cst`` and ``constraints``."""
        constraints = []
        try:
            for name, sign in monotone_features(self._model.monotonic_cst, feature_names(self._model)).items():
                if name in self.W.features:  # otherwise it was never observed
                    constraints.append(self.lowest(name) >= 0 if sign > 0 else self.highest(name) <= 0)
        except (AttributeError, NotConvexError) as error:
            raise ValueError(f"monotonic_cst cannot be used with this class. {error}") from error
        if self._model.constraints is None:
            return constraints
        own = self._model.constraints(self)
        if not (isinstance(own, list | tuple) and all(isinstance(c, cp.Constraint | bool) for c in own)):
            raise ValueError("constraints must be a function of the program that returns a list of cvxpy constraints.")
        return [*constraints, *own]

    def predictions(self, X: Any) -> cp.Expression:
        """f(x, m) of rows: log-odds in classification, with a log link the log of the mean without exposure.

        Without the limits of extrapolation of ``predict``.
        """
        return self.predictions_of(read_features(self._model, X, reset=False))

    def predictions_of(self, X: FloatArray) -> cp.Expression:
        """The same for rows that were read already."""
        return sp.csr_array(self._design.matrix(X)) @ cp.multiply(self._design.column_scale, self.coefficients)

    def _linear_design(self) -> Design:
        """The design of a class that has weights."""
        assert self.W is not None  # otherwise it says why
        return self._design

    def weights_at(self, patterns: Any) -> cp.Expression:
        """w_j(m) of all features, of shape (patterns, d), at patterns that are 0/1 or lists of missing names."""
        design, d = self._linear_design(), self._model.n_features_in_
        patterns = patterns.to_numpy() if hasattr(patterns, "to_numpy") else patterns
        maps = np.zeros((len(patterns), d, len(design.pairs)))
        for i, pattern in enumerate(patterns):
            missing = read_pattern(pattern, feature_names(self._model))[design.features]
            maps[i, design.features] = columns_at_pattern(design, missing)[1] * design.column_scale
        weights = sp.csr_array(maps.reshape(len(patterns) * d, -1)) @ self.coefficients
        return cp.reshape(weights, (len(patterns), d), order="C")

    def weight(self, feature: str, missing: Sequence[str] = ()) -> cp.Expression:
        """w_j(m) at the pattern in which the features ``missing`` are missing."""
        names = feature_names(self._model)
        missing = [missing] if isinstance(missing, str) else missing
        for name in (feature, *missing):
            position(name, names, "feature")
        if feature in missing:
            raise ValueError(f"{feature!r} has no weight where it is missing.")
        return self.weights_at([np.isin(names, list(missing))])[0, names.index(feature)]

    def intercept_at(self, pattern: Any) -> cp.Expression:
        """The intercept at a pattern and x = 0, as ``intercept_at`` of the fitted model."""
        design = self._linear_design()
        missing = read_pattern(pattern, feature_names(self._model))[design.features]
        at_centre, slopes = columns_at_pattern(design, missing)
        at_zero = (at_centre - design.centre @ slopes) * design.column_scale
        return (sp.csr_array(at_zero[None, :]) @ self.coefficients)[0]

    def lowest(self, feature: str) -> cp.Expression:
        """The least w_j(m) over all patterns, concave: ``lowest(feature) >= c`` is a constraint at every pattern.

        Of a class with a model per cell, over the cells that have a weight for the feature.
        """
        return lowest(self.W, self._design, feature)

    def highest(self, feature: str) -> cp.Expression:
        """The largest w_j(m) over all patterns, convex; see :meth:`lowest`."""
        return highest(self.W, self._design, feature)

    def largest_step(self, feature: str) -> cp.Expression:
        """The largest change of a prediction when the feature goes missing, convex.

        Over all patterns of the others and all x within the range of training, before predictions are limited.
        """
        return largest_step(self.W, self._design, self._rows[0], feature)

    def solve(self, problem: cp.Problem | None = None, solver: str = "CLARABEL", **options: Any) -> Any:
        """Solve the program, or a changed one, and return a fitted estimator.

        Parameters
        ----------
        problem : cvxpy.Problem, optional
            Made of this program's expressions; ``problem`` itself by default. Its solution is certified by the bound
            of the solver, that of the unchanged program by a proof of its own, as in ``fit``.
        solver : str
            Any solver that cvxpy has installed.
        **options
            Options of the solver.
        """
        name = solver_name(solver)
        if name not in cp.installed_solvers():
            raise SolverError(
                f"The solver {name} is not installed; cvxpy has {', '.join(cp.installed_solvers())} here."
            )
        lam, l1_ratio = float(self.lam.value), float(self.l1_ratio.value)
        if (problem is None or problem is self.problem) and not options and not self._is_changed:
            X, y, s, exposure = self._rows
            others = {} if exposure is None else {"exposure": exposure}
            y = y if exposure is None else y * exposure
            without = {"constraints": None, "monotonic_cst": None}  # they add nothing
            model = clone(self._model).set_params(lam=lam, l1_ratio=l1_ratio, solver=name, **without)
            fitted = self._with_labels(model).fit(X, self._labels(y), s, **others)
            fitted.set_params(constraints=self._model.constraints, monotonic_cst=self._model.monotonic_cst)
            self.variable.save_value(self._as_values(fitted.coefficients_))
        else:
            fitted = copy.copy(self._model).set_params(lam=lam, l1_ratio=l1_ratio)
            fitted.certificate_ = self.run(self.problem if problem is None else problem, name, options)
            fitted.design_, fitted.coefficients_ = self._design, np.array(self.coefficients.value)
        if fitted._task == "regression":
            fitted.target_range_ = float(self._rows[1].min()), float(self._rows[1].max())
            if isinstance(loss := resolve_loss(fitted.loss), LogLink):
                fitted._set_predictor_range(loss, *self._rows)
        return self._with_names(fitted)

    def run(self, problem: cp.Problem, solver: str, options: dict[str, Any]) -> Certificate:
        """Solve in the solver's units, and certify the values of the variables."""
        return self._solver.run(problem, solver, options)

    def _labels(self, y: FloatArray) -> Any:
        return y if self._model._task == "regression" else self._model.classes_[(y > 0).astype(int)]

    def _with_labels(self, model: Any) -> Any:
        """Class weights are part of the weights of the rows already."""
        return model.set_params(class_weight=None) if "class_weight" in model.get_params() else model

    def _with_names(self, fitted: Any) -> Any:
        if hasattr(self._model, "feature_names_in_"):
            fitted.feature_names_in_ = self._model.feature_names_in_
        if "class_weight" in fitted.get_params():
            fitted.set_params(class_weight=self._model.class_weight)
        return fitted


def _values_of(compiled: CompiledERM, factor: FloatArray, certain: FloatArray, coefficients: FloatArray) -> FloatArray:
    """The variable of the program at the coefficients of a fitted model."""
    w = np.where(certain != 0, 0.0, factor * np.ravel(coefficients))
    return compiled.centred.reduce(w) / compiled.sigma


TWO_CLASSES = "The program is that of two classes: state one against the rest, with y == label as the target."
