"""Checks that different ways to the same model of an adaptivity class agree.

Coefficients against predictions, the fast solver against cvxpy and the stated program, folds against refits, p(F)
against the rank of the columns; also classification and printing. SCS, a first-order method of lower accuracy, agrees
to 1e-2 in predictions and to 1e-4 in the objective.
"""

from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from admiss.adaptivity import Adaptivity
from admiss.bounds import BoundSetting, bias_bound, coefficient_count, generalization_bound
from admiss.bounds.counts import NONLINEAR_ROWS, dense
from admiss.linear.cv import AdaptiveRegressorCV
from admiss.linear.estimators import AdaptiveClassifier
from admiss.linear.penalty import penalty_weights
from admiss.patterns import PatternTable
from admiss.testing.rows import (
    HUGE,
    LAM,
    PATTERN_ROWS,
    Rows,
    by_name,
    cells_of,
    contract_rows,
    fitted_class,
    fitted_model,
    means_of,
    replaces_columns,
    require,
    require_close,
    rows_of_all_patterns,
)
from formulations.arrays import BoolArray, FloatArray
from formulations.certificate import SOLVERS_BOUND


def check_coefficients(adaptivity: Adaptivity) -> None:
    """At every pattern coef_at and intercept_at give the prediction, with weight 0 for missing features."""
    if not adaptivity.linear_at_patterns():
        return
    rows = contract_rows()
    model = fitted_model(adaptivity, rows.X, rows.y)
    new, _ = rows_of_all_patterns()
    for x, predicted in zip(new, model.predict(new), strict=True):
        w = model.coef_at(np.isnan(x))
        wrong = "a missing feature has a nonzero weight: columns must not depend on the value of a missing feature"
        require(np.abs(w[np.isnan(x)]).max(initial=0.0) == 0.0, wrong)
        found = model.intercept_at(np.isnan(x)) + w @ np.nan_to_num(x)
        wrong = "coef_at and intercept_at do not give the prediction: make columns affine in x at every pattern"
        require_close(adaptivity, found, predicted, wrong)


def check_printing(adaptivity: Adaptivity) -> None:
    """A model can be printed by to_text, and as a table by coef_table, with one row per coefficient."""
    rows = contract_rows()
    model = fitted_model(adaptivity, rows.X, rows.y)
    text, table = model.to_text(), model.coef_table()
    require(isinstance(text, str) and text, "to_text returns no text: check names")
    require(table.n_rows == model.coefficients_.size and str(table), "coef_table does not have one row per coefficient")


def check_solvers(adaptivity: Adaptivity) -> None:
    """The fast solver, cvxpy and the stated program, with other solvers, agree."""
    rows = contract_rows()
    model = fitted_model(adaptivity, rows.X, rows.y)
    predicted, objective = model.predict(rows.X), model.certificate_.objective
    wrong = f"its fit is not proven optimal ({model.certificate_.status}): check the scale of columns and structure"
    # the bound of a program with a structure is the solver's
    proven = ("optimal", SOLVERS_BOUND) if adaptivity.has_structure() else ("optimal",)
    require(model.certificate_.status in proven, wrong)
    if not adaptivity.has_structure():
        stated = fitted_model(adaptivity, rows.X, rows.y, solver="cvxpy")
        wrong = "solver='auto' and solver='cvxpy' do not give the same model: columns must not depend on earlier calls"
        require_close(adaptivity, stated.predict(rows.X), predicted, wrong)
        require_close(adaptivity, stated.certificate_.objective, objective, wrong)
    own, _ = _stated_program(model, rows, None)
    wrong = "the certificate has another objective than the stated program: make structure and columns pure functions"
    require_close(adaptivity, own, objective, wrong)
    precisions = (
        {"CLARABEL": (1e-4, 1e-3), "SCS": (1e-4, 1e-2)} if adaptivity.has_structure() else {"OSQP": (1e-5, 1e-3)}
    )
    for solver, (of_objective, of_predictions) in precisions.items():
        value, z = _stated_program(model, rows, solver)
        wrong = f"{solver} finds another optimum of the stated program: check that structure is convex and bounded"
        require_close(adaptivity, value, objective, wrong, of_objective)
        require_close(adaptivity, z, predicted, wrong, of_predictions)


def _stated_program(model: Any, rows: Rows, solver: str | None) -> tuple[float, FloatArray]:
    """Objective and predictions of the program, written out: at the model's coefficients, or solved."""
    import cvxpy as cp

    design = model.design_
    A, n = dense(design.whole(rows.X)), len(rows.y)
    u1, u2 = penalty_weights(design, rows.X, np.ones(n), kind="count", adaptive_penalty=1.0, standardise=True)
    w = cp.Variable(A.shape[1])
    omega, constraints = 0.0, []
    if design.adaptivity.has_structure():
        shape = (len(design.features) + 1, design.n_basis)
        omega, constraints = design.adaptivity.structure(cp.reshape(design.scatter() @ w, shape, order="C"))
    penalty = LAM * (0.5 * (u1 @ cp.abs(w)) + 0.25 * (u2 @ cp.square(w)))
    problem = cp.Problem(cp.Minimize(cp.sum_squares(A @ w - rows.y) / n + penalty + omega), constraints)
    if solver is None:
        w.value = model.coefficients_ * design.column_scale
        if problem.objective.value is None:  # the structure has further variables
            cp.Problem(problem.objective, [*constraints, w == w.value]).solve(solver="CLARABEL")
    else:
        tight = {
            "SCS": {"eps_abs": 1e-7, "eps_rel": 1e-7},
            "OSQP": {"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iter": 50_000},
        }
        problem.solve(solver=solver, **tight.get(solver, {}))
    return float(problem.objective.value), A @ w.value


def check_folds(adaptivity: Adaptivity) -> None:
    """The held-out losses of AdaptiveRegressorCV are those of models refitted in each fold."""
    if adaptivity.has_structure():
        return
    rows, folds = contract_rows(), list(KFold(3).split(np.zeros((sum(PATTERN_ROWS.values()), 1))))
    grid: dict[str, Any] = {"l1_ratios": [0.5], "adaptive_penalties": [1.0], "n_lambdas": 3, "cv": folds}
    for center in (True, False):  # folds with the same origin share sums
        results = AdaptiveRegressorCV(adaptivity, center=center, **grid).fit(rows.X, rows.y).cv_results_
        for lam, loss in zip(results["lam"], results["mean_loss"], strict=True):
            options: dict[str, Any] = {"lam": lam, "center": center}
            errors = [
                fitted_model(adaptivity, rows.X[train], rows.y[train], **options).predict(rows.X[test]) - rows.y[test]
                for train, test in folds
            ]
            wrong = "folds do not refit all that the class learns: store it in attributes of the copy returned by fit"
            require_close(adaptivity, np.mean(np.concatenate(errors) ** 2), loss, wrong, 1e-4)


def check_classification(adaptivity: Adaptivity) -> None:
    """A classifier has finite log-odds, given by its coefficients, on which the solvers agree, and the right limits."""
    rows = contract_rows()
    labels = np.where(_high_in_its_pattern(rows), "high", "low")
    model = AdaptiveClassifier(adaptivity, lam=LAM).fit(rows.X, labels)
    scores = model.decision_function(rows.X)
    require(np.isfinite(scores).all(), "log-odds are not finite: check structure and cells")
    for x, score in zip(rows.X, scores, strict=True) if adaptivity.linear_at_patterns() else ():
        pattern = np.isnan(x)
        found = model.intercept_at(pattern) + model.coef_at(pattern) @ np.nan_to_num(x)
        wrong = "coef_at and intercept_at do not give the log-odds: make columns affine"
        require_close(adaptivity, found, score, wrong)
    if adaptivity.has_structure():
        return
    stated = AdaptiveClassifier(adaptivity, lam=LAM, solver="cvxpy").fit(rows.X, labels).decision_function(rows.X)
    require_close(adaptivity, stated, scores, "solver='auto' and solver='cvxpy' do not give the same log-odds", 1e-4)
    share = means_of((labels == "low").astype(float), cells_of(adaptivity, rows))
    found = AdaptiveClassifier(adaptivity, lam=HUGE, l1_ratio=1.0).fit(rows.X, labels).predict_proba(rows.X)[:, 1]
    wrong = "under a huge penalty probabilities are not the shares of classes: check counts"
    require_close(adaptivity, found, share, wrong)


def _high_in_its_pattern(rows: Rows) -> BoolArray:
    """Whether y is above the median of its pattern: both classes occur in every pattern."""
    codes = PatternTable.of(rows.M).codes
    medians = np.array([np.median(rows.y[codes == code]) for code in range(len(PATTERN_ROWS))])
    return np.asarray(rows.y > medians[codes])


def check_bounds(adaptivity: Adaptivity) -> None:
    """The count p(F) is the rank of the columns over all patterns, and enters the bound of Theorem 1."""
    X, M = rows_of_all_patterns(each=8 if adaptivity.linear_in_x else NONLINEAR_ROWS)
    rank = int(np.linalg.matrix_rank(dense(fitted_class(adaptivity, X).columns(X, M))))
    p = coefficient_count(adaptivity, X.shape[1], n=len(X))
    wrong = f"p(F) is {p}, but the columns have rank {rank} over all patterns:"
    if adaptivity.n_coefficients(X.shape[1], len(X)) is None:
        advice = "the basis must not depend on values of X or on numbers of rows, or n_coefficients must give p(F)"
        require(p == rank, f"{wrong} {advice}")
    else:
        require(p >= rank, f"{wrong} n_coefficients must be an upper bound of it")
    setting = BoundSetting(X.shape[1], sigma2=1.0, L=1.0, bias=0.5)
    few, many = (generalization_bound(setting, n, adaptivity) for n in (1e3, 1e6))
    expected = 1.0 + 8 * 0.5 + (1 + np.log(1e3)) / 1e3 * coefficient_count(adaptivity, X.shape[1], n=1e3)
    wrong = "the bound of Theorem 1 does not use p(F): leave it to the basis"
    require(np.isclose(few.total, expected) and many.total < few.total, wrong)
    if hasattr(adaptivity, "degree") and not adaptivity.has_structure() and not replaces_columns(adaptivity):
        # raises if the declared degree of the weights is wrong
        bias_bound(adaptivity, X.shape[1], 1.0, adaptive_intercept=False)


CHECKS_OF_AGREEMENT = by_name([
    check_coefficients, check_printing, check_solvers, check_folds, check_classification, check_bounds,
])  # fmt: skip
