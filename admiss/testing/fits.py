"""Checks of models fitted with an adaptivity class: unseen patterns, limits, symmetries.

Each compares two computations that must agree: the class with the static one, least squares or means, weights with
copies of rows, and models of rows that are shifted, permuted, in other units, or have one more feature.

Then different ways to the same model: coefficients against predictions, the fast solver against cvxpy and the stated
program, folds against refits, p(F) against the rank of the columns; also classification and printing. SCS, a
first-order method of lower accuracy, agrees to 1e-2 in predictions and to 1e-4 in the objective.
"""

import warnings
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from admiss.adaptivity import Adaptivity, Static
from admiss.bounds import BoundSetting, bias_bound, coefficient_count, generalization_bound
from admiss.bounds.bias import declared_degree
from admiss.bounds.counts import NONLINEAR_ROWS, all_patterns, dense
from admiss.linear.cv import AdaptiveRegressorCV
from admiss.linear.estimators import AdaptiveClassifier
from admiss.linear.penalty import penalty_weights
from admiss.patterns import PatternTable
from admiss.testing.rows import (
    HUGE,
    LAM,
    PATTERN_ROWS,
    ContractRows,
    D,
    by_name,
    cells_of,
    centred,
    contract_rows,
    fitted_class,
    fitted_model,
    fitted_with_size,
    means_of,
    replaces_columns,
    require,
    require_close,
    rows_of_all_patterns,
)
from formulations.arrays import BoolArray, FloatArray
from formulations.certificate import SOLVERS_BOUND


def check_unseen_patterns(adaptivity: Adaptivity) -> None:
    """Patterns not seen in training have a finite prediction, and are reported if requested."""
    rows = contract_rows()
    seen = rows.M.sum(axis=1) <= 1
    new, _ = rows_of_all_patterns()
    fitted = fitted_class(adaptivity, rows.X[seen])
    phi = dense(fitted.basis(all_patterns(new.shape[1])))
    advice = "define the basis for every pattern, for instance by the nearest one that fit has seen"
    require(np.isfinite(phi).all(), f"basis(M) has NaN or infinity on unseen patterns: {advice}")
    size = dense(fitted.basis(rows.M[seen].astype(float))).shape[1]
    require(phi.shape[1] == size, f"basis(M) has other columns on unseen patterns: {advice}")
    model = fitted_model(adaptivity, rows.X[seen], rows.y[seen])
    require(np.isfinite(model.predict(new)).all(), f"predictions on unseen patterns are not finite: {advice}")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        model.set_params(on_unseen_pattern="warn").predict(new)
    try:
        model.set_params(on_unseen_pattern="error").predict(new)
        refused = False
    except ValueError:
        refused = True
    require(warned and refused, "on_unseen_pattern has no effect: leave X and its NaN to the estimator")


def check_complete_data(adaptivity: Adaptivity) -> None:
    """Without missing values the class can be fitted, and without a penalty it is the static one."""
    rows = contract_rows()
    if adaptivity.has_structure() or not adaptivity.linear_in_x:  # other weights, or a penalty on the remaining ones
        predicted = fitted_model(adaptivity, rows.values, rows.y).predict(rows.values)
        wrong = "predictions without missing values are not finite: handle a single basis function"
        require(np.isfinite(predicted).all(), wrong)
        return
    own, static = (fitted_model(a, rows.values, rows.y, lam=0.0).predict(rows.values) for a in (adaptivity, "static"))
    wrong = (
        "without missing values least squares differs from the static class: provide a basis function that is nonzero "
        "if nothing is missing, with every feature in its mask"
    )
    require_close(adaptivity, own, static, wrong)


def check_least_squares(adaptivity: Adaptivity) -> None:
    """Without a penalty the model is least squares on the columns of centred features and an intercept."""
    if adaptivity.has_structure():
        return
    rows = contract_rows()
    X = centred(rows.X) if adaptivity.linear_in_x else rows.X
    columns = dense(fitted_class(adaptivity, X).columns(X, rows.M))
    A = np.column_stack([np.ones(len(columns)), columns])
    expected = A @ np.linalg.lstsq(A, rows.y, rcond=None)[0]
    predicted = fitted_model(adaptivity, rows.X, rows.y, lam=0.0).predict(rows.X)
    wrong = "at lam = 0 the model is not least squares on its columns: make fit and columns consistent"
    require_close(adaptivity, predicted, expected, wrong)


def check_large_penalty(adaptivity: Adaptivity) -> None:
    """Under a huge penalty the prediction is the mean, or that of each cell; with a structure it is constant there."""
    if adaptivity.has_structure() and _has_constraints(adaptivity):
        return  # constraints may require weights under any penalty
    rows = contract_rows()
    predicted = fitted_model(adaptivity, rows.X, rows.y, lam=HUGE, l1_ratio=1.0).predict(rows.X)
    cells = cells_of(adaptivity, rows)
    if adaptivity.has_structure():
        expected, what = means_of(predicted, cells), "constant"
    else:
        expected, what = means_of(rows.y, cells), "the mean of y"
    where = " on each cell" if adaptivity.cells else ""
    wrong = f"under a huge penalty the prediction is not {what}{where}: check counts, and cells (for indicators only)"
    require_close(adaptivity, predicted, expected, wrong)


def _has_constraints(adaptivity: Adaptivity) -> bool:
    import cvxpy as cp

    fitted, K = fitted_with_size(adaptivity)
    return bool(fitted.structure(cp.Variable((D + 1, K)))[1])


def check_large_adaptive_penalty(adaptivity: Adaptivity) -> None:
    """Under a huge penalty on the dependence on the pattern the static model is left, or the means of cells."""
    if adaptivity.has_structure() or replaces_columns(adaptivity):
        return
    rows = contract_rows()
    fitted = fitted_class(adaptivity, rows.X)
    phi, mask = dense(fitted.basis(rows.M.astype(float))), np.asarray(fitted.mask(rows.X.shape[1]))
    constant = np.flatnonzero((np.ptp(phi, axis=0) == 0) & (phi[0] != 0))
    if len(constant) > 1 or (len(constant) == 1 and phi[0, constant[0]] != 1.0):
        return  # constants share the penalty in another way
    options = {"l1_ratio": 1.0, "adaptive_penalty": HUGE / LAM}
    predicted = fitted_model(adaptivity, rows.X, rows.y, **options).predict(rows.X)
    expected = means_of(rows.y, cells_of(adaptivity, rows))
    if len(constant):
        X = np.where(mask[1:, constant[0]], rows.X, 0.0)  # features outside of the mask have no weight
        n_k = np.where(mask, fitted.counts(rows.M, np.ones(len(X))), 0.0)
        static = _StaticWithFactors(np.asarray(fitted.penalty_factors(n_k))[:, constant])
        expected = fitted_model(static, X, rows.y, l1_ratio=1.0).predict(X)
    wrong = "under a huge adaptive_penalty the model is not the static one: let a basis function that is 1 be exactly 1"
    require_close(adaptivity, predicted, expected, wrong)


class _StaticWithFactors(Static):
    """Static weights with given penalty factors."""

    def __init__(self, factors: FloatArray) -> None:
        self.factors = factors

    def penalty_factors(self, counts: FloatArray) -> FloatArray:
        return self.factors


def check_shifted_target(adaptivity: Adaptivity) -> None:
    """A constant added to y is added to the predictions, on all patterns."""
    rows, shift = contract_rows(), 100.0
    new, _ = rows_of_all_patterns()
    first, second = fitted_model(adaptivity, rows.X, rows.y), fitted_model(adaptivity, rows.X, rows.y + shift)
    wrong = (
        "predictions for y + 100 are not those for y plus 100: structure must not penalise the intercept, row 0 of W, "
        "except by differences"
    )
    for X in (rows.X, new):
        require_close(adaptivity, second.predict(X), first.predict(X) + shift, wrong)


def check_never_observed_feature(adaptivity: Adaptivity) -> None:
    """A feature that is never observed changes nothing."""
    rows = contract_rows()
    wider = np.insert(rows.X, 2, np.nan, axis=1)
    wrong = "a feature that is never observed changes the model: take the number of features from M"
    predicted = fitted_model(adaptivity, wider, rows.y).predict(wider)
    require_close(adaptivity, predicted, fitted_model(adaptivity, rows.X, rows.y).predict(rows.X), wrong)


def check_one_feature(adaptivity: Adaptivity) -> None:
    """The class can be fitted to a single feature, as the number of features must not be fixed."""
    rows = contract_rows()
    predicted = fitted_model(adaptivity, rows.X[:, :1], rows.y).predict(np.array([[1.0], [np.nan]]))
    require(np.isfinite(predicted).all(), "predictions with a single feature are not finite: handle d = 1")


def check_weights(adaptivity: Adaptivity) -> None:
    """A weight is equivalent to that many copies of a row."""
    rows = contract_rows()
    s = np.random.RandomState(6).randint(0, 4, size=len(rows.y))
    weighted = fitted_model(adaptivity, rows.X, rows.y, s)
    copies = fitted_model(adaptivity, np.repeat(rows.X, s, axis=0), np.repeat(rows.y, s))
    wrong = "weights of rows are not equivalent to copies: let fit accept sample_weight as a third argument, and use it"
    require_close(adaptivity, weighted.predict(rows.X), copies.predict(rows.X), wrong)


def check_row_order(adaptivity: Adaptivity) -> None:
    """The order of the training rows does not matter."""
    rows = contract_rows()
    order = np.random.RandomState(7).permutation(len(rows.y))
    first, second = fitted_model(adaptivity, rows.X, rows.y), fitted_model(adaptivity, rows.X[order], rows.y[order])
    wrong = (
        "the order of the training rows matters: let fit learn from them as a set, for instance sorted; a randomised "
        "learner draws rows by their positions, so sort them first or let it use all of them"
    )
    require_close(adaptivity, second.predict(rows.X), first.predict(rows.X), wrong)


def check_permuted_features(adaptivity: Adaptivity) -> None:
    """Permuted features have the same coefficients, permuted."""
    rows, order = contract_rows(), [2, 0, 3, 1]
    first, second = fitted_model(adaptivity, rows.X, rows.y), fitted_model(adaptivity, rows.X[:, order], rows.y)
    wrong = "permuted features have other coefficients: treat all features alike, or skip this check with a reason"
    require_close(adaptivity, second.predict(rows.X[:, order]), first.predict(rows.X), wrong)
    for pattern in PatternTable.of(rows.M).patterns if adaptivity.linear_at_patterns() else ():
        require_close(adaptivity, second.coef_at(pattern[order]), first.coef_at(pattern)[order], wrong)


def check_units(adaptivity: Adaptivity) -> None:
    """The units of the features do not matter to predictions."""
    rows, units = contract_rows(), np.array([1e-3, 1.0, 1e4, 30.0])
    first, second = fitted_model(adaptivity, rows.X, rows.y), fitted_model(adaptivity, rows.X * units, rows.y)
    wrong = "the units of the features matter: return columns (j, k) in the units of x_j, and no units in structure"
    require_close(adaptivity, second.predict(rows.X * units), first.predict(rows.X), wrong)


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
        by_coefficients = model.intercept_at(np.isnan(x)) + w @ np.nan_to_num(x)
        wrong = "coef_at and intercept_at do not give the prediction: make columns affine in x at every pattern"
        require_close(adaptivity, by_coefficients, predicted, wrong)


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


def _stated_program(model: Any, rows: ContractRows, solver: str | None) -> tuple[float, FloatArray]:
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
    for center in (True, False):
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
        log_odds = model.intercept_at(pattern) + model.coef_at(pattern) @ np.nan_to_num(x)
        wrong = "coef_at and intercept_at do not give the log-odds: make columns affine"
        require_close(adaptivity, log_odds, score, wrong)
    if adaptivity.has_structure():
        return
    stated = AdaptiveClassifier(adaptivity, lam=LAM, solver="cvxpy").fit(rows.X, labels).decision_function(rows.X)
    require_close(adaptivity, stated, scores, "solver='auto' and solver='cvxpy' do not give the same log-odds", 1e-4)
    share = means_of((labels == "low").astype(float), cells_of(adaptivity, rows))
    probabilities = (
        AdaptiveClassifier(adaptivity, lam=HUGE, l1_ratio=1.0).fit(rows.X, labels).predict_proba(rows.X)[:, 1]
    )
    wrong = "under a huge penalty probabilities are not the shares of classes: check counts"
    require_close(adaptivity, probabilities, share, wrong)


def _high_in_its_pattern(rows: ContractRows) -> BoolArray:
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
    if declared_degree(adaptivity) is not None and not adaptivity.has_structure() and not replaces_columns(adaptivity):
        # raises if the declared degree of the weights is wrong
        bias_bound(adaptivity, X.shape[1], 1.0, adaptive_intercept=False)


CHECKS_OF_FITS = by_name([
    check_unseen_patterns, check_complete_data, check_least_squares, check_large_penalty,
    check_large_adaptive_penalty, check_shifted_target, check_never_observed_feature, check_one_feature,
    check_weights, check_row_order, check_permuted_features, check_units, check_coefficients, check_printing,
    check_solvers, check_folds, check_classification, check_bounds,
])  # fmt: skip
