"""The stated program of an adaptive regression, open to be read and changed.

    program = AdaptiveRegressor("affine", lam=5.0).program(X, y)
    problem = program.problem + cp.Problem(cp.Minimize(0), [program.lowest("income") >= 0])
    model = program.solve(problem)

All expressions are affine in one variable, and in the user's units. With the feature x_j centred at c_j and 0 if
missing, a prediction is

    f(x, m) = sum_j w_j(m) (1 - m_j) (x_j - c_j),     w_j(m) = sum_k W_jk phi_k(m),     x_0 = 1, c_0 = 0.

**At every pattern.** If weights are affine in the pattern, w_j(m) = a_j + sum_{k != j} B_jk m_k over the features k
that can be missing, each term of the sum is chosen on its own:

    min over m of w_j(m) = a_j - sum_{k != j} max{-B_jk, 0}
    max over m of w_j(m) = a_j + sum_{k != j} max{B_jk, 0},

concave and convex in W: a lower limit on the first, or an upper one on the second, is a constraint at 2^d patterns.
When feature k goes missing, with z = x - c, the prediction changes by

    B_0k - a_k z_k + sum_{j != k} [ (1 - m_j) B_jk z_j - m_j B_kj z_k ].

For given z_k and sign it separates in the pairs (z_j, m_j), and it is linear in z_k: its largest size over all m and
all x in a box is the maximum over 2 signs and 2 ends of z_k of a sum of maxima, convex in W. A feature that was never
missing in training is imputed as its mean if it is missing later: z_k then is x_k minus that mean. With monomials of
order 2 and more, the lowest weight is the minimum of a polynomial over {0, 1}^d, which is NP-hard in general.
"""

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from admiss.estimator.at_pattern import INTERCEPT, read_pattern
from admiss.estimator.scaling import power_of_two
from admiss.estimator.validation import feature_names, read_features, refuse_extremes
from admiss.linear.changed_program import check_changed, violation
from admiss.linear.describe import columns_at_pattern
from admiss.linear.design import Design, fit_design
from admiss.linear.fit import structure_of
from admiss.linear.logistic import outside_one_class_cells
from admiss.linear.penalty import UnitProgram
from admiss.linear.stated_program import risk_of, solver_name, stated_erm
from formulations.arrays import FloatArray
from formulations.certificate import (
    FEASIBLE,
    NOT_CLOSED,
    SOLVERS_BOUND,
    Certificate,
    SolverError,
    certify,
    clock,
    gap_tolerance,
)
from formulations.cone_solver import ATTEMPTS, CANNOT_SOLVE, WITH_VALUES, run, solver_version
from formulations.erm.program import ACCURACY, CompiledERM, compile_erm
from formulations.log_link import LogLink, risk_factor
from formulations.losses import Logistic


class NotConvexError(ValueError):
    """The extremes over all patterns are no convex expressions."""


class Weights:
    """W of shape (d + 1, K): ``W["income", "age missing"]`` is an entry, ``W["income"]`` a row; affine expressions.

    Parameters
    ----------
    expression : cvxpy.Expression
    features : list of str
        Names of the rows; the first is "(intercept)", that of centred features.
    basis : list of str
        Names of the columns.

    Examples
    --------
    >>> W = Weights(cp.Variable((2, 2)), ["(intercept)", "income"], ["1", "income missing"])
    >>> W["(intercept)", "income missing"].shape, W["income"].shape
    ((), (2,))
    """

    def __init__(self, expression: cp.Expression, features: list[str], basis: list[str]) -> None:
        self.expression = expression
        self.features = features
        self.basis = basis

    def __getitem__(self, key: Any) -> cp.Expression:
        feature, *basis = key if isinstance(key, tuple) else (key,)
        if len(basis) > 1:
            raise KeyError(f"W takes a feature and a basis function, not {key!r}.")
        row = position(feature, self.features, "feature")
        if not basis:
            return self.expression[row, :]
        return self.expression[row, position(basis[0], self.basis, "basis function")]


def position(name: Any, names: Sequence[str], kind: str) -> int:
    """The position of a name, or of a number."""
    if not isinstance(name, str):
        return int(range(len(names))[name])
    if name not in names:
        raise KeyError(f"There is no {kind} {name!r} in the program: it has {', '.join(names)}.")
    return list(names).index(name)


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
        factor = risk_factor(loss, exposure)
        weights = s if factor is None else s * factor
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
        self._unit = scaled.factor * compiled.factor
        self._null = scaled.factor * compiled.null
        w = cp.multiply(np.where(certain != 0, 0.0, 1.0), compiled.w) + certain
        self.coefficients = cp.multiply(scaled.unit / scaled.design.column_scale, w)
        self._as_values = partial(_values_of, compiled, scaled.design.column_scale / scaled.unit, certain)
        self._rows = X, y, s, exposure
        self._solved: tuple[cp.Problem, cp.Problem] | None = None
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
        """f(x, m) of rows as in ``predict``, log-odds in classification, without limits of extrapolation."""
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
        if self._design.adaptivity.cells:
            return cp.min(self._weights_of_cells(feature))
        constant, changes = self._affine_weight(feature)
        return constant - cp.sum(cp.neg(changes)) if changes is not None else constant

    def highest(self, feature: str) -> cp.Expression:
        """The largest w_j(m) over all patterns, convex; see :meth:`lowest`."""
        if self._design.adaptivity.cells:
            return cp.max(self._weights_of_cells(feature))
        constant, changes = self._affine_weight(feature)
        return constant + cp.sum(cp.pos(changes)) if changes is not None else constant

    def _weights_of_cells(self, feature: str) -> cp.Expression:
        pairs, row = self._design.pairs, position(feature, self.W.features, "feature")
        columns = pairs[pairs[:, 0] == row, 1]
        return self.W.expression[row, columns] if len(columns) else cp.Constant(np.zeros(1))

    def _affine_columns(self) -> dict[int, int]:
        """The basis function m_k of each feature k that can be missing, in classes that are affine in the pattern."""
        adaptivity = self._design.adaptivity
        degrees = adaptivity.degrees()
        if degrees is None or adaptivity.cells:
            raise NotConvexError(
                f"The extremes over all patterns of {adaptivity!r} are not known as convex expressions: constrain "
                "weights_at(patterns) instead, or use static or affine weights."
            )
        sets = vars(adaptivity)["monomials_"]
        if degrees[1] > 1 and sets.sum(axis=1).max(initial=0) > 1:
            raise NotConvexError(
                f"The extremes over all patterns of {adaptivity!r} are those of polynomials on {{0, 1}}^d, which is "
                "NP-hard in general: constrain weights_at(patterns) instead, or use affine weights."
            )
        return {int(np.flatnonzero(J)[0]): k for k, J in enumerate(sets) if J.any()}

    def _affine_weight(self, feature: str) -> tuple[cp.Expression, cp.Expression | None]:
        """w_j(0), and its changes when other features go missing, if there are any."""
        row = position(feature, self.W.features, "feature")
        columns = [column for k, column in self._affine_columns().items() if k != row - 1]
        if not columns:
            return self.W.expression[row, 0], None
        return self.W.expression[row, 0], self.W.expression[row, columns]

    def largest_step(self, feature: str) -> cp.Expression:
        """The largest change of a prediction when the feature goes missing, convex.

        Over all patterns of the others and all x within the range of training, before predictions are limited.
        """
        design, column = self._design, self._affine_columns()
        k = position(feature, self.W.features, "feature") - 1
        if k < 0:
            raise ValueError("The intercept cannot go missing: name a feature.")
        W = self.W.expression
        observed = self._rows[0][:, design.features] - design.centre
        low, high = np.nanmin(observed, axis=0), np.nanmax(observed, axis=0)
        imputed = 0.0 if design.missable[k] else float(design.mean[k] - design.centre[k])
        others = [j for j in range(len(low)) if j != k]
        steps = []
        for z in (low[k] - imputed, high[k] - imputed):
            for sign in (1.0, -1.0):
                total = -sign * z * W[k + 1, 0]
                if k in column:
                    total = total + sign * W[0, column[k]]
                for j in others:
                    choices = [sign * end * W[j + 1, column[k]] for end in (low[j], high[j]) if k in column]
                    choices += [-sign * z * W[k + 1, column[j]]] if j in column else []
                    choices += [] if k in column else [cp.Constant(0.0)]
                    total = total + (cp.max(cp.hstack(choices)) if len(choices) > 1 else choices[0])
                steps.append(total)
        return cp.max(cp.hstack(steps))  # cvxpy 1.9.3 derives wrong limits for cp.maximum, which HiGHS uses

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
            fitted._set_predictor_range(*self._rows)
        return self._with_names(fitted)

    def run(self, problem: cp.Problem, solver: str, options: dict[str, Any]) -> Certificate:
        """Solve in the solver's units, and certify the values of the variables."""
        check_changed(problem, solver, self.variable)
        start, tried = clock(), []
        scaled, best = self._in_units_of_solver(problem), None
        for attempt in [options] if options else ATTEMPTS.get(solver, [{}]):
            status, unproven = run(scaled, solver, attempt)
            tried.append(status)
            if status not in (*WITH_VALUES, cp.USER_LIMIT) or problem.objective.value is None:
                continue
            for variable in problem.variables():  # so that a large factor of an integer cannot hide its error
                if variable.attributes["boolean"] is True or variable.attributes["integer"] is True:
                    variable.save_value(np.round(variable.value))
            objective, values = float(problem.objective.value), [v.value for v in problem.variables()]
            tolerance = gap_tolerance(objective, self._null)
            worst = max((violation(c, self.variable) for c in problem.constraints), default=0.0)
            bound = objective - self._unit * unproven - ACCURACY * max(abs(objective), self._null)
            certificate = certify(
                objective, bound if worst <= FEASIBLE else -np.inf, tolerance,
                NOT_CLOSED if worst <= FEASIBLE else f"constraints are violated by {worst:.1g} of their terms",
                solver, solver_version(solver), start, rigorous=False,
            )  # fmt: skip
            if best is None or certificate.gap < best[0].gap:
                best = certificate, values, self._multipliers(problem)
            if certificate.gap <= tolerance:
                break
        if best is None:
            raise SolverError(self._failure(problem, solver, tried))
        for variable, value in zip(problem.variables(), best[1], strict=True):
            variable.save_value(value)
        for dual, value in best[2]:
            dual.save_value(value)
        if best[0].status not in ("optimal", SOLVERS_BOUND):
            warnings.warn(
                f"{solver} has not solved the changed program, its certificate says {best[0].status!r}: use other "
                "options or another solver.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return best[0]

    def _multipliers(self, problem: cp.Problem) -> list[tuple[cp.Variable, Any]]:
        """The multipliers of the constraints, in the units of the problem instead of those of the solver."""
        duals = [dual for constraint in problem.constraints for dual in constraint.dual_variables]
        return [(dual, self._unit * dual.value) for dual in duals if dual.value is not None]

    def _in_units_of_solver(self, problem: cp.Problem) -> cp.Problem:
        """The problem divided by its unit; the last one is kept, so that cvxpy compiles it once."""
        if self._solved is None or self._solved[0] is not problem:
            self._solved = problem, cp.Problem(cp.Minimize(problem.objective.expr / self._unit), problem.constraints)
        return self._solved[1]

    def _failure(self, problem: cp.Problem, solver: str, tried: list[str]) -> str:
        if any("infeasible" in status for status in tried):
            status, _ = run(cp.Problem(cp.Minimize(0.0), problem.constraints), solver, {})
            if status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
                return "The constraints contradict each other: no coefficients satisfy them all."
        if cp.UNBOUNDED in tried:
            return "The program is unbounded: what was added to the objective has no least value."
        if CANNOT_SOLVE in tried:
            return f"{solver} takes no programs of this kind (cones or integers): use CLARABEL, or HIGHS for integers."
        return f"The program was not solved: {solver} ended with {', then '.join(dict.fromkeys(tried))}."

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


def monotone_features(monotonic_cst: Any, names: list[str]) -> dict[str, int]:
    """The features with a sign, from a dictionary by name or an array with -1, 0 or 1 for each feature."""
    if monotonic_cst is None:
        return {}
    if isinstance(monotonic_cst, Mapping):
        try:
            signs = {names[position(name, names, "feature")]: sign for name, sign in monotonic_cst.items()}
        except (KeyError, IndexError, TypeError) as error:
            raise ValueError(
                f"monotonic_cst must name features, {', '.join(names)}, not {list(monotonic_cst)}."
            ) from error
    elif np.shape(monotonic_cst) == (len(names),):
        signs = dict(zip(names, monotonic_cst, strict=True))
    else:
        raise ValueError(
            f"monotonic_cst must be a dictionary of features, or an array of {len(names)} numbers -1, 0 or 1."
        )
    if any(sign not in (-1, 0, 1) for sign in signs.values()):
        raise ValueError(f"monotonic_cst must have the values -1, 0 or 1, not {list(signs.values())}.")
    return {name: int(sign) for name, sign in signs.items() if sign}


TWO_CLASSES = "The program is that of two classes: state one against the rest, with y == label as the target."
