"""Checks of models fitted with an adaptivity class: unseen patterns, limits, symmetries.

Each compares two computations that must agree: the class with the static one, least squares or means, weights with
copies of rows, and models of rows that are shifted, permuted, in other units, or have one more feature.
"""

import warnings

import numpy as np

from admiss.adaptivity import Adaptivity, Static
from admiss.bounds.counts import all_patterns, dense
from admiss.patterns import PatternTable
from admiss.testing.rows import (
    HUGE,
    LAM,
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
from formulations.arrays import FloatArray


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
    if adaptivity.has_structure():  # may penalise the remaining weights
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
    X = centred(rows.X)
    columns = dense(fitted_class(adaptivity, X).columns(X, rows.M))
    A = np.column_stack([np.ones(len(columns)), columns])
    expected = A @ np.linalg.lstsq(A, rows.y, rcond=None)[0]
    found = fitted_model(adaptivity, rows.X, rows.y, lam=0.0).predict(rows.X)
    wrong = "at lam = 0 the model is not least squares on its columns: make fit and columns consistent"
    require_close(adaptivity, found, expected, wrong)


def check_large_penalty(adaptivity: Adaptivity) -> None:
    """Under a huge penalty the prediction is the mean, or that of each cell; with a structure it is constant there."""
    if adaptivity.has_structure() and _has_constraints(adaptivity):
        return  # constraints may require weights under any penalty
    rows = contract_rows()
    found = fitted_model(adaptivity, rows.X, rows.y, lam=HUGE, l1_ratio=1.0).predict(rows.X)
    cells = cells_of(adaptivity, rows)
    if adaptivity.has_structure():
        expected, what = means_of(found, cells), "constant"
    else:
        expected, what = means_of(rows.y, cells), "the mean of y"
    where = " on each cell" if adaptivity.cells else ""
    wrong = f"under a huge penalty the prediction is not {what}{where}: check counts, and cells (for indicators only)"
    require_close(adaptivity, found, expected, wrong)


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
    found = fitted_model(adaptivity, rows.X, rows.y, **options).predict(rows.X)
    expected = means_of(rows.y, cells_of(adaptivity, rows))
    if len(constant):
        X = np.where(mask[1:, constant[0]], rows.X, 0.0)  # features outside of the mask have no weight
        n_k = np.where(mask, fitted.counts(rows.M, np.ones(len(X))), 0.0)
        static = _StaticWithFactors(np.asarray(fitted.penalty_factors(n_k))[:, constant])
        expected = fitted_model(static, X, rows.y, l1_ratio=1.0).predict(X)
    wrong = "under a huge adaptive_penalty the model is not the static one: let a basis function that is 1 be exactly 1"
    require_close(adaptivity, found, expected, wrong)


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
    found = fitted_model(adaptivity, wider, rows.y).predict(wider)
    require_close(adaptivity, found, fitted_model(adaptivity, rows.X, rows.y).predict(rows.X), wrong)


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
    wrong = "the order of the training rows matters: let fit learn from them as a set, for instance sorted"
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


CHECKS_OF_FITS = by_name([
    check_unseen_patterns, check_complete_data, check_least_squares, check_large_penalty, check_large_adaptive_penalty,
    check_shifted_target, check_never_observed_feature, check_one_feature, check_weights, check_row_order,
    check_permuted_features, check_units,
])  # fmt: skip
