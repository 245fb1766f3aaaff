"""What the contract asks of models that are fitted with an adaptivity class.

Two computations that must agree: the class against the static one, weights against copies of rows, the fast engine
against cvxpy, coefficients against predictions, p(F) against the rank of the columns. Models without a structure agree
to 1e-6 of the spread of y; with one, where an interior-point method solves each, to 1e-4; and SCS, a first-order
method that stops much earlier, to 1e-2 in predictions and 1e-4 in the objective.
"""

import warnings
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from admiss.adaptivity import Adaptivity
from admiss.adaptivity.contract_parts import (
    PATTERN_ROWS,
    Rows,
    by_name,
    contract_rows,
    fitted_class,
    replaces_columns,
    require,
)
from admiss.bounds import bias_bound, coefficient_count, generalization_bound
from admiss.bounds.counts import all_patterns, dense
from admiss.linear import AdaptiveClassifier, AdaptiveRegressor
from admiss.linear_cv import AdaptiveRegressorCV
from admiss.patterns import BoolArray, FloatArray, PatternTable
from admiss.penalty import penalty_weights

# A penalty under which nothing but the free intercept is left.
HUGE = 1e6
LAM = 0.5


def fitted_model(adaptivity: Adaptivity | str, X: FloatArray, y: Any, weights: Any = None, **options: Any) -> Any:
    """A regressor with a penalty that makes its coefficients unique."""
    return AdaptiveRegressor(adaptivity, **{"lam": LAM, **options}).fit(X, y, weights)


def require_close(
    adaptivity: Adaptivity, found: Any, expected: Any, wrong: str, tolerance: float | None = None
) -> None:
    """Fail where numbers in the units of y differ; y varies by about 3."""
    allowed = tolerance or (1e-4 if adaptivity.has_structure() else 1e-6)
    difference = np.max(np.abs(np.asarray(found) - np.asarray(expected)), initial=0.0)
    require(difference <= 3 * allowed, f"{wrong} (they differ by {difference:.2g})")


def check_unseen_patterns(adaptivity: Adaptivity) -> None:
    """Patterns that training has not seen have a finite prediction, and are told where that is asked for."""
    rows = contract_rows()
    seen = rows.M.sum(axis=1) <= 1
    new, _ = _rows_of_all_patterns()
    fitted = fitted_class(adaptivity, rows.X[seen])
    phi = dense(fitted.basis(all_patterns(new.shape[1])))
    do = "define the basis for every pattern, for instance by the nearest one that fit has seen"
    require(np.isfinite(phi).all(), f"basis(M) holds NaN or infinity on patterns that fit has not seen: {do}")
    size = dense(fitted.basis(rows.M[seen].astype(float))).shape[1]
    require(phi.shape[1] == size, f"basis(M) has other columns on patterns that fit has not seen: {do}")
    model = fitted_model(adaptivity, rows.X[seen], rows.y[seen])
    require(
        np.isfinite(model.predict(new)).all(), f"predictions on patterns that fit has not seen are not finite: {do}"
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.set_params(on_unseen_pattern="warn").predict(new)
    try:
        model.set_params(on_unseen_pattern="error").predict(new)
        refused = False
    except ValueError:
        refused = True
    require(told and refused, "on_unseen_pattern is not heeded: leave X and its NaN to the estimator")


def _rows_of_all_patterns(each: int = 1) -> tuple[FloatArray, BoolArray]:
    """Random rows of every pattern."""
    M = np.repeat(all_patterns(4).astype(bool), each, axis=0)
    return np.where(M, np.nan, np.random.RandomState(5).standard_normal(M.shape)), M


def check_complete_data(adaptivity: Adaptivity) -> None:
    """Without missing values the class can be fitted, and without a penalty it is the static one."""
    rows = contract_rows()
    if adaptivity.has_structure():  # may weigh on the weights that are left
        predicted = fitted_model(adaptivity, rows.values, rows.y).predict(rows.values)
        require(
            np.isfinite(predicted).all(), "predictions without missing values are not finite: see to one basis function"
        )
        return
    own, static = (fitted_model(a, rows.values, rows.y, lam=0.0).predict(rows.values) for a in (adaptivity, "static"))
    require_close(
        adaptivity, own, static,
        "without missing values least squares is not that of the static class: have a basis function that is not 0 "
        "where nothing is missing, with every feature in its mask",
    )  # fmt: skip


def check_least_squares(adaptivity: Adaptivity) -> None:
    """Without a penalty the model is least squares on the columns and an intercept."""
    if adaptivity.has_structure():
        return
    rows = contract_rows()
    columns = dense(fitted_class(adaptivity, rows.X).columns(rows.X, rows.M))
    A = np.column_stack([np.ones(len(columns)), columns])
    expected = A @ np.linalg.lstsq(A, rows.y, rcond=None)[0]
    found = fitted_model(adaptivity, rows.X, rows.y, lam=0.0).predict(rows.X)
    wrong = "at lam = 0 the model is not least squares on its columns: see that fit and columns learn and give the same"
    require_close(adaptivity, found, expected, wrong)


def check_large_penalty(adaptivity: Adaptivity) -> None:
    """Under a huge penalty the prediction is the mean, or that of each cell; with a structure it is constant there."""
    rows = contract_rows()
    found = fitted_model(adaptivity, rows.X, rows.y, lam=HUGE, l1_ratio=1.0).predict(rows.X)
    cells = _cells(adaptivity, rows)
    if adaptivity.has_structure():
        expected, what = _means(found, cells), "constant"
    else:
        expected, what = _means(rows.y, cells), "the mean of y"
    where = " on each cell" if adaptivity.cells else ""
    wrong = (
        f"under a huge penalty the prediction is not {what}{where}: see to counts, and to cells (for indicators only)"
    )
    require_close(adaptivity, found, expected, wrong)


def _cells(adaptivity: Adaptivity, rows: Rows) -> Any:
    """For each row the cell with its own free intercept."""
    if not adaptivity.cells:
        return np.zeros(len(rows.y), dtype=int)
    phi = dense(fitted_class(adaptivity, rows.X).basis(rows.M.astype(float)))
    indicators = np.isin(phi, (0.0, 1.0)).all() and (phi.sum(axis=1) == 1).all()
    require(indicators, "cells is True, but the basis functions are not indicators of cells: set it to False")
    return phi.argmax(axis=1)


def _means(values: FloatArray, groups: Any) -> FloatArray:
    return (np.bincount(groups, values) / np.maximum(np.bincount(groups), 1))[groups]


def check_large_adaptive_penalty(adaptivity: Adaptivity) -> None:
    """Under a huge penalty on what depends on the pattern the static model is left, or the means of cells."""
    if adaptivity.has_structure() or replaces_columns(adaptivity):
        return
    rows = contract_rows()
    fitted = fitted_class(adaptivity, rows.X)
    phi, mask = dense(fitted.basis(rows.M.astype(float))), np.asarray(fitted.mask(rows.X.shape[1]))
    constant = np.flatnonzero((np.ptp(phi, axis=0) == 0) & (phi[0] != 0))
    if len(constant) > 1 or (len(constant) == 1 and phi[0, constant[0]] != 1.0):
        return  # constants share the penalty in some other way
    options = {"l1_ratio": 1.0, "adaptive_penalty": HUGE / LAM}
    found = fitted_model(adaptivity, rows.X, rows.y, **options).predict(rows.X)
    expected = _means(rows.y, _cells(adaptivity, rows))
    if len(constant):
        X = np.where(mask[1:, constant[0]], rows.X, 0.0)  # features outside of the mask have no weight
        expected = fitted_model("static", X, rows.y, l1_ratio=1.0).predict(X)
    wrong = "under a huge adaptive_penalty the model is not the static one: let a basis function that is 1 be exactly 1"
    require_close(adaptivity, found, expected, wrong)


def check_weights(adaptivity: Adaptivity) -> None:
    """A weight equals that many copies of a row."""
    rows = contract_rows()
    s = np.random.RandomState(6).randint(0, 4, size=len(rows.y))
    weighted = fitted_model(adaptivity, rows.X, rows.y, s)
    copies = fitted_model(adaptivity, np.repeat(rows.X, s, axis=0), np.repeat(rows.y, s))
    wrong = (
        "weights of rows are not the same as copies of them: let fit take sample_weight as a third argument, and use it"
    )
    require_close(adaptivity, weighted.predict(rows.X), copies.predict(rows.X), wrong)


def check_row_order(adaptivity: Adaptivity) -> None:
    """The order of the training rows does not matter."""
    rows = contract_rows()
    order = np.random.RandomState(7).permutation(len(rows.y))
    first, second = fitted_model(adaptivity, rows.X, rows.y), fitted_model(adaptivity, rows.X[order], rows.y[order])
    wrong = "the order of the training rows matters: let fit learn from them as a set, for instance sorted"
    require_close(adaptivity, second.predict(rows.X), first.predict(rows.X), wrong)


def check_permuted_features(adaptivity: Adaptivity) -> None:
    """Permuted features have the same coefficients, permuted."""
    rows, order = contract_rows(), [2, 0, 3, 1]
    first, second = fitted_model(adaptivity, rows.X, rows.y), fitted_model(adaptivity, rows.X[:, order], rows.y)
    wrong = "permuted features have other coefficients: treat features alike, or leave this check out with a reason"
    require_close(adaptivity, second.predict(rows.X[:, order]), first.predict(rows.X), wrong)
    for pattern in PatternTable.of(rows.M).patterns if adaptivity.linear_at_patterns() else ():
        require_close(adaptivity, second.coef_at(pattern[order]), first.coef_at(pattern)[order], wrong)


def check_units(adaptivity: Adaptivity) -> None:
    """Units of the features do not matter to predictions."""
    rows, units = contract_rows(), np.array([1e-3, 1.0, 1e4, 30.0])
    first, second = fitted_model(adaptivity, rows.X, rows.y), fitted_model(adaptivity, rows.X * units, rows.y)
    wrong = "the units of the features matter: give columns (j, k) in the units of x_j, and a structure none of its own"
    require_close(adaptivity, second.predict(rows.X * units), first.predict(rows.X), wrong)


def check_never_observed_feature(adaptivity: Adaptivity) -> None:
    """A feature that is never observed changes nothing."""
    rows = contract_rows()
    wider = np.insert(rows.X, 2, np.nan, axis=1)
    wrong = "a feature that is never observed changes the model: take the number of features from M, and fix it nowhere"
    found = fitted_model(adaptivity, wider, rows.y).predict(wider)
    require_close(adaptivity, found, fitted_model(adaptivity, rows.X, rows.y).predict(rows.X), wrong)


def check_one_feature(adaptivity: Adaptivity) -> None:
    """The class can be fitted to a single feature."""
    rows = contract_rows()
    predicted = fitted_model(adaptivity, rows.X[:, :1], rows.y).predict(np.array([[1.0], [np.nan]]))
    require(np.isfinite(predicted).all(), "predictions with a single feature are not finite: see to small d")


def check_coefficients(adaptivity: Adaptivity) -> None:
    """At every pattern coef_at and intercept_at give the prediction, with weight 0 for what is missing."""
    if not adaptivity.linear_at_patterns():
        return
    rows = contract_rows()
    model = fitted_model(adaptivity, rows.X, rows.y)
    new, _ = _rows_of_all_patterns()
    for x, predicted in zip(new, model.predict(new), strict=True):
        w = model.coef_at(np.isnan(x))
        zero = np.abs(w[np.isnan(x)]).max(initial=0.0) == 0.0
        require(
            zero, "a missing feature has a weight that is not 0: let columns be the same whatever stands under a NaN"
        )
        found = model.intercept_at(np.isnan(x)) + w @ np.nan_to_num(x)
        wrong = "coef_at and intercept_at do not give the prediction: make columns affine in x at every pattern"
        require_close(adaptivity, found, predicted, wrong)


def check_solvers(adaptivity: Adaptivity) -> None:
    """The fast engine, cvxpy and the program as it is stated, with other solvers, agree."""
    rows = contract_rows()
    model = fitted_model(adaptivity, rows.X, rows.y)
    predicted, objective = model.predict(rows.X), model.certificate_.objective
    proven = model.certificate_.status == "optimal"
    require(
        proven,
        f"its fit is not proven optimal ({model.certificate_.status}): see to the scale of columns and structure",
    )
    if not adaptivity.has_structure():
        stated = fitted_model(adaptivity, rows.X, rows.y, solver="cvxpy")
        wrong = (
            "solver='auto' and solver='cvxpy' do not give the same model: let columns not depend on when they are asked"
        )
        require_close(adaptivity, stated.predict(rows.X), predicted, wrong)
        require_close(adaptivity, stated.certificate_.objective, objective, wrong)
    own, _ = _stated_program(model, rows, None)
    wrong = "the certificate has another objective than the stated program: let structure and columns be pure functions"
    require_close(adaptivity, own, objective, wrong)
    precisions = (
        {"CLARABEL": (1e-4, 1e-3), "SCS": (1e-4, 1e-2)} if adaptivity.has_structure() else {"OSQP": (1e-5, 1e-3)}
    )
    for solver, (of_objective, of_predictions) in precisions.items():
        value, z = _stated_program(model, rows, solver)
        wrong = (
            f"{solver} finds another optimum of the stated program: see that the structure is convex and bounded below"
        )
        require_close(adaptivity, value, objective, wrong, of_objective)
        require_close(adaptivity, z, predicted, wrong, of_predictions)


def _stated_program(model: Any, rows: Rows, solver: str | None) -> tuple[float, FloatArray]:
    """Objective and predictions of the program, written down plainly: at the model's coefficients, or solved."""
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
        if problem.objective.value is None:  # the structure has variables of its own
            cp.Problem(problem.objective, [*constraints, w == w.value]).solve(solver="CLARABEL")
    else:
        tight = {
            "SCS": {"eps_abs": 1e-7, "eps_rel": 1e-7},
            "OSQP": {"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iter": 50_000},
        }
        problem.solve(solver=solver, **tight.get(solver, {}))
    return float(problem.objective.value), A @ w.value


def check_folds(adaptivity: Adaptivity) -> None:
    """The held-out losses of AdaptiveRegressorCV are those of models that are fitted anew in each fold."""
    if adaptivity.has_structure():
        return
    rows, folds = contract_rows(), list(KFold(3).split(np.zeros((sum(PATTERN_ROWS.values()), 1))))
    search = AdaptiveRegressorCV(adaptivity, l1_ratios=[0.5], adaptive_penalties=[1.0], n_lambdas=3, cv=folds)
    results = search.fit(rows.X, rows.y).cv_results_
    for lam, loss in zip(results["lam"], results["mean_loss"], strict=True):
        errors = [
            fitted_model(adaptivity, rows.X[train], rows.y[train], lam=lam).predict(rows.X[test]) - rows.y[test]
            for train, test in folds
        ]
        wrong = "folds do not refit all that the class learns: keep it in attributes of the copy that fit returns"
        require_close(adaptivity, np.mean(np.concatenate(errors) ** 2), loss, wrong, 1e-4)


def check_classification(adaptivity: Adaptivity) -> None:
    """A classifier has finite log-odds that its coefficients give, on which engine and cvxpy agree, and limits."""
    rows = contract_rows()
    labels = np.where(_high_in_its_pattern(rows), "high", "low")
    model = AdaptiveClassifier(adaptivity, lam=LAM).fit(rows.X, labels)
    scores = model.decision_function(rows.X)
    require(np.isfinite(scores).all(), "log-odds are not finite: see to the structure and to cells")
    for x, score in zip(rows.X, scores, strict=True) if adaptivity.linear_at_patterns() else ():
        pattern = np.isnan(x)
        found = model.intercept_at(pattern) + model.coef_at(pattern) @ np.nan_to_num(x)
        require_close(
            adaptivity, found, score, "coef_at and intercept_at do not give the log-odds: make columns affine"
        )
    if adaptivity.has_structure():
        return
    stated = AdaptiveClassifier(adaptivity, lam=LAM, solver="cvxpy").fit(rows.X, labels).decision_function(rows.X)
    require_close(adaptivity, stated, scores, "solver='auto' and solver='cvxpy' do not give the same log-odds", 1e-4)
    share = _means((labels == "low").astype(float), _cells(adaptivity, rows))
    found = AdaptiveClassifier(adaptivity, lam=HUGE, l1_ratio=1.0).fit(rows.X, labels).predict_proba(rows.X)[:, 1]
    require_close(
        adaptivity, found, share, "under a huge penalty probabilities are not the shares of classes: see to counts"
    )


def _high_in_its_pattern(rows: Rows) -> BoolArray:
    """Whether y is above the median of its pattern, so that both classes are in every one."""
    codes = PatternTable.of(rows.M).codes
    medians = np.array([np.median(rows.y[codes == code]) for code in range(len(PATTERN_ROWS))])
    return np.asarray(rows.y > medians[codes])


def check_bounds(adaptivity: Adaptivity) -> None:
    """The coefficients p(F) are the rank of the columns over all patterns, and the bound of Theorem 1 takes them."""
    X, M = _rows_of_all_patterns(each=8)
    rank = int(np.linalg.matrix_rank(dense(fitted_class(adaptivity, X).columns(X, M))))
    p = coefficient_count(adaptivity, X.shape[1])
    wrong = (
        f"p(F) is {p}, but the columns have rank {rank} over all patterns: let the basis not depend on the values of X"
    )
    require(p == rank, wrong)
    few, many = (generalization_bound(n, X.shape[1], adaptivity, sigma2=1.0, L=1.0, bias=0.5) for n in (1e3, 1e6))
    expected = 1.0 + 8 * 0.5 + (1 + np.log(1e3)) / 1e3 * rank
    require(
        np.isclose(few.total, expected) and many.total < few.total,
        "Theorem 1 does not take p(F): leave it to the basis",
    )
    if hasattr(adaptivity, "degree") and not adaptivity.has_structure() and not replaces_columns(adaptivity):
        bias_bound(adaptivity, X.shape[1], 1.0)  # refuses a degree that the class does not have


CHECKS_OF_FITS = by_name([
    check_unseen_patterns, check_complete_data, check_least_squares, check_large_penalty, check_large_adaptive_penalty,
    check_weights, check_row_order, check_permuted_features, check_units, check_never_observed_feature,
    check_one_feature, check_coefficients, check_solvers, check_folds, check_classification, check_bounds,
])  # fmt: skip
